//! Background commands on the full screen.

use ikigai_testkit::{ModelServer, Reply};
use serde_json::json;

use crate::support::Workspace;
use crate::support::screen::{Screen, command};
use crate::support::story::contents;

const CONTROL_B: &str = "\u{2}";

#[test]
fn control_b_moves_a_running_command_to_the_background_and_ps_and_stop_find_it() {
    let server = ModelServer::start([
        Reply::call("c1", "bash", json!({"command": "echo first; touch begun; sleep 31415.1"})),
        Reply::text("It still runs."),
        Reply::text("It was stopped."),
    ]);
    let workspace = Workspace::new();
    let mut screen = Screen::start(&mut command(&workspace, &server), 100, 40);
    screen.says("go");
    crate::support::wait_for("the command", || workspace.path("begun").exists().then_some(()));
    screen.wait_for("sleep 31415.1");
    screen.types(CONTROL_B);
    screen.wait_for("It still runs.");
    screen.wait_for("1 running");
    let moved = server.requests()[1].tool_output("c1");
    let expected = json!({"command_id": 1, "running": true, "output": "first\n"});
    assert_eq!(moved["data"], expected);
    screen.wait_until_idle();
    screen.asks("/ps", "#1 0/ · running for ");
    screen.asks("/stop 9", "Command #9 does not run");
    screen.asks("/stop 1", "Stopping command #1");
    screen.wait_for("It was stopped.");
    screen.wait_until_gone("1 running");
    let log = workspace.log("0/");
    let told = contents(&log, "notification");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("[Notification: Command #1 finished with exit code "), "{told:?}");
    screen.leave();
}
