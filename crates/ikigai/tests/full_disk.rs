//! A disk that is full, by a file system of some kilobytes in a name space of its own.

use std::process::Command;

use serde_json::json;

use crate::support::{Workspace, failure, run, skip};

/// How a script gets a name space in which it may mount; `None` where the system does not allow it.
pub(crate) fn unshare() -> Option<Vec<&'static str>> {
    let mut variants = [vec!["-m"], vec!["-r", "-m"]].into_iter();
    variants.find(|options| {
        let mut probe = Command::new("unshare");
        probe.args(options).args(["sh", "-c", "mount -t tmpfs -o size=64k tmpfs /mnt"]);
        probe.output().is_ok_and(|output| output.status.success())
    })
}

#[test]
fn a_full_disk_is_told_and_leaves_everything_as_it_was() {
    let Some(options) = unshare() else {
        skip("this system does not let the tests mount a small file system");
        return;
    };
    let workspace = Workspace::new();
    workspace.folder("disk");
    let large = json!({"path": "disk/file", "content": "x".repeat(100_000)});
    let nested = json!({"path": "disk/new/deeper/file", "content": "x".repeat(100_000)});
    let grow = json!({"path": "disk/file", "old_string": "old", "new_string": "x".repeat(100_000)});
    workspace.write("large", large.to_string());
    workspace.write("nested", nested.to_string());
    workspace.write("grow", grow.to_string());
    let script = r#"
        mount -t tmpfs -o size=64k tmpfs disk && echo old > disk/file || exit 1
        "$0" tool file_write - < large
        "$0" tool file_write - < nested
        "$0" tool file_edit - < grow
        cat disk/file
        find disk | sort
    "#;
    let mut command = workspace.under("unshare", &[&options[..], &["bash", "-c", script]].concat());
    let output = run(&mut command);
    let full = |path| failure(format!("No space left on device: {path}")).to_string();
    let expected = [
        full("disk/file"),
        full("disk/new/deeper/file"),
        full("disk/file"),
        "old\ndisk\ndisk/file\n".to_owned(),
    ];
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected.join("\n"));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
