//! Where a value was set.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::escape::escape_path;

/// The layer of a value, and its position there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Built in.
    Default,
    /// A line of a file, counted from 1.
    File { path: Arc<Path>, line: usize },
    /// An environment variable's name.
    Variable(String),
    /// A flag as the user types it.
    Flag(&'static str),
}

impl Origin {
    /// The origin together with the setting: a line of a file needs the key, while a variable or
    /// flag implies it.
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
