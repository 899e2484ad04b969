//! `ikigai log`: an agent's canonical log.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout};

use ikigai_conversation::Message;
use ikigai_testkit::{ModelServer, Reply};
use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::support::model::Format;
use crate::support::{Workspace, finish, pid};

fn decoded(lines: &str) -> Vec<Message> {
    lines.lines().map(|line| Message::decode(line).unwrap()).collect()
}

#[test]
fn every_line_of_json_is_a_canonical_message() {
    let workspace = Workspace::with_agents(2);
    let database = workspace.open();
    workspace.print(["mail", "send", "0/", "mail", "--agent", "1/"]);
    let messages = [
        database.say("0/", "one\n\"two\"\u{2028}"),
        database.announce("0/"),
        database.say("0/", ""),
    ];
    let of_another = database.say("1/", "mine");
    let lines = workspace.print(["log", "--json"]);
    assert_eq!(decoded(&lines), messages);
    assert_eq!(lines, messages.map(|message| message.encode() + "\n").concat());
    assert_eq!(decoded(&workspace.print(["log", "--json", "--agent", "1"])), [of_another]);
}

/// U+009B alone begins an escape sequence, and `serde_json` leaves it as it is.
#[test]
fn no_control_character_is_raw_in_printed_json() {
    let odd = "a\u{9b}31m\u{7f}\u{85}\u{202e}b";
    let workspace = Workspace::with_agents(1);
    let said = workspace.open().say("0/", odd);
    workspace.print(["mail", "send", "0/", odd]);
    workspace.write("odd", odd).sql(&format!("UPDATE sessions SET title = '{odd}'"));
    let log = workspace.print(["log", "--json"]);
    assert_eq!(decoded(&log)[0], said);
    let printed = [
        log,
        workspace.print(["sessions", "--json"]),
        workspace.print(["mail", "inbox", "--json"]),
        workspace.tool("file_read", r#"{"path":"odd"}"#),
        workspace.tool("mail", r#"{"action":"inbox"}"#),
    ];
    for text in printed {
        assert!(text.contains(r"\u009b"), "{text}");
        let raw = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(raw), "{text:?}");
    }
}

#[test]
fn a_log_is_a_transcript_in_the_words_of_the_screen() {
    let server = ModelServer::start([
        Reply::call("c1", "bash", json!({"command": "seq 7; exit 3"})),
        Reply::call("c2", "file_write", json!({"path": "docs/a.md", "content": "one\ntwo\n"})),
        Reply::text("Done:\n\n- one"),
    ]);
    let workspace = Workspace::new();
    workspace.run_model(&server, Format::Chat, ["count\nplease"]);
    let log = workspace.print(["log"]);
    let is_time =
        |part: &&str| part.ends_with('s') && part.starts_with(|c: char| c.is_ascii_digit());
    let without_time = |line: &str| {
        let parts: Vec<&str> = line.split(" · ").filter(|part| !is_time(part)).collect();
        parts.join(" · ") + "\n"
    };
    let expected = "\
❯ count
please

● Bash  seq 7; exit 3  ✗ exit 3
  │ … 2 more lines
  │ 3
  │ 4
  │ 5
  │ 6
  │ 7
● Write  docs/a.md  +2 −0
     1 + one
     2 + two

● Done:

- one
";
    assert_eq!(log.lines().map(without_time).collect::<String>(), expected);
    let all = workspace.print(["log", "--all"]);
    assert!(all.contains(" system\n") && all.contains(" usage\n"), "{all}");
}

#[test]
fn all_messages_of_a_log_are_shown_with_their_ids_and_times() {
    let workspace = Workspace::with_agents(1);
    workspace.open().say("0/", "one\ntwo");
    workspace.sql("UPDATE messages SET created_at = 1705314600123");
    let expected = "#1 2024-01-15T10:30:00Z user\n    one\n    two\n";
    assert_eq!(workspace.print(["log", "--all"]), expected);
}

#[test]
fn only_what_comes_after_a_message_is_shown() {
    let workspace = Workspace::with_agents(1);
    let database = workspace.open();
    let messages = ["one", "two", "three"].map(|text| database.say("0/", text));
    let after = |id: &str| decoded(&workspace.print(["log", "--json", "--after", id]));
    assert_eq!(after("0"), messages);
    assert_eq!(after("1"), messages[1..]);
    assert_eq!(after("3"), []);
    assert_eq!(after("9223372036854775807"), []);
    assert_eq!(workspace.run(["log", "--after", "x"]).0, 2);
}

#[test]
fn a_log_that_is_empty_prints_nothing() {
    let workspace = Workspace::with_agents(1);
    assert_eq!(workspace.print(["log"]), "");
    assert_eq!(workspace.print(["log", "--json"]), "");
}

#[test]
fn a_directory_without_a_session_has_no_log_and_gets_none() {
    let workspace = Workspace::new();
    let told = format!("ikigai: there is no session in {} yet\n", workspace.directory().display());
    assert_eq!(workspace.run(["log"]), (1, String::new(), told));
    assert_eq!(workspace.print(["sessions"]), "No sessions yet\n");
    workspace.make_session();
    let told =
        "ikigai: Agent 5/ not found in this session: 'ikigai agents' lists them\n".to_owned();
    assert_eq!(workspace.run(["log", "--agent", "5/"]), (1, String::new(), told));
}

/// Starts following, and waits until the first message was printed.
fn follow(workspace: &Workspace, first: &Message) -> (Child, BufReader<ChildStdout>) {
    let mut child = workspace.ikigai().args(["log", "--json", "--follow"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(next(&mut lines), *first);
    (child, lines)
}

#[track_caller]
fn next(lines: &mut BufReader<ChildStdout>) -> Message {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    Message::decode(&line).unwrap()
}

#[test]
fn what_another_process_appends_is_followed_until_an_interrupt() {
    let workspace = Workspace::with_agents(2);
    let database = workspace.open();
    let first = database.say("0/", "one");
    let (child, mut lines) = follow(&workspace, &first);
    for text in ["two", "three"] {
        let said = database.say("0/", text);
        database.say("1/", "not for here");
        assert_eq!(next(&mut lines), said);
    }
    kill_process(pid(&child), Signal::INT).unwrap();
    let output = finish(child);
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stderr)),
        (Some(130), "".into())
    );
    let mut rest = String::new();
    lines.read_line(&mut rest).unwrap();
    assert_eq!(rest, "");
}

/// It went on for ever: `ikigai log --follow | head -n 1` had to be interrupted.
#[test]
fn following_ends_when_nobody_reads_any_more() {
    let workspace = Workspace::with_agents(1);
    let database = workspace.open();
    let first = database.say("0/", "one");
    let (child, lines) = follow(&workspace, &first);
    drop(lines);
    database.say("0/", "two");
    let output = finish(child);
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stderr)),
        (Some(0), "".into())
    );
}
