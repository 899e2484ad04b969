//! Terminals are agents from the moment they open, and one that was never used leaves nothing behind.

use ikigai_testkit::{ModelServer, Reply};
use rustix::process::Signal;
use serde_json::json;

use crate::support::Workspace;
use crate::support::model::Format;
use crate::support::processes::suspend;
use crate::support::terminal::{Terminal, start_talking, talking};

fn server() -> ModelServer {
    ModelServer::choosing(|_| Reply::text("Hello."))
}

fn close(mut terminal: Terminal) -> String {
    terminal.end_input();
    let (code, shown) = terminal.finish("❯ ");
    assert_eq!(code, Some(0), "{shown}");
    shown
}

/// How many rows the tables have that an opening writes to.
fn rows(workspace: &Workspace) -> [i64; 4] {
    ["sessions", "agents", "leases", "roots"]
        .map(|table| workspace.number(&format!("SELECT count(*) FROM {table}")))
}

#[test]
fn two_terminals_are_two_agents_before_a_line_is_typed_and_mail_reaches_them() {
    let (workspace, server) = (Workspace::new(), server());
    let first = start_talking(&workspace, &server);
    first.wait_for("agent 0/ ");
    let second = start_talking(&workspace, &server);
    second.wait_for("agent 0/ is run by another process, so you talk to agent 1/");
    // There is nothing to see yet, and looking makes nothing.
    assert_eq!(workspace.json(["sessions", "--json"]), json!([]));
    let none = format!("ikigai: there is no session in {} yet\n", workspace.directory().display());
    for look in [&["agents"][..], &["mail", "inbox"], &["mail", "read", "1"], &["log"]] {
        let ended = crate::support::ended(workspace.ikigai().args(look));
        assert_eq!(ended, (1, String::new(), none.clone()), "{look:?}");
    }
    assert_eq!(rows(&workspace)[..3], [1, 2, 2]);
    // Mail wakes the one that it is for, which has its system prompt.
    workspace.print(["mail", "send", "1/", "are you there?", "--agent", "1/"]);
    second.wait_for("● Hello.\r\n❯ ");
    assert!(server.requests()[0].system().unwrap().contains("ikigai"));
    assert!(!first.text().contains("Hello."), "{}", first.text());
    let listed = workspace.json(["agents", "--json"]);
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &json!("1/")));
    assert_eq!(workspace.json(["sessions", "--json"])[0]["agents"], 1);
    // The first one was never used.
    close(first);
    close(second);
    assert_eq!(rows(&workspace)[..3], [1, 1, 1]);
    let (code, events) = workspace.run_json_telling(
        &server,
        Format::Chat,
        ["-c", "hi"],
        "ikigai: agent 0/ is gone, so you talk to agent 1/\n",
    );
    assert_eq!((code, &events[0]["agent"]), (0, &json!("1/")));
}

#[test]
fn terminals_that_open_at_the_same_moment_share_a_session_and_leave_nothing() {
    let (workspace, server) = (Workspace::new(), server());
    let terminals: Vec<Terminal> =
        (0..4).map(|_| Terminal::start(&mut talking(&workspace, &server))).collect();
    terminals.iter().for_each(|terminal| terminal.wait_for("❯ "));
    let mut agents: Vec<String> = ["0/", "1/", "2/", "3/"]
        .iter()
        .filter(|agent| {
            terminals.iter().any(|it| it.text().contains(&format!("· agent {agent} ·")))
        })
        .map(ToString::to_string)
        .collect();
    agents.sort();
    assert_eq!(agents, ["0/", "1/", "2/", "3/"]);
    assert_eq!(rows(&workspace)[..3], [1, 4, 4]);
    terminals.into_iter().map(close).for_each(drop);
    assert_eq!(rows(&workspace), [0, 0, 0, 0]);
}

#[test]
fn an_unused_terminal_is_not_what_is_continued() {
    let (workspace, server) = (Workspace::new(), server());
    workspace.run_model(&server, Format::Chat, ["first"]);
    let session = workspace.open().session();
    let mut command = talking(&workspace, &server);
    let unused = Terminal::start(command.arg("--new"));
    unused.wait_for("❯ ");
    assert_eq!(rows(&workspace)[0], 2);
    let (code, events) = workspace.run_json(&server, Format::Chat, ["-c", "again"]);
    assert_eq!((code, &events[0]["session"]), (0, &json!(session.to_string())));
    assert!(workspace.print(["log"]).contains("again"));
    close(unused);
    assert_eq!(rows(&workspace)[0], 1);
    // Mail is for the terminal that was opened last.
    let unused = Terminal::start(&mut talking(&workspace, &server));
    unused.wait_for("❯ ");
    workspace.print(["mail", "send", "0/", "hello", "--agent", "0/"]);
    unused.wait_for("● Hello.\r\n❯ ");
    assert_eq!(workspace.json(["sessions", "--json"]).as_array().unwrap().len(), 2);
    close(unused);
}

#[test]
fn what_a_killed_terminal_left_behind_is_not_listed_and_goes_with_the_next_opening() {
    let (workspace, server) = (Workspace::new(), server());
    let killed = start_talking(&workspace, &server);
    killed.send_signal(Signal::KILL);
    killed.finish("❯ ");
    assert_eq!(rows(&workspace)[..3], [1, 1, 1]);
    assert_eq!(workspace.json(["sessions", "--json"]), json!([]));
    let (code, _, told) = workspace.run_model(&server, Format::Chat, ["-c", "go on"]);
    assert!(code == 1 && told.contains("there is no session in"), "{told}");
    let next = start_talking(&workspace, &server);
    next.wait_for("agent 0/ ");
    assert_eq!(rows(&workspace)[..3], [1, 1, 1]);
    close(next);
    assert_eq!(rows(&workspace), [0, 0, 0, 0]);
}

/// Ctrl+Z, and longer than a lease lasts.
#[test]
fn a_terminal_that_was_stopped_before_it_was_used_continues() {
    let (workspace, server) = (Workspace::new(), server());
    let mut stopped = start_talking(&workspace, &server);
    suspend(&workspace, stopped.process());
    let other = start_talking(&workspace, &server);
    other.wait_for("agent 0/ ");
    stopped.send_signal(Signal::CONT);
    stopped.type_line("hi");
    stopped.wait_for("● Hello.\r\n❯ ");
    close(stopped);
    close(other);
    assert_eq!(rows(&workspace)[..3], [1, 1, 1]);
}
