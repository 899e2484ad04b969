//! `ikigai mail`: the texts for a person, JSON for scripts, exit codes.

use serde_json::json;

use crate::support::{Ended, Workspace, ended, input, run};

fn done(text: &str) -> Ended {
    (0, format!("{text}\n"), String::new())
}

fn failed(text: &str) -> Ended {
    (1, String::new(), format!("{text}\n"))
}

#[test]
fn a_mailbox_is_listed_read_and_written_to() {
    let workspace = Workspace::with_agents(3);
    assert_eq!(workspace.run(["mail", "inbox"]), done("Inbox for agent 0/:\n  (no messages)"));
    let sent = done("Mail sent to agent 0/");
    assert_eq!(workspace.run(["mail", "send", "0/", "one\ntwo", "--agent", "1/"]), sent);
    assert_eq!(workspace.run(["mail", "--agent", "2", "send", "0", "  three "]), sent);
    let listed = "Inbox for agent 0/:\n  #2 [unread] from 2/ - \"three\"\n  #1 [unread] from 1/ - \"one two\"";
    assert_eq!(workspace.run(["mail", "inbox"]), done(listed));
    let read = done("From: 2/\nTime: just now\n\nthree");
    assert_eq!(workspace.run(["mail", "read", "2"]), read);
    assert_eq!(workspace.run(["mail", "read", "2"]), read);
    workspace
        .sql("UPDATE mail SET sent_at = sent_at - 90 * 60 * 1000, body = 'one\ntwo' WHERE id = 1");
    assert_eq!(
        workspace.run(["mail", "read", "1"]),
        done("From: 1/\nTime: 1 hour ago\n\none\ntwo")
    );
    let listed = "Inbox for agent 0/:\n  #2 from 2/ - \"three\"\n  #1 from 1/ - \"one two\"";
    assert_eq!(workspace.run(["mail", "inbox"]), done(listed));
}

#[test]
fn unread_makes_a_message_unread_again() {
    let workspace = Workspace::new();
    workspace.print(["mail", "send", "0/", "x"]);
    workspace.print(["mail", "read", "1"]);
    assert_eq!(workspace.run(["mail", "unread", "1"]), done("Message #1 is unread again"));
    let listed = "Inbox for agent 0/:\n  #1 [unread] from user - \"x\"";
    assert_eq!(workspace.run(["mail", "inbox"]), done(listed));
    let told = json!({"id": 1, "unread": true});
    assert_eq!(workspace.json(["mail", "unread", "1", "--json"]), told);
}

#[test]
fn a_peek_shows_a_message_and_changes_nothing() {
    let workspace = Workspace::with_agents(2);
    let long = "x".repeat(1_001);
    workspace.print(["mail", "send", "0/", &long, "--agent", "1/"]);
    workspace.open().announce("0/");
    let rows = "SELECT unread * 10 + notification_pending FROM agents WHERE id = '0/'";
    let updated = "SELECT updated_at FROM sessions";
    let before = (workspace.number(rows), workspace.number(updated));
    let shown = format!("From: 1/\nTime: just now\n\n{long}");
    assert_eq!(workspace.run(["mail", "peek", "1"]), done(&shown));
    let read = workspace.json(["mail", "peek", "1", "--json"]);
    assert_eq!(
        (&read["id"], &read["from"], &read["body"]),
        (&json!(1), &json!("1/"), &json!(long))
    );
    assert_eq!((workspace.number(rows), workspace.number(updated)), before);
    assert_eq!(before.0, 11);
    let (code, _, stderr) = workspace.run(["mail", "peek", "2"]);
    assert_eq!((code, &*stderr), (1, "Error: Message #2 not found\n"));
    assert_eq!(workspace.number("SELECT count(*) FROM mail WHERE read_by_person = 1"), 0);
}

/// Regression: mail from a shell was from agent 0/, even if it was for that agent.
#[test]
fn mail_from_a_shell_is_from_the_user_who_has_a_mailbox() {
    let workspace = Workspace::with_agents(2);
    let sent = done("Mail sent to agent 0/");
    assert_eq!(workspace.run(["mail", "send", "0/", "from the shell"]), sent);
    let read = done("From: user\nTime: just now\n\nfrom the shell");
    assert_eq!(workspace.run(["mail", "read", "1"]), read);
    let empty = done("Inbox for user:\n  (no messages)");
    assert_eq!(workspace.run(["mail", "inbox", "--agent", "user"]), empty);
    let to_user = ["mail", "send", "user", "done", "--agent", "1/"];
    assert_eq!(workspace.run(to_user), done("Mail sent to user"));
    let arguments = r#"{"action":"send","to":"user","body":"two"}"#;
    let result = json!({"sent": true, "to": "user", "id": 3});
    assert_eq!(workspace.json(["tool", "mail", arguments]), result);
    let listed =
        "Inbox for user:\n  #3 [unread] from 0/ - \"two\"\n  #2 [unread] from 1/ - \"done\"";
    assert_eq!(workspace.run(["mail", "inbox", "--agent", "user"]), done(listed));
    let (code, _, stderr) = workspace.run(["mail", "read", "2"]);
    assert_eq!((code, &*stderr), (1, "Error: Message #2 not found\n"), "it is not that of 0/");
    let read = done("From: 1/\nTime: just now\n\ndone");
    assert_eq!(workspace.run(["mail", "peek", "2", "--agent", "user"]), read);
    assert_eq!(workspace.run(["mail", "read", "2", "--agent", "user"]), read);
    let inbox = workspace.json(["mail", "inbox", "--agent", "user", "--json"]);
    assert_eq!(inbox["unread_count"], 1);
    assert_eq!(workspace.json(["agents", "--json"]).as_array().unwrap().len(), 2);
    let (code, _, stderr) = workspace.run(["agents", "add", "user"]);
    assert_eq!((code, stderr.contains("user")), (1, true), "{stderr}");
    let (code, _, stderr) = workspace.run(["log", "--agent", "user"]);
    assert_eq!((code, stderr.contains("the user is not an agent")), (1, true), "{stderr}");
}

/// What only a person saw does not count as told; made unread, it is told once more.
#[test]
fn a_person_who_looks_clears_the_flag_but_tells_the_model_nothing() {
    let workspace = Workspace::with_agents(2);
    let long = "x".repeat(1_001);
    workspace.print(["mail", "send", "0/", &long, "--agent", "1/"]);
    let database = workspace.open();
    workspace.print(["mail", "inbox"]);
    let told = "[Notification: You have 1 unread message in your inbox]\n\
        #1 from 1/: \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\"";
    assert_eq!(database.announce("0/").content, told);
    let is_pending =
        || workspace.json(["agents", "--json"])[0]["notification_pending"].as_bool().unwrap();
    assert!(is_pending());
    workspace.run(["mail", "read", "99"]);
    workspace.run(["mail", "send", "1/", "x"]);
    assert!(is_pending());
    workspace.print(["mail", "read", "1"]);
    assert!(!is_pending());
    workspace.print(["mail", "unread", "1"]);
    assert_eq!(database.announce("0/").content, told);
    assert!(is_pending());
    workspace.print(["mail", "inbox"]);
    assert!(!is_pending());
}

#[test]
fn errors_have_the_texts_of_the_tool_and_exit_code_1() {
    let workspace = Workspace::with_agents(3);
    workspace.open().kill("1/");
    let check = |arguments: [&str; 3], text: &str| {
        assert_eq!(workspace.run(["mail", arguments[0], arguments[1], arguments[2]]), failed(text));
    };
    check(["send", "99", "x"], "Error: Agent 99/ not found");
    check(["send", "1/", "x"], "Error: Agent 1/ is dead");
    check(["send", "2/", " "], "Error: Message body cannot be empty");
    let large = "x".repeat(16_385);
    let text = "Error: Message body too large (16385 bytes, at most 16384): put it in a file and send its path";
    check(["send", "2/", &large], text);
    let not_found = failed("Error: Message #5 not found");
    assert_eq!(workspace.run(["mail", "read", "5"]), not_found);
    assert_eq!(workspace.run(["mail", "unread", "5"]), not_found);
    for id in ["0", "five", "1.5"] {
        assert_eq!(workspace.run(["mail", "read", id]), failed("Error: Invalid message ID"));
    }
    let unknown = "ikigai: Agent 7/ not found in this session: 'ikigai agents' lists them";
    assert_eq!(workspace.run(["mail", "inbox", "--agent", "7/"]), failed(unknown));
    let no_agent = workspace.run(["mail", "inbox", "--agent", "me"]);
    assert_eq!((no_agent.0, &*no_agent.1), (1, ""));
    assert!(no_agent.2.starts_with("ikigai: 'me' is not an agent ID such as 0/, 1/ or 0/2/"));
}

#[test]
fn json_is_the_result_of_the_tool_with_exit_code_0() {
    let workspace = Workspace::with_agents(2);
    let check = |arguments: &[&str], expected: &str| {
        let json: [&[&str]; 2] = [&["mail", "--json"], arguments];
        assert_eq!(ended(workspace.ikigai().args(json.concat())), done(expected));
    };
    check(&["inbox"], r#"{"messages":[],"unread_count":0}"#);
    check(&["send", "1/", "Hello"], r#"{"sent":true,"to":"1/","id":1}"#);
    workspace.sql("UPDATE mail SET sent_at = 1705314600999");
    check(
        &["inbox", "--agent", "1/"],
        r#"{"messages":[{"id":1,"from":"user","unread":true,"preview":"Hello"}],"unread_count":1}"#,
    );
    check(
        &["read", "1", "--agent", "1/"],
        r#"{"id":1,"from":"user","timestamp":"2024-01-15T10:30:00Z","body":"Hello"}"#,
    );
    check(&["read", "1"], r#"{"error":"Message #1 not found"}"#);
    check(&["read", "x"], r#"{"error":"Invalid message ID"}"#);
    check(&["send", "99/", "x"], r#"{"error":"Agent 99/ not found"}"#);
    check(&["send", "1/", ""], r#"{"error":"Message body cannot be empty"}"#);
}

#[test]
fn a_body_comes_from_standard_input_for_a_dash() {
    let workspace = Workspace::new();
    let send = |text: &[u8]| {
        let mut command = workspace.ikigai();
        command.args(["mail", "send", "0/", "-"]).stdin(input(text));
        ended(&mut command)
    };
    assert_eq!(send("\nfirst\nsecond\n".as_bytes()), done("Mail sent to agent 0/"));
    assert_eq!(
        workspace.print(["mail", "read", "1"]),
        "From: user\nTime: just now\n\nfirst\nsecond\n"
    );
    assert_eq!(send(b""), failed("Error: Message body cannot be empty"));
    let no_text = send(b"\xff");
    assert_eq!((no_text.0, &*no_text.1), (1, ""));
    assert!(no_text.2.starts_with("ikigai: the text on stdin is not UTF-8"), "{}", no_text.2);
    assert_eq!(workspace.json(["mail", "inbox", "--json"])["unread_count"], 0);
}

/// It was cut after a megabyte: inside a character, or before the text behind white space began.
#[test]
fn a_long_body_on_standard_input_is_told_with_its_length() {
    let workspace = Workspace::new();
    let check = |text: String, expected: Ended| {
        let mut command = workspace.ikigai();
        command.args(["mail", "send", "0/", "-"]).stdin(input(text));
        assert_eq!(ended(&mut command), expected);
    };
    let too_large = |bytes: usize| {
        failed(&format!(
            "Error: Message body too large ({bytes} bytes, at most 16384): put it in a file and send its path"
        ))
    };
    check(format!("x{}", "ü".repeat(600_000)), too_large(1_200_001));
    check(format!("{}text", " ".repeat(2_000_000)), done("Mail sent to agent 0/"));
}

#[test]
fn without_a_session_there_is_no_mailbox_and_looking_makes_none() {
    let workspace = Workspace::new();
    let told = format!("ikigai: there is no session in {} yet\n", workspace.directory().display());
    for command in [
        &["mail", "inbox"][..],
        &["mail", "inbox", "--json"],
        &["mail", "read", "1"],
        &["mail", "unread", "1"],
        &["agents"],
        &["agents", "--json"],
    ] {
        let looked = ended(workspace.ikigai().args(command));
        assert_eq!(looked, (1, String::new(), told.clone()), "{command:?}");
    }
    assert_eq!(workspace.print(["sessions"]), "No sessions yet\n");
    assert_eq!(workspace.run(["mail", "send", "0/", "x"]), done("Mail sent to agent 0/"));
    assert_eq!(workspace.run(["mail", "read", "1"]).0, 0);
}

#[test]
fn a_database_that_refuses_is_told_and_fails() {
    let workspace = Workspace::with_agents(1);
    workspace.raw().refuse("INSERT ON mail", "1 = 1");
    let before = workspace.rows();
    let told = "ikigai: Database error: refused";
    assert_eq!(workspace.run(["mail", "send", "0/", "x"]), failed(told));
    let json = (0, "{\"error\":\"Database error\"}\n".to_owned(), format!("{told}\n"));
    assert_eq!(workspace.run(["mail", "--json", "send", "0/", "x"]), json);
    assert_eq!(workspace.rows(), before);
}

#[test]
fn wrong_usage_ends_with_2() {
    let workspace = Workspace::new();
    for arguments in [
        &["mail"][..],
        &["mail", "delete"],
        &["mail", "read"],
        &["mail", "send", "1/"],
        &["mail", "send", "1/", "several", "words"],
        &["mail", "unread"],
        &["mail", "inbox", "5"],
    ] {
        let (code, stdout, stderr) = ended(workspace.ikigai().args(arguments));
        assert_eq!((code, &*stdout), (2, ""), "{arguments:?}");
        assert!(stderr.contains("Usage: ikigai mail"), "{stderr}");
    }
    assert!(!workspace.database().exists());
}

/// The budget of wakes is full again when a person writes, and only then.
#[test]
fn mail_of_a_person_refills_the_wakes() {
    let workspace = Workspace::with_agents(2);
    workspace.sql("UPDATE sessions SET wakes_left = 0, held_told = 1");
    let row = || {
        ["wakes_left", "requests_left", "held_told"]
            .map(|column| workspace.number(&format!("SELECT {column} FROM sessions")))
    };
    let held = row();
    workspace.print(["mail", "inbox"]);
    workspace.run(["mail", "send", "99/", "x"]);
    assert_eq!(row(), held);
    let session = workspace.open().session().to_string();
    let mut inside = workspace.ikigai();
    inside.args(["mail", "send", "1/", "x"]);
    inside.env("IKIGAI_AGENT", "0/").env("IKIGAI_SESSION", session);
    assert_eq!(ended(&mut inside), done("Mail sent to agent 1/"));
    assert_eq!(row(), [0, 300, 1]);
    let mut person = workspace.ikigai();
    person.args(["mail", "send", "1/", "x"]).env("IKIGAI_MAIL__MAX_WAKES", "7");
    assert_eq!(ended(&mut person), done("Mail sent to agent 1/"));
    assert_eq!(row(), [7, 300, 0]);
}

#[test]
fn what_a_sender_wrote_cannot_touch_the_terminal() {
    let workspace = Workspace::new();
    let body = "\u{1b}[2J\u{1b}]0;title\u{7} a\u{9b}31m\u{7f}b\r\nc";
    run(workspace.ikigai().args(["mail", "send", "0/", body]));
    for arguments in [["mail", "inbox"].as_slice(), &["mail", "read", "1"]] {
        let text = String::from_utf8(run(workspace.ikigai().args(arguments)).stdout).unwrap();
        assert!(text.contains("[2J") && text.contains("31m"), "{text}");
        let dangerous: Vec<char> = text.chars().filter(|c| c.is_control() && *c != '\n').collect();
        assert_eq!(dangerous, Vec::<char>::new(), "{text}");
    }
}

/// Each process read the whole log and could not tell what of it was in the database already, so the log grew
/// for ever.
#[test]
fn the_write_ahead_log_stays_short_when_only_short_commands_come() {
    let workspace = Workspace::new();
    for number in 0..60 {
        run(workspace.ikigai().args(["mail", "send", "0/", &number.to_string()]));
    }
    assert_log_is_short(&workspace);
    // These look for a session first.
    for action in ["read", "unread"].repeat(30) {
        run(workspace.ikigai().args(["mail", action, "1"]));
    }
    assert_log_is_short(&workspace);
}

#[track_caller]
fn assert_log_is_short(workspace: &Workspace) {
    let mut log = workspace.database().into_os_string();
    log.push("-wal");
    let length = std::fs::metadata(log).map_or(0, |log| log.len());
    assert!(length < 512 * 1024, "{length} bytes");
}
