//! What stands in a file that a call would change, for the user who has to approve that.

use std::io::{self, Read};

use ikigai_conversation::Preview;

use crate::context::Context;
use crate::diff::whole_diff;
use crate::file_error::FileError;

/// Larger files are not shown: a user would not read them, and a diff would take its time.
const SHOWN_BYTES: u64 = 1024 * 1024;

/// What a file holds now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Present {
    /// There is no file.
    Nothing,
    /// This text.
    Text(String),
    /// So many bytes that are no text, or too many to show.
    NotShown { bytes: u64 },
    /// It cannot be read.
    Unknown,
}

impl Present {
    /// Looks into the file at `path`, as a model named it.
    pub(crate) fn of(context: &Context, path: &str) -> Present {
        let (file, bytes) = match context.open_to_read(path) {
            Ok(opened) => opened,
            Err(FileError::System(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Present::Nothing;
            }
            Err(_) => return Present::Unknown,
        };
        if bytes > SHOWN_BYTES {
            return Present::NotShown { bytes };
        }
        let mut text = String::new();
        match file.take(SHOWN_BYTES).read_to_string(&mut text) {
            Ok(count) if count as u64 == bytes => Present::Text(text),
            Ok(_) | Err(_) => Present::NotShown { bytes },
        }
    }
}

/// The preview of a change of a file, all of it.
pub(crate) fn whole_change(path: &str, remark: Option<String>, old: &str, new: &str) -> Preview {
    Preview::Change { remark, diff: whole_diff(path, old, new) }
}
