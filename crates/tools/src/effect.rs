//! What a call would do to the world. It is known before the call runs, and it is all that a gate judges.

use ikigai_conversation::EffectKind;

/// One thing that a call would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Reads, lists or searches this path, as the model named it.
    Read(String),
    /// Creates or changes it.
    Write(String),
    /// Runs a command.
    Command {
        /// The whole of it.
        command: String,
        /// Whether the call asks to leave the sandbox.
        leaves_sandbox: bool,
        /// Whether it asks for the network, inside the sandbox.
        wants_network: bool,
    },
    /// Reaches this host.
    Host(String),
    /// Works on the database.
    Database,
    /// Not known.
    Unknown,
}

impl Effect {
    /// What kind of effect it is.
    pub fn kind(&self) -> EffectKind {
        match self {
            Effect::Read(_) => EffectKind::Read,
            Effect::Write(_) => EffectKind::Write,
            Effect::Command { .. } => EffectKind::Command,
            Effect::Host(_) => EffectKind::Host,
            Effect::Database => EffectKind::Database,
            Effect::Unknown => EffectKind::Unknown,
        }
    }
}
