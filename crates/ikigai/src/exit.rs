//! How the program ends.

use std::process::ExitCode;

/// What the shell is told. Wrong usage is 2 and comes from the command line's parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Failed,
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Interrupted => 130,
        })
    }
}
