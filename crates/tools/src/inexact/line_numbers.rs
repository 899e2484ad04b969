//! Line numbers that a model copied along with the lines: `  37: `, `37→`, `37|`.

use std::borrow::Cow;

/// Both texts without them; `None` if `old` has none on some line, or `new` only on some lines.
pub(super) fn without<'a>(old: &str, new: &'a str) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
    let numbered =
        |text: &str| text.split_inclusive('\n').filter(|line| parse(line).is_some()).count();
    let lines = |text: &str| text.split_inclusive('\n').count();
    let follow = |(line, next): (&str, &str)| match (parse(line), parse(next)) {
        (Some((number, mark, _)), Some((next, other, _))) => next == number + 1 && mark == other,
        _ => false,
    };
    let is_copied = numbered(old) == lines(old)
        && old.split_inclusive('\n').zip(old.split_inclusive('\n').skip(1)).all(follow);
    let new = match numbered(new) {
        0 => Some(Cow::Borrowed(new)),
        count if count == lines(new) => Some(Cow::Owned(stripped(new))),
        _ => None,
    };
    is_copied.then(|| stripped(old).into()).zip(new)
}

fn stripped(text: &str) -> String {
    text.split_inclusive('\n').filter_map(parse).map(|(_, _, line)| line).collect()
}

/// The number of a line, the mark behind it, and the line.
fn parse(line: &str) -> Option<(u64, char, &str)> {
    let numbered = line.trim_start_matches([' ', '\t']);
    let digits = numbered.bytes().take_while(u8::is_ascii_digit).count();
    let (number, marked) = numbered.split_at(digits);
    let mark = marked.chars().next()?;
    let rest = &marked[mark.len_utf8()..];
    let line = match mark {
        '→' | '|' => rest,
        // Of an empty line the blank may be lost.
        ':' if rest.trim_end_matches(['\r', '\n']).is_empty() => rest,
        ':' => rest.strip_prefix(' ')?,
        _ => return None,
    };
    Some((number.parse().ok()?, mark, line))
}

#[cfg(test)]
mod tests {
    use super::without;

    #[track_caller]
    fn check(old: &str, new: &str, expected: Option<(&str, &str)>) {
        let texts = without(old, new);
        assert_eq!(texts.as_ref().map(|(old, new)| (&**old, &**new)), expected, "{old:?} {new:?}");
    }

    #[test]
    fn numbers_are_removed_if_each_line_has_the_next_one() {
        check("  9: a\n 10:   b", "  9: c\n", Some(("a\n  b", "c\n")));
        check("7→\ta\r\n8→\r\n", "x\n", Some(("\ta\r\n\r\n", "x\n")));
        check("7|a", "", Some(("a", "")));
        check("1: a\n2:\n3: b\n", "b", Some(("a\n\nb\n", "b")));
        check("1: a\n3: b\n", "b", None);
        check("1: a\n2|b\n", "b", None);
        check("1: a\nb\n", "b", None);
        check("1:a", "b", None);
        check("a", "b", None);
        check("7|a\n8|b", "7|a\nnew\n8|b", None);
        check("99999999999999999999|a", "b", None);
    }
}
