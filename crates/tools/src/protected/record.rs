//! What was done about a finding, as a sentence and as a file for other processes.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::{ffi::OsString, os::unix::ffi::OsStrExt, os::unix::ffi::OsStringExt};

use super::finding::{Change, Finding};

/// The first line of a record.
const HEADER: &str = "ikigai quarantine 1";
/// Longer paths and reasons are cut in sentences.
const LONGEST_SHOWN: usize = 300;

/// What was done about a [`Finding`]. Its [`Display`] is one sentence for the user and the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Identifies the record in its quarantine folder; ids sort by age. Empty if nothing can be put
    /// back.
    pub id: String,
    /// The finding.
    pub finding: Finding,
    /// Where the file is now.
    pub moved: MoveOutcome,
    /// Whether the earlier version was restored.
    pub restored: RestoreOutcome,
}

/// Where a quarantined file is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MoveOutcome {
    /// In the quarantine.
    ToQuarantine,
    /// It could not be moved there and was renamed to this absolute path.
    Aside(PathBuf),
    /// It was gone already.
    Gone,
    /// It is still in place, for this reason.
    Not(String),
}

/// Whether the earlier version was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// It was.
    Yes,
    /// There was none.
    NoPrevious,
    /// It could not be restored, for this reason.
    Not(String),
}

impl Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = shown(&self.finding.path.to_string_lossy());
        let is_moved = matches!(self.moved, MoveOutcome::ToQuarantine | MoveOutcome::Aside(_));
        match &self.moved {
            MoveOutcome::ToQuarantine => write!(f, "Moved {path} to quarantine {}", self.id)?,
            MoveOutcome::Aside(to) => {
                write!(f, "Renamed {path} to {}", shown(&to.to_string_lossy()))?;
            }
            MoveOutcome::Gone => {}
            MoveOutcome::Not(reason) => {
                write!(f, "Could not quarantine {path} ({})", shown(reason))?;
            }
        }
        match (&self.restored, is_moved) {
            (RestoreOutcome::Yes, true) => f.write_str(" and restored its previous version")?,
            (RestoreOutcome::Yes, false) => write!(f, "Restored {path}")?,
            (RestoreOutcome::Not(reason), true) => {
                write!(f, ", but could not restore its previous version ({})", shown(reason))?;
            }
            (RestoreOutcome::Not(reason), false) if self.moved == MoveOutcome::Gone => {
                write!(f, "Could not restore {path} ({})", shown(reason))?;
            }
            (RestoreOutcome::NoPrevious, false) if self.moved == MoveOutcome::Gone => {
                write!(f, "{path} is gone again")?;
            }
            (RestoreOutcome::NoPrevious | RestoreOutcome::Not(_), _) => {}
        }
        write!(f, ", because {}", shown(&self.finding.reason))
    }
}

impl Record {
    /// A deletion that was reverted can be repeated. A renamed file in the tree is left to the
    /// user: a command may have changed it since.
    pub(super) fn can_be_put_back(&self) -> bool {
        match self.moved {
            MoveOutcome::ToQuarantine => true,
            MoveOutcome::Gone => self.restored == RestoreOutcome::Yes,
            MoveOutcome::Aside(_) | MoveOutcome::Not(_) => false,
        }
    }

    /// One line per field; values contain neither spaces nor line ends.
    pub(super) fn encode(&self) -> String {
        let Finding { root, path, change, reason } = &self.finding;
        let change = match change {
            Change::New => "new",
            Change::Changed => "changed",
            Change::Deleted => "deleted",
        };
        let (moved, moved_detail) = match &self.moved {
            MoveOutcome::ToQuarantine => ("quarantine", escaped(b"")),
            MoveOutcome::Aside(path) => ("aside", escaped_path(path)),
            MoveOutcome::Gone => ("gone", escaped(b"")),
            MoveOutcome::Not(reason) => ("not", escaped(reason.as_bytes())),
        };
        let (restored, restored_detail) = match &self.restored {
            RestoreOutcome::Yes => ("yes", escaped(b"")),
            RestoreOutcome::NoPrevious => ("none", escaped(b"")),
            RestoreOutcome::Not(reason) => ("not", escaped(reason.as_bytes())),
        };
        format!(
            "{HEADER}\nroot {}\npath {}\nchange {change}\nreason {}\nmoved {moved} {moved_detail}\n\
             restored {restored} {restored_detail}\n",
            escaped_path(root),
            escaped_path(path),
            escaped(reason.as_bytes()),
        )
    }

    pub(super) fn decode(id: &str, text: &str) -> Option<Record> {
        let mut lines = text.lines();
        if lines.next()? != HEADER {
            return None;
        }
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let root = unescaped_path(field("root")?)?;
        let path = unescaped_path(field("path")?)?;
        let change = match field("change")? {
            "new" => Change::New,
            "changed" => Change::Changed,
            "deleted" => Change::Deleted,
            _ => return None,
        };
        let reason = unescaped_text(field("reason")?)?;
        let moved = match field("moved")?.split_once(' ')? {
            ("quarantine", _) => MoveOutcome::ToQuarantine,
            ("aside", path) => MoveOutcome::Aside(unescaped_path(path)?),
            ("gone", _) => MoveOutcome::Gone,
            ("not", reason) => MoveOutcome::Not(unescaped_text(reason)?),
            _ => return None,
        };
        let restored = match field("restored")?.split_once(' ')? {
            ("yes", _) => RestoreOutcome::Yes,
            ("none", _) => RestoreOutcome::NoPrevious,
            ("not", reason) => RestoreOutcome::Not(unescaped_text(reason)?),
            _ => return None,
        };
        let finding = Finding { root, path, change, reason };
        Some(Record { id: id.to_owned(), finding, moved, restored })
    }
}

/// Escapes a text from a hostile tree for the terminal, and cuts it.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match c {
            ' '..='~' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
        if shown.len() > LONGEST_SHOWN {
            shown.push('…');
            break;
        }
    }
    shown
}

fn escaped_path(path: &Path) -> String {
    escaped(path.as_os_str().as_bytes())
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'!'..=b'~' if *byte != b'%' => text.push(char::from(*byte)),
            byte => text.push_str(&format!("%{byte:02x}")),
        }
    }
    text
}

fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'%' => {
                let (code, behind) = rest.split_at_checked(2)?;
                bytes.push(u8::from_str_radix(str::from_utf8(code).ok()?, 16).ok()?);
                rest = behind;
            }
            byte => bytes.push(*byte),
        }
    }
    Some(bytes)
}

fn unescaped_text(text: &str) -> Option<String> {
    String::from_utf8(unescaped(text)?).ok()
}

fn unescaped_path(text: &str) -> Option<PathBuf> {
    Some(PathBuf::from(OsString::from_vec(unescaped(text)?)))
}

#[cfg(test)]
mod tests {
    use super::{Change, Finding, MoveOutcome, Record, RestoreOutcome};

    fn record(path: &str, moved: MoveOutcome, restored: RestoreOutcome) -> Record {
        let reason = "it sets a.b\u{202e}%\n".to_owned();
        let finding =
            Finding { root: "/r x".into(), path: path.into(), change: Change::Changed, reason };
        Record { id: "1".to_owned(), finding, moved, restored }
    }

    #[test]
    fn a_record_is_the_same_after_writing_and_reading() {
        let not = || "no, 100%\n".to_owned();
        for moved in [
            MoveOutcome::ToQuarantine,
            MoveOutcome::Aside("/r x/\u{1b}[1m".into()),
            MoveOutcome::Gone,
            MoveOutcome::Not(not()),
        ] {
            for restored in
                [RestoreOutcome::Yes, RestoreOutcome::NoPrevious, RestoreOutcome::Not(not())]
            {
                let record = record("/r x/a\nb", moved.clone(), restored);
                assert_eq!(Record::decode("1", &record.encode()), Some(record));
            }
        }
        assert_eq!(Record::decode("1", "something else\n"), None);
    }

    #[test]
    fn a_sentence_says_what_was_done_and_has_no_control_characters() {
        for (moved, restored, expected) in [
            (
                MoveOutcome::ToQuarantine,
                RestoreOutcome::Yes,
                "Moved /r/\\u{1b}a to quarantine 1 and restored its previous version, because",
            ),
            (
                MoveOutcome::ToQuarantine,
                RestoreOutcome::NoPrevious,
                "Moved /r/\\u{1b}a to quarantine 1, because",
            ),
            (MoveOutcome::Gone, RestoreOutcome::Yes, "Restored /r/\\u{1b}a, because"),
            (
                MoveOutcome::Not("busy".into()),
                RestoreOutcome::NoPrevious,
                "Could not quarantine /r/\\u{1b}a (busy), because",
            ),
            (
                MoveOutcome::Aside("/r/b".into()),
                RestoreOutcome::Not("gone".into()),
                "Renamed /r/\\u{1b}a to /r/b, but could not restore its previous version (gone), \
                 because",
            ),
        ] {
            let sentence = record("/r/\u{1b}a", moved, restored).to_string();
            assert_eq!(sentence, format!("{expected} it sets a.b\\u{{202e}}%\\n"));
        }
    }
}
