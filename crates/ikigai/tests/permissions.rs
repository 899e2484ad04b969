//! Files and folders that the user may not read or write. Root may all, so the program runs as another.

use serde_json::json;

use crate::support::{Workspace, failure, found, success};

#[test]
fn a_file_that_may_not_be_read_is_refused() {
    let workspace = Workspace::of_plain_user();
    workspace.write("file", "secret\n").set_mode("file", 0o200);
    let refused = failure("Permission denied: file");
    workspace
        .check("file_read", json!({"path": "file"}), &refused)
        .check("grep", json!({"pattern": "x", "path": "file"}), &refused)
        .check(
            "file_edit",
            json!({"path": "file", "old_string": "secret", "new_string": "x"}),
            &refused,
        );
    workspace.set_mode("file", 0o600);
    assert_eq!(workspace.read_text("file"), "secret\n");
    assert_eq!(workspace.names(), ["file"]);
}

/// Whoever may write it but not read it may replace it.
#[test]
fn a_file_that_may_only_be_written_is_written() {
    let workspace = Workspace::of_plain_user();
    workspace.write("file", "old").set_mode("file", 0o200);
    let wrote = success(json!({"output": "Wrote 3 bytes to file", "bytes": 3}));
    workspace.check("file_write", json!({"path": "file", "content": "new"}), wrote);
    assert_eq!(workspace.mode("file"), 0o200);
    workspace.set_mode("file", 0o600);
    assert_eq!(workspace.read_text("file"), "new");
}

/// The rename would get round it: the folder is the user's own.
#[test]
fn a_file_that_may_only_be_read_is_not_replaced() {
    let workspace = Workspace::of_plain_user();
    workspace.write("file", "old\n").set_mode("file", 0o444).link("link", "file");
    for path in ["file", "link"] {
        let refused = failure(format!("Permission denied: {path}"));
        workspace.check("file_write", json!({"path": path, "content": "new"}), &refused).check(
            "file_edit",
            json!({"path": path, "old_string": "old", "new_string": "new"}),
            &refused,
        );
    }
    assert_eq!(workspace.read_text("file"), "old\n");
    assert_eq!(workspace.names(), ["file", "link"]);
}

#[test]
fn a_folder_that_may_only_be_read_is_not_written_into() {
    let workspace = Workspace::of_plain_user();
    workspace.write("folder/file", "old\n").set_mode("folder", 0o555);
    for path in ["folder/new", "folder/file", "folder/a/b/new"] {
        let refused = failure(format!("Permission denied: {path}"));
        workspace.check("file_write", json!({"path": path, "content": "new"}), refused);
    }
    let edit = json!({"path": "folder/file", "old_string": "old", "new_string": "new"});
    workspace.check("file_edit", edit, failure("Permission denied: folder/file"));
    workspace.check(
        "file_read",
        json!({"path": "folder/file"}),
        success(json!({"output": "old\n"})),
    );
    assert_eq!(workspace.names(), ["folder/", "folder/file"]);
    workspace.set_mode("folder", 0o755);
}

#[test]
fn a_folder_that_may_not_be_entered_is_closed_to_every_tool() {
    let workspace = Workspace::of_plain_user();
    workspace
        .write("closed/file", "needle\n")
        .write("open/file", "needle\n")
        .set_mode("closed", 0o000);
    let refused = failure("Permission denied: closed/file");
    workspace
        .check("file_read", json!({"path": "closed/file"}), &refused)
        .check("file_write", json!({"path": "closed/file", "content": "x"}), &refused)
        .check(
            "file_edit",
            json!({"path": "closed/file", "old_string": "a", "new_string": "b"}),
            &refused,
        )
        .check("grep", json!({"pattern": "x", "path": "closed/file"}), &refused)
        // A walk passes over what it cannot enter.
        .check("glob", json!({"pattern": "**"}), found(["open/file"]))
        .check("grep", json!({"pattern": "needle"}), found(["open/file:1: needle"]));
    workspace.set_mode("closed", 0o755);
    assert_eq!(workspace.names(), ["closed/", "closed/file", "open/", "open/file"]);
}

/// Folders that were created for a file that could then not be written are taken back.
#[test]
fn new_folders_are_taken_back_when_the_file_cannot_be_written() {
    let workspace = Workspace::of_plain_user();
    let mut command = workspace.script(
        r#"umask 0777; exec "$IKIGAI" tool file_write '{"path":"new/deeper/file","content":"x"}'"#,
    );
    let refused = failure("Permission denied: new/deeper/file").to_string();
    assert_eq!(crate::support::result(&mut command), refused);
    assert_eq!(workspace.names(), Vec::<String>::new());
}

/// What lies beside it is passed over, but a search does not begin where it cannot look.
#[test]
fn a_folder_that_may_not_be_read_is_no_place_to_start_from() {
    let workspace = Workspace::of_plain_user();
    workspace.write("closed/file", "x").write("open", "x").set_mode("closed", 0o300);
    let refused = failure("Permission denied: closed");
    workspace
        .check("glob", json!({"pattern": "*", "path": "closed"}), &refused)
        .check("grep", json!({"pattern": "x", "path": "closed"}), &refused)
        .check("glob", json!({"pattern": "**/*"}), found(["open"]));
    workspace.set_mode("closed", 0o700);
}
