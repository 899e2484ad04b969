//! Keys of providers: tried, stored, listed and removed.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use ikigai_testkit::{CapturedRequest, ModelServer, Reply};
use serde_json::json;

use crate::support::terminal::{Terminal, leave};
use crate::support::{Ended, Workspace, ended, input};

const KEY: &str = "sk-good-marker";

/// A server of OpenAI's format that accepts one key.
fn server() -> ModelServer {
    let choose = |request: &CapturedRequest| {
        let has_key = request.header("authorization") == Some("Bearer sk-good-marker");
        match (has_key, request.method.as_str()) {
            (false, _) => Reply::status(401),
            (true, "GET") => {
                Reply::json(200, &json!({"data": [{"id": "gpt-5", "context_window": 9}]}))
            }
            (true, _) => Reply::text("Hello."),
        }
    };
    ModelServer::choosing(choose).with_lists()
}

/// `ikigai` without a key, with this server in the place of OpenAI's.
fn ikigai(workspace: &Workspace, server: &ModelServer) -> Command {
    let mut command = workspace.ikigai();
    command.env("OPENAI_BASE_URL", server.base_url()).env("TERM", "dumb");
    command
}

fn add(workspace: &Workspace, server: &ModelServer, key: &str) -> Ended {
    let mut command = ikigai(workspace, server);
    ended(command.args(["auth", "add", "openai"]).stdin(input(format!("{key}\n"))))
}

#[test]
fn a_key_is_tried_and_stored_and_then_it_just_works() {
    let (workspace, server) = (Workspace::new(), server());
    let file = workspace.home().join("config/ikigai/credentials.toml");
    let (code, stdout, stderr) = add(&workspace, &server, "sk-wrong");
    assert_eq!((code, &*stdout), (1, ""));
    let refused =
        "ikigai: the key is not stored: openai: the key was refused: HTTP 401: scripted\n";
    assert_eq!(stderr, refused);
    assert_eq!(add(&workspace, &server, "").0, 1);
    assert!(!file.exists());
    let stored = format!("Stored the key of openai in {}\n", file.display());
    assert_eq!(add(&workspace, &server, KEY), (0, stored, String::new()));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let (code, answer, _) = ended(ikigai(&workspace, &server).args(["run", "hi"]));
    assert_eq!((code, &*answer), (0, "Hello.\n"));
    let sent = server.requests().iter().rfind(|request| request.method == "POST").unwrap().clone();
    assert_eq!(sent.json()["model"], "gpt-5");
    // Nothing shows it.
    for arguments in [&["auth", "list"][..], &["config"], &["doctor"], &["models"]] {
        let (_, stdout, stderr) = ended(ikigai(&workspace, &server).args(arguments));
        assert!(!format!("{stdout}{stderr}").contains(KEY), "{arguments:?}");
    }
    assert_eq!(workspace.print(["auth", "list"]), "openai       stored\n");
    let mut with_variable = workspace.ikigai();
    with_variable.env("OPENAI_API_KEY", "other").env("GEMINI_API_KEY", "g");
    let (_, listed, _) = ended(with_variable.args(["auth", "list"]));
    let expected =
        "openai       OPENAI_API_KEY (wins over the stored key)\ngoogle       GEMINI_API_KEY\n";
    assert_eq!(listed, expected);
    // The variable wins.
    let mut command = ikigai(&workspace, &server);
    assert_eq!(ended(command.env("OPENAI_API_KEY", "other").args(["run", "hi"])).0, 1);
    let removed = format!("Removed the key of openai from {}\n", file.display());
    assert_eq!(workspace.print(["auth", "rm", "openai"]), removed);
    assert_eq!(
        workspace.print(["auth", "list"]),
        "No keys. 'ikigai auth add PROVIDER' stores one\n"
    );
    assert_eq!(workspace.run(["auth", "rm", "openai"]).0, 1);
}

#[test]
fn a_key_that_cannot_be_checked_is_stored_and_one_that_cannot_be_tried_is_not() {
    let (workspace, without) = (Workspace::new(), ModelServer::start([]));
    let (code, stdout, _) = add(&workspace, &without, KEY);
    assert_eq!(code, 0);
    assert!(stdout.ends_with("It could not be checked: the server lists no models\n"), "{stdout}");
    let mut command = workspace.ikigai();
    command.env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1").args(["auth", "add", "openai"]);
    let (code, _, stderr) = ended(command.stdin(input("sk-other\n")));
    assert_eq!(code, 1);
    assert!(stderr.contains("the key is not stored: openai: the connection failed"), "{stderr}");
    let (code, _, stderr) = workspace.run(["auth", "add", "opnai"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("'opnai' is not a provider (known: openai, anthropic, google)"));
    let mut inside = workspace.ikigai();
    inside.env("IKIGAI_AGENT", "0/").args(["auth", "rm", "openai"]);
    let (code, _, stderr) = ended(&mut inside);
    assert_eq!(code, 1);
    assert!(stderr.contains("auth cannot be used inside an agent's command"), "{stderr}");
}

#[test]
fn commands_of_agents_do_not_see_the_stored_keys() {
    let (workspace, server) = (Workspace::new(), server());
    assert_eq!(add(&workspace, &server, KEY).0, 0);
    let file = workspace.home().join("config/ikigai/credentials.toml");
    let command = json!({"command": format!("cat '{}'; env", file.display())});
    assert!(!workspace.tool("bash", command).contains(KEY));
    let read = workspace.tool("file_read", json!({"path": file}));
    assert!(!read.contains(KEY), "{read}");
}

#[test]
fn a_file_of_keys_that_is_linked_into_the_tree_is_hidden_too() {
    let (workspace, server) = (Workspace::new(), server());
    workspace.write("dotfiles/credentials.toml", "# Mine.\n");
    let folder = workspace.home().join("config/ikigai");
    std::fs::create_dir_all(&folder).unwrap();
    let real = workspace.directory().join("dotfiles/credentials.toml");
    std::os::unix::fs::symlink(&real, folder.join("credentials.toml")).unwrap();
    assert_eq!(add(&workspace, &server, KEY).0, 0);
    let stored = workspace.read_text("dotfiles/credentials.toml");
    assert!(stored.contains("# Mine.\n") && stored.contains(KEY), "{stored}");
    let command = json!({"command": "cat dotfiles/credentials.toml"});
    assert!(!workspace.tool("bash", command).contains(KEY));
    let read = workspace.tool("file_read", json!({"path": "dotfiles/credentials.toml"}));
    assert!(!read.contains(KEY), "{read}");
}

#[test]
fn the_first_screen_tries_a_pasted_key_and_stores_it() {
    let (workspace, server) = (Workspace::new(), server());
    // An address without a key has no model yet.
    let mut terminal = Terminal::start(ikigai(&workspace, &server).arg("--plain"));
    terminal.wait_for("Your choice");
    terminal.type_line("k");
    terminal.wait_for("The key (it is not shown): ");
    terminal.type_line("sk-wrong");
    terminal.wait_for("openai: the key was refused: HTTP 401: scripted\r\nYour choice");
    terminal.type_line("k");
    terminal.wait_for("scripted\r\nYour choice (Enter leaves): k\r\nThe key (it is not shown): ");
    terminal.type_line(KEY);
    terminal.wait_for("credentials.toml? [Y/n] ");
    terminal.type_line("");
    terminal.wait_for("Talking to openai/gpt-5.\r\n");
    terminal.wait_for("❯ ");
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    let shown = leave(terminal);
    assert!(!shown.contains(KEY), "{shown}");
    // The next time it just works.
    let mut terminal = Terminal::start(ikigai(&workspace, &server).arg("--plain"));
    terminal.wait_for("❯ ");
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    assert!(!leave(terminal).contains("Your choice"));
}

#[test]
fn a_pasted_key_of_another_provider_becomes_the_model_that_is_used() {
    let (workspace, server) = (Workspace::new(), server());
    workspace.write_config("model = 'anthropic/claude-x' # mine\n");
    let mut terminal = Terminal::start(ikigai(&workspace, &server).arg("--plain"));
    terminal.wait_for("Your choice");
    terminal.type_line("k");
    terminal.wait_for("The key (it is not shown): ");
    terminal.type_line(KEY);
    terminal.wait_for("credentials.toml? [Y/n] ");
    terminal.type_line("y");
    terminal.wait_for("❯ ");
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    leave(terminal);
    let (code, answer, _) = ended(ikigai(&workspace, &server).args(["run", "hi"]));
    assert_eq!((code, &*answer), (0, "Hello.\n"));
}
