//! Text that is almost a JSON object, made into one where only one object can be meant.

use serde_json::value::RawValue;

/// What JSON takes for blanks.
pub(super) const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// The text of an object, and what was mended to get it; `None` if no single object can be meant.
/// The text is still to be parsed.
pub(super) fn mended(raw: &str) -> Option<(String, Vec<String>)> {
    let mut notes = Vec::new();
    let text = match without_fence(raw) {
        Some(inner) => {
            notes.push("removed the code fence around the arguments".to_owned());
            inner
        }
        None => raw,
    };
    let text = clean(text, &mut notes);
    let object = match text.as_bytes().first()? {
        b'{' => text,
        b'"' => {
            let inner: String = serde_json::from_str(&text).ok()?;
            notes.push("the arguments were encoded twice".to_owned());
            clean(inner.trim_matches(BLANKS), &mut notes)
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(&text).ok()?;
            let [only] = items.as_slice() else { return None };
            notes.push("took the arguments out of a list".to_owned());
            only.get().to_owned()
        }
        _ => return None,
    };
    notes.dedup();
    (object.starts_with('{') && !notes.is_empty()).then_some((object, notes))
}

/// What is inside a fence of backticks that has nothing around it.
fn without_fence(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("```")?.strip_suffix("```")?;
    let language = inner.bytes().take_while(u8::is_ascii_alphanumeric).count();
    Some(inner[language..].trim_matches(BLANKS))
}

/// The same text with control characters in strings escaped, and without trailing commas and a
/// single brace behind the end. Anything else stays, for the parser to refuse.
fn clean(text: &str, notes: &mut Vec<String>) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut note = |text: &str| {
        if !notes.iter().any(|note| note == text) {
            notes.push(text.to_owned());
        }
    };
    let (mut in_string, mut is_escaped) = (false, false);
    let mut depth: usize = 0;
    // The last character outside strings that is no blank.
    let mut last = '{';
    for (at, c) in text.char_indices() {
        if in_string {
            match c {
                '\0'..='\u{1f}' if !is_escaped => {
                    note("escaped control characters in strings");
                    cleaned.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                c => cleaned.push(c),
            }
            in_string = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        let rest = text[at + c.len_utf8()..].trim_start_matches(BLANKS);
        match c {
            '"' => in_string = true,
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            ',' if rest.starts_with(['}', ']']) && !matches!(last, '{' | '[' | ',' | ':') => {
                note("removed trailing commas");
                continue;
            }
            _ => {}
        }
        cleaned.push(c);
        if !BLANKS.contains(&c) {
            last = c;
        }
        if c == '}' && depth == 0 && rest == "}" {
            note("removed an extra closing brace");
            return cleaned;
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::mended;

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        assert_eq!(mended(raw).map(|(text, _)| text).as_deref(), Some(expected), "{raw}");
    }

    /// It is not mended, or what comes out is no JSON.
    #[track_caller]
    fn check_refused(raw: &str) {
        let text = mended(raw).map(|(text, _)| text);
        let parsed = text.as_deref().map(serde_json::from_str::<serde_json::Value>);
        assert!(!matches!(parsed, Some(Ok(_))), "{raw}: {text:?}");
    }

    #[test]
    fn a_single_object_is_found() {
        check("```json\n{\"a\":1}\n```", r#"{"a":1}"#);
        check("```{\"a\":1}```", r#"{"a":1}"#);
        check(r#"{"a":[1,2,],}"#, r#"{"a":[1,2]}"#);
        check("{\"a\":1 , \n}", "{\"a\":1  \n}");
        check(r#"{"a":"}"}}"#, r#"{"a":"}"}"#);
        check("{\"a\":\"x\n\ty\"}", r#"{"a":"x\u000a\u0009y"}"#);
        check(r#""{\"a\":\"b\\n\"}""#, r#"{"a":"b\n"}"#);
        check(r#"[{"a":1}]"#, r#"{"a":1}"#);
        check("```\n[{\"a\":1,},]\n```", r#"{"a":1}"#);
        check(r#"{"a":",}",}"#, r#"{"a":",}"}"#);
    }

    #[test]
    fn what_can_be_several_objects_or_none_is_refused() {
        for raw in [
            "{\"a\":1}",
            "Here:\n```json\n{\"a\":1}\n```",
            "```json\n{\"a\":1}\n```\nDone",
            "```json\n{\"a\":1}\n{\"a\":2}\n```",
            "```\n{\"a\":1}\n```\n```\n{\"a\":2}\n```",
            "```json\n{\"a\":1}",
            r#"{"a":1}}}"#,
            r#"{"a":1}]"#,
            r#"{"a":1},"#,
            r#"{"a":1}{"a":1}"#,
            r#"{"a":1,,}"#,
            r#"{,}"#,
            r#"{"a":,}"#,
            r#"{"a":1"#,
            r#"{"a":"b"#,
            r#"{"a":[1}"#,
            r#"[{"a":1},{"a":2}]"#,
            r#"[]"#,
            r#"["{\"a\":1}"]"#,
            r#""\"{}\"""#,
            r#""text""#,
            r#"{'a':1}"#,
            r#"{"a":"\d"}"#,
            "{\"a\":\"x\\\ny\"}",
            "```",
            "``````",
            "",
        ] {
            check_refused(raw);
        }
    }
}
