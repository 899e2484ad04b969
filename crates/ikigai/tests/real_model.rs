//! A turn with a real model, where a variable names its server.
//!
//! `REAL_MODEL_SERVER=http://127.0.0.1:8099 REAL_MODEL=NAME cargo test -p ikigai real_model`: the server speaks
//! Chat Completions under `/v1` and Anthropic's Messages. Models differ in what they say, so only the shape of the
//! turn is looked at.

use std::io::{BufRead, BufReader};
use std::process::Command;

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::support::model::{Format, events};
use crate::support::story::{assert_whole, kinds};
use crate::support::{Workspace, ended, finish, pid, skip};

/// A run against the server that a variable names; `None` when none does.
fn real_run(workspace: &Workspace, format: Format, prompt: &str) -> Option<Command> {
    let Ok(server) = std::env::var("REAL_MODEL_SERVER") else {
        skip("REAL_MODEL_SERVER names no server");
        return None;
    };
    let model = std::env::var("REAL_MODEL").unwrap_or_else(|_| "default".to_owned());
    let provider = format.model().split('/').next().unwrap();
    let mut command = workspace.ikigai();
    command
        .env("OPENAI_BASE_URL", format!("{server}/v1"))
        .env("ANTHROPIC_BASE_URL", &server)
        .env("OPENAI_API_KEY", "none")
        .env("ANTHROPIC_API_KEY", "none")
        .args(["run", "--json", "--model"])
        .arg(format!("{provider}/{model}"))
        .arg(prompt);
    Some(command)
}

/// A small model does what it is told in one of a few attempts; each has another path in its prompt.
const ATTEMPTS: usize = 8;

#[test]
fn a_real_model_mails_another_agent_which_is_told_of_it() {
    for _ in 0..ATTEMPTS {
        let workspace = Workspace::new();
        // It sends mail when that is all that it can do.
        workspace.write_config("[tools]\nenabled = [\"mail\"]\n");
        workspace.print(["agents", "add"]);
        let prompt = r#"Call mail with {"action": "send", "to": "1/", "body": "hello"}"#;
        let Some(mut command) = real_run(&workspace, Format::Chat, prompt) else { return };
        let mut child = command.args(["-c", "--timeout", "120"]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let told = lines.find(|line| line.contains(r#""type":"notification""#));
        // It may go on talking for long. Where it has ended, there is nobody to be told.
        let _ = kill_process(pid(&child), Signal::TERM);
        drop(lines);
        finish(child);
        let Some(told) = told else { continue };
        let event: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(event["agent"], "1/");
        assert!(kinds(&workspace.log("0/")).contains(&"tool_result"));
        assert!(kinds(&workspace.log("1/")).contains(&"notification"));
        return;
    }
    panic!("the model mailed nobody in {ATTEMPTS} attempts");
}

#[test]
fn a_real_model_calls_a_tool_gets_its_result_and_ends_the_turn() {
    for format in Format::BOTH {
        let workspace = Workspace::new();
        workspace.write("notes.txt", "hello");
        workspace.write_config("[tools]\nenabled = [\"glob\"]\n");
        let prompt = "List the files with the glob tool";
        let Some(mut command) = real_run(&workspace, format, prompt) else { return };
        let (code, stdout, stderr) = ended(command.args(["--timeout", "900"]));
        assert_eq!((code, &*stderr), (0, ""), "{format:?}: {stdout}");
        let last: Value = events(&stdout).pop().unwrap();
        assert_eq!(last["type"], "done");
        let log = workspace.log("0/");
        assert_whole(&log);
        assert!(kinds(&log).contains(&"tool_result"), "{format:?}: {stdout}");
    }
}

/// Its window is found out from its list; no turn may fail because of it.
#[test]
fn a_real_model_works_through_thirty_turns_without_an_error_of_length() {
    let workspace = Workspace::new();
    for number in 0..3 {
        workspace.write(format!("f{number}.txt"), "a line of a file\n".repeat(60));
    }
    workspace.write_config("[tools]\nenabled = [\"glob\", \"file_read\"]\n");
    for turn in 0..30 {
        let prompt = format!("Turn {turn}: read the file f{}.txt and say what is in it", turn % 3);
        let Some(mut command) = real_run(&workspace, Format::Chat, &prompt) else { return };
        command.args((turn > 0).then_some("-c")).args(["--timeout", "900"]);
        let (code, stdout, stderr) = ended(&mut command);
        assert_eq!((code, &*stderr), (0, ""), "turn {turn}: {stdout}");
    }
    assert_whole(&workspace.log("0/"));
}
