//! Making untrusted text safe for a terminal.

use std::fmt::Display;

/// Replaces characters that could move the cursor, change colours, ring the bell or reorder other
/// text.
pub fn safe(text: &str) -> String {
    text.chars().map(|c| if is_harmless(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// Escapes such characters in JSON, which keeps its meaning. `serde_json` escapes the ASCII control
/// characters except DEL, and no others such as U+009B, which starts an escape sequence.
pub fn safe_json(json: impl Display) -> String {
    let json = json.to_string();
    if json.chars().all(is_harmless) {
        return json;
    }
    let escape = |c: char| match is_harmless(c) {
        true => c.to_string(),
        false => format!("\\u{:04x}", u32::from(c)),
    };
    json.chars().map(escape).collect()
}

fn is_harmless(c: char) -> bool {
    let turns_order = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c == '\n' || c == '\t' || !(c.is_control() || turns_order)
}
