//! What a change did to the lines of a file, as plain data.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The lines of a file that a call changed, or would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiff {
    /// The file, as the model named it.
    pub path: String,
    /// How many lines are new in all.
    pub added: u64,
    /// How many lines are gone in all.
    pub removed: u64,
    /// The changed lines with what stands around them, from top to bottom.
    pub hunks: Vec<Hunk>,
    /// How many further lines of the diff were left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Lines of a diff that stand together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    /// The number of its first line in the old file, counted from 1.
    pub old: u64,
    /// The same in the new file.
    pub new: u64,
    /// The lines.
    pub lines: Vec<DiffLine>,
}

/// A line of a diff, without its line break. As JSON it is a string that begins with its sign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum DiffLine {
    /// It stays.
    Context(String),
    /// It is new.
    Added(String),
    /// It is gone.
    Removed(String),
}

impl FileDiff {
    /// The hunks as lines of a unified diff, without its head.
    pub fn unified(&self) -> impl Iterator<Item = String> {
        self.hunks.iter().flat_map(|hunk| {
            let lines = hunk.lines.iter().map(ToString::to_string);
            std::iter::once(hunk.header()).chain(lines)
        })
    }

    /// How much it changes: `+4 −1`.
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

/// Lines as a unified diff counts them: an empty range is named by the line before it.
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
    fn a_diff_reads_back_and_is_a_unified_one() {
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
    fn an_empty_side_is_named_by_the_line_before_it() {
        let header = |old, lines: &[&str]| {
            let lines = lines.iter().map(|line| DiffLine::from((*line).to_owned())).collect();
            Hunk { old, new: 1, lines }.header()
        };
        assert_eq!(header(1, &["+a"]), "@@ -0,0 +1 @@");
        assert_eq!(header(1, &["-a", "-b"]), "@@ -1,2 +0,0 @@");
    }
}
