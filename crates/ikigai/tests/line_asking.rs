//! Questions on a terminal, line by line.

use std::fs;
use std::net::TcpListener;

use ikigai_testkit::{Gate, ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::Workspace;
use crate::support::model::results_in;
use crate::support::story::{contents, kinds};
use crate::support::terminal::{Terminal, leave, start_talking, talking};

fn touch_outside(id: &str, name: &str) -> Reply {
    Reply::call(
        id,
        "bash",
        json!({"command": format!("touch ../outside/{name}"), "sandbox": false}),
    )
}

fn nth_result(server: &ModelServer, request: usize, nth: usize) -> Value {
    serde_json::from_str(&results_in(&server.requests()[request])[nth].1).unwrap()
}

#[test]
fn a_yes_runs_the_whole_command_that_was_shown_and_is_in_the_log() {
    let server = ModelServer::start([touch_outside("c1", "made"), Reply::text("Done.")]);
    let workspace = Workspace::new();
    workspace.folder("../outside");
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("make it");
    terminal.wait_for("y/a/n ❯ ");
    assert!(!workspace.path("../outside/made").exists());
    let registry = workspace.json(["agents", "--json"]);
    assert_eq!(registry[0]["state"], "asking");
    terminal.type_line("y");
    terminal.wait_for("● Done.\r\n❯ ");
    let shown = leave(terminal);
    let question = "? agent 0/ asks for bash: the command asks to leave the sandbox\r\n    \
        touch ../outside/made\r\n  because of: make it\r\n";
    assert!(shown.contains(question), "{shown}");
    assert!(workspace.path("../outside/made").exists());
    let log = workspace.log("0/");
    assert_eq!(kinds(&log), ["user", "tool_call", "approval", "tool_result", "assistant"]);
    assert_eq!(contents(&log, "approval"), ["Allowed once"]);
}

/// The log has the call as it came.
#[test]
fn a_repaired_call_is_shown_as_what_would_run() {
    let raw = json!({"cmd": ["touch", "../outside/a file"], "sandbox": "false"});
    let call = Reply::call("c1", "Bash", raw.clone());
    let server = ModelServer::start([call, Reply::text("Done.")]);
    let workspace = Workspace::new();
    workspace.folder("../outside");
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("make it");
    terminal.wait_for("y/a/n ❯ ");
    terminal.type_line("y");
    terminal.wait_for("● Done.\r\n❯ ");
    let shown = leave(terminal);
    assert!(shown.contains("? agent 0/ asks for bash: "), "{shown}");
    assert!(shown.contains("touch '../outside/a file'"), "{shown}");
    assert!(workspace.path("../outside/a file").exists());
    let log = workspace.log("0/");
    let called = &log.iter().find(|message| message["kind"] == "tool_call").unwrap()["data"];
    assert_eq!((&called["name"], &called["arguments"]), (&json!("Bash"), &json!(raw.to_string())));
    let repaired = json!([
        "tool Bash read as bash",
        "cmd read as command",
        "command: a list joined as shell words",
        "sandbox: a string read as a boolean"
    ]);
    assert_eq!(nth_result(&server, 1, 0)["data"]["repaired"], repaired);
}

#[test]
fn what_a_command_put_into_a_protected_path_is_put_back_after_a_yes_alone() {
    for (answer, is_back) in [("y", true), ("n", false)] {
        let command = json!({"command": "echo trust > AGENTS.md"});
        let server = ModelServer::start([Reply::call("c1", "bash", command), Reply::text("Done.")]);
        let workspace = Workspace::new();
        let mut terminal = start_talking(&workspace, &server);
        terminal.type_line("make it");
        terminal.wait_for("y/a/n ❯ ");
        assert!(!workspace.path("AGENTS.md").exists());
        terminal.type_line(answer);
        terminal.wait_for("● Done.\r\n❯ ");
        let shown = leave(terminal);
        assert!(shown.contains("AGENTS.md to quarantine"), "{shown}");
        let output = nth_result(&server, 1, 0)["data"]["output"].to_string();
        assert!(output.contains("[ikigai: Moved "), "{output}");
        assert_eq!(output.contains("[ikigai: Put back "), is_back, "{output}");
        assert_eq!(workspace.path("AGENTS.md").exists(), is_back);
        let left = workspace.ikigai().arg("quarantine").output().unwrap();
        let left = String::from_utf8(left.stdout).unwrap();
        assert_eq!(left.contains("AGENTS.md"), !is_back, "{left}");
    }
}

/// The same call again needs no answer, the same command without the network has none.
#[test]
fn the_network_is_asked_for_and_granted_for_the_very_same_call() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let command = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached");
    let call = |id: &str, network: bool| {
        Reply::call(id, "bash", json!({"command": command, "network": network}))
    };
    let server = ModelServer::start([
        call("c1", true),
        call("c2", true),
        call("c3", false),
        Reply::text("Done."),
    ]);
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("connect");
    terminal.wait_for("y/a/n ❯ ");
    terminal.type_line("a");
    terminal.wait_for("● Done.\r\n❯ ");
    let shown = leave(terminal);
    let question =
        "? agent 0/ asks for bash: the command wants to use the network, inside the sandbox\r\n";
    assert_eq!(shown.matches(question).count(), 1, "{shown}");
    let outputs = [0, 1, 2].map(|nth| nth_result(&server, 3, nth)["data"]["output"].to_string());
    assert!(outputs[..2].iter().all(|output| output == r#""reached\n""#), "{outputs:?}");
    assert!(!outputs[2].contains("reached\\n"), "{outputs:?}");
    assert!(outputs[2].contains(r#"\"network\": true"#), "{outputs:?}");
}

#[test]
fn a_no_with_its_reason_goes_to_the_model() {
    let server = ModelServer::start([
        touch_outside("c1", "a"),
        touch_outside("c2", "b"),
        Reply::text("Well."),
    ]);
    let workspace = Workspace::new();
    workspace.folder("../outside");
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("make them");
    terminal.wait_for("y/a/n ❯ ");
    terminal.type_line("n not there, use ./tmp");
    terminal.wait_for_times("y/a/n ❯ ", 2);
    terminal.type_line("n");
    terminal.wait_for("● Well.\r\n❯ ");
    leave(terminal);
    let said = |nth| nth_result(&server, 2, nth)["error"].clone();
    assert_eq!(said(0), "Not permitted: denied by the user: not there, use ./tmp");
    assert_eq!(said(1), "Not permitted: denied by the user");
    let approvals = ["Refused: not there, use ./tmp", "Refused"];
    assert_eq!(contents(&workspace.log("0/"), "approval"), approvals);
    assert!(!workspace.path("../outside/a").exists() && !workspace.path("../outside/b").exists());
}

#[test]
fn always_is_for_the_same_call_and_not_for_another() {
    let server = ModelServer::start([
        touch_outside("c1", "a"),
        touch_outside("c2", "a"),
        touch_outside("c3", "b"),
        Reply::text("Well."),
    ]);
    let workspace = Workspace::new();
    workspace.folder("../outside");
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("make them");
    terminal.wait_for("y/a/n ❯ ");
    terminal.type_line("a");
    terminal.wait_for_times("y/a/n ❯ ", 2);
    terminal.type_line("n");
    terminal.wait_for("● Well.\r\n❯ ");
    leave(terminal);
    assert_eq!(nth_result(&server, 3, 1)["data"]["exit_code"], 0);
    let approvals = ["Allowed for this session", "Refused"];
    assert_eq!(contents(&workspace.log("0/"), "approval"), approvals);
}

#[test]
fn what_is_no_answer_is_not_taken_for_one_and_commands_still_work() {
    let server = ModelServer::start([touch_outside("c1", "a"), Reply::text("Well.")]);
    let workspace = Workspace::new();
    workspace.folder("../outside");
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("make it");
    terminal.wait_for("y/a/n ❯ ");
    terminal.type_line("yes, but only if the test passes");
    terminal.wait_for_times("y: yes, once", 2);
    terminal.type_line("/mode");
    terminal.wait_for("Mode work");
    terminal.wait_for_times("y/a/n ❯ ", 3);
    assert!(!workspace.path("../outside/a").exists());
    terminal.type_line("y");
    terminal.wait_for("● Well.\r\n❯ ");
    leave(terminal);
    assert!(workspace.path("../outside/a").exists());
}

/// A key pressed before the question was seen had been its answer at the next Enter.
#[test]
fn what_was_typed_before_a_question_is_no_answer_to_it() {
    let gate = Gate::new();
    let server = ModelServer::start([touch_outside("c1", "a").after(&gate), Reply::text("Well.")]);
    let workspace = Workspace::new();
    workspace.folder("../outside");
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("make it");
    terminal.type_keys("y");
    // The terminal echoes what it has taken.
    terminal.wait_for("make it\r\ny");
    gate.open();
    terminal.wait_for("y/a/n ❯ ");
    terminal.type_line("");
    terminal.wait_for_times("y: yes, once", 2);
    assert!(!workspace.path("../outside/a").exists());
    terminal.type_line("n");
    terminal.wait_for("● Well.\r\n❯ ");
    leave(terminal);
    assert!(!workspace.path("../outside/a").exists());
}

#[test]
fn an_interrupt_ends_a_question_and_the_next_turn_is_valid() {
    let server = ModelServer::start([touch_outside("c1", "a"), Reply::text("Back.")]);
    let workspace = Workspace::new();
    workspace.folder("../outside");
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("make it");
    terminal.wait_for("y/a/n ❯ ");
    terminal.interrupt();
    terminal.wait_for("✗ interrupted\r\n❯ ");
    terminal.type_line("y");
    terminal.wait_for("● Back.\r\n❯ ");
    leave(terminal);
    let error = nth_result(&server, 1, 0)["error"].clone();
    assert_eq!(error, "Interrupted: it was not carried out");
    assert!(!workspace.path("../outside/a").exists());
    assert_eq!(contents(&workspace.log("0/"), "user"), ["make it", "y"]);
}

#[test]
fn a_write_to_a_guarded_file_is_shown_as_its_difference() {
    let content = json!({"path": "AGENTS.md", "content": "be brief\nbe kind\n"});
    let server = ModelServer::start([
        Reply::call("c0", "file_read", json!({"path": "AGENTS.md"})),
        Reply::call("c1", "file_write", content),
        Reply::text("Done."),
    ]);
    let workspace = Workspace::new();
    workspace.write("AGENTS.md", "be brief\nbe rude\n");
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("be kind");
    terminal.wait_for("y/a/n ❯ ");
    terminal.type_line("y");
    terminal.wait_for("● Done.\r\n❯ ");
    let shown = leave(terminal);
    let difference = "     be brief\r\n    -be rude\r\n    +be kind\r\n";
    assert!(shown.contains(difference), "{shown}");
    assert!(shown.contains("writing AGENTS.md needs approval"), "{shown}");
    assert_eq!(workspace.read_text("AGENTS.md"), "be brief\nbe kind\n");
}

fn write_through_link(id: &str, content: &str) -> Reply {
    Reply::call(id, "file_write", json!({"path": "link", "content": content}))
}

fn relink(workspace: &Workspace, target: &str) {
    fs::remove_file(workspace.path("link")).unwrap();
    workspace.link("link", target);
}

#[test]
fn a_question_about_a_link_shows_where_it_leads() {
    for expected in ["../outside/new", ".bashrc"] {
        let server = ModelServer::start([write_through_link("c1", "x"), Reply::text("Done.")]);
        let workspace = Workspace::new();
        workspace.folder("../outside").link("between", expected).link("link", "between");
        let mut terminal = start_talking(&workspace, &server);
        terminal.type_line("write it");
        terminal.wait_for("y/a/n ❯ ");
        terminal.type_line("y");
        terminal.wait_for("● Done.\r\n❯ ");
        let shown = leave(terminal);
        assert_eq!(workspace.read_text(expected), "x");
        let real = workspace.path(expected).canonicalize().unwrap();
        assert!(shown.contains(&format!("; it leads to {}\r\n", real.display())), "{shown}");
    }
}

#[test]
fn a_yes_is_void_when_the_link_leads_elsewhere_by_then() {
    for (shown, then) in [("../outside/a", "../outside/b"), (".bashrc", ".zshrc")] {
        let server = ModelServer::start([write_through_link("c1", "x"), Reply::text("Well.")]);
        let workspace = Workspace::new();
        workspace.folder("../outside").link("link", shown);
        let mut terminal = start_talking(&workspace, &server);
        terminal.type_line("write it");
        terminal.wait_for("y/a/n ❯ ");
        relink(&workspace, then);
        terminal.type_line("y");
        terminal.wait_for("● Well.\r\n❯ ");
        leave(terminal);
        let expected = "Not permitted: link no longer leads to the path that was approved";
        assert_eq!(nth_result(&server, 1, 0)["error"], expected);
        assert!(!workspace.path(shown).exists() && !workspace.path(then).exists());
    }
}

#[test]
fn a_yes_to_read_is_void_when_the_link_leads_elsewhere_by_then() {
    for (tool, arguments) in [
        ("file_read", json!({"path": "link"})),
        ("grep", json!({"path": "link", "pattern": "x"})),
        ("grep", json!({"path": "folder", "pattern": "x"})),
        ("glob", json!({"path": "folder", "pattern": "*"})),
    ] {
        let server =
            ModelServer::start([Reply::call("c1", tool, arguments.clone()), Reply::text("Well.")]);
        let workspace = Workspace::new();
        workspace.write("../outside/a/file", "x").write("../outside/b/file", "x");
        let link = |to: &str| {
            workspace.link("link", format!("../outside/{to}/file"));
            workspace.link("folder", format!("../outside/{to}"));
        };
        link("a");
        let mut terminal = start_talking(&workspace, &server);
        terminal.type_line("read it");
        terminal.wait_for("y/a/n ❯ ");
        fs::remove_file(workspace.path("link")).unwrap();
        fs::remove_file(workspace.path("folder")).unwrap();
        link("b");
        terminal.type_line("y");
        terminal.wait_for("● Well.\r\n❯ ");
        leave(terminal);
        let named = arguments["path"].as_str().unwrap();
        let expected =
            format!("Not permitted: {named} no longer leads to the path that was approved");
        assert_eq!(nth_result(&server, 1, 0)["error"], expected);
    }
}

#[test]
fn always_is_for_the_file_that_the_link_led_to() {
    let server = ModelServer::start([
        write_through_link("c1", "x"),
        Reply::text("Done."),
        write_through_link("c2", "y"),
        Reply::text("Well."),
    ]);
    let workspace = Workspace::new();
    workspace.folder("../outside").link("link", "../outside/a");
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("write it");
    terminal.wait_for("y/a/n ❯ ");
    terminal.type_line("a");
    terminal.wait_for("● Done.\r\n❯ ");
    relink(&workspace, "../outside/b");
    terminal.type_line("once more");
    terminal.wait_for_times("y/a/n ❯ ", 2);
    terminal.type_line("n");
    terminal.wait_for("● Well.\r\n❯ ");
    leave(terminal);
    assert!(workspace.path("../outside/a").exists() && !workspace.path("../outside/b").exists());
}

#[test]
fn the_mode_is_shown_and_changed() {
    let server = ModelServer::start([
        Reply::call("c1", "bash", json!({"command": "touch ../outside/a"})),
        Reply::text("Well."),
    ]);
    let workspace = Workspace::new();
    workspace.folder("../outside");
    let mut terminal = start_talking(&workspace, &server);
    terminal.wait_for("mode work");
    terminal.type_line("/mode everything");
    terminal.wait_for("error: There is no mode");
    terminal.type_line("/mode full");
    terminal.wait_for("full ❯ ");
    terminal.type_line("go");
    terminal.wait_for("● Well.\r\nfull ❯ ");
    leave(terminal);
    assert!(workspace.path("../outside/a").exists());
}

#[test]
fn mode_full_is_red_where_there_are_colours() {
    let server = ModelServer::start([]);
    let workspace = Workspace::new();
    let mut command = talking(&workspace, &server);
    let mut terminal =
        Terminal::start(command.env("TERM", "xterm").args(["--plain", "--mode", "full"]));
    terminal.wait_for("\x1b[31mmode full\x1b[39m");
    terminal.wait_for("\x1b[31mfull\x1b[39m ❯ ");
    terminal.end_input();
    assert_eq!(terminal.finish("❯ ").0, Some(0));
}
