//! Files of 4 GiB, mostly holes: they are read neither whole nor into memory.

use std::fs::OpenOptions;

use serde_json::{Value, json};

use crate::support::{Workspace, failure, found, input, result, success};

const SIZE: u64 = 4 * 1024 * 1024 * 1024;

/// A file that begins with `text` and goes on as a hole.
fn sparse(text: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.write("huge", text);
    OpenOptions::new().write(true).open(workspace.path("huge")).unwrap().set_len(SIZE).unwrap();
    workspace
}

/// Calls a tool in 256 MiB of address space, most of which is for threads.
#[track_caller]
fn check(workspace: &Workspace, tool: &str, arguments: Value, expected: Value) {
    let mut command = workspace.script(r#"ulimit -v 262144; exec "$IKIGAI" tool "$0" -"#);
    command.arg(tool).stdin(input(arguments.to_string()));
    assert_eq!(result(&mut command), expected.to_string());
}

#[test]
fn a_hole_is_no_text() {
    let workspace = sparse("");
    check(&workspace, "file_read", json!({"path": "huge"}), failure("Not a text file: huge"));
    check(&workspace, "grep", json!({"pattern": "x"}), found([]));
    check(&workspace, "glob", json!({"pattern": "*"}), found(["huge"]));
}

#[test]
fn the_beginning_of_a_huge_file_is_shown_and_the_rest_only_counted() {
    let line = "0123456789abcdef\n";
    let workspace = sparse(&line.repeat(100 * 1024 / line.len()));
    let marker = format!("[Output truncated: showing first 51200 of {SIZE} bytes]");
    let shown = line.repeat(51_200 / line.len() + 1);
    let output = format!("{}\n{marker}", &shown[..51_200]);
    let expected = success(json!({"output": output, "truncated": true}));
    check(&workspace, "file_read", json!({"path": "huge"}), expected);
    let some = success(json!({"output": line.repeat(3)}));
    check(&workspace, "file_read", json!({"path": "huge", "offset": 1_000, "limit": 3}), some);
    check(&workspace, "grep", json!({"pattern": "abc"}), found([]));
}
