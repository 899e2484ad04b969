//! A process that was stopped for longer than its lease, and whose agent another one has taken over, says so and
//! writes nothing.

use ikigai_testkit::{ModelServer, Reply};
use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::support::model::Format;
use crate::support::processes::{start_run, suspend};
use crate::support::story::{assert_whole, bash, contents};
use crate::support::terminal::start_talking;
use crate::support::{Workspace, pid, wait_for_pid, wait_until_gone};

/// What is told of the process that took `0/` over.
fn taken_over(workspace: &Workspace) -> String {
    let heir = workspace.lease("0/").unwrap().pid;
    let system = rustix::system::uname();
    let host = system.nodename().to_str().unwrap();
    format!("Agent 0/ was taken over by another process (pid {heir} on {host})")
}

#[test]
fn a_terminal_that_lost_its_agent_says_to_whom_and_offers_a_new_one() {
    let server = ModelServer::choosing(|_| Reply::text("Hello."));
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    suspend(&workspace, terminal.process());
    // What is typed meanwhile was meant for the agent that is lost.
    terminal.type_line("are you there?");
    let (code, events) = workspace.run_json(&server, Format::Chat, ["-c", "mine now"]);
    assert_eq!((code, &events[0]["agent"]), (0, &json!("0/")));
    terminal.send_signal(Signal::CONT);
    terminal.wait_for(&format!("✗ {}", taken_over(&workspace)));
    let offer = "Enter starts a new agent of the session, Ctrl-D leaves";
    terminal.wait_for(offer);
    terminal.type_line("hello?");
    terminal.wait_for_times(offer, 2);
    terminal.type_line("");
    terminal.wait_for("agent 1/");
    terminal.type_line("who am I?");
    terminal.wait_for_times("● Hello.\r\n❯ ", 2);
    terminal.end_input();
    assert_eq!(terminal.finish("--session").0, Some(0));
    assert_eq!(contents(&workspace.log("0/"), "user"), ["hi", "mine now"]);
    assert_eq!(contents(&workspace.log("1/"), "user"), ["who am I?"]);
}

#[test]
fn a_terminal_that_lost_its_agent_can_be_left() {
    let server = ModelServer::choosing(|_| Reply::text("Hello."));
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    suspend(&workspace, terminal.process());
    assert_eq!(workspace.run_json(&server, Format::Chat, ["-c", "mine now"]).0, 0);
    terminal.send_signal(Signal::CONT);
    terminal.wait_for("Enter starts");
    terminal.end_input();
    assert_eq!(terminal.finish("Enter starts").0, Some(0));
    assert_eq!(workspace.states().len(), 1, "no agent was made for it");
}

#[test]
fn a_terminal_whose_agent_was_killed_offers_a_new_one() {
    let server = ModelServer::choosing(|_| Reply::text("Hello."));
    let workspace = Workspace::with_agents(2);
    workspace.sql("UPDATE agents SET state = 'idle'");
    let mut command = crate::support::terminal::talking(&workspace, &server);
    let mut terminal = crate::support::terminal::Terminal::start(command.arg("-c"));
    terminal.wait_for("❯ ");
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    terminal.type_line("/mode read");
    terminal.wait_for("Switched to mode read");
    let killed = workspace.json(["tool", "kill", r#"{"agent":"0/"}"#, "--agent", "1/"]);
    assert_eq!(killed["data"]["killed"], json!(["0/"]));
    terminal.wait_for("Agent 0/ is dead");
    terminal.wait_for("Enter starts");
    terminal.type_line("");
    terminal.wait_for("agent 2/");
    terminal.type_line("/mode");
    terminal.wait_for("Mode read\r\n");
    terminal.end_input();
    assert_eq!(terminal.finish("❯ ").0, Some(0));
}

#[test]
fn a_run_that_lost_its_agent_in_the_middle_of_a_command_writes_nothing_more() {
    let server = ModelServer::choosing(|request| match request.results_since_user() {
        0 if request.last_user_text().unwrap().ends_with("go") => {
            bash("c1", "echo $$ > leader; sleep 31415.8")
        }
        _ => Reply::text("Hello."),
    });
    let workspace = Workspace::unconfined();
    let run = start_run(&workspace, &server, ["go"]);
    let leader = wait_for_pid(&workspace.path("leader"));
    suspend(&workspace, pid(&run.child));
    assert_eq!(workspace.run_json(&server, Format::Chat, ["-c", "mine now"]).0, 0);
    let (rows, told) = (workspace.rows(), taken_over(&workspace));
    kill_process(pid(&run.child), Signal::CONT).unwrap();
    let (code, events, stderr) = run.finish();
    let done = json!({"type": "done", "agent": "0/", "stop": "error", "text": "", "error": told});
    assert_eq!((code, events.last(), stderr), (1, Some(&done), format!("ikigai: {told}\n")));
    wait_until_gone(leader);
    assert_eq!(workspace.rows(), rows);
    assert_whole(&workspace.log("0/"));
}
