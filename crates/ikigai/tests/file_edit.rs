//! `file_edit`: what is replaced, and that all else survives byte by byte.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Workspace, failure, success};

fn replaced(count: usize) -> Value {
    let output = format!("Replaced {count} occurrence(s) in file");
    success(json!({"output": output, "replacements": count}))
}

fn several(count: usize, lines: &str) -> Value {
    failure(format!("String found {count} times in file, use replace_all to replace all\n{lines}"))
}

/// The old and the new string.
type Edit<'a> = (&'a str, &'a str);

#[track_caller]
fn check(content: impl AsRef<[u8]>, edit: Edit<'_>, expected: Value, after: impl AsRef<[u8]>) {
    let arguments = json!({"path": "file", "old_string": edit.0, "new_string": edit.1});
    check_call(content.as_ref(), arguments, expected, after.as_ref());
}

#[track_caller]
fn check_all(content: impl AsRef<[u8]>, edit: Edit<'_>, expected: Value, after: impl AsRef<[u8]>) {
    let arguments =
        json!({"path": "file", "old_string": edit.0, "new_string": edit.1, "replace_all": true});
    check_call(content.as_ref(), arguments, expected, after.as_ref());
}

#[track_caller]
fn check_call(content: &[u8], arguments: Value, expected: Value, after: &[u8]) {
    let workspace = Workspace::new();
    workspace.write("file", content).check("file_edit", arguments, expected);
    assert_eq!(workspace.read("file").escape_ascii().to_string(), after.escape_ascii().to_string());
    assert_eq!(workspace.names(), ["file"]);
}

#[test]
fn one_occurrence_is_replaced() {
    check("one two three", ("two", "2"), replaced(1), "one 2 three");
    check("one two three", ("one two three", ""), replaced(1), "");
    check(
        "one two three",
        (" ", " "),
        failure("old_string and new_string are identical"),
        "one two three",
    );
    check("a\nb\nc\n", ("a\nb\n", "x\n"), replaced(1), "x\nc\n");
}

#[test]
fn several_occurrences_are_replaced_only_on_demand() {
    let refused = several(3, "lines 1, 1, 1");
    check("a a a", ("a", "b"), refused, "a a a");
    check_all("a a a", ("a", "b"), replaced(3), "b b b");
    check_all("a", ("a", "b"), replaced(1), "b");
    let no = json!({"path": "file", "old_string": "a", "new_string": "b", "replace_all": false});
    let refused = several(2, "lines 1, 1");
    check_call(b"aa", no, refused, b"aa");
}

#[test]
fn occurrences_do_not_overlap_and_are_not_searched_again() {
    check("aaa", ("aa", "b"), replaced(1), "ba");
    check_all("aaaa", ("aa", "a"), replaced(2), "aa");
    check_all("ab", ("b", "bb"), replaced(1), "abb");
}

#[test]
fn a_string_that_is_not_there_is_a_failure() {
    check("one", ("two", "2"), failure("String not found in file"), "one");
    check_all("one", ("two", "2"), failure("String not found in file"), "one");
    check("", ("two", "2"), failure("String not found in file"), "");
    let advice = "closest is line 1: \"ONE\" differs in upper and lower case";
    let refused = failure(format!("String not found in file\n{advice}"));
    check("ONE", ("one", "2"), refused, "ONE");
    check("a.c", ("a?c", "2"), failure("String not found in file"), "a.c");
}

#[test]
fn the_strings_are_checked_before_the_file_is_looked_for() {
    let workspace = Workspace::new();
    let call =
        |old: &str, new: &str| json!({"path": "nowhere", "old_string": old, "new_string": new});
    workspace
        .check("file_edit", call("", "x"), failure("old_string cannot be empty"))
        .check("file_edit", call("", ""), failure("old_string cannot be empty"))
        .check("file_edit", call("x", "x"), failure("old_string and new_string are identical"))
        .check("file_edit", call("x", "y"), failure("File not found: nowhere"));
}

#[test]
fn bytes_outside_the_replaced_text_survive() {
    check("\u{feff}one\r\ntwo\r\n", ("two", "2"), replaced(1), "\u{feff}one\r\n2\r\n");
    check(b"\xff\xfe one \xc3\x28\0", ("one", "1"), replaced(1), b"\xff\xfe 1 \xc3\x28\0");
    check("a\r\nb\nc\r", ("b", "B"), replaced(1), "a\r\nB\nc\r");
    check("no break at the end", ("end", "END"), replaced(1), "no break at the END");
    check_all("ä😀ä", ("ä", "o"), replaced(2), "o😀o");
    check("x", ("x", "\0\r\n"), replaced(1), "\0\r\n");
}

#[test]
fn mode_and_link_are_kept() {
    for mode in [0o755, 0o600] {
        let workspace = Workspace::new();
        workspace
            .write("folder/file", "old")
            .set_mode("folder/file", mode)
            .link("link", "folder/file");
        let arguments = json!({"path": "link", "old_string": "old", "new_string": "new"});
        let output = json!({"output": "Replaced 1 occurrence(s) in link", "replacements": 1});
        workspace.check("file_edit", arguments, success(output));
        assert_eq!(
            (workspace.read_text("folder/file"), workspace.mode("folder/file")),
            ("new".to_owned(), mode)
        );
        assert!(fs::symlink_metadata(workspace.path("link")).unwrap().is_symlink());
        assert_eq!(workspace.names(), ["folder/", "folder/file", "link"]);
    }
}

#[test]
fn failures_name_the_path_as_it_was_given() {
    let workspace = Workspace::unconfined();
    workspace
        .write("folder/file", "aa")
        .fifo("folder/fifo")
        .link("loop", "loop")
        .link("away", "nowhere");
    let long = "n".repeat(300);
    let too_long = format!("File name too long: {long}");
    let before = workspace.names();
    for (path, error) in [
        (
            "./folder/file",
            "String found 2 times in ./folder/file, use replace_all to replace all\nlines 1, 1",
        ),
        ("folder", "Is a directory: folder"),
        ("folder/", "Is a directory: folder/"),
        (".", "Is a directory: ."),
        ("folder/fifo", "Not a regular file: folder/fifo"),
        ("/dev/null", "Not a regular file: /dev/null"),
        ("folder/file/below", "Not a directory: folder/file/below"),
        ("folder/nowhere", "File not found: folder/nowhere"),
        ("new/nowhere", "File not found: new/nowhere"),
        ("away", "File not found: away"),
        ("", "File not found: "),
        ("loop", "Too many levels of symbolic links: loop"),
        (&long, &too_long),
    ] {
        let arguments = json!({"path": path, "old_string": "a", "new_string": "b"});
        workspace.check("file_edit", arguments, failure(error));
    }
    assert_eq!(workspace.names(), before);
}

/// The file is read 64 KiB at a time, and an occurrence may lie across.
#[test]
fn an_occurrence_across_the_pieces_that_are_read_is_found() {
    let piece = 64 * 1024;
    for at in [piece - 6, piece - 3, piece - 1, piece, 2 * piece - 3] {
        let before = "x".repeat(at);
        let content = format!("{before}needle{}", "y".repeat(piece));
        let after = format!("{before}N{}", "y".repeat(piece));
        check(content, ("needle", "N"), replaced(1), after);
    }
}

#[test]
fn an_old_string_longer_than_a_piece_is_found() {
    let old = "0123456789".repeat(20_000);
    check(
        format!("a{old}b{}", &old[..old.len() - 1]),
        (&old, "N"),
        replaced(1),
        format!("aNb{}", &old[..old.len() - 1]),
    );
}

#[test]
fn several_occurrences_are_refused_with_the_first_five_lines() {
    let found = several(7, "lines 1, 2, 3, 5, 5, …");
    check("a\na\na\n\na a\na\na", ("a", "b"), found, "a\na\na\n\na a\na\na");
    check("a\n\nb\na\n", ("a\n", "b"), several(2, "lines 1, 4"), "a\n\nb\na\n");
}

/// A single place that matches but for something that models get wrong.
#[test]
fn a_text_that_nearly_matches_one_place_is_replaced_and_the_model_is_told() {
    let repaired = |note: &str| {
        let output = "Replaced 1 occurrence(s) in file";
        success(json!({"output": output, "replacements": 1, "repaired": [note]}))
    };
    let line_ends = repaired("old_string: line ends differ from the file");
    check(b"a\r\nb\r\n\xff", ("a\nb", "c\nd"), line_ends.clone(), b"c\r\nd\r\n\xff");
    check_all("a\r\nb\r\n", ("a\nb", "c"), line_ends, "c\r\n");
    let note = "old_string: indentation differs from the file, new_string indented like the file";
    let after = "fn f() {\n\tg();\n\th();\n}\n";
    check("fn f() {\n\tg();\n}\n", ("    g();\n", "    g();\n    h();\n"), repaired(note), after);
}

#[test]
fn a_text_that_nearly_matches_two_places_is_not_replaced() {
    let content = "\tfoo();\nbar();\n  foo();\n";
    let advice = "2 places match if indentation is ignored: lines 1, 3";
    let refused = failure(format!("String not found in file\n{advice}"));
    check(content, ("    foo();\n", "baz();\n"), refused.clone(), content);
    check_all(content, ("    foo();\n", "baz();\n"), refused, content);
}

#[test]
fn a_file_that_is_too_large_to_be_held_is_only_searched_for_the_exact_text() {
    let content = format!("a  \nb\n{}", "x\n".repeat(5_500_000));
    let workspace = Workspace::new();
    workspace.write("file", &content);
    let call = json!({"path": "file", "old_string": "a\nb\n", "new_string": "c\n"});
    workspace.check("file_edit", call, failure("String not found in file"));
}
