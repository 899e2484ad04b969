//! The program inside a command that an agent runs: it acts as that agent, and as no other.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Workspace, ended, result};

/// A command of agent 1/.
fn inside<const N: usize>(workspace: &Workspace, arguments: [&str; N]) -> Command {
    let mut command = workspace.ikigai();
    command.args(arguments);
    command.env("IKIGAI_AGENT", "1/").env("IKIGAI_SESSION", workspace.open().session().to_string());
    command
}

#[test]
fn it_acts_as_that_agent_in_that_session() {
    let workspace = Workspace::with_agents(2);
    workspace.folder("elsewhere");
    let arguments = json!({"action": "send", "to": "0/", "body": "from a script"}).to_string();
    let sent = result(&mut inside(&workspace, ["tool", "mail", &arguments, "-C", "elsewhere"]));
    assert_eq!(sent, r#"{"sent":true,"to":"0/","id":1}"#);
    let expected = "Inbox for agent 1/:\n  (no messages)\n";
    assert_eq!(
        ended(&mut inside(&workspace, ["mail", "inbox"])),
        (0, expected.to_owned(), String::new())
    );
    let listed = "Inbox for agent 0/:\n  #1 [unread] from 1/ - \"from a script\"\n";
    assert_eq!(workspace.print(["mail", "inbox"]), listed);
    assert_eq!(workspace.json(["sessions", "--json"]).as_array().unwrap().len(), 1);
}

#[test]
fn nobody_can_be_named_but_oneself() {
    let workspace = Workspace::with_agents(2);
    let session = workspace.open().session().to_string();
    let other = "01900000-1000-7000-8000-000000000000";
    let before = workspace.rows();
    let refused = |option: &str, value: &str, text: &str| {
        let expected = (1, String::new(), format!("ikigai: {text}\n"));
        for command in [["mail", "inbox"], ["tool", "mail"], ["agents", "--json"]] {
            let mut command = inside(&workspace, command);
            assert_eq!(ended(command.args([option, value])), expected);
        }
    };
    refused("--agent", "0/", "--agent 0/ cannot be used inside a command of agent 1/");
    refused("--agent", "", "--agent  cannot be used inside a command of agent 1/");
    let text = format!("--session {other} cannot be used inside a command of session {session}");
    refused("--session", other, &text);
    let text = format!("--session  cannot be used inside a command of session {session}");
    refused("--session", "", &text);
    refused("--db", "sqlite:other.db", "--db cannot be used inside an agent's command");
    let expected = "ikigai: --new cannot be used inside an agent's command\n".to_owned();
    let mut command = inside(&workspace, ["agents", "add"]);
    assert_eq!(ended(command.arg("--new")), (1, String::new(), expected));
    assert_eq!(workspace.rows(), before);
    assert_eq!(workspace.names(), Vec::<String>::new());
    let empty = (0, "Inbox for agent 1/:\n  (no messages)\n".to_owned(), String::new());
    for (option, value) in [
        ("--agent", "1/"),
        ("--agent", "1"),
        ("--session", &*session),
        ("--session", &session[..13]),
    ] {
        let mut command = inside(&workspace, ["mail", "inbox"]);
        assert_eq!(ended(command.args([option, value])), empty, "{option} {value}");
    }
}

#[test]
fn a_wrong_variable_is_told_and_makes_nothing() {
    let workspace = Workspace::new();
    let told = |agent: &str, session: &str| {
        let mut command = workspace.ikigai();
        command.args(["mail", "inbox"]).env("IKIGAI_AGENT", agent).env("IKIGAI_SESSION", session);
        let (code, stdout, stderr) = ended(&mut command);
        assert_eq!((code, &*stdout), (1, ""));
        stderr
    };
    let text = told("me", "");
    assert!(text.starts_with("ikigai: 'me' is not an agent ID such as 0/, 1/ or 0/2/"), "{text}");
    assert!(!workspace.database().exists());
    workspace.make_session();
    let session = workspace.open().session().to_string();
    assert_eq!(told("0/", "7"), "ikigai: Session 7 not found: 'ikigai sessions' lists them\n");
    let unknown = "ikigai: Agent 7/ not found in this session: 'ikigai agents' lists them\n";
    assert_eq!(told("7/", &session), unknown);
}

/// Empty counts as unset, as with every variable of the program.
#[test]
fn empty_variables_are_none() {
    let workspace = Workspace::with_agents(1);
    let mut command = workspace.ikigai();
    command.args(["mail", "inbox"]).env("IKIGAI_AGENT", "").env("IKIGAI_SESSION", "");
    let expected = "Inbox for agent 0/:\n  (no messages)\n".to_owned();
    assert_eq!(ended(&mut command), (0, expected, String::new()));
}

#[test]
fn a_command_does_not_see_the_address_of_the_database() {
    let workspace = Workspace::new();
    let mut command =
        workspace.tool_command("bash", json!({"command": "env; cat /proc/$PPID/environ"}));
    command.env("IKIGAI_DATABASE_URL", "sqlite:secret.db").env("IKIGAI_AGENT", "1/");
    let result: Value = serde_json::from_str(&result(&mut command)).unwrap();
    let output = result["data"]["output"].as_str().unwrap();
    assert!(!output.contains("IKIGAI_DATABASE_URL") && !output.contains("secret.db"), "{output}");
    assert!(output.contains("IKIGAI_AGENT=1/"), "{output}");
}
