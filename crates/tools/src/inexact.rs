//! Finds the place of an edit whose text is not in the file exactly as the model wrote it.
//!
//! The rules below are tried in their order. One of them has to lead to a single place; several
//! places are several meanings. Each rule costs a few passes over the file, whatever it holds.

mod advice;
mod form;
mod indentation;
mod line_numbers;

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memrchr};

use crate::result::counted;
pub(crate) use advice::listed;
use advice::{closest, lines_of};
use form::{Bounds, Form};
use indentation::Shift;

/// A single place that matches, and what to put there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InexactEdit {
    range: Range<usize>,
    replacement: Vec<u8>,
    /// What differed, for the model.
    pub(crate) note: &'static str,
}

impl InexactEdit {
    /// The content after the edit, in pieces.
    pub(crate) fn pieces<'a>(&'a self, content: &'a [u8]) -> [&'a [u8]; 3] {
        [&content[..self.range.start], &self.replacement, &content[self.range.end..]]
    }
}

/// What may differ between a file and the text of an edit.
#[derive(Debug, Clone, Copy)]
enum Rule {
    LineEnds,
    TrailingBlanks,
    Typography,
    LineNumbers,
    Indentation,
}

/// In the order in which they are tried.
const RULES: [Rule; 5] =
    [Rule::LineEnds, Rule::TrailingBlanks, Rule::Typography, Rule::LineNumbers, Rule::Indentation];

/// Several blocks may be equal but for their indentation. No more of them are compared: in a file
/// of nothing but such blocks, each comparison is as long as the edit.
const MOST_COMPARED: usize = 10;

/// Finds the only place for `old`, which is not in `content`, and makes `new` fit in.
///
/// # Errors
/// One line of advice for the model, if there is any.
pub(crate) fn find(content: &[u8], old: &str, new: &str) -> Result<InexactEdit, Option<String>> {
    for rule in RULES {
        match rule.matches(content, old, new).as_slice() {
            [] => {}
            [Match { edit: Some(edit), .. }] if content[edit.range.clone()] != edit.replacement => {
                return Ok(edit.clone());
            }
            [_] => break,
            several => {
                let count = counted(several.len() as u64, "place matches", "places match");
                let lines = lines_of(content, several.iter().map(|found| found.start));
                return Err(Some(format!("{count} if {} ignored: {lines}", rule.ignores())));
            }
        }
    }
    Err(closest(content, old))
}

/// A place that matches.
struct Match {
    start: usize,
    /// `None` if it is not clear how the edit fits in.
    edit: Option<InexactEdit>,
}

impl Rule {
    /// The places that match, at most five.
    fn matches(self, content: &[u8], old: &str, new: &str) -> Vec<Match> {
        let Some((old, new)) = self.texts(old, new) else { return Vec::new() };
        let (old, new) = (old.as_bytes(), new.as_bytes());
        let (form, bounds) = self.form(old);
        let most = if matches!(self, Rule::Indentation) { MOST_COMPARED } else { SHOWN };
        // The edit may be about what would be ignored.
        let is_purpose = form.normal(old) == form.normal(new);
        let found = |place: Range<usize>| {
            let start = start_of_line(content, place.start);
            let (place, new) = match self {
                Rule::LineEnds | Rule::TrailingBlanks | Rule::Typography | Rule::LineNumbers => {
                    (place, Some(Cow::Borrowed(new)))
                }
                Rule::Indentation => {
                    let place = start..place.end;
                    let shift = Shift::between(old, &content[place.clone()])?;
                    (place, shift.applied_to(new).map(Cow::Owned))
                }
            };
            // The last line of a file may have no end, and still be matched as a whole.
            let ends_early = old.ends_with(b"\n") && !content[..place.end].ends_with(b"\n");
            let edit = new.filter(|_| !is_purpose).map(|new| InexactEdit {
                replacement: with_line_ends_of(
                    content,
                    place.start,
                    match ends_early {
                        true => new.strip_suffix(b"\n").unwrap_or(&new),
                        false => &new,
                    },
                ),
                range: place,
                note: self.note(),
            });
            Some(Match { start, edit })
        };
        let places = form.places(bounds, content, old, most);
        places.into_iter().filter_map(found).take(SHOWN).collect()
    }

    /// How the texts are compared.
    fn form(self, old: &[u8]) -> (Form, Bounds) {
        match self {
            Rule::LineEnds => (Form::LineEnds, Bounds::Anywhere),
            // Without its blanks, the last word may be the beginning of another.
            Rule::TrailingBlanks if old.ends_with(b" ") || old.ends_with(b"\t") => {
                (Form::TrailingBlanks, Bounds::LineEnd)
            }
            Rule::TrailingBlanks => (Form::TrailingBlanks, Bounds::Anywhere),
            Rule::Typography => (Form::Typography, Bounds::Anywhere),
            Rule::LineNumbers => (Form::LineEnds, Bounds::WholeLines),
            Rule::Indentation => (Form::Indentation, Bounds::WholeLines),
        }
    }

    /// The old and new text to compare; `None` if the rule is about something that they do not have.
    fn texts<'a>(self, old: &'a str, new: &'a str) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
        match self {
            Rule::LineEnds | Rule::TrailingBlanks | Rule::Typography | Rule::Indentation => {
                Some((old.into(), new.into()))
            }
            Rule::LineNumbers => line_numbers::without(old, new),
        }
    }

    fn ignores(self) -> &'static str {
        match self {
            Rule::LineEnds => "line ends are",
            Rule::TrailingBlanks => "blanks at line ends are",
            Rule::Typography => "typographic characters are",
            Rule::LineNumbers => "line numbers are",
            Rule::Indentation => "indentation is",
        }
    }

    fn note(self) -> &'static str {
        match self {
            Rule::LineEnds => "old_string: line ends differ from the file",
            Rule::TrailingBlanks => "old_string: blanks at line ends differ from the file",
            Rule::Typography => "old_string: quotes, dashes or spaces differ from the file",
            Rule::LineNumbers => "old_string: line numbers removed",
            Rule::Indentation => {
                "old_string: indentation differs from the file, new_string indented like the file"
            }
        }
    }
}

/// How many line numbers a message has.
pub(crate) const SHOWN: usize = 5;

fn start_of_line(content: &[u8], at: usize) -> usize {
    memrchr(b'\n', &content[..at]).map_or(0, |end| end + 1)
}

/// The text with the line ends that the file has at a place or, in its last line, before it.
fn with_line_ends_of(content: &[u8], at: usize, text: &[u8]) -> Vec<u8> {
    let after = memchr(b'\n', &content[at..]).map(|end| at + end);
    let Some(end) = after.or_else(|| memrchr(b'\n', &content[..at])) else {
        return text.to_owned();
    };
    let line_end: &[u8] = if content[..end].ends_with(b"\r") { b"\r\n" } else { b"\n" };
    let lines = text.split(|&byte| byte == b'\n');
    let count = lines.clone().count();
    let mut converted = Vec::with_capacity(text.len() + count);
    for (number, line) in (1..).zip(lines) {
        let is_last = number == count;
        converted.extend_from_slice(if is_last {
            line
        } else {
            line.strip_suffix(b"\r").unwrap_or(line)
        });
        if !is_last {
            converted.extend_from_slice(line_end);
        }
    }
    converted
}

#[cfg(test)]
mod tests;
