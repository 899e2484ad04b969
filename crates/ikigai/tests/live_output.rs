//! What a command prints is seen while it runs, in every front end, and an interrupt keeps it.

use ikigai_testkit::{ModelServer, Point, Reply};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::support::model::{Format, Running};
use crate::support::screen::Screen;
use crate::support::story::{bash, of_type};
use crate::support::terminal::start_talking;
use crate::support::{Workspace, pid, success};

/// Prints a line, and another one when the file is there.
const TWO_LINES: &str = "echo one; until [ -e go ]; do sleep 0.02; done; echo two";

#[test]
fn an_interrupt_keeps_what_a_command_has_printed() {
    let server = ModelServer::start([bash("c1", TWO_LINES)]);
    let workspace = Workspace::unconfined();
    let mut command = workspace.run_command(&server, Format::Chat, ["--json", "go"]);
    let run = Running::start(&mut command);
    run.next_output();
    kill_process(pid(&run.child), Signal::INT).unwrap();
    let (code, events, _) = run.finish();
    assert_eq!(code, 130);
    let result = of_type(&events, "tool_result")[0]["result"].clone();
    let output = "one\n[Interrupted: the command was ended]";
    assert_eq!(result, success(json!({"output": output, "exit_code": 130})));
}

#[test]
fn a_flood_is_passed_on_in_small_pieces_and_what_is_left_out_is_counted() {
    const PRINTED: u64 = 50_000_000;
    let command =
        format!("yes 0123456789 | head -c {PRINTED}; until [ -e go ]; do sleep 0.02; done");
    let server = ModelServer::start([bash("c1", &command), Reply::text("done")]);
    let workspace = Workspace::unconfined();
    let mut command = workspace.run_command(&server, Format::Chat, ["--json", "go"]);
    let run = Running::start(&mut command);
    let bytes = |event: &Value| event["delta"].as_str().unwrap().len() as u64;
    let mut passed = 0;
    while passed < PRINTED {
        let event = run.next_output();
        assert!(bytes(&event) <= 4_096, "{}", bytes(&event));
        passed += bytes(&event) + event["skipped"].as_u64().unwrap();
    }
    assert_eq!(passed, PRINTED);
    workspace.write("go", "");
    assert_eq!(run.finish().0, 0);
}

#[test]
fn the_screen_says_which_file_is_being_written() {
    let arguments = json!({"path": "src/ops.py", "content": "one\n".repeat(80)});
    let call = Reply::call("c1", "file_write", arguments);
    let server = ModelServer::start([call.stall_at(Point::Arguments)]);
    let mut screen = Screen::alone(&server);
    screen.says("go");
    screen.wait_for("Writing src/ops.py · ");
}

#[test]
fn line_mode_shows_each_line_of_a_running_command_once() {
    let server = ModelServer::start([bash("c1", TWO_LINES), Reply::text("All done.")]);
    let workspace = Workspace::unconfined();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("count");
    terminal.wait_for("  │ one\r\n");
    workspace.write("go", "");
    terminal.wait_for("● All done.\r\n");
    terminal.end_input();
    let (_, shown) = terminal.finish("--session");
    assert_eq!((shown.matches("│ one").count(), shown.matches("│ two").count()), (1, 1), "{shown}");
}
