//! Whether a call may be carried out.

mod guarded;

pub(crate) use guarded::is_guarded;

/// How far a call that is permitted may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// A command stays in the sandbox, a file tool in the working tree.
    Tree,
    /// The same, and a file tool may write there what a person is always asked for.
    TreeAndGuarded,
    /// Wherever the user may.
    Anywhere,
}
