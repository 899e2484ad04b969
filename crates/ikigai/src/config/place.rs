//! Where a value was written.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::escape::escape_path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Built in.
    Default,
    /// A line of a file, counted from 1.
    File { path: Arc<Path>, line: usize },
    /// An environment variable's name.
    Variable(String),
    /// A flag as it is typed.
    Flag(&'static str),
}

impl Place {
    /// The place together with the setting: a file's line needs the key, a variable or flag says it
    /// itself.
    pub(super) fn with_key(&self, key: &str) -> String {
        match self {
            Place::File { .. } | Place::Default => format!("{self}: {key}"),
            Place::Variable(_) | Place::Flag(_) => self.to_string(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Default => f.write_str("default"),
            Place::File { path, line } => write!(f, "{}:{line}", escape_path(path)),
            Place::Variable(name) => f.write_str(name),
            Place::Flag(typed) => f.write_str(typed),
        }
    }
}
