//! Glob patterns in shell syntax, for `glob` and for the file filter of `grep`.

use std::fmt::Display;

use globset::{ErrorKind, GlobBuilder, GlobSet};

use crate::file_error::shorten;

/// Compiles a pattern: `*` stays within a folder, `**` crosses folders.
pub(crate) fn shell_pattern(pattern: &str) -> Result<GlobSet, String> {
    let describe = |reason: &dyn Display| format!("{}: {reason}", shorten(pattern));
    if brace_depth(pattern) > DEEPEST_BRACES {
        return Err(describe(&format!("braces nest deeper than {DEEPEST_BRACES}")));
    }
    let built = GlobBuilder::new(&without_slash_in_classes(pattern))
        .literal_separator(true)
        .backslash_escape(true)
        .empty_alternates(true)
        .build()
        // A set of one, since a plain matcher panics if the pattern is too large to compile.
        .and_then(|glob| GlobSet::builder().add(glob).build());
    built.map_err(|error| match error.kind() {
        ErrorKind::Regex(_) => describe(&"too large"),
        kind => describe(kind),
    })
}

/// Adds the slash to negated classes `[!…]`. globset lets them match a slash, a shell does not.
fn without_slash_in_classes(pattern: &str) -> String {
    let mut changed = String::with_capacity(pattern.len() + 1);
    let mut rest = pattern.chars().peekable();
    while let Some(character) = rest.next() {
        changed.push(character);
        match character {
            '\\' => changed.extend(rest.next()),
            '[' => {
                let negation = rest.next_if(|c| matches!(c, '!' | '^'));
                // In first position these are literal, so they must stay first.
                let literal = rest.next_if(|c| matches!(c, ']' | '-'));
                changed.extend(negation.into_iter().chain(literal));
                changed.extend(negation.map(|_| '/'));
                while let Some(member) = rest.next_if(|c| *c != ']') {
                    changed.push(member);
                }
            }
            _ => {}
        }
    }
    changed
}

/// globset recurses for every level of braces.
const DEEPEST_BRACES: usize = 64;

fn brace_depth(pattern: &str) -> usize {
    let mut depth: usize = 0;
    let mut deepest = 0;
    for byte in pattern.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::without_slash_in_classes;

    #[test]
    fn a_negated_class_excludes_the_slash_and_nothing_else_changes() {
        #[track_caller]
        fn check(pattern: &str, expected: &str) {
            assert_eq!(without_slash_in_classes(pattern), expected);
        }
        check("", "");
        check("src/**/*.{c,h}", "src/**/*.{c,h}");
        check("[a-z]", "[a-z]");
        check("[!a-z]x[^b]", "[!/a-z]x[^/b]");
        check("[!]a]", "[!]/a]");
        check("[!-a]", "[!-/a]");
        check("[][!a]", "[][!a]");
        check("[[!a]", "[[!a]");
        check(r"\[!a]", r"\[!a]");
        check("[!", "[!/");
        check("[!a", "[!/a");
        check("\\", "\\");
        check("[!ä]", "[!/ä]");
    }
}
