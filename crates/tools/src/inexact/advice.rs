//! What a model is told when its text is not in the file.

use memchr::memchr_iter;
use memchr::memmem::Finder;

use super::SHOWN;
use super::form::{Bounds, Form};

/// Differences that are named, but not repaired.
const DIFFERENCES: [(Form, Bounds, &str); 6] = [
    (Form::LineEnds, Bounds::Anywhere, "line ends"),
    (Form::TrailingBlanks, Bounds::LineEnd, "blanks at line ends"),
    (Form::Typography, Bounds::Anywhere, "quotes, dashes or spaces"),
    (Form::Indentation, Bounds::Anywhere, "indentation"),
    (Form::Words, Bounds::Anywhere, "blanks or line breaks"),
    (Form::Case, Bounds::Anywhere, "upper and lower case"),
];

/// Less text than this is found anywhere.
const FEWEST: usize = 3;
/// Of a line that is shown.
const LONGEST: usize = 100;

/// The nearest place and how it differs, or where the longest beginning ends that occurs.
pub(super) fn closest(content: &[u8], old: &str) -> Option<String> {
    if Form::Words.normal(old.as_bytes()).len() < FEWEST {
        return None;
    }
    for (form, bounds, difference) in DIFFERENCES {
        let places = form.places(bounds, content, old.as_bytes(), 1);
        if let Some(place) = places.first() {
            let line = shown_line(content, place.start);
            return Some(format!("closest is line {line} differs in {difference}"));
        }
    }
    let (start, length) = longest_beginning(content, old)?;
    let line = shown_line(content, start + length);
    Some(format!("the longest beginning of old_string that occurs ends in line {line}"))
}

/// Where the longest beginning is that occurs, and its length. What a longer one has, each shorter
/// one has: so it is found by halving, in as many searches as the length has digits.
fn longest_beginning(content: &[u8], old: &str) -> Option<(usize, usize)> {
    let (mut longest, mut too_long) = ((0, 0), old.len() + 1);
    while too_long - longest.1 > 1 {
        let length = longest.1.midpoint(too_long);
        match Finder::new(&old.as_bytes()[..length]).find(content) {
            Some(start) => longest = (start, length),
            None => too_long = length,
        }
    }
    let beginning = &old.as_bytes()[..longest.1];
    (Form::Words.normal(beginning).len() >= FEWEST).then_some(longest)
}

/// The number of a line, and the line.
fn shown_line(content: &[u8], at: usize) -> String {
    let start = super::start_of_line(content, at);
    let line = content[start..].split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
    let shown = match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    };
    format!("{}: {shown:?}", memchr_iter(b'\n', &content[..start]).count() + 1)
}

/// The first few of these lines: `lines 3, 9`.
pub(super) fn lines_of(content: &[u8], starts: impl Iterator<Item = usize>) -> String {
    let number = |at: usize| memchr_iter(b'\n', &content[..at]).count() as u64 + 1;
    listed(&starts.take(SHOWN).map(number).collect::<Vec<_>>())
}

/// `line 3`, `lines 3, 9`.
pub(crate) fn listed(lines: &[u64]) -> String {
    let numbers: Vec<String> = lines.iter().map(u64::to_string).collect();
    format!("{} {}", if lines.len() == 1 { "line" } else { "lines" }, numbers.join(", "))
}
