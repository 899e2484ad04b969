//! A sandbox that works in general but not for one command: the command needs approval, and no
//! weaker sandbox takes its place.

use std::process::Command;

use ikigai_testkit::{ModelServer, Reply};
use serde_json::json;

use crate::full_disk::unshare;
use crate::sandbox_landlock::without_bubblewrap;
use crate::support::model::Format;
use crate::support::terminal::{Terminal, leave};
use crate::support::{Workspace, ended, skip};

const FAILING: &str = include_str!("support/failing-bubblewrap.sh");
const OLD: &str = include_str!("support/old-bubblewrap.sh");

/// A program whose sandbox fails for every command.
struct Lost {
    workspace: Workspace,
    program: Command,
    /// Why it fails.
    why: String,
}

/// Bubblewrap fails; landlock would work.
fn lost_bubblewrap() -> Option<Lost> {
    let Some(options) = unshare() else {
        skip("this system does not let the tests replace bubblewrap");
        return None;
    };
    let workspace = Workspace::new();
    let program = || workspace.under("unshare", &[&options[..], &["bash", "-c", FAILING]].concat());
    let (_, found, stderr) = ended(program().arg("doctor"));
    if !found.contains("bubblewrap works, but not in this directory") {
        skip(&format!("bubblewrap does not work here: {found}{stderr}"));
        return None;
    }
    let why = "the bubblewrap sandbox cannot be set up: bubblewrap could not set up the sandbox: \
        bwrap: no namespaces left";
    Some(Lost { program: program(), workspace, why: why.to_owned() })
}

/// Landlock fails: it cannot hide a path in the tree.
fn lost_landlock() -> Option<Lost> {
    let workspace = Workspace::new();
    let mut program = without_bubblewrap(&workspace)?;
    workspace.write("../home/.ssh/id", "SECRET");
    program.current_dir(workspace.home());
    let why = format!(
        "the landlock sandbox cannot be set up: landlock cannot hide {}",
        workspace.home().display()
    );
    Some(Lost { workspace, program, why })
}

impl Lost {
    fn with_model(&mut self, server: &ModelServer) -> &mut Command {
        self.program.env("OPENAI_BASE_URL", server.base_url()).env("OPENAI_API_KEY", "key");
        self.program.env("IKIGAI_MODEL", Format::Chat.model())
    }

    fn has_run(&self) -> bool {
        ["made", "../home/made"].iter().any(|name| self.workspace.path(name).exists())
    }
}

fn touch() -> ModelServer {
    let call = Reply::call("c1", "bash", json!({"command": "touch made"}));
    ModelServer::start([call, Reply::text("Done.")])
}

/// `doctor` and `run` find the same sandbox: both settle it by the same trial.
#[test]
fn where_bubblewrap_fails_altogether_doctor_says_so_and_names_the_other_sandbox() {
    if lost_bubblewrap().is_none() {
        return;
    }
    let Some(options) = unshare() else { return };
    let workspace = Workspace::new();
    let script = FAILING.replace("*\" --bind\"*", "*\" --unshare-pid\"*");
    let mut failing =
        workspace.under("unshare", &[&options[..], &["bash", "-c", &script]].concat());
    let (_, found, _) = ended(failing.arg("doctor"));
    let told = "the stronger bubblewrap does not work (bubblewrap: bubblewrap could not set up the \
        sandbox: bwrap: no namespaces left)";
    let says_landlock = found.contains(&format!("landlock, in mode work; {told}; "));
    assert!(says_landlock || found.contains("no sandbox works here"), "{found}");
}

/// A command in the background once swapped a folder of the tree for a link while the next command's
/// sandbox was being set up, and that got write access to the link's target.
#[test]
fn a_bubblewrap_that_can_only_mount_by_path_is_not_used() {
    let Some(options) = unshare() else {
        return skip("this system does not let the tests replace bubblewrap");
    };
    if lost_bubblewrap().is_none() {
        return;
    }
    let workspace = Workspace::new();
    let mut program = workspace.under("unshare", &[&options[..], &["bash", "-c", OLD]].concat());
    let (_, found, _) = ended(program.arg("doctor"));
    let told = "this version is too old to be safe: it lacks the option --bind-fd";
    let is_landlock = found.contains("landlock, in mode work") && found.contains(told);
    assert!(is_landlock || found.contains("no sandbox works here"), "{found}");
}

#[test]
fn without_a_user_a_command_whose_sandbox_cannot_be_had_is_refused_with_the_reason() {
    for lost in [lost_bubblewrap(), lost_landlock()] {
        let Some(mut lost) = lost else { continue };
        let server = touch();
        let (code, _, stderr) = ended(lost.with_model(&server).args(["run", "go"]));
        assert_eq!(code, 0, "{stderr}");
        let result = server.requests()[1].tool_output("c1");
        let error = result["error"].as_str().unwrap();
        assert!(error.starts_with(&format!("Not permitted: {}", lost.why)), "{error}");
        assert!(error.contains("decision = \"trust\""), "{error}");
        assert!(!lost.has_run());
    }
}

#[test]
fn the_command_line_refuses_such_a_command_with_the_reason() {
    for lost in [lost_bubblewrap(), lost_landlock()] {
        let Some(mut lost) = lost else { continue };
        let call = ["tool", "bash", r#"{"command":"touch made"}"#];
        let (_, result, stderr) = ended(lost.program.args(call));
        let expected = format!(r#"{{"success":false,"error":"Not permitted: {}"#, lost.why);
        assert!(result.starts_with(&expected), "{result}{stderr}");
        assert!(!lost.has_run());
    }
}

#[test]
fn the_user_is_asked_with_the_reason_and_the_command_runs_after_a_yes() {
    for lost in [lost_bubblewrap(), lost_landlock()] {
        let Some(mut lost) = lost else { continue };
        let server = touch();
        let mut terminal = Terminal::start(lost.with_model(&server).env("TERM", "dumb"));
        terminal.wait_for("❯ ");
        terminal.type_line("make it");
        terminal.wait_for("y/a/n ❯ ");
        assert!(!lost.has_run());
        terminal.type_line("y");
        terminal.wait_for("● Done.\r\n❯ ");
        let shown = leave(terminal);
        assert!(shown.contains(&format!("? agent 0/ asks for bash: {}", lost.why)), "{shown}");
        assert!(lost.has_run());
        let result = server.requests()[1].tool_output("c1");
        assert_eq!(result["data"]["exit_code"], 0, "{result}");
    }
}
