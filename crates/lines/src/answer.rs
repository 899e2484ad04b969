//! Answers to approval requests, as typed.

use ikigai_conversation::Decision;

/// Parses an answer; `None` if the line is not one.
pub(crate) fn parse_answer(line: &str) -> Option<(Decision, Option<String>)> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let reason = Some(rest.trim()).filter(|reason| !reason.is_empty()).map(str::to_owned);
    match (word.to_ascii_lowercase().as_str(), reason) {
        ("y" | "yes", None) => Some((Decision::Once, None)),
        ("a" | "always", None) => Some((Decision::Always, None)),
        ("n" | "no", reason) => Some((Decision::No, reason)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<(Decision, Option<&str>)>) {
        let expected = expected.map(|(decision, reason)| (decision, reason.map(str::to_owned)));
        assert_eq!(parse_answer(line), expected);
    }

    #[test]
    fn an_answer_is_one_word_and_only_a_no_has_a_reason() {
        check("y", Some((Decision::Once, None)));
        check("Yes", Some((Decision::Once, None)));
        check("a", Some((Decision::Always, None)));
        check("n", Some((Decision::No, None)));
        check("no  use the test database ", Some((Decision::No, Some("use the test database"))));
        // More text may be a condition, so it is not taken for an approval.
        check("yes but only the first part", None);
        check("a little", None);
        check("", None);
        check("maybe", None);
    }
}
