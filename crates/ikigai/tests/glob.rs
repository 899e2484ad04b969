//! `glob`: which files a pattern finds, and how they are shown.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};

use crate::support::{Workspace, failure, found, success};

fn tree() -> Workspace {
    let workspace = Workspace::unconfined();
    workspace.touch([
        "main.c",
        "main.h",
        "README.md",
        "src/a.c",
        "src/b.h",
        "src/deep/down/c.c",
        "src/x1.c",
        "src/x2.c",
        "tests/a.c",
    ]);
    workspace
}

#[track_caller]
fn check<const N: usize>(pattern: &str, files: [&str; N]) {
    tree().check("glob", json!({ "pattern": pattern }), found(files));
}

#[track_caller]
fn check_in<const N: usize>(path: &str, pattern: &str, files: [&str; N]) {
    tree().check("glob", json!({"pattern": pattern, "path": path}), found(files));
}

#[test]
fn a_star_stays_within_a_folder() {
    check("*.c", ["main.c"]);
    check("*", ["README.md", "main.c", "main.h"]);
    check("src/*.c", ["src/a.c", "src/x1.c", "src/x2.c"]);
    check("*/a.c", ["src/a.c", "tests/a.c"]);
    check("s*/d*/d*/*", ["src/deep/down/c.c"]);
    check("src/*/c.c", []);
    check("m*n.c", ["main.c"]);
}

#[test]
fn two_stars_cross_folders_also_none() {
    check("**/*.h", ["main.h", "src/b.h"]);
    check("src/**/*.c", ["src/a.c", "src/deep/down/c.c", "src/x1.c", "src/x2.c"]);
    check("**/down/**", ["src/deep/down/c.c"]);
    check("src/**", ["src/a.c", "src/b.h", "src/deep/down/c.c", "src/x1.c", "src/x2.c"]);
    check("**/c.c", ["src/deep/down/c.c"]);
}

#[test]
fn braces_brackets_and_question_marks_work() {
    check("main.{c,h}", ["main.c", "main.h"]);
    check("{src,tests}/a.c", ["src/a.c", "tests/a.c"]);
    check("{src/deep,tests}/**/*.c", ["src/deep/down/c.c", "tests/a.c"]);
    check("{main.c,src/{a,b}.*}", ["main.c", "src/a.c", "src/b.h"]);
    check("src/x[0-9].c", ["src/x1.c", "src/x2.c"]);
    check("src/x[!1].c", ["src/x2.c"]);
    check("src/[a-b].?", ["src/a.c", "src/b.h"]);
    check("src/?.c", ["src/a.c"]);
    check("main{,.c}", ["main.c"]);
}

#[test]
fn a_question_mark_or_bracket_does_not_match_a_slash() {
    check("src?a.c", []);
    check("src[!x]a.c", []);
    check("**/src[^x]a.c", []);
    check("src/[!b].?", ["src/a.c"]);
}

#[test]
fn what_is_special_can_be_escaped() {
    let workspace = Workspace::new();
    workspace.touch(["a*b", "axb", "{c}", "[d]"]);
    workspace
        .check("glob", json!({"pattern": r"a\*b"}), found(["a*b"]))
        .check("glob", json!({"pattern": r"\{c\}"}), found(["{c}"]))
        .check("glob", json!({"pattern": "[[]d]"}), found(["[d]"]));
}

#[test]
fn capital_letters_differ_from_small_ones() {
    check("readme.md", []);
    check("README.md", ["README.md"]);
}

#[test]
fn folders_are_not_found() {
    check("src", []);
    check("src/", []);
    check("s*", []);
}

#[test]
fn no_match_is_a_success() {
    check("*.rs", []);
    check("nowhere/*.c", []);
    check("", []);
    check("../nowhere/*.c", []);
    check("/nowhere/*.c", []);
    check("main.c/*", []);
    check("/etc/passwd/*", []);
}

#[test]
fn a_path_is_the_folder_to_start_from() {
    check_in("src", "*.c", ["src/a.c", "src/x1.c", "src/x2.c"]);
    check_in("src", "**/*.c", ["src/a.c", "src/deep/down/c.c", "src/x1.c", "src/x2.c"]);
    check_in("src/deep", "**", ["src/deep/down/c.c"]);
}

#[test]
fn the_form_of_the_path_does_not_show() {
    for path in ["src/", "./src", "src/.", ".//src//"] {
        check_in(path, "a.c", ["src/a.c"]);
    }
    for path in ["", ".", "./"] {
        check_in(path, "*.c", ["main.c"]);
    }
    let workspace = tree();
    let absolute = json!({"pattern": "a.c", "path": workspace.text("src")});
    workspace.check("glob", absolute, found(["src/a.c"]));
}

#[test]
fn a_path_that_is_no_folder_is_a_failure() {
    #[track_caller]
    fn check(path: &str, error: &str) {
        let arguments = json!({"pattern": "*", "path": path});
        tree().check("glob", arguments, failure(error));
    }
    check("nowhere", "File not found: nowhere");
    check("main.c", "Not a directory: main.c");
    check("main.c/x", "File not found: main.c/x");
}

#[test]
fn a_leading_dot_changes_nothing() {
    check("./*.c", ["main.c"]);
    check("./src/*.h", ["src/b.h"]);
    check("././main.c", ["main.c"]);
    check_in("src", "./*.h", ["src/b.h"]);
}

#[test]
fn a_pattern_may_lead_up() {
    let workspace = tree();
    workspace.touch(["inner/z.c"]);
    #[track_caller]
    fn check<const N: usize>(workspace: &Workspace, pattern: &str, files: [&str; N]) {
        let mut command = workspace.tool_command("glob", json!({ "pattern": pattern }));
        let actual = crate::support::result(command.current_dir(workspace.path("inner")));
        assert_eq!(actual, found(files).to_string());
    }
    check(&workspace, "../*.h", ["../main.h"]);
    check(&workspace, "./../*.h", ["../main.h"]);
    check(&workspace, "../src/*.h", ["../src/b.h"]);
    check(&workspace, "../**/b.h", ["../src/b.h"]);
    check(&workspace, "../inner/z.*", ["../inner/z.c"]);
    workspace.check("glob", json!({"pattern": "src/../*.h"}), found(["src/../main.h"]));
    workspace.check("glob", json!({"pattern": "../*.c", "path": "src"}), found(["src/../main.c"]));
}

#[test]
fn an_absolute_pattern_within_the_working_directory_is_shown_relative_to_it() {
    let workspace = tree();
    for (pattern, files) in [
        ("*.c", found(["main.c"])),
        ("src/*.h", found(["src/b.h"])),
        ("**/*.h", found(["main.h", "src/b.h"])),
    ] {
        let pattern = workspace.text(pattern);
        workspace.check("glob", json!({ "pattern": pattern }), &files);
        workspace.check("glob", json!({"pattern": pattern, "path": "src"}), &files);
    }
}

#[test]
fn an_absolute_pattern_elsewhere_is_shown_absolute() {
    let (workspace, elsewhere) = (Workspace::unconfined(), tree());
    let file = elsewhere.text("src/b.h");
    let pattern = elsewhere.text("**/b.h");
    workspace.check("glob", json!({ "pattern": pattern }), found([&file]));
    let arguments = json!({"pattern": "**/b.h", "path": elsewhere.text("")});
    workspace.check("glob", arguments, found([&file]));
}

#[test]
fn ignored_files_are_left_out_without_a_git_repository() {
    let workspace = Workspace::new();
    workspace
        .write(".gitignore", "*.o\n/build/\n")
        .write(".ignore", "secret\n")
        .write("sub/.gitignore", "local\n!kept.o\n")
        .touch(["a.c", "a.o", "build/x.c", "secret", "sub/build/y.c", "sub/kept.o", "sub/lost.o"])
        .touch(["sub/local", "sub/secret", "local"]);
    let files = found(["a.c", "local", "sub/build/y.c", "sub/kept.o"]);
    workspace.check("glob", json!({"pattern": "**"}), files);
    workspace.check("glob", json!({"pattern": "a.o"}), found([]));
}

#[test]
fn a_parents_ignore_files_count_also_when_the_path_lies_below() {
    let workspace = Workspace::new();
    workspace
        .write(".gitignore", "*.o\n/sub/deep/hidden.c\n")
        .write(".ignore", "secret\n")
        .touch(["sub/deep/a.c", "sub/deep/a.o", "sub/deep/hidden.c", "sub/deep/secret"]);
    let files = found(["sub/deep/a.c"]);
    workspace.check("glob", json!({"pattern": "**", "path": "sub/deep"}), &files);
    workspace.check("glob", json!({"pattern": "sub/deep/*"}), &files);
    let mut command = workspace.tool_command("glob", json!({"pattern": "*"}));
    let below = crate::support::result(command.current_dir(workspace.path("sub/deep")));
    assert_eq!(below, found(["a.c"]).to_string());
}

#[test]
fn a_folder_that_is_asked_for_by_name_is_searched_although_it_is_ignored() {
    let workspace = Workspace::new();
    workspace.write(".gitignore", "target/\n").touch(["target/log.txt"]);
    let arguments = json!({"pattern": "*", "path": "target"});
    workspace.check("glob", arguments, found(["target/log.txt"]));
}

#[test]
fn hidden_files_and_folders_are_left_out() {
    let workspace = Workspace::new();
    workspace.touch([".env", ".git/config", ".github/ci.yml", "shown"]);
    workspace
        .check("glob", json!({"pattern": "**"}), found(["shown"]))
        .check("glob", json!({"pattern": ".*"}), found([]))
        .check("glob", json!({"pattern": "*", "path": ".github"}), found([".github/ci.yml"]));
}

/// A name says nothing of what is in the file, so all regular files are listed, as with `rg --files`.
#[test]
fn files_are_listed_whatever_they_hold() {
    let workspace = Workspace::new();
    workspace.write("picture.png", b"\x89PNG\0\0\0\xff");
    workspace.check("glob", json!({"pattern": "*"}), found(["picture.png"]));
}

#[test]
fn only_regular_files_are_found() {
    let workspace = Workspace::new();
    workspace.touch(["file", "folder/file"]).fifo("fifo");
    workspace.link("link", "file").link("loop", ".").link("folder/up", "..");
    workspace.check("glob", json!({"pattern": "**"}), found(["file", "folder/file"]));
}

#[test]
fn paths_are_sorted_byte_by_byte() {
    let workspace = Workspace::new();
    workspace.touch(["b", "a1", "B", "_", "a-b", "a/b", "a.b", "ä", "10", "9", "z/a", "a0"]);
    let sorted = ["10", "9", "B", "_", "a-b", "a.b", "a/b", "a0", "a1", "b", "z/a", "ä"];
    workspace.check("glob", json!({"pattern": "**"}), found(sorted));
}

#[test]
fn every_run_gives_the_same() {
    let workspace = Workspace::new();
    let mut names = Vec::new();
    for folder in 0..30 {
        for file in 0..20 {
            let name = format!("folder{folder}/file{file}");
            workspace.write(&name, "");
            names.push(name);
        }
    }
    names.sort();
    let all = success(json!({"output": names.join("\n"), "count": names.len()}));
    for _ in 0..5 {
        workspace.check("glob", json!({"pattern": "**"}), &all);
    }
}

#[test]
fn a_name_that_is_no_utf8_is_found_and_shown_as_far_as_possible() {
    let workspace = Workspace::new();
    workspace
        .write(OsStr::from_bytes(b"caf\xe9.txt"), "")
        .write(OsStr::from_bytes(b"\xff\xfe/x.txt"), "");
    let files = found(["caf\u{fffd}.txt", "\u{fffd}\u{fffd}/x.txt"]);
    workspace.check("glob", json!({"pattern": "**/*.txt"}), files);
    workspace.check("glob", json!({"pattern": "caf?.txt"}), found(["caf\u{fffd}.txt"]));
}

#[test]
fn an_invalid_pattern_is_named_with_its_fault() {
    #[track_caller]
    fn check(pattern: &str, reason: &str) {
        let error = format!("Invalid glob pattern: {pattern}: {reason}");
        tree().check("glob", json!({ "pattern": pattern }), failure(error));
    }
    check("[a", "unclosed character class; missing ']'");
    check("[z-a]", "invalid range; 'z' > 'a'");
    check("{a", "unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)");
    check("a}", "unopened alternate group; missing '{' (maybe escape '}' with '[}]'?)");
    check("a\\", "dangling '\\'");
}

/// It once panicked, and with deep braces the stack overflowed.
#[test]
fn a_pattern_beyond_all_measure_is_refused() {
    #[track_caller]
    fn check(pattern: &str, reason: &str) {
        let shown: String = pattern.chars().take(4_096).collect();
        let dots = if shown.len() < pattern.len() { "…" } else { "" };
        let error = failure(format!("Invalid glob pattern: {shown}{dots}: {reason}"));
        let workspace = tree();
        workspace.check("glob", json!({ "pattern": pattern }), &error);
        workspace.check("grep", json!({"pattern": "x", "glob": pattern}), &error);
    }
    let nested = |levels: usize| format!("{}a{}", "{".repeat(levels), "}".repeat(levels));
    check(&nested(100_000), "braces nest deeper than 64");
    check(&nested(65), "braces nest deeper than 64");
    check(&"?".repeat(1_000_000), "too large");
    tree().check("glob", json!({"pattern": nested(64)}), found([]));
}

#[test]
fn a_result_has_these_fields_in_this_order() {
    let result = tree().tool("glob", json!({"pattern": "*.c"}));
    assert_eq!(result, r#"{"success":true,"data":{"output":"main.c","count":1}}"#);
    let failure: Value =
        serde_json::from_str(&tree().tool("glob", json!({"pattern": "[a"}))).unwrap();
    assert_eq!(failure.as_object().unwrap().keys().collect::<Vec<_>>(), ["success", "error"]);
}
