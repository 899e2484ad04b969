//! A process takes up free agents of its session, machine and directory when they have something to do, and gives
//! them back.

use ikigai_testkit::{ModelServer, Reply};
use serde_json::json;

use crate::support::model::Format;
use crate::support::processes::LeaseRow;
use crate::support::story::kinds;
use crate::support::terminal::{Terminal, start_talking};
use crate::support::{Workspace, wait_for};

/// A terminal that runs `0/`, which is idle.
fn idle_terminal(workspace: &Workspace, server: &ModelServer) -> Terminal {
    let mut terminal = start_talking(workspace, server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    terminal
}

/// Waits until an agent was taken up and given back so many times.
#[track_caller]
fn wait_for_return(workspace: &Workspace, agent: &str, times: i64) -> LeaseRow {
    wait_for("the agent to be given back", || {
        // A claim raises the epoch, and so does giving back.
        workspace.lease(agent).filter(|lease| lease.is_given_back && lease.epoch == 2 * times)
    })
}

#[test]
fn a_free_agent_with_mail_is_taken_up_and_given_back_when_it_is_idle() {
    let server = ModelServer::choosing(|_| Reply::text("Hello."));
    let workspace = Workspace::new();
    let mut terminal = idle_terminal(&workspace, &server);
    workspace.print(["agents", "add"]);
    workspace.print(["mail", "send", "1/", "user: one"]);
    let lease = wait_for_return(&workspace, "1/", 1);
    assert_eq!(lease.pid, i64::from(terminal.process().as_raw_pid()));
    let agents = workspace.json(["agents", "--json"]);
    let state = |agent: usize| {
        let agent = &agents[agent];
        (agent["state"].clone(), agent["unread"].clone(), agent["notification_pending"].clone())
    };
    assert_eq!(state(0), (json!("idle"), json!(0), json!(false)));
    assert_eq!(state(1), (json!("idle"), json!(0), json!(false)));
    workspace.print(["mail", "send", "1/", "user: two"]);
    wait_for_return(&workspace, "1/", 2);
    let woken = ["notification", "assistant"].repeat(2);
    assert_eq!(kinds(&workspace.log("1/")), woken);
    assert!(!workspace.lease("0/").unwrap().is_given_back);
    terminal.end_input();
    assert_eq!(terminal.finish("❯ ").0, Some(0));
    assert!(workspace.lease("0/").unwrap().is_given_back);
}

#[test]
fn an_agent_of_another_directory_or_machine_is_left_alone() {
    let server = ModelServer::choosing(|_| Reply::text("Hello."));
    let workspace = Workspace::new();
    let mut terminal = idle_terminal(&workspace, &server);
    for _ in 1..=3 {
        workspace.print(["agents", "add"]);
    }
    workspace
        .sql("UPDATE agents SET directory = '/elsewhere' WHERE id = '2/'")
        .sql("UPDATE agents SET machine = 'another' WHERE id = '3/'");
    for agent in ["2/", "3/", "1/"] {
        workspace.print(["mail", "send", agent, "user: hello"]);
    }
    // The look that found the third has seen the others, too.
    wait_for_return(&workspace, "1/", 1);
    terminal.end_input();
    assert_eq!(terminal.finish("❯ ").0, Some(0));
    // Neither does a run that ends wait for them.
    let (code, _) = workspace.run_json(&server, Format::Chat, ["-c", "hi"]);
    assert_eq!(code, 0);
    for agent in ["2/", "3/"] {
        assert_eq!((workspace.lease(agent), workspace.log(agent)), (None, Vec::new()));
    }
}

#[test]
fn the_whole_tree_of_a_free_agent_is_taken_up() {
    let server = ModelServer::choosing(|_| Reply::text("Hello."));
    let workspace = Workspace::with_agents(2);
    let child = workspace.open().fork("1/", None);
    workspace.print(["mail", "send", &child, "user: hello"]);
    let (code, events) = workspace.run_json(&server, Format::Chat, ["-c", "hi"]);
    assert_eq!(code, 0);
    assert_eq!(events.last().unwrap()["agent"], "0/", "its end is the last");
    assert_eq!(kinds(&workspace.log(&child)), ["fork", "notification", "assistant"]);
    assert_eq!(workspace.log("1/"), Vec::<serde_json::Value>::new());
    assert!(workspace.lease("1/").unwrap().is_given_back);
}

/// A process was killed between the end of a turn and the notification, and the mail was read by a person since.
/// The agent was at work for ever then, and whoever had taken it up looked after it without end.
#[test]
fn an_agent_without_anything_to_do_becomes_idle_and_is_given_back() {
    let server = ModelServer::choosing(|_| Reply::text("Hello."));
    let workspace = Workspace::with_agents(2);
    workspace.sql("UPDATE agents SET state = 'waiting' WHERE id = '1/'");
    let (code, _) = workspace.run_json(&server, Format::Chat, ["-c", "hi"]);
    assert_eq!(code, 0);
    let states = workspace.states();
    let idle = |id: &str| (id.to_owned(), "idle".to_owned());
    assert_eq!(states, [idle("0/"), idle("1/")]);
    assert_eq!(server.requests().len(), 1);
    assert!(workspace.lease("1/").unwrap().is_given_back);
}
