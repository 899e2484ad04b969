//! A FIFO, a socket, a device, a folder, a link to itself where a file is expected: no tool hangs on it,
//! and none harms it.

use std::fs;
use std::os::unix::net::UnixListener;

use serde_json::json;

use crate::support::{Workspace, failure};

#[track_caller]
fn check(workspace: &Workspace, path: &str, reason: &str) {
    let error = failure(format!("{reason}: {path}"));
    workspace
        .check("file_read", json!({ "path": path }), &error)
        .check("file_read", json!({"path": path, "offset": 2, "limit": 1}), &error)
        .check("file_write", json!({"path": path, "content": "x"}), &error)
        .check("file_edit", json!({"path": path, "old_string": "a", "new_string": "b"}), &error);
}

#[test]
fn what_is_no_regular_file_is_refused_by_every_file_tool() {
    let workspace = Workspace::unconfined();
    workspace.fifo("fifo").link("link to fifo", "fifo");
    let _listener = UnixListener::bind(workspace.path("socket")).unwrap();
    let before = workspace.names();
    for path in
        ["fifo", "link to fifo", "socket", "/dev/null", "/dev/zero", "/dev/full", "/dev/tty"]
    {
        check(&workspace, path, "Not a regular file");
        let grep = json!({"pattern": "x", "path": path});
        workspace.check("grep", grep, failure(format!("Not a regular file: {path}")));
        let glob = json!({"pattern": "*", "path": path});
        workspace.check("glob", glob, failure(format!("Not a directory: {path}")));
    }
    assert_eq!(workspace.names(), before);
}

#[test]
fn a_folder_is_refused_by_every_tool_that_wants_a_file() {
    let workspace = Workspace::unconfined();
    workspace.folder("folder").link("way", "folder");
    for path in ["folder", "folder/", "way", ".", "/"] {
        check(&workspace, path, "Is a directory");
    }
    assert_eq!(workspace.names(), ["folder/", "way"]);
}

#[test]
fn a_loop_of_links_is_refused_by_every_tool() {
    let workspace = Workspace::new();
    workspace.link("a", "b").link("b", "a").link("self", "self");
    for path in ["a", "self", "a/below"] {
        let reason = "Too many levels of symbolic links";
        check(&workspace, path, reason);
        let error = failure(format!("{reason}: {path}"));
        workspace.check("grep", json!({"pattern": "x", "path": path}), &error);
        workspace.check("glob", json!({"pattern": "*", "path": path}), &error);
    }
    assert!(fs::symlink_metadata(workspace.path("a")).unwrap().is_symlink());
}
