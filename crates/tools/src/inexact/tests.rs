//! What matches, what it becomes, and what does not match.

use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

use super::find;

/// The file after the edit.
#[track_caller]
fn check(content: &str, (old, new): (&str, &str), expected: &str) {
    let edit = find(content.as_bytes(), old, new).unwrap_or_else(|advice| panic!("{advice:?}"));
    let after = String::from_utf8(edit.pieces(content.as_bytes()).concat()).unwrap();
    assert_eq!(after, expected, "{}", edit.note);
}

#[track_caller]
fn check_refused(content: &str, (old, new): (&str, &str), advice: &str) {
    let refused = find(content.as_bytes(), old, new).err();
    assert_eq!(refused.map(Option::unwrap_or_default).as_deref(), Some(advice));
}

#[test]
fn line_ends_may_differ_and_those_of_the_file_win() {
    check("a\r\nb\r\nc\r\n", ("a\nb\n", "x\ny\n"), "x\r\ny\r\nc\r\n");
    check("a\nb\nc\n", ("a\r\nb", "x\r\ny"), "x\ny\nc\n");
    check("a\r\nb", ("\nb", "\nc\nd"), "a\r\nc\r\nd");
    check_refused(
        "a1\r\nb\r\na1\r\nb",
        ("a1\nb", "x"),
        "2 places match if line ends are ignored: lines 1, 3",
    );
    check_refused("a\r\nb\r\n", ("a\nb", "a\r\nb"), "");
}

#[test]
fn blanks_at_line_ends_may_differ() {
    check("a  \nb\t\nc\n", ("a\nb\nc", "x"), "x\n");
    check("a\n\nb\n", ("a \n  \nb ", "x\ny "), "x\ny \n");
    check("a  \r\nb\r\n", ("a\nb", "x\ny"), "x\r\ny\r\n");
    check("if x:   \n  y", ("if x:\n", "if z:\n"), "if z:\n  y");
    check_refused(
        "foobar\n",
        ("foo ", "x"),
        "closest is line 1: \"foobar\" differs in blanks or line breaks",
    );
    // What is to be removed is not there.
    check_refused(
        "foo\n",
        ("foo \n", "foo\n"),
        "closest is line 1: \"foo\" differs in blanks at line ends",
    );
}

#[test]
fn quotes_dashes_and_spaces_may_be_typographic() {
    check("say “hi” – it’s\u{a0}me\n", ("say \"hi\" - it's me", "bye"), "bye\n");
    check("say \"hi\"\n", ("say “hi”", "say “bye”"), "say “bye”\n");
    let two = ("x = \"a\"", "x = 1");
    check_refused(
        "x = “a”\nx = ”a“\n",
        two,
        "2 places match if typographic characters are ignored: lines 1, 2",
    );
}

#[test]
fn copied_line_numbers_are_left_out() {
    check("a\n  b\nc\n", ("  2:   b\n  3: c\n", "  2:   x\n  3: y\n"), "a\n  x\ny\n");
    check("a\r\n\tb\r\nc", ("2→\tb\n3→c", "\tx\n"), "a\r\n\tx\r\n");
    check("aa\nb\n", ("1|aa\n", "x\n"), "x\nb\n");
    // The end of a line only.
    check_refused("1 aa\n", ("1|aa", "x"), "");
}

#[test]
fn a_block_may_be_indented_otherwise_and_the_new_one_is_indented_like_the_file() {
    check(
        "  a {\n    b\n  }\n",
        ("a {\n  b\n}\n", "a {\n  b\n    c\n\n}\n"),
        "  a {\n    b\n      c\n\n  }\n",
    );
    check("a {\n  b\n}\n", ("    a {\n      b\n    }", "    x\n      y"), "x\n  y\n");
    check(
        "\ta {\n\t\tb\n\t}\n",
        ("    a {\n        b\n    }", "    a {\n            c\n    }"),
        "\ta {\n\t\t\tc\n\t}\n",
    );
    check("\t\ta {\n\t\t\tb\n", ("  a {\n    b\n", "  a {\n      c\n"), "\t\ta {\n\t\t\t\tc\n");
    check(
        "    a {\n        b\n",
        ("\ta {\n\t\tb\n", "\ta {\n\t\t\tc\n"),
        "    a {\n            c\n",
    );
    check("x\n\tcc a\n", ("    cc a", "    cc b\n        cc c"), "x\n\tcc b\n\t\tcc c\n");
    check("if a:\r\n\tb", ("if a:\n    b\n", "if a:\n    c\n"), "if a:\r\n\tc");
}

#[test]
fn a_block_that_is_not_shifted_as_a_whole_does_not_match() {
    let differs = |line: &str| format!("closest is line 1: {line:?} differs in indentation");
    // Twice as wide.
    check_refused("a {\n    b\n        c\n", ("a {\n  b\n    c\n", "x"), &differs("a {"));
    check_refused("if a:\n  b\nccc\n", ("if a:\n  b\n  ccc\n", "x"), &differs("if a:"));
    // Where the new line belongs is not clear.
    check_refused("foo\n", ("    foo", "  bar"), &differs("foo"));
    check_refused("\tfoo\n\tbar\n", ("foo\nbar\n", "if x {\n    foo\n}\n"), &differs("\tfoo"));
    // The edit is about the indentation.
    check_refused("\tfoo\n", ("    foo", "  foo"), &differs("\tfoo"));
    // Part of a line, or no line at all.
    check_refused("\tfoobar\n", ("    foo", "x"), &differs("\tfoobar"));
    check_refused("\ta\n", ("  \n", "x"), "");
    let twice = "2 places match if indentation is ignored: lines 1, 3";
    check_refused("\tfoo\nx\n  foo\n", ("    foo\n", "bar\n"), twice);
}

#[test]
fn advice_names_the_nearest_place() {
    let beginning =
        |line: &str| format!("the longest beginning of old_string that occurs ends in line {line}");
    check_refused(
        "x\nlet a = 1;\n",
        ("let a=1;", "b"),
        "closest is line 2: \"let a = 1;\" differs in blanks or line breaks",
    );
    check_refused(
        "x\nLet a\n",
        ("let a", "b"),
        "closest is line 2: \"Let a\" differs in upper and lower case",
    );
    check_refused("one\ntwo\nthree\n", ("one\ntwo\nfour\n", "b"), &beginning("3: \"three\""));
    check_refused("x\n", ("foo", "b"), "");
    let long = format!("abc{}", "ä".repeat(200));
    check_refused(
        &long,
        ("abcx", "b"),
        &beginning(&format!("1: {:?}", format!("abc{}…", "ä".repeat(97)))),
    );
}

/// Quadratic, each of these would take many minutes.
#[test]
fn a_large_file_is_searched_in_a_few_passes() {
    let lines = "  a\n".repeat(300_000);
    let block = format!("{}b\n", "a\n".repeat(100_000));
    assert!(find(lines.as_bytes(), &block, "x").is_err());
    let shifted = format!("{}   a\n", "a\n".repeat(100_000));
    assert!(find(lines.as_bytes(), &shifted, "x").is_err());
    let blanks = " ".repeat(1_000_000);
    assert!(find(blanks.as_bytes(), &format!("{blanks}a"), "x").is_err());
    let numbered: String = (1..50_000).map(|number| format!("{number}: a\n")).collect();
    assert!(find(lines.as_bytes(), &numbered, "x").is_err());
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(512))]

    /// What is found is a whole place of the file, and nothing around it changes.
    #[test]
    fn any_texts_are_survived(
        content in "[ab \t\r\n“–1:|]{0,40}",
        old in "[ab \t\r\n\"1:|-]{1,20}",
        new in "[ab \t\n]{0,10}",
    ) {
        if let Ok(edit) = find(content.as_bytes(), &old, &new) {
            let [before, replacement, after] = edit.pieces(content.as_bytes());
            prop_assert!(content.as_bytes().starts_with(before) && content.as_bytes().ends_with(after));
            prop_assert!(before.len() + after.len() < content.len());
            prop_assert!(std::str::from_utf8(replacement).is_ok());
        }
    }

    /// A block that is shifted by blanks is found, and what comes in its place is shifted, too.
    #[test]
    fn a_shifted_block_is_found(
        lines in prop::collection::vec("  {0,3}[a-z]{1,5}", 1..8),
        front in "( {1,9}|\t{1,2})",
    ) {
        let shifted: String = lines.iter().map(|line| format!("{front}{line}\n")).collect();
        let content = format!("{{\n{shifted}}}\n");
        let old: String = lines.iter().map(|line| format!("{line}\n")).collect();
        if !content.contains(&old) {
            let edit = find(content.as_bytes(), &old, &format!("{}0\n", lines[0])).unwrap();
            let expected = format!("{{\n{front}{}0\n}}\n", lines[0]);
            prop_assert_eq!(edit.pieces(content.as_bytes()).concat(), expected.as_bytes());
        }
    }
}
