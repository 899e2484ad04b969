//! Several processes at one file.

use std::fs::{self, File};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::support::{Workspace, finish, line_of, run, success};

/// Two processes edit one file 200 times each, at the same time.
#[test]
fn edits_of_two_processes_are_never_lost() {
    const EDITS: usize = 200;
    let workspace = Workspace::new();
    let content = |word: &str| -> String {
        (0..2 * EDITS).map(|number| format!("<{word} {number}>\n")).collect()
    };
    workspace.write("file", content("old"));
    let script = r#"
        for number in $(seq "$0" "$1"); do
            "$IKIGAI" tool file_edit "{\"path\":\"file\",\"old_string\":\"<old $number>\",\"new_string\":\"<new $number>\"}"
        done
    "#;
    let edit = |from: usize| {
        let mut command = workspace.script(script);
        command.args([from.to_string(), (from + EDITS - 1).to_string()]);
        let output = run(&mut command);
        let result =
            success(json!({"output": "Replaced 1 occurrence(s) in file", "replacements": 1}));
        let expected = format!("{result}\n").repeat(EDITS);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| edit(0));
        scope.spawn(|| edit(EDITS));
    });
    assert_eq!(workspace.read_text("file"), content("new"));
    assert_eq!(workspace.names(), ["file"]);
}

/// Whoever holds the lock may put another file in this one's place: the edit is then of that file.
#[test]
fn an_edit_waits_for_the_lock_and_takes_the_file_that_is_there_then() {
    for _ in 0..5 {
        let workspace = Workspace::new();
        workspace.write("file", "old first").write("next", "old second");
        let file = File::open(workspace.path("file")).unwrap();
        file.lock().unwrap();
        let arguments = json!({"path": "file", "old_string": "old", "new_string": "new"});
        let ikigai = workspace.tool_command("file_edit", arguments).spawn().unwrap();
        fs::rename(workspace.path("next"), workspace.path("file")).unwrap();
        file.unlock().unwrap();
        let edited =
            success(json!({"output": "Replaced 1 occurrence(s) in file", "replacements": 1}));
        assert_eq!(line_of(finish(ikigai)), edited.to_string());
        assert_eq!(workspace.read_text("file"), "new second");
    }
}

/// Who reads while others write sees one of the contents, whole.
#[test]
fn a_reader_never_sees_a_file_half_written() {
    let workspace = Workspace::new();
    let contents = ["a".repeat(300_000), "b".repeat(200_000)];
    workspace.write("file", &contents[0]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for content in contents.iter().cycle().take(20) {
                workspace.tool("file_write", json!({"path": "file", "content": content}));
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let seen = fs::read_to_string(workspace.path("file")).unwrap();
            assert!(contents.contains(&seen), "{} bytes", seen.len());
        }
    });
}

/// The same new folders, made by several at once.
#[test]
fn several_writers_may_create_the_same_folders() {
    let workspace = Workspace::new();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let workspace = &workspace;
            scope.spawn(move || {
                let path = format!("a/b/c/file{number}");
                let expected = json!({"output": format!("Wrote 1 bytes to {path}"), "bytes": 1});
                let arguments = json!({"path": path, "content": "x"});
                workspace.check("file_write", arguments, success(expected));
            });
        }
    });
    assert_eq!(workspace.names().len(), 3 + 8);
}
