//! How the program ends.

use std::process::ExitCode;

/// What the shell is told. Most wrong usage is told by the command line's parser, with the same code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Failed,
    WrongUsage,
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::WrongUsage => 2,
            Exit::Interrupted => 130,
        })
    }
}
