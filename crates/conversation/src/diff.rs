//! The diff of a file, as plain data.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The lines of a file that a call changed, or would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiff {
    /// The file, as the model named it.
    pub path: String,
    /// The total number of added lines.
    pub added: u64,
    /// The total number of removed lines.
    pub removed: u64,
    /// The changed lines with the lines around them, from top to bottom.
    pub hunks: Vec<Hunk>,
    /// How many more lines of the diff were omitted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Consecutive lines of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    /// The number of its first line in the old file, counted from 1.
    pub old: u64,
    /// The same in the new file.
    pub new: u64,
    /// The lines.
    pub lines: Vec<DiffLine>,
}

/// A line of a diff, without its line break. In JSON it is a string that starts with its sign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum DiffLine {
    /// Unchanged.
    Context(String),
    /// Added.
    Added(String),
    /// Removed.
    Removed(String),
}

impl FileDiff {
    /// The hunks as lines of a unified diff, without the file header.
    pub fn unified(&self) -> impl Iterator<Item = String> {
        self.hunks.iter().flat_map(|hunk| {
            let lines = hunk.lines.iter().map(ToString::to_string);
            std::iter::once(hunk.header()).chain(lines)
        })
    }

    /// The size of the change: `+4 −1`.
    pub fn size(&self) -> String {
        format!("+{} −{}", self.added, self.removed)
    }
}

impl Hunk {
    fn header(&self) -> String {
        let is_old = |line: &&DiffLine| !matches!(line, DiffLine::Added(_));
        let is_new = |line: &&DiffLine| !matches!(line, DiffLine::Removed(_));
        let old = range(self.old, self.lines.iter().filter(is_old).count());
        let new = range(self.new, self.lines.iter().filter(is_new).count());
        format!("@@ -{old} +{new} @@")
    }
}

/// A range as in a unified diff: an empty one has the number of the line before it.
fn range(first: u64, count: usize) -> String {
    match count {
        0 => format!("{},0", first.saturating_sub(1)),
        1 => first.to_string(),
        count => format!("{first},{count}"),
    }
}

impl DiffLine {
    /// The line without its sign.
    pub fn text(&self) -> &str {
        match self {
            DiffLine::Context(text) | DiffLine::Added(text) | DiffLine::Removed(text) => text,
        }
    }
}

impl fmt::Display for DiffLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiffLine::Context(text) => write!(f, " {text}"),
            DiffLine::Added(text) => write!(f, "+{text}"),
            DiffLine::Removed(text) => write!(f, "-{text}"),
        }
    }
}

impl From<DiffLine> for String {
    fn from(line: DiffLine) -> String {
        line.to_string()
    }
}

impl From<String> for DiffLine {
    fn from(line: String) -> DiffLine {
        let mut characters = line.chars();
        let sign = characters.next();
        let text = characters.as_str().to_owned();
        match sign {
            Some('+') => DiffLine::Added(text),
            Some('-') => DiffLine::Removed(text),
            Some(_) | None => DiffLine::Context(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(hunks: Vec<Hunk>) -> FileDiff {
        FileDiff { path: "f".to_owned(), added: 1, removed: 0, hunks, omitted: 0 }
    }

    #[test]
    fn a_diff_round_trips_and_renders_as_unified() {
        let lines = ["+new", "-old", " same", ""].map(|line| DiffLine::from(line.to_owned()));
        let hunks = vec![Hunk { old: 7, new: 9, lines: lines.into() }];
        let json = serde_json::to_string(&diff(hunks.clone())).unwrap();
        let expected = concat!(
            r#"{"path":"f","added":1,"removed":0,"#,
            r#""hunks":[{"old":7,"new":9,"lines":["+new","-old"," same"," "]}]}"#
        );
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<FileDiff>(&json).unwrap(), diff(hunks.clone()));
        let unified: Vec<String> = diff(hunks).unified().collect();
        assert_eq!(unified, ["@@ -7,3 +9,3 @@", "+new", "-old", " same", " "]);
    }

    #[test]
    fn an_empty_side_has_the_number_of_the_line_before_it() {
        let header = |old, lines: &[&str]| {
            let lines = lines.iter().map(|line| DiffLine::from((*line).to_owned())).collect();
            Hunk { old, new: 1, lines }.header()
        };
        assert_eq!(header(1, &["+a"]), "@@ -0,0 +1 @@");
        assert_eq!(header(1, &["-a", "-b"]), "@@ -1,2 +0,0 @@");
    }
}
