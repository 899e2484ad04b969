//! `ikigai undo`, `/undo` and `/redo`: what a message set going is taken back.

use std::fs;

use ikigai_testkit::{CapturedRequest, Gate, ModelServer, Reply};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::support::model::{Format, Running, results_in};
use crate::support::story::kinds;
use crate::support::terminal::{Terminal, talking};
use crate::support::{Numbers, Workspace, finish, pid, wait_for};

const COMMANDS_STAY: &str = "Commands are not undone.\n";

fn write(path: &str, content: &str) -> (&'static str, &'static str, Value) {
    ("c", "file_write", json!({"path": path, "content": content}))
}

fn edit(path: &str, old: &str, new: &str) -> (&'static str, &'static str, Value) {
    ("c", "file_edit", json!({"path": path, "old_string": old, "new_string": new}))
}

fn read(path: &str) -> (&'static str, &'static str, Value) {
    ("c", "file_read", json!({ "path": path }))
}

fn bash(command: &str) -> (&'static str, &'static str, Value) {
    ("c", "bash", json!({ "command": command }))
}

/// A turn with these calls, in one response. They all succeed.
#[track_caller]
fn turn<const N: usize>(
    workspace: &Workspace,
    prompt: [&str; N],
    calls: &[(&'static str, &'static str, Value)],
) {
    let server = ModelServer::start([Reply::calls(calls.to_vec()), Reply::text("Done.")]);
    let (code, events) = workspace.run_json(&server, Format::Chat, prompt);
    let results = events.iter().filter(|event| event["type"] == "tool_result");
    let failed: Vec<&Value> = results.filter(|event| event["result"]["success"] != true).collect();
    assert_eq!((code, failed), (0, vec![]));
}

/// What a turn with one call gives.
#[track_caller]
fn result_of<const N: usize>(
    workspace: &Workspace,
    prompt: [&str; N],
    call: (&'static str, &'static str, Value),
) -> Value {
    let server = ModelServer::start([Reply::calls([call]), Reply::text("Done.")]);
    let (code, _) = workspace.run_json(&server, Format::Chat, prompt);
    assert_eq!(code, 0);
    let (_, result) = results_in(&server.requests()[1]).pop().unwrap();
    serde_json::from_str(&result).unwrap()
}

/// A name with content and permissions, if it is that of a file.
type Entry = (String, Option<(Vec<u8>, u32)>);

fn everything(workspace: &Workspace) -> Vec<Entry> {
    let look = |name: String| {
        let is_file = !name.ends_with('/');
        let content = is_file.then(|| (workspace.read(&name), workspace.mode(&name)));
        (name, content)
    };
    workspace.names().into_iter().map(look).collect()
}

#[track_caller]
fn check_undo(workspace: &Workspace, expected: &[&str]) {
    check(workspace.print(["undo"]), "Undid", expected);
}

#[track_caller]
fn check_redo(workspace: &Workspace, expected: &[&str]) {
    check(workspace.print(["undo", "--redo"]), "Redid", expected);
}

#[track_caller]
fn check(printed: String, done: &str, expected: &[&str]) {
    let [title, files @ ..] = expected else { panic!("no title") };
    let files: String = files.iter().map(|line| format!("  {line}\n")).collect();
    let limit = match done {
        "Redid" => "Commands are not run again.\n",
        _ => COMMANDS_STAY,
    };
    assert_eq!(printed, format!("{done}: \"{title}\" (just now)\n{files}{limit}"));
}

#[test]
fn a_turn_is_taken_back_byte_for_byte_and_made_again() {
    let workspace = Workspace::new();
    workspace.write("edited", b"one\r\n\xff\xfe").set_mode("edited", 0o4750);
    workspace.write("folder/read", "old").set_mode("folder/read", 0o600);
    workspace.link("link", "folder/target").write("folder/target", "behind a link");
    let before = everything(&workspace);
    let calls = [
        edit("edited", "one", "two"),
        edit("edited", "two", "three"),
        read("folder/read"),
        write("folder/read", "new"),
        write("folder/read", "newer"),
        write("new/deep/file", "created"),
        edit("new/deep/file", "created", "and edited"),
        edit("link", "behind", "still behind"),
        bash("echo stays > by-command; chmod 600 new/deep/file"),
    ];
    turn(&workspace, ["change\nall of it"], &calls);
    let after = everything(&workspace);
    let list = format!(
        "\"change\" (just now)\n  edited\n  folder/read\n  new/deep/file\n  folder/target\n{COMMANDS_STAY}"
    );
    assert_eq!(workspace.print(["undo", "--list"]), list);
    check_undo(
        &workspace,
        &[
            "change",
            "restored  folder/target",
            "removed   new/deep/file",
            "restored  folder/read",
            "restored  edited",
        ],
    );
    let mut expected = before;
    expected.push(("by-command".to_owned(), Some((b"stays\n".to_vec(), 0o644))));
    expected.sort();
    assert_eq!(everything(&workspace), expected);
    assert!(workspace.path("link").is_symlink());
    assert_eq!(workspace.print(["undo", "--list"]), "Nothing to undo\n");
    assert_eq!(workspace.print(["undo"]), "Nothing to undo\n");
    check_redo(
        &workspace,
        &[
            "change",
            "written   edited",
            "written   folder/read",
            "written   new/deep/file",
            "written   folder/target",
        ],
    );
    assert_eq!(everything(&workspace), after);
    assert_eq!(workspace.print(["undo", "--list"]), list);
    assert_eq!(workspace.print(["undo", "--redo"]), "Nothing to redo\n");
}

/// What agents wrote there before was no setting then, and nobody was asked.
#[test]
fn an_undo_brings_back_no_setting_of_a_repository_that_came_later() {
    let workspace = Workspace::new();
    turn(&workspace, ["first"], &[write("x/config", "[core]\n\tfsmonitor = evil\n")]);
    let makes_repository = "mkdir x/objects x/refs; echo 'ref: refs/heads/main' > x/HEAD";
    let calls = [write("x/config", "[core]\n\tbare = true\n"), bash(makes_repository)];
    turn(&workspace, ["-c", "second"], &calls);
    let left = "unchanged x/config: it is now one of git's settings";
    check(workspace.print(["undo"]), "Could not undo", &["second", left]);
    assert_eq!(workspace.read("x/config"), b"[core]\n\tbare = true\n");
}

#[test]
fn every_message_is_taken_back_by_itself_the_newest_first() {
    let workspace = Workspace::new();
    workspace.write("a", "0");
    for number in 1..=3 {
        let (old, new) = ((number - 1).to_string(), number.to_string());
        let prompt = format!("make it {new}");
        match number {
            1 => turn(&workspace, [&prompt], &[edit("a", &old, &new)]),
            _ => turn(&workspace, ["-c", &prompt], &[edit("a", &old, &new)]),
        }
    }
    // It asked for nothing, so there is nothing of it to take back.
    turn(&workspace, ["-c", "only look"], &[read("a")]);
    for number in [3, 2] {
        check_undo(&workspace, &[&format!("make it {number}"), "restored  a"]);
        assert_eq!(workspace.read_text("a"), (number - 1).to_string());
    }
    for number in [2, 3] {
        check_redo(&workspace, &[&format!("make it {number}"), "written   a"]);
        assert_eq!(workspace.read_text("a"), number.to_string());
    }
    assert_eq!(workspace.print(["undo", "--list"]).matches("make it").count(), 3);
}

/// Every `run` begins a session, and the newest is the one that is meant.
#[test]
fn where_the_newest_session_changed_nothing_an_older_one_is_named() {
    let workspace = Workspace::new();
    workspace.write("a", "0");
    turn(&workspace, ["make it 1"], &[edit("a", "0", "1")]);
    turn(&workspace, ["only look"], &[read("a")]);
    let said = "Nothing to undo\n";
    for ended in [workspace.run(["undo"]), workspace.run(["undo", "--list"])] {
        let (code, stdout, stderr) = ended;
        let older = stderr.trim_end().rsplit(' ').next().unwrap();
        let told = format!(
            "An older session of this directory has changes to undo: ikigai undo --session {older}\n"
        );
        assert_eq!((code, &*stdout, &stderr), (0, said, &told));
        assert!(workspace.print(["undo", "--list", "--session", older]).contains("make it 1"));
    }
    assert_eq!(workspace.run(["undo", "--redo"]).2, "");
    let sessions: Value = serde_json::from_str(&workspace.print(["sessions", "--json"])).unwrap();
    let newest = sessions[0]["id"].as_str().unwrap();
    assert_eq!(workspace.run(["undo", "--session", newest]).2, "");
}

#[test]
fn what_somebody_has_changed_since_is_left_alone_and_named() {
    let workspace = Workspace::new();
    for name in ["changed", "gone", "between", "fine"] {
        workspace.write(name, "one");
    }
    let big = "x".repeat(10 * 1024 * 1024 + 1);
    workspace.write("big", &big);
    let calls = [
        edit("changed", "one", "two"),
        edit("gone", "one", "two"),
        edit("between", "one", "two"),
        // By a command, which nobody keeps.
        bash("echo theirs >> between"),
        edit("between", "two", "three"),
        read("big"),
        write("big", "small"),
        edit("fine", "one", "two"),
        edit("fine", "two", "three"),
    ];
    turn(&workspace, ["go"], &calls);
    workspace.write("changed", "theirs");
    fs::remove_file(workspace.path("gone")).unwrap();
    check_undo(
        &workspace,
        &[
            "go",
            "restored  fine",
            "unchanged big: its earlier content was too large to keep",
            "partly    between: it has changed since",
            "unchanged gone: it was removed since",
            "unchanged changed: it has changed since",
        ],
    );
    let names = ["changed", "between", "big", "fine"].map(|name| workspace.read_text(name));
    // What they did between our changes is there still.
    assert_eq!(names, ["theirs", "twotheirs\n", "small", "one"]);
    assert_eq!(workspace.print(["undo"]), "Nothing to undo\n");
    // Of what was taken back, only what nobody touched is made again.
    workspace.write("fine", "theirs too");
    let printed = workspace.print(["undo", "--redo"]);
    assert!(printed.contains("unchanged fine: it has changed since\n"), "{printed}");
    assert_eq!(workspace.read_text("fine"), "theirs too");
}

#[test]
fn what_mail_set_going_in_other_agents_is_taken_back_with_it() {
    let workspace = Workspace::with_agents(3);
    let send =
        |to: &str, body: &str| ("c", "mail", json!({"action": "send", "to": to, "body": body}));
    // Who is woken by the mail does the next part.
    let server = ModelServer::choosing(move |captured| {
        let body = String::from_utf8_lossy(&captured.body).into_owned();
        let is = |agent: &str| body.contains(&format!("[You are agent {agent}]"));
        match captured.results_since_user() {
            0 if is("0/") => Reply::calls([write("by 0", "x"), send("1/", "go on")]),
            0 if is("1/") => Reply::calls([write("by 1", "x"), send("2/", "go on")]),
            0 => Reply::calls([write("by 2", "x"), edit("by 0", "x", "y")]),
            _ => Reply::text("Done."),
        }
    });
    let arguments = ["-c", "--agent", "0/", "all of you"];
    assert_eq!(workspace.run_model(&server, Format::Chat, arguments).0, 0);
    assert_eq!(workspace.read_text("by 0"), "y");
    check_undo(&workspace, &["all of you", "removed   by 0", "removed   by 2", "removed   by 1"]);
    assert_eq!(workspace.names(), Vec::<String>::new());
    check_redo(&workspace, &["all of you", "written   by 0", "written   by 1", "written   by 2"]);
    assert_eq!(workspace.read_text("by 0"), "y");
}

#[test]
fn undo_and_redo_can_be_typed_and_the_log_says_so() {
    let gate = Gate::new();
    let server = ModelServer::start([
        Reply::calls([write("a", "x")]),
        Reply::text("Done."),
        Reply::text("Late.").after(&gate),
    ]);
    let workspace = Workspace::new();
    let mut terminal = Terminal::start(&mut talking(&workspace, &server));
    terminal.wait_for("❯ ");
    terminal.type_line("/undo");
    terminal.wait_for("Nothing to undo");
    terminal.type_line("create it");
    terminal.wait_for("● Done.\r\n❯ ");
    terminal.type_line("/undo --list");
    terminal.wait_for("error: Usage: /undo, without arguments");
    assert_eq!(workspace.read_text("a"), "x");
    terminal.type_line("/undo");
    terminal
        .wait_for("Undid: \"create it\" (just now)\r\n  removed   a\r\nCommands are not undone.");
    assert_eq!(workspace.names(), Vec::<String>::new());
    terminal.type_line("/redo");
    terminal.wait_for("Redid: \"create it\" (just now)\r\n  written   a\r\n");
    assert_eq!(workspace.read_text("a"), "x");
    terminal.type_line("wait");
    server.wait_for_requests(3);
    terminal.type_line("/undo");
    terminal.wait_for("error: Agent 0/ is working. Interrupt it first");
    let (code, _, stderr) = workspace.run(["undo"]);
    let refused = "ikigai: agent 0/ is working. Interrupt it first, or wait until it is idle\n";
    assert_eq!((code, &*stderr), (1, refused));
    assert_eq!(workspace.read_text("a"), "x");
    gate.open();
    terminal.wait_for("● Late.\r\n❯ ");
    terminal.end_input();
    terminal.finish("--session");
    let log = workspace.log("0/");
    let expected = [
        "user",
        "tool_call",
        "tool_result",
        "assistant",
        "command",
        "command",
        "user",
        "assistant",
    ];
    assert_eq!(kinds(&log), expected);
    let commands = log.iter().filter(|message| message["kind"] == "command");
    let commands: Vec<&Value> = commands.map(|message| &message["content"]).collect();
    assert_eq!(commands, ["/undo", "/redo"]);
}

#[test]
fn without_a_session_or_with_both_flags_there_is_nothing_to_do() {
    let workspace = Workspace::new();
    let (code, _, stderr) = workspace.run(["undo"]);
    assert_eq!(code, 1);
    assert!(stderr.starts_with("ikigai: there is no session in "), "{stderr}");
    assert_eq!(workspace.run(["undo", "--list", "--redo"]).0, 2);
    assert_eq!(workspace.print(["undo", "--list"]), "Nothing to undo\n");
    workspace.make_session();
    assert_eq!(workspace.print(["undo", "--list"]), "Nothing to undo\n");
    assert_eq!(workspace.print(["undo"]), "Nothing to undo\n");
}

/// A folder that cannot be written stops it half way; when that is mended, the same again finishes it.
#[test]
fn an_undo_that_failed_half_way_is_finished_by_the_next_one() {
    let workspace = Workspace::of_plain_user();
    for name in ["a/file", "b/file", "c/file"] {
        workspace.write(name, "one");
    }
    let before = everything(&workspace);
    let calls: Vec<_> = ["a/file", "b/file", "c/file"]
        .into_iter()
        .flat_map(|name| [edit(name, "one", "two"), edit(name, "two", "three")])
        .collect();
    turn(&workspace, ["go"], &calls);
    let after = everything(&workspace);
    workspace.set_mode("b", 0o555);
    let (code, stdout, stderr) = workspace.run(["undo"]);
    let told = "ikigai: some files could not be changed. 'ikigai undo' tries again\n";
    assert_eq!((code, &*stderr), (1, told));
    let failed = format!("  failed    Permission denied: {}\n", workspace.text("b/file"));
    assert!(stdout.contains(&failed), "{stdout}");
    let texts = ["a", "b", "c"].map(|name| workspace.read_text(&format!("{name}/file")));
    assert_eq!(texts, ["one", "three", "one"]);
    workspace.set_mode("b", 0o755);
    check_undo(&workspace, &["go", "restored  b/file"]);
    assert_eq!(everything(&workspace), before);
    workspace.set_mode("c", 0o555);
    assert_eq!(workspace.run(["undo", "--redo"]).0, 1);
    workspace.set_mode("c", 0o755);
    check_redo(&workspace, &["go", "written   c/file"]);
    assert_eq!(everything(&workspace), after);
}

const FILES: usize = 12;

/// Killed again and again, at moments that differ: what the last one finishes is all of it, both ways.
#[test]
fn an_undo_that_is_killed_at_any_moment_is_finished_by_the_next_one() {
    let workspace = Workspace::new();
    let name = |number: usize| format!("folder {}/file {number}", number % 3);
    for number in (0..FILES).step_by(2) {
        workspace.write(name(number), format!("old {number}"));
    }
    let before = everything(&workspace);
    let calls: Vec<_> = (0..FILES)
        .flat_map(|number| match number % 2 {
            0 => [edit(&name(number), "old", "new"), edit(&name(number), "new", "newer")],
            _ => [write(&name(number), "made"), edit(&name(number), "made", "mended")],
        })
        .collect();
    turn(&workspace, ["go"], &calls);
    let after = everything(&workspace);
    let mut numbers = Numbers(0x5eed);
    for (arguments, wanted) in [(&["undo"][..], &before), (&["undo", "--redo"][..], &after)] {
        for _ in 0..15 {
            let child = workspace.ikigai().args(arguments).spawn().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(numbers.below(60)));
            let _ = kill_process(pid(&child), Signal::KILL);
            finish(child);
            let names = workspace.names();
            assert!(names.iter().filter(|name| name.ends_with(".tmp")).count() <= 15, "{names:?}");
        }
        assert_eq!(
            workspace
                .run(match arguments {
                    ["undo"] => ["undo", "-c"],
                    _ => ["undo", "--redo"],
                })
                .0,
            0
        );
        // What a killed write has left beside a file is nobody's.
        remove_leftovers(&workspace);
        assert_eq!(everything(&workspace), *wanted);
    }
}

fn remove_leftovers(workspace: &Workspace) {
    for name in workspace.names().iter().filter(|name| name.ends_with(".tmp")) {
        fs::remove_file(workspace.path(name)).unwrap();
    }
}

#[test]
fn a_file_is_only_overwritten_by_who_has_seen_it() {
    let workspace = Workspace::new();
    workspace.write("a", "one").write("b", "one");
    let refused = |text: &str| json!({"success": false, "error": text});
    let result = result_of(&workspace, ["go"], write("a", "mine"));
    assert_eq!(result, refused("Read a before overwriting it"));
    turn(&workspace, ["-c", "go"], &[read("a"), read("b")]);
    workspace.write("a", "theirs");
    let result = result_of(&workspace, ["-c", "go"], write("a", "mine"));
    assert_eq!(result, refused("File changed since you read it: a"));
    assert_eq!(workspace.read_text("a"), "theirs");
    // What it has seen it remembers from one process to the next.
    turn(&workspace, ["-c", "go"], &[write("b", "mine"), read("a")]);
    turn(&workspace, ["-c", "go"], &[write("a", "mine"), write("b", "mine too")]);
    // A new session knows nothing of it.
    let result = result_of(&workspace, ["go"], write("b", "mine"));
    assert_eq!(result, refused("Read b before overwriting it"));
}

#[test]
fn a_stale_write_says_which_agent_was_quicker() {
    let workspace = Workspace::with_agents(2);
    workspace.write("a", "one");
    turn(&workspace, ["-c", "--agent", "0/", "go"], &[read("a")]);
    turn(&workspace, ["-c", "--agent", "1/", "go"], &[edit("a", "one", "two")]);
    workspace.sql("UPDATE changes SET created_at = created_at - 7200000");
    let result = result_of(&workspace, ["-c", "--agent", "0/", "go"], write("a", "mine"));
    let text = "File changed since you read it (by agent 1/, 2 hours ago): a";
    assert_eq!(result, json!({"success": false, "error": text}));
    assert_eq!(workspace.read_text("a"), "two");
    // After an undo it is nobody's work any more.
    check_undo(&workspace, &["go", "restored  a"]);
    let result = result_of(&workspace, ["-c", "--agent", "0/", "go"], write("a", "mine"));
    let text = "File changed since you read it: a";
    assert_eq!(result, json!({"success": false, "error": text}));
}

/// The tools on the command line open no database, so they know of no agent that has read anything.
#[test]
fn a_call_by_hand_is_not_checked() {
    let workspace = Workspace::new();
    workspace.write("a", "one");
    workspace.tool("file_write", json!({"path": "a", "content": "two"}));
    assert_eq!(workspace.read_text("a"), "two");
    assert!(!workspace.database().exists());
}

/// kill -9 of the turn itself: what its log tells of can be taken back.
#[test]
fn what_a_killed_turn_has_written_down_can_be_taken_back() {
    let workspace = Workspace::new();
    let many = |captured: &CapturedRequest| {
        let number = captured.messages().len();
        Reply::calls([write(&format!("file {number}"), "x")])
    };
    let server = ModelServer::choosing(many);
    let run = Running::start(&mut workspace.run_command(&server, Format::Chat, ["--json", "go"]));
    server.wait_for_requests(6);
    kill_process(pid(&run.child), Signal::KILL).unwrap();
    finish(run.child);
    let log = workspace.log("0/");
    let results = log.iter().filter(|message| message["kind"] == "tool_result").count();
    wait_for("the end of the process", || (workspace.run(["undo"]).0 == 0).then_some(()));
    // At most the one that was being made is not in the log.
    assert!(results >= 4 && workspace.names().len() <= 1, "{results} {:?}", workspace.names());
}
