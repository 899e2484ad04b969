//! `grep`: which lines are found, in which files, and how they are shown.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};

use crate::support::{Workspace, failure, found, success};

fn tree() -> Workspace {
    let workspace = Workspace::new();
    workspace
        .write("main.rs", "fn main() {\n    run();\n}\n")
        .write("notes.txt", "run away\nno\nrun on\n")
        .write("src/lib.rs", "pub fn run() {}\n")
        .write("src/deep/run.txt", "last line without a break: run");
    workspace
}

#[track_caller]
fn check<const N: usize>(arguments: Value, lines: [&str; N]) {
    tree().check("grep", arguments, found(lines));
}

#[test]
fn every_matching_line_is_shown_with_path_and_number() {
    check(
        json!({"pattern": "run"}),
        [
            "main.rs:2:     run();",
            "notes.txt:1: run away",
            "notes.txt:3: run on",
            "src/deep/run.txt:1: last line without a break: run",
            "src/lib.rs:1: pub fn run() {}",
        ],
    );
}

#[test]
fn the_pattern_is_a_regular_expression() {
    check(json!({"pattern": r"^run\s\w+$"}), ["notes.txt:1: run away", "notes.txt:3: run on"]);
    check(json!({"pattern": r"fn (main|nothing)\("}), ["main.rs:1: fn main() {"]);
    check(json!({"pattern": "(?i)RUN ON"}), ["notes.txt:3: run on"]);
    check(json!({"pattern": "RUN ON"}), []);
    check(json!({"pattern": r"\{\}"}), ["src/lib.rs:1: pub fn run() {}"]);
    check(json!({"pattern": "^no$"}), ["notes.txt:2: no"]);
    check(json!({"pattern": "", "path": "src/lib.rs"}), ["src/lib.rs:1: pub fn run() {}"]);
}

#[test]
fn no_match_is_a_success() {
    check(json!({"pattern": "nothing like it"}), []);
    check(json!({"pattern": "run", "glob": "*.py"}), []);
}

#[test]
fn a_glob_without_a_slash_is_about_names_at_any_depth() {
    check(
        json!({"pattern": "run", "glob": "*.rs"}),
        ["main.rs:2:     run();", "src/lib.rs:1: pub fn run() {}"],
    );
    check(
        json!({"pattern": "run", "glob": "{lib,run}.*"}),
        ["src/deep/run.txt:1: last line without a break: run", "src/lib.rs:1: pub fn run() {}"],
    );
}

#[test]
fn a_glob_with_a_slash_is_about_paths() {
    check(json!({"pattern": "run", "glob": "src/*.rs"}), ["src/lib.rs:1: pub fn run() {}"]);
    check(
        json!({"pattern": "run", "glob": "./*.rs"}),
        ["main.rs:2:     run();", "src/lib.rs:1: pub fn run() {}"],
    );
    check(
        json!({"pattern": "run", "glob": "**/deep/*"}),
        ["src/deep/run.txt:1: last line without a break: run"],
    );
    check(json!({"pattern": "run", "glob": "src/*.txt"}), []);
}

#[test]
fn an_empty_glob_counts_as_none() {
    check(json!({"pattern": "main", "glob": ""}), ["main.rs:1: fn main() {"]);
}

#[test]
fn a_path_is_a_folder_or_a_file_to_search() {
    let in_src =
        ["src/deep/run.txt:1: last line without a break: run", "src/lib.rs:1: pub fn run() {}"];
    check(json!({"pattern": "run", "path": "src"}), in_src);
    check(json!({"pattern": "run", "path": "./src/"}), in_src);
    check(json!({"pattern": "run", "path": "src/lib.rs"}), ["src/lib.rs:1: pub fn run() {}"]);
    check(json!({"pattern": "run", "path": "./src/lib.rs"}), ["src/lib.rs:1: pub fn run() {}"]);
    check(json!({"pattern": "main", "path": ""}), ["main.rs:1: fn main() {"]);
    let workspace = tree();
    let absolute = json!({"pattern": "run", "path": workspace.text("src/lib.rs")});
    workspace.check("grep", absolute, found(["src/lib.rs:1: pub fn run() {}"]));
}

#[test]
fn a_path_elsewhere_is_shown_absolute() {
    let elsewhere = tree();
    let line = format!("{}:1: pub fn run() {{}}", elsewhere.text("src/lib.rs"));
    let workspace = Workspace::unconfined();
    for path in ["src/lib.rs", "src"] {
        let arguments = json!({"pattern": "pub", "path": elsewhere.text(path)});
        workspace.check("grep", arguments, found([&line]));
    }
}

#[test]
fn a_glob_and_a_path_both_narrow() {
    check(
        json!({"pattern": "run", "path": "src", "glob": "*.rs"}),
        ["src/lib.rs:1: pub fn run() {}"],
    );
    check(
        json!({"pattern": "run", "path": "src/lib.rs", "glob": "*.rs"}),
        ["src/lib.rs:1: pub fn run() {}"],
    );
    check(json!({"pattern": "run", "path": "src/lib.rs", "glob": "*.txt"}), []);
}

#[test]
fn a_path_that_does_not_exist_is_a_failure() {
    tree().check(
        "grep",
        json!({"pattern": "x", "path": "nowhere"}),
        failure("File not found: nowhere"),
    );
}

#[test]
fn an_invalid_pattern_is_a_failure_with_its_fault() {
    #[track_caller]
    fn check(pattern: &str, fault: &str) {
        let result: Value =
            serde_json::from_str(&tree().tool("grep", json!({ "pattern": pattern }))).unwrap();
        assert_eq!(result["success"], false);
        let error = result["error"].as_str().unwrap();
        assert!(error.starts_with("Invalid pattern: ") && error.contains(fault), "{error}");
    }
    check("(", "unclosed group");
    check("[z-a]", "invalid character class range");
    check("*", "repetition operator missing expression");
    check(r"\p{Nothing}", "Unicode property not found");
    check("a{1000}{1000}{1000}", "size limit");
    check(&"(".repeat(10_000), "");
    check("a\nb", "not allowed");
    let both = json!({"pattern": "x", "glob": "[a"});
    tree().check(
        "grep",
        both,
        failure("Invalid glob pattern: [a: unclosed character class; missing ']'"),
    );
}

#[test]
fn ignored_hidden_and_binary_files_stay_out_even_if_the_glob_names_them() {
    let workspace = Workspace::new();
    workspace
        .write(".gitignore", "*.log\n")
        .write(".ignore", "secret.txt\n")
        .write("app.log", "needle\n")
        .write("secret.txt", "needle\n")
        .write(".env", "needle\n")
        .write(".config/x.txt", "needle\n")
        .write("binary.txt", "needle\n\0\n")
        .write("late.txt", [&b"needle\n".repeat(100_000)[..], b"\0"].concat())
        .write("shown.txt", "needle\n");
    let shown = found(["shown.txt:1: needle"]);
    workspace.check("grep", json!({"pattern": "needle"}), &shown);
    for glob in ["app.log", "*.log", "secret.txt", ".env", "**/x.txt", "binary.txt", "late.txt"] {
        workspace.check("grep", json!({"pattern": "needle", "glob": glob}), found([]));
    }
    workspace.check("grep", json!({"pattern": "needle", "glob": "*.txt"}), &shown);
}

#[test]
fn a_parents_ignore_file_counts_also_when_the_path_lies_below() {
    let workspace = Workspace::new();
    workspace
        .write(".gitignore", "/sub/out/\n*.log\n")
        .write("sub/a.txt", "needle\n")
        .write("sub/a.log", "needle\n")
        .write("sub/out/b.txt", "needle\n");
    let arguments = json!({"pattern": "needle", "path": "sub"});
    workspace.check("grep", arguments, found(["sub/a.txt:1: needle"]));
}

/// Whoever names a file wants that one.
#[test]
fn a_file_that_is_asked_for_by_name_is_searched_although_it_is_ignored() {
    let workspace = Workspace::new();
    workspace.write(".gitignore", "*.log\n").write("app.log", "needle\n").write(".env", "needle\n");
    for path in ["app.log", ".env"] {
        let arguments = json!({"pattern": "needle", "path": path});
        workspace.check("grep", arguments, found([&format!("{path}:1: needle")]));
    }
}

#[test]
fn line_breaks_of_windows_are_not_shown() {
    let workspace = Workspace::new();
    workspace.write("dos.txt", "one\r\ntwo\r\n");
    workspace.check(
        "grep",
        json!({"pattern": "one|two"}),
        found(["dos.txt:1: one", "dos.txt:2: two"]),
    );
}

#[test]
fn bytes_and_names_that_are_no_utf8_are_shown_as_far_as_possible() {
    let workspace = Workspace::new();
    workspace.write(OsStr::from_bytes(b"caf\xe9.txt"), b"needle \xff\n");
    workspace.check(
        "grep",
        json!({"pattern": "needle"}),
        found(["caf\u{fffd}.txt:1: needle \u{fffd}"]),
    );
    let arguments = json!({"pattern": "needle", "glob": "caf?.txt"});
    workspace.check("grep", arguments, found(["caf\u{fffd}.txt:1: needle \u{fffd}"]));
}

#[test]
fn matches_are_sorted_and_the_same_on_every_run() {
    let workspace = Workspace::new();
    let mut files = Vec::new();
    for number in 0..200 {
        let name = format!("d{}/f{number}", number % 7);
        workspace.write(&name, "needle\nhay\nneedle\n");
        files.push(name);
    }
    files.sort();
    let lines: Vec<String> = files
        .iter()
        .flat_map(|file| [format!("{file}:1: needle"), format!("{file}:3: needle")])
        .collect();
    let all = success(json!({"output": lines.join("\n"), "count": 400}));
    for _ in 0..5 {
        workspace.check("grep", json!({"pattern": "needle"}), &all);
    }
}

/// Lines sort by their number, not as text: 10 comes after 9.
#[test]
fn lines_of_a_file_stay_in_their_order() {
    let workspace = Workspace::new();
    workspace.write("file", "needle\n".repeat(11));
    let lines: Vec<String> = (1..=11).map(|number| format!("file:{number}: needle")).collect();
    let all = success(json!({"output": lines.join("\n"), "count": 11}));
    workspace.check("grep", json!({"pattern": "needle"}), all);
}

#[test]
fn the_count_is_of_lines_not_of_occurrences() {
    let workspace = Workspace::new();
    workspace.write("file", "needle needle needle\n");
    workspace.check("grep", json!({"pattern": "needle"}), found(["file:1: needle needle needle"]));
}

#[test]
fn what_is_not_shown_is_counted() {
    let workspace = Workspace::new();
    for file in ["a", "b", "c"] {
        workspace.write(file, "needle\n".repeat(10_000));
    }
    let lines: Vec<String> = ["a", "b", "c"]
        .iter()
        .flat_map(|file| (1..=10_000).map(move |number| format!("{file}:{number}: needle")))
        .collect();
    let (all, limit) = (lines.join("\n"), 51_200);
    let shown = &all[..limit];
    let marker = format!("[Output truncated: showing first {limit} of {} bytes]", all.len());
    let output = format!("{shown}\n{marker}");
    let expected = success(json!({"output": output, "count": 30_000, "truncated": true}));
    workspace.check("grep", json!({"pattern": "needle"}), expected);
}

#[test]
fn special_files_and_links_are_passed_over() {
    let workspace = Workspace::new();
    workspace.write("file", "needle\n").fifo("fifo").link("loop", "loop").link("up", "..");
    workspace.check("grep", json!({"pattern": "needle"}), found(["file:1: needle"]));
}

#[test]
fn a_file_is_searched_up_to_a_line_that_is_too_long() {
    let workspace = Workspace::new();
    let long = "x".repeat(17 * 1024 * 1024);
    workspace.write("long", format!("needle 1\n{long}\nneedle 2\n"));
    workspace.check("grep", json!({"pattern": "needle"}), found(["long:1: needle 1"]));
    let named = workspace.tool("grep", json!({"pattern": "needle", "path": "long"}));
    assert!(named.starts_with(r#"{"success":false,"error":""#), "{named}");
}

#[test]
fn a_pattern_that_is_too_large_is_refused_in_a_few_words() {
    let workspace = Workspace::new();
    let result = workspace.tool("grep", json!({"pattern": "(a{1000}){1000}".repeat(1000)}));
    assert!(
        result.starts_with(r#"{"success":false,"error":"Invalid pattern: "#)
            && result.len() < 5_000
    );
}
