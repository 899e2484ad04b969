//! What an agent may touch, headless.

use ikigai_testkit::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::model::{Format, results_in};
use crate::support::story::{bash, contents, kinds, of_type};
use crate::support::{Workspace, ended, failure, success};

/// Runs one call of the model and returns its result and the events.
fn call(workspace: &Workspace, name: &str, arguments: Value) -> (Value, Vec<Value>) {
    let server = ModelServer::start([Reply::call("c1", name, arguments), Reply::text("done")]);
    let (code, events) = workspace.run_json(&server, Format::Chat, ["do it"]);
    assert_eq!(code, 0, "{events:?}");
    let requests = server.requests();
    let result = &results_in(&requests[1])[0].1;
    (serde_json::from_str(result).unwrap(), events)
}

fn result(workspace: &Workspace, name: &str, arguments: Value) -> Value {
    call(workspace, name, arguments).0
}

fn not_permitted(result: &Value) -> String {
    assert_eq!(result["success"], false, "{result}");
    let error = result["error"].as_str().unwrap();
    error.strip_prefix("Not permitted: ").unwrap_or_else(|| panic!("{error}")).to_owned()
}

#[test]
fn inside_the_tree_nothing_is_asked() {
    let workspace = Workspace::new();
    let wrote = success(json!({"output": "Wrote 3 bytes to folder/file", "bytes": 3}));
    let arguments = json!({"path": "folder/file", "content": "new"});
    let (written, events) = call(&workspace, "file_write", arguments);
    assert_eq!(written, wrote);
    assert!(of_type(&events, "approval").is_empty());
    let output = success(json!({"output": "new", "exit_code": 0}));
    assert_eq!(result(&workspace, "bash", json!({"command": "cat folder/file"})), output);
}

#[test]
fn headless_what_needs_a_yes_is_refused_with_the_rule_that_would_allow_it() {
    let workspace = Workspace::new();
    workspace.write("../outside/file", "old");
    let arguments = json!({"path": "../outside/file", "content": "new"});
    let (refused, events) = call(&workspace, "file_write", arguments.clone());
    let why = not_permitted(&refused);
    let path = workspace.path("../outside/file").canonicalize().unwrap();
    let rule = format!(
        "[[rules]]\ntool = \"file_write\"\nmatch = \"{}\"\ndecision = \"trust\"\n",
        path.display()
    );
    assert!(why.starts_with("../outside/file is outside the working tree."), "{why}");
    assert!(why.contains(&format!("match = \"{}\"", path.display())), "{why}");
    assert_eq!(workspace.read_text("../outside/file"), "old");
    let approval = of_type(&events, "approval")[0];
    assert_eq!(approval["id"], "c1");
    assert_eq!(approval["name"], "file_write");
    assert_eq!(approval["arguments"], arguments.to_string());
    assert_eq!(approval["decision"], "no");
    assert!(approval["log"].is_i64());
    std::fs::remove_file(&path).unwrap();
    workspace.write_config(&rule);
    let written = result(&workspace, "file_write", arguments);
    assert_eq!(written["success"], true, "{written}");
    assert_eq!(workspace.read_text("../outside/file"), "new");
}

#[test]
fn the_rule_in_a_refusal_is_one_that_the_configuration_takes() {
    let workspace = Workspace::new();
    let arguments = json!({"command": "echo \"it's\" 'a \"*\"'", "sandbox": false});
    let why = not_permitted(&result(&workspace, "bash", arguments.clone()));
    let rule = rule_in(&why);
    workspace.write_config(rule);
    assert_eq!(result(&workspace, "bash", arguments)["success"], true, "{rule}");
}

/// A list on one line was an error beside another rule, and so was the second that somebody put there.
#[test]
fn rules_of_several_refusals_stand_in_one_configuration() {
    let workspace = Workspace::new();
    let mut config = "mode = \"work\"\n".to_owned();
    for command in ["echo a | wc -c", "echo b"] {
        let arguments = json!({"command": command, "sandbox": false});
        let why = not_permitted(&result(&workspace, "bash", arguments.clone()));
        config.push_str(&format!("{}\n", rule_in(&why)));
        workspace.write_config(&config);
        assert_eq!(result(&workspace, "bash", arguments)["success"], true, "{config}");
    }
}

#[track_caller]
fn rule_in(why: &str) -> &str {
    let (_, rule) = why.split_once("names the file):\n").unwrap_or_else(|| panic!("{why}"));
    rule
}

/// On one line it would be no configuration.
#[test]
fn the_rule_that_a_run_prints_can_be_put_into_the_configuration() {
    let workspace = Workspace::new();
    let arguments = json!({"command": "echo out", "sandbox": false});
    let server = ModelServer::start([Reply::call("c1", "bash", arguments), Reply::text("done")]);
    let (code, _, told) = workspace.run_model(&server, Format::Chat, ["do it"]);
    assert_eq!(code, 0);
    let rule = &told[told.find("\n[[rules]]\n").unwrap_or_else(|| panic!("{told}"))..];
    workspace.write_config(rule);
    let arguments = json!({"command": "echo out", "sandbox": false});
    assert_eq!(result(&workspace, "bash", arguments)["success"], true, "{rule}");
}

#[test]
fn the_answer_of_nobody_is_in_the_log_before_the_result() {
    let workspace = Workspace::new();
    let refused = result(&workspace, "bash", json!({"command": "true", "sandbox": false}));
    assert!(not_permitted(&refused).starts_with("the command asks to leave the sandbox."));
    let log = workspace.log("0/");
    assert_eq!(kinds(&log), ["user", "tool_call", "approval", "tool_result", "assistant"]);
    assert_eq!(contents(&log, "approval"), ["Refused: there is no user to ask"]);
    let data = json!({"tool_call_id": "c1", "decision": "no",
        "reason": "there is no user to ask"});
    let approval = log.iter().find(|message| message["kind"] == "approval").unwrap();
    assert_eq!(approval["data"], data);
}

#[test]
fn guarded_places_in_the_tree_are_not_written_without_a_yes() {
    let workspace = Workspace::new();
    for path in
        [".git/hooks/pre-commit", ".git/config", ".ikigai/config.toml", "AGENTS.md", ".bashrc"]
    {
        let refused = result(&workspace, "file_write", json!({"path": path, "content": "x"}));
        let why = not_permitted(&refused);
        assert!(why.starts_with(&format!("writing {path} needs approval.")), "{why}");
        assert!(!workspace.path(path).exists());
    }
}

/// In a tree that is the home directory an agent could have written the rules for its next start.
#[test]
fn an_agent_cannot_touch_its_own_rules_nor_secrets_in_a_tree_around_them() {
    let workspace = Workspace::new();
    workspace.write("../home/.ssh/id", "SECRET").write("../home/own.toml", "");
    let home = workspace.home();
    let tool = |name: &str, arguments: Value| {
        let (home, arguments) = (home.to_str().unwrap(), arguments.to_string());
        let config = "../home/own.toml";
        workspace.json(["-C", home, "--config", config, "tool", name, &arguments])
    };
    for path in ["config/ikigai/config.toml", "data/ikigai/ikigai.db", "own.toml", ".ssh/new"] {
        let refused = tool("file_write", json!({"path": path, "content": "mode = \"full\""}));
        let why = not_permitted(&refused);
        assert!(why.starts_with(&format!("{path} contains secrets")), "{why}");
        tool("bash", json!({"command": format!("mkdir -p $(dirname {path}); echo x > {path}")}));
        let written = std::fs::read_to_string(home.join(path)).unwrap_or_default();
        assert_eq!(written, "", "{path}");
    }
    let refused = tool("file_read", json!({"path": ".ssh/id"}));
    assert!(not_permitted(&refused).starts_with(".ssh/id contains secrets"), "{refused}");
    assert_eq!(tool("file_write", json!({"path": "x", "content": ""}))["success"], true);
}

#[test]
fn a_command_cannot_write_outside_the_tree_and_reads_the_rest() {
    let workspace = Workspace::new();
    workspace.write("../outside/file", "old");
    let command = "cat ../outside/file; echo new > ../outside/file; echo $?";
    let ran = result(&workspace, "bash", json!({ "command": command }));
    let output = ran["data"]["output"].as_str().unwrap();
    assert!(output.starts_with("old") && output.ends_with("1\n"), "{ran}");
    assert_eq!(workspace.read_text("../outside/file"), "old");
}

#[test]
fn the_database_and_secrets_cannot_be_read_by_a_command() {
    let workspace = Workspace::new();
    workspace.write("../home/.ssh/id", "SECRET");
    let database = workspace.database();
    let command = format!("cat ~/.ssh/id; cat {}; echo end", database.display());
    let ran = result(&workspace, "bash", json!({ "command": command }));
    let output = ran["data"]["output"].as_str().unwrap();
    assert!(!output.contains("SECRET") && !output.contains("SQLite format"), "{ran}");
    assert!(output.contains("end"), "{ran}");
}

#[test]
fn a_temporary_folder_is_shared_by_commands_and_file_tools_and_the_next_turn() {
    let workspace = Workspace::new();
    let server = ModelServer::start([
        bash("c1", "f=$(mktemp); echo kept > $f; echo $f"),
        Reply::text("done"),
    ]);
    assert_eq!(workspace.run_model(&server, Format::Chat, ["do it"]).0, 0);
    let requests = server.requests();
    let result: Value = serde_json::from_str(&results_in(&requests[1])[0].1).unwrap();
    let path = result["data"]["output"].as_str().unwrap().trim().to_owned();
    let server = ModelServer::start([
        Reply::call("c2", "file_read", json!({"path": path})),
        Reply::call("c3", "bash", json!({"command": format!("cat {path}; rm {path}")})),
        Reply::text("done"),
    ]);
    assert_eq!(workspace.run_model(&server, Format::Chat, ["-c", "and now?"]).0, 0);
    let requests = server.requests();
    let results = results_in(&requests[2]);
    for (_, result) in &results[1..] {
        let result: Value = serde_json::from_str(result).unwrap();
        assert_eq!(result["data"]["output"], "kept\n", "{result}");
    }
    let folder = std::path::Path::new(&path).parent().unwrap();
    assert!(!folder.exists(), "it was empty at the end: {}", folder.display());
}

#[test]
fn in_mode_read_commands_and_writes_are_neither_offered_nor_run() {
    let workspace = Workspace::new();
    workspace.write("file", "text\n").write_config("mode = 'read'\n");
    let server = ModelServer::start([
        Reply::call("c1", "bash", json!({"command": "touch made"})),
        Reply::call("c2", "file_write", json!({"path": "made", "content": "x"})),
        Reply::call("c3", "file_read", json!({"path": "file"})),
        Reply::text("done"),
    ]);
    assert_eq!(workspace.run_model(&server, Format::Chat, ["do it"]).0, 0);
    let requests = server.requests();
    assert_eq!(
        requests[0].tool_names(),
        ["glob", "file_read", "grep", "mail", "command", "fork", "wait", "kill", "agents"]
    );
    let results = results_in(&requests[3]);
    let expected = [
        failure("Not permitted: bash is not offered in mode read").to_string(),
        failure("Not permitted: file_write is not offered in mode read").to_string(),
        success(json!({"output": "text\n"})).to_string(),
    ];
    assert_eq!(
        results.iter().map(|(_, result)| result).collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
    assert!(!workspace.path("made").exists());
}

#[test]
fn in_mode_full_everything_is_allowed_without_a_question() {
    let workspace = Workspace::new();
    workspace.folder("../outside").write_config("mode = 'full'\n");
    let (ran, events) = call(&workspace, "bash", json!({"command": "echo x > ../outside/a"}));
    assert_eq!(ran["data"]["exit_code"], 0, "{ran}");
    let arguments = json!({"path": "../outside/b", "content": "x"});
    assert_eq!(result(&workspace, "file_write", arguments)["success"], true);
    assert!(workspace.path("../outside/a").exists() && workspace.path("../outside/b").exists());
    assert!(of_type(&events, "approval").is_empty());
}

#[test]
fn an_added_folder_belongs_to_the_tree() {
    let workspace = Workspace::new();
    workspace.folder("../more");
    let server = ModelServer::start([
        Reply::call("c1", "file_write", json!({"path": "../more/a", "content": "x"})),
        bash("c2", "echo x > ../more/b"),
        Reply::text("done"),
    ]);
    let ended = workspace.run_model(&server, Format::Chat, ["--add-dir", "../more", "do it"]);
    assert_eq!(ended.0, 0, "{ended:?}");
    assert!(workspace.path("../more/a").exists() && workspace.path("../more/b").exists());
    let (code, _, told) = workspace.run(["tool", "glob", "{}", "--add-dir", "nowhere"]);
    assert_eq!(code, 1);
    assert!(told.contains("cannot add nowhere"), "{told}");
}

#[test]
fn rules_deny_and_trust_in_their_order() {
    let workspace = Workspace::new();
    workspace.folder("../outside").write_config(
        "[[rules]]\ntool = 'bash'\nmatch = 'echo secret *'\ndecision = 'deny'\n\
         [[rules]]\ntool = 'bash'\nmatch = 'touch *'\ndecision = 'trust'\n\
         [[rules]]\ntool = 'bash'\nmatch = 'ls *'\ndecision = 'ask'\n",
    );
    let run = |command: &str| result(&workspace, "bash", json!({ "command": command }));
    let denied = not_permitted(&run("echo secret stuff"));
    assert_eq!(denied, "the rule for bash 'echo secret *' says deny");
    assert_eq!(run("touch ../outside/made")["data"]["exit_code"], 0);
    assert!(workspace.path("../outside/made").exists());
    // A part that no rule trusts stays in the sandbox, and all with it.
    assert_eq!(run("touch ../outside/more; true")["success"], true);
    assert!(!workspace.path("../outside/more").exists());
    assert!(not_permitted(&run("ls /")).contains("says ask"));
}

#[test]
fn a_hide_setting_keeps_a_place_from_commands() {
    let workspace = Workspace::new();
    workspace.write("../home/notes/mine", "SECRET\n").write_config("sandbox.hide = ['~/notes']\n");
    let ran = result(&workspace, "bash", json!({"command": "cat ~/notes/mine"}));
    assert!(!ran.to_string().contains("SECRET"), "{ran}");
    workspace.write_config("");
    let ran = result(&workspace, "bash", json!({"command": "cat ~/notes/mine"}));
    assert_eq!(ran["data"]["output"], "SECRET\n");
}

/// Rules with `~` were taken, and matched nothing.
#[test]
fn a_rule_about_paths_may_begin_at_the_home_directory() {
    let workspace = Workspace::new();
    workspace.write("../home/notes/open", "x").write("../home/notes/closed", "y").write_config(
        "[[rules]]\ntool = 'file_read'\nmatch = '~/notes/closed'\ndecision = 'deny'\n\
         [[rules]]\ntool = 'file_read'\nmatch = '~/notes/*'\ndecision = 'trust'\n",
    );
    workspace.link("../linked", "home");
    // Where the home directory is a link, too: what is granted is known by where it really is.
    for home in [workspace.home(), workspace.path("../linked")] {
        let read = |name: &str| {
            let arguments = json!({"path": home.join("notes").join(name)}).to_string();
            ended(workspace.ikigai().env("HOME", &home).args(["tool", "file_read", &arguments])).1
        };
        assert!(read("open").contains(r#""output":"x""#), "{}", read("open"));
        assert!(read("closed").contains("says deny"), "{}", read("closed"));
    }
}

#[test]
fn tool_obeys_as_an_agent_without_a_person() {
    let workspace = Workspace::new();
    workspace.write("../outside/file", "x");
    let tool = |arguments: [&str; 3]| -> Value {
        serde_json::from_str(&workspace.print(arguments)).unwrap()
    };
    let refused = tool(["tool", "file_read", r#"{"path":"../outside/file"}"#]);
    assert!(not_permitted(&refused).starts_with("../outside/file is outside the working tree."));
    let ran = tool(["tool", "bash", r#"{"command":"echo y > ../outside/file"}"#]);
    assert_eq!(ran["data"]["exit_code"], 1, "{ran}");
    let refused = tool(["tool", "bash", r#"{"command":"true","sandbox":false}"#]);
    not_permitted(&refused);
    workspace.write_config("[[rules]]\ntool = 'mail'\nmatch = '*'\ndecision = 'deny'\n");
    let refused = tool(["tool", "mail", r#"{"action":"inbox"}"#]);
    assert_eq!(not_permitted(&refused), "the rule for mail '*' says deny");
    assert_eq!(workspace.read_text("../outside/file"), "x");
}

#[test]
fn inside_the_sandbox_mail_of_the_command_line_names_the_tool() {
    let workspace = Workspace::new();
    let program = env!("CARGO_BIN_EXE_ikigai");
    for typed in ["mail inbox", "mail send 0/ hello", "agents", r#"tool mail '{"action":"inbox"}'"#]
    {
        let command = format!("{program} {typed}");
        let ran = result(&workspace, "bash", json!({ "command": command }));
        assert_eq!(ran["data"]["exit_code"], 1, "{ran}");
        let output = ran["data"]["output"].as_str().unwrap();
        assert!(output.contains("use the mail tool"), "{ran}");
    }
    let command = format!("{program} mail send --agent 1/ 0/ hello");
    let ran = result(&workspace, "bash", json!({ "command": command }));
    let output = ran["data"]["output"].as_str().unwrap();
    assert!(output.contains("--agent 1/ cannot be used inside a command of agent 0/"), "{ran}");
}

/// A rule names the tool, whatever the model calls it.
#[test]
fn a_repaired_call_is_judged_as_what_it_became_and_logged_as_it_came() {
    let workspace = Workspace::new();
    workspace
        .write_config("[[rules]]\ntool = \"bash\"\nmatch = \"touch *\"\ndecision = \"deny\"\n");
    for (name, arguments) in [
        ("Bash", json!({"command": "touch file"})),
        ("bash", json!({"cmd": ["touch", "file"]})),
        ("BASH", json!([{"command": "touch file", "sandbox": "false"}])),
    ] {
        let (refused, events) = call(&workspace, name, arguments.clone());
        not_permitted(&refused);
        assert!(!workspace.path("file").exists());
        let called = of_type(&events, "tool_call")[0];
        assert_eq!(
            (&called["name"], &called["arguments"]),
            (&json!(name), &json!(arguments.to_string()))
        );
    }
}
