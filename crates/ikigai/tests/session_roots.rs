//! The folders of a session: a later process that finds another one under the path refuses it by name.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use ikigai_testkit::{ModelServer, Reply};
use serde_json::json;

use crate::support::model::Format;
use crate::support::terminal::{Terminal, leave, start_talking, talking};
use crate::support::{Ended, Workspace, ended};

fn server() -> ModelServer {
    ModelServer::choosing(|_| Reply::text("ok"))
}

fn done() -> Ended {
    (0, "ok\n".to_owned(), String::new())
}

/// What is said of a folder that the newest session knows as another one.
fn replaced(workspace: &Workspace, name: &str) -> Ended {
    let (path, session) = (workspace.text(name), workspace.open().session());
    let path = path.trim_end_matches('/');
    let told = format!(
        "ikigai: {path} was moved or replaced since session {session} used it: another folder is there now. \
         Put the old folder back, or start a new session with --new\n"
    );
    (1, String::new(), told)
}

/// Everything in the database that a process could change.
fn rows(workspace: &Workspace) -> Vec<String> {
    let raw = workspace.raw();
    [workspace.rows(), raw.dump("leases"), raw.dump("roots")].concat()
}

/// The user moves the working tree aside and clones it again.
fn clone_again(workspace: &Workspace) {
    fs::rename(workspace.directory(), beside(workspace, "moved")).unwrap();
    fs::create_dir(workspace.directory()).unwrap();
}

fn beside(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.directory().with_file_name(name)
}

#[test]
fn a_working_tree_that_was_replaced_is_refused_and_a_new_session_works() {
    let (workspace, server) = (Workspace::new(), server());
    let run = |arguments: [&str; 2]| workspace.run_model(&server, Format::Chat, arguments);
    assert_eq!(run(["--new", "one"]), done());
    assert_eq!(run(["-c", "two"]), done());
    let session = workspace.open().session().to_string();
    clone_again(&workspace);
    let (before, requests) = (rows(&workspace), server.requests().len());
    let expected = replaced(&workspace, "");
    assert_eq!(run(["-c", "three"]), expected);
    let named = format!("--session={session}");
    assert_eq!(run([&named, "three"]), expected);
    assert_eq!(rows(&workspace), before);
    assert_eq!(server.requests().len(), requests);
    // What the message says.
    assert_eq!(run(["--new", "three"]), done());
    assert_eq!(run(["-c", "four"]), done());
    assert_ne!(workspace.open().session().to_string(), session);
    fs::rename(workspace.directory(), beside(&workspace, "clone")).unwrap();
    fs::rename(beside(&workspace, "moved"), workspace.directory()).unwrap();
    assert_eq!(run([&named, "five"]), done());
}

#[test]
fn every_command_that_changes_something_is_refused_and_those_that_look_are_not() {
    let (workspace, server) = (Workspace::new(), server());
    assert_eq!(workspace.run_model(&server, Format::Chat, ["one"]), done());
    clone_again(&workspace);
    let before = rows(&workspace);
    let expected = replaced(&workspace, "");
    for command in [
        &["mail", "send", "0/", "hello"][..],
        &["agents", "add"],
        &["tool", "mail", r#"{"action":"send","to":"0/","body":"x"}"#],
        &["tool", "fork", r#"{"prompt":"x"}"#],
        &["undo"],
        &["undo", "--redo"],
    ] {
        assert_eq!(ended(workspace.ikigai().args(command)), expected, "{command:?}");
        assert_eq!(rows(&workspace), before, "{command:?}");
    }
    for command in [&["log"][..], &["agents"], &["sessions"], &["undo", "--list"]] {
        let (code, _, told) = ended(workspace.ikigai().args(command));
        assert_eq!((code, &*told), (0, ""), "{command:?}");
    }
    assert_eq!(workspace.print(["mail", "inbox"]), "Inbox for agent 0/:\n  (no messages)\n");
    // It needs no session.
    workspace.tool("bash", json!({"command": "true"}));
    assert_eq!(workspace.print(["agents", "add", "--new"]), "1/\n");
}

/// The folder that an undo would write to, from wherever it is asked for.
#[test]
fn an_undo_from_elsewhere_is_refused_where_the_sessions_folder_was_replaced() {
    let workspace = Workspace::new();
    let server = ModelServer::start([
        Reply::call("c", "file_write", json!({"path": "made", "content": "new"})),
        Reply::text("ok"),
    ]);
    assert_eq!(workspace.run_model(&server, Format::Chat, ["one"]).0, 0);
    let expected = replaced(&workspace, "");
    let session = workspace.open().session().to_string();
    clone_again(&workspace);
    workspace.write("made", "new");
    let undo = ["-C", "../home", "undo", "--session", &session];
    assert_eq!(workspace.run(undo), expected);
    assert_eq!(workspace.read_text("made"), "new");
    // One that is gone is nobody else's folder.
    fs::remove_dir_all(workspace.directory()).unwrap();
    let mut undo_there = workspace.ikigai();
    undo_there.current_dir(workspace.home()).args(["undo", "--session", &session]);
    assert_eq!(ended(&mut undo_there).0, 0);
}

#[test]
fn an_added_folder_that_became_a_link_is_refused_by_the_name_that_was_typed() {
    let (workspace, server) = (Workspace::new(), server());
    workspace.folder("../side").folder("../secret").folder("../other");
    let side = "--add-dir=../side";
    let run = |arguments: [&str; 3]| workspace.run_model(&server, Format::Chat, arguments);
    assert_eq!(run(["--new", side, "one"]), done());
    let path = beside(&workspace, "side");
    fs::remove_dir(&path).unwrap();
    symlink(beside(&workspace, "secret"), &path).unwrap();
    for typed in [side, &format!("--add-dir={}", path.display())] {
        let (code, stdout, told) = run(["-c", typed, "two"]);
        let named = format!("ikigai: {} was moved or replaced", path.display());
        assert!((code, &*stdout) == (1, "") && told.starts_with(&named), "{told}");
    }
    let session = format!("--session={}", workspace.open().session());
    let (code, _, told) = run(["-C../side", &session, "two"]);
    assert!(code == 1 && told.contains("/side was moved or replaced"), "{told}");
    // Who does not use it has nothing to do with it.
    assert_eq!(run(["-c", "--add-dir=../other", "three"]), done());
    assert_eq!(run(["--new", side, "four"]), done());
    // A link that leads where it led is what it was.
    assert_eq!(run(["-c", side, "five"]), done());
}

#[test]
fn a_folder_of_the_configuration_that_was_replaced_is_refused_by_name() {
    let (workspace, server) = (Workspace::new(), server());
    workspace.folder("../side").write("../file", "");
    let (side, file) = (workspace.text("../side"), workspace.text("../file"));
    workspace.write_config(&format!("sandbox.write = ['{side}', '{file}', '/not/there']\n"));
    let run = |arguments: [&str; 2]| workspace.run_model(&server, Format::Chat, arguments);
    assert_eq!(run(["--new", "one"]), done());
    // Programs save a file by renaming another over it.
    workspace.write("../new", "");
    fs::rename(workspace.path("../new"), &file).unwrap();
    assert_eq!(run(["-c", "two"]), done());
    fs::rename(&side, workspace.path("../aside")).unwrap();
    let refused = || {
        let (code, _, told) = run(["-c", "three"]);
        assert!(code == 1 && told.contains("/side was moved or replaced"), "{told}");
    };
    fs::create_dir(&side).unwrap();
    refused();
    // A file in its place would be one that commands can write.
    fs::remove_dir(&side).unwrap();
    symlink(&file, &side).unwrap();
    refused();
}

#[test]
fn a_terminal_is_refused_and_with_new_it_is_not() {
    let (workspace, server) = (Workspace::new(), server());
    let mut running = start_talking(&workspace, &server);
    running.type_line("hi");
    running.wait_for("● ok\r\n❯ ");
    clone_again(&workspace);
    let expected = replaced(&workspace, "").2;
    // By itself it joins the session that runs here; `-c` goes on with it.
    for arguments in [&[][..], &["-c"]] {
        let terminal = Terminal::start(talking(&workspace, &server).args(arguments));
        let (code, shown) = terminal.finish("--new");
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains(expected.trim_end()), "{shown}");
    }
    let mut terminal = Terminal::start(talking(&workspace, &server).arg("--new"));
    terminal.wait_for("❯ ");
    terminal.type_line("hi");
    terminal.wait_for("● ok\r\n❯ ");
    leave(terminal);
    leave(running);
}

/// One of an older version, or one in which nothing was said so far.
#[test]
fn a_session_that_knows_no_folders_learns_them_when_it_is_next_run() {
    let (workspace, server) = (Workspace::new(), server());
    workspace.print(["agents", "add"]);
    let count = || workspace.raw().number("SELECT count(*) FROM roots");
    assert_eq!(count(), 0);
    clone_again(&workspace);
    let run = |prompt| workspace.run_model(&server, Format::Chat, ["-c", prompt]);
    assert_eq!(run("one"), done());
    assert_eq!(count(), 1);
    fs::rename(beside(&workspace, "moved"), beside(&workspace, "first")).unwrap();
    clone_again(&workspace);
    assert_eq!(run("two"), replaced(&workspace, ""));
}
