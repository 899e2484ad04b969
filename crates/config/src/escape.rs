//! Makes untrusted text safe for a terminal. A project's file may contain
//! escape sequences that move the cursor or reverse the text direction.
//! Messages show such characters instead of emitting them.

use std::path::Path;

/// How much of a wrong value is shown.
const SHOWN_CHARS: usize = 64;

/// A wrong value or key for a message: without control characters, and cut if it is long.
pub(crate) fn excerpt(text: &str) -> String {
    let mut shown = escape(&text.chars().take(SHOWN_CHARS).collect::<String>());
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push_str("...");
    }
    shown
}

/// A path for a message, never cut.
pub(crate) fn escape_path(path: &Path) -> String {
    escape(&path.to_string_lossy())
}

/// The text with control and direction characters escaped as in TOML.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            c if c.is_control() || turns_direction(c) => {
                escaped.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// The text as a TOML string.
pub(crate) fn quote(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escape(&text))
}

fn turns_direction(c: char) -> bool {
    let marks = ['\u{061C}', '\u{200E}', '\u{200F}'];
    marks.contains(&c) || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_direction_characters_are_escaped() {
        assert_eq!(escape("a\u{1b}[2Jb\n\u{202e}c\u{9b}"), "a\\u001B[2Jb\\n\\u202Ec\\u009B");
        assert_eq!(escape("größe 漢字"), "größe 漢字");
    }

    #[test]
    fn a_quoted_text_is_a_toml_string() {
        for text in ["plain", "a \"b\" \\ c", "\u{1b}\n\t\u{7f}\u{202e}", ""] {
            let line = format!("a = {}", quote(text));
            let table = toml::de::DeTable::parse(&line).unwrap();
            assert_eq!(table.get_ref()["a"].get_ref().as_str(), Some(text), "{line}");
        }
    }

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(excerpt(&"ä".repeat(64)), "ä".repeat(64));
        assert_eq!(excerpt(&"ä".repeat(65)), format!("{}...", "ä".repeat(64)));
    }
}
