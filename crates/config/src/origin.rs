//! Where a value was written.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::escape::escape_path;

/// The layer that a value belongs to, and its place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Built in.
    Default,
    /// A line of a file, counted from 1.
    File { path: Arc<Path>, line: usize },
    /// An environment variable's name.
    Variable(String),
    /// A flag as it is typed.
    Flag(&'static str),
}

impl Origin {
    /// The origin together with the setting: a file's line needs the key, a variable or flag says it
    /// itself.
    pub(crate) fn with_key(&self, key: &str) -> String {
        match self {
            Origin::File { .. } | Origin::Default => format!("{self}: {key}"),
            Origin::Variable(_) | Origin::Flag(_) => self.to_string(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } => write!(f, "{}:{line}", escape_path(path)),
            Origin::Variable(name) => f.write_str(name),
            Origin::Flag(typed) => f.write_str(typed),
        }
    }
}
