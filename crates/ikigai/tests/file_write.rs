//! `file_write`: what is written, where, and what stays as it was.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};

use crate::support::{Workspace, failure, result, skip, success};

fn wrote(bytes: usize, name: &str) -> Value {
    success(json!({"output": format!("Wrote {bytes} bytes to {name}"), "bytes": bytes}))
}

#[track_caller]
fn check(workspace: &Workspace, path: &str, content: &str, expected: Value) {
    workspace.check("file_write", json!({"path": path, "content": content}), expected);
}

#[test]
fn a_new_file_is_created() {
    let workspace = Workspace::new();
    check(&workspace, "new.txt", "content\n", wrote(8, "new.txt"));
    assert_eq!(workspace.read("new.txt"), b"content\n");
    assert_eq!(workspace.names(), ["new.txt"]);
}

#[test]
fn bytes_are_counted_not_characters() {
    let workspace = Workspace::new();
    check(&workspace, "empty", "", wrote(0, "empty"));
    check(&workspace, "one", "x", wrote(1, "one"));
    check(&workspace, "wide", "ä😀\u{feff}\r\n", wrote(11, "wide"));
    assert_eq!(workspace.read_text("wide"), "ä😀\u{feff}\r\n");
}

#[test]
fn the_result_names_the_file_not_its_path() {
    let workspace = Workspace::new();
    check(&workspace, "./a//b.txt", "", wrote(0, "./a//b.txt"));
    let absolute = workspace.text("c d.txt");
    check(&workspace, &absolute, "", wrote(0, &absolute));
    check(&workspace, "a/../e", "", wrote(0, "a/../e"));
    assert_eq!(workspace.names(), ["a/", "a/b.txt", "c d.txt", "e"]);
}

#[test]
fn an_existing_file_is_replaced_whole() {
    let workspace = Workspace::new();
    workspace.write("file", "a long old content");
    check(&workspace, "file", "new", wrote(3, "file"));
    assert_eq!(workspace.read("file"), b"new");
    assert_eq!(workspace.names(), ["file"]);
}

#[test]
fn missing_folders_are_created() {
    let workspace = Workspace::new();
    workspace.folder("a");
    check(&workspace, "a/b/c/d.txt", "deep", wrote(4, "a/b/c/d.txt"));
    assert_eq!(workspace.names(), ["a/", "a/b/", "a/b/c/", "a/b/c/d.txt"]);
    assert_eq!(workspace.read("a/b/c/d.txt"), b"deep");
}

#[test]
fn the_mode_of_an_existing_file_is_kept() {
    for mode in [0o755, 0o600, 0o644, 0o444 | 0o200, 0o4755] {
        let workspace = Workspace::new();
        workspace.write("file", "old").set_mode("file", mode);
        check(&workspace, "file", "new", wrote(3, "file"));
        assert_eq!((workspace.mode("file"), workspace.read_text("file")), (mode, "new".to_owned()));
    }
}

#[test]
fn a_new_file_gets_the_mode_that_the_umask_leaves() {
    for (umask, mode, folder_mode) in
        [("022", 0o644, 0o755), ("077", 0o600, 0o700), ("000", 0o666, 0o777)]
    {
        let workspace = Workspace::new();
        let script = format!(
            r#"umask {umask}; exec "$IKIGAI" tool file_write '{{"path":"new/file","content":"x"}}'"#
        );
        assert_eq!(result(&mut workspace.script(&script)), wrote(1, "new/file").to_string());
        assert_eq!((workspace.mode("new/file"), workspace.mode("new")), (mode, folder_mode));
    }
}

#[test]
fn a_link_stays_a_link_and_its_target_is_written() {
    let workspace = Workspace::new();
    workspace.write("real/file", "old").folder("links");
    workspace.link("links/one", "../real/file").link("two", "links/one");
    workspace.set_mode("real/file", 0o600);
    check(&workspace, "two", "new", wrote(3, "two"));
    assert_eq!(
        (workspace.read_text("real/file"), workspace.mode("real/file")),
        ("new".to_owned(), 0o600)
    );
    for link in ["two", "links/one"] {
        assert!(fs::symlink_metadata(workspace.path(link)).unwrap().is_symlink(), "{link}");
    }
    assert_eq!(workspace.names(), ["links/", "links/one", "real/", "real/file", "two"]);
}

#[test]
fn a_dangling_link_creates_its_target_with_the_folders_above() {
    let workspace = Workspace::new();
    workspace.link("link", "not/there/yet");
    check(&workspace, "link", "new", wrote(3, "link"));
    assert_eq!(workspace.read("not/there/yet"), b"new");
    assert!(fs::symlink_metadata(workspace.path("link")).unwrap().is_symlink());
}

#[test]
fn a_linked_folder_is_written_into() {
    let workspace = Workspace::new();
    workspace.folder("real").link("way", "real");
    check(&workspace, "way/file", "x", wrote(1, "way/file"));
    assert_eq!(workspace.names(), ["real/", "real/file", "way"]);
}

/// The owner of a file may be another than who writes it, when that is root.
#[test]
fn the_owner_of_an_existing_file_is_kept() {
    if !rustix::process::geteuid().is_root() {
        skip("only root can give files away");
        return;
    }
    let workspace = Workspace::new();
    workspace.write("file", "old");
    std::os::unix::fs::chown(workspace.path("file"), Some(65_534), Some(65_533)).unwrap();
    check(&workspace, "file", "new", wrote(3, "file"));
    let metadata = fs::metadata(workspace.path("file")).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (65_534, 65_533));
}

#[test]
fn a_refused_write_leaves_nothing_behind() {
    let workspace = Workspace::unconfined();
    workspace
        .write("file", "old")
        .folder("folder")
        .fifo("fifo")
        .link("loop", "loop")
        .link("away", "away2");
    workspace.link("nowhere", "gone/");
    let before = workspace.names();
    for (path, reason) in [
        ("folder", "Is a directory"),
        ("folder/", "Is a directory"),
        ("new/", "Is a directory"),
        ("folder/.", "Is a directory"),
        ("folder/..", "Is a directory"),
        (".", "Is a directory"),
        ("/", "Is a directory"),
        ("file/below", "Not a directory"),
        ("file/below/deeper", "Not a directory"),
        ("fifo", "Not a regular file"),
        ("/dev/null", "Not a regular file"),
        ("/dev/zero", "Not a regular file"),
        ("loop", "Too many levels of symbolic links"),
        ("loop/file", "Too many levels of symbolic links"),
        ("", "File not found"),
        ("away/new/file", "File not found"),
    ] {
        check(&workspace, path, "new", failure(format!("{reason}: {path}")));
        assert_eq!(workspace.names(), before, "after {path}");
    }
    let long = "n".repeat(300);
    check(
        &workspace,
        &format!("new/{long}"),
        "x",
        failure(format!("File name too long: new/{long}")),
    );
    assert_eq!(workspace.names(), before);
    assert_eq!(workspace.read("file"), b"old");
}

#[test]
fn a_content_of_some_megabytes_is_written_whole() {
    let workspace = Workspace::new();
    let content = "0123456789abcde\n".repeat(512 * 1024);
    check(&workspace, "large", &content, wrote(content.len(), "large"));
    assert!(workspace.read("large") == content.as_bytes());
}
