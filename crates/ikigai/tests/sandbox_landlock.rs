//! The program without bubblewrap: landlock takes its place.

use std::fs;
use std::process::Command;

use ikigai_testkit::{ModelServer, Reply};
use serde_json::json;

use crate::full_disk::unshare;
use crate::support::model::{Format, Running};
use crate::support::{Workspace, ended, pid, skip, wait_for};

const SCRIPT: &str = include_str!("support/without-bubblewrap.sh");

/// The program without bubblewrap; `None`, with a message, if landlock does not work either.
pub(crate) fn without_bubblewrap(workspace: &Workspace) -> Option<Command> {
    // Never without a namespace: the mount would affect the whole system.
    let Some(options) = unshare() else {
        skip("this system does not let the tests hide bubblewrap");
        return None;
    };
    let program = || workspace.under("unshare", &[&options[..], &["bash", "-c", SCRIPT]].concat());
    let (_, found, stderr) = ended(program().arg("doctor"));
    if found.contains("ok  sandbox        landlock, in mode work") {
        return Some(program());
    }
    let needed = std::env::var("IKIGAI_NEED_SANDBOX").unwrap_or_default();
    assert!(!needed.contains("landlock"), "landlock is needed, but: {found}{stderr}");
    skip(&format!("landlock does not work here: {found}{stderr}"));
    None
}

fn run_with(server: &ModelServer, mut program: Command) -> Command {
    program.env("OPENAI_BASE_URL", server.base_url()).env("OPENAI_API_KEY", "key");
    program.env("IKIGAI_MODEL", Format::Chat.model()).args(["run", "--json", "go"]);
    program
}

#[test]
fn a_turn_without_bubblewrap_keeps_its_commands_in_the_tree() {
    let workspace = Workspace::new();
    let Some(program) = without_bubblewrap(&workspace) else { return };
    workspace.write("../outside", "old\n");
    let server = ModelServer::start([
        Reply::call("c", "bash", json!({"command": "echo new > inside; echo new > ../outside"})),
        Reply::text("Done."),
    ]);
    let (code, events, _) = Running::start(&mut run_with(&server, program)).finish();
    assert_eq!(code, 0, "{events:?}");
    assert_eq!(server.requests()[1].tool_output("c")["data"]["exit_code"], 1);
    let files = ["inside", "../outside"].map(|name| workspace.read_text(name));
    assert_eq!(files, ["new\n", "old\n"]);
}

/// As on systems that mount the home directory a second time.
#[test]
fn a_secret_is_hidden_by_all_names_that_mounts_give_it() {
    let workspace = Workspace::new();
    let Some(options) = unshare() else { return skip("this system does not let the tests mount") };
    workspace.write("../home/.ssh/id", "SECRET\n").folder("../again");
    let command = r#"{"command":"cat ../again/.ssh/id ../home/.ssh/id"}"#;
    for hides_bubblewrap in ["", "mount --bind /dev/null \"$(command -v bwrap)\";"] {
        let script = format!("mount --bind ../home ../again; {hides_bubblewrap} exec \"$@\"");
        let mut program =
            workspace.under("unshare", &[&options[..], &["bash", "-c", &script, "-"]].concat());
        let (_, printed, _) = ended(program.args(["tool", "bash", command]));
        assert!(printed.contains("again/.ssh/id: ") && !printed.contains("SECRET"), "{printed}");
    }
}

/// It once reported that the configuration could not be read.
#[test]
fn mail_of_the_command_line_names_the_tool_also_where_the_configuration_is_refused() {
    let workspace = Workspace::new();
    let Some(program) = without_bubblewrap(&workspace) else { return };
    workspace.write_config("max_tool_turns = 5\n");
    let command = format!("{} mail send 0/ hello", env!("CARGO_BIN_EXE_ikigai"));
    let server = ModelServer::start([
        Reply::call("c", "bash", json!({ "command": command })),
        Reply::text("Done."),
    ]);
    Running::start(&mut run_with(&server, program)).finish();
    let output = server.requests()[1].tool_output("c")["data"]["output"].to_string();
    assert!(output.contains("use the mail tool"), "{output}");
}

#[test]
fn doctor_says_that_commands_in_landlock_have_no_sockets() {
    let workspace = Workspace::new();
    let Some(mut program) = without_bubblewrap(&workspace) else { return };
    workspace.write_config("sandbox.unix_sockets = true\n");
    let (_, found, _) = ended(program.arg("doctor"));
    let told = "install bubblewrap for a stronger sandbox; commands have no sockets, not even on \
        localhost; \
        sandbox.unix_sockets has no effect\n";
    assert!(found.contains(told), "{found}");
}

/// Landlock cannot hide a path in a writable folder.
#[test]
fn a_directory_in_which_landlock_cannot_work_is_told_by_doctor() {
    let workspace = Workspace::new();
    let Some(mut program) = without_bubblewrap(&workspace) else { return };
    workspace.write("../home/.ssh/id", "SECRET");
    let (code, found, _) = ended(program.arg("doctor").current_dir(workspace.home()));
    assert_eq!(code, 1, "{found}");
    let told =
        "BAD sandbox        landlock works, but not in this directory: landlock cannot hide ";
    assert!(found.contains(told), "{found}");
}

/// The first command has enough to wait for.
#[test]
fn while_a_model_takes_its_time_the_watchdog_is_started() {
    let workspace = Workspace::new();
    let Some(program) = without_bubblewrap(&workspace) else { return };
    let server = ModelServer::start([Reply::silence()]);
    let mut run = Running::start(&mut run_with(&server, program));
    let children = format!("/proc/{0}/task/{0}/children", pid(&run.child));
    wait_for("the watchdog", || {
        let children = fs::read_to_string(&children).ok()?;
        let name = |child| fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
        children.split_whitespace().any(|child| name(child) == "ikigai-watchdog\n").then_some(())
    });
    run.child.kill().unwrap();
}
