//! What every model is told first.

use ikigai_testkit::{CapturedRequest, ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::Workspace;
use crate::support::model::{Format, assert_stable, assert_strict};

/// A server that answers all that is asked.
fn server() -> ModelServer {
    ModelServer::choosing(|_| Reply::text("ok"))
}

fn systems(log: &[Value]) -> Vec<&str> {
    let systems = log.iter().filter(|message| message["kind"] == "system");
    systems.map(|message| message["content"].as_str().unwrap()).collect()
}

/// The prompt of a session that is begun in `folder`, as the model was told.
#[track_caller]
fn prompt_in(workspace: &Workspace, folder: &str) -> String {
    let server = server();
    let folder = workspace.text(folder);
    let (code, _, _) = workspace.run_model(&server, Format::Chat, ["-C", &folder, "go"]);
    assert_eq!(code, 0);
    server.requests()[0].system().unwrap()
}

#[test]
fn the_first_request_is_small() {
    let (workspace, server) = (Workspace::new(), server());
    assert_eq!(workspace.run_model(&server, Format::Chat, ["hi"]).0, 0);
    let size = server.requests()[0].body.len();
    assert!(size <= 8_500, "{size} bytes");
}

/// The part of a prompt that comes from the project.
fn instructions(prompt: &str) -> &str {
    let (_, rest) = prompt.split_once("\nDate: ").unwrap();
    rest.split_once('\n').unwrap().1
}

/// What the user says in a request, message by message.
fn user_texts(request: &CapturedRequest) -> Vec<String> {
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        blocks => {
            let texts =
                blocks.as_array().unwrap().iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("|")
        }
    };
    let messages = request.messages();
    messages.iter().filter(|message| message["role"] == "user").map(text).collect()
}

#[test]
fn the_prompt_is_written_once_per_session_and_sent_with_every_request() {
    for format in Format::BOTH {
        let server = server();
        let workspace = Workspace::new();
        for arguments in [["--new", "one"], ["-c", "two"], ["-c", "three"]] {
            workspace.run_model(&server, format, arguments);
        }
        let log = workspace.log("0/");
        let [prompt] = systems(&log)[..] else { panic!("{log:?}") };
        assert_eq!(log[0]["content"], *prompt);
        for request in server.requests() {
            assert_eq!(request.system().as_deref(), Some(prompt));
        }
        assert_stable(&server.requests());
    }
}

#[test]
fn a_second_agent_of_the_session_has_the_same_prompt() {
    let server = server();
    let workspace = Workspace::new();
    workspace.run_model(&server, Format::Chat, ["one"]);
    workspace.print(["agents", "add"]);
    // What the session was told stands, also when the project says something else by now.
    workspace.write("AGENTS.md", "new words");
    workspace.run_model(&server, Format::Chat, ["-c", "--agent", "1/", "two"]);
    let (first, second) = (workspace.log("0/"), workspace.log("1/"));
    assert_eq!(systems(&second), systems(&first));
    let requests = server.requests();
    assert_eq!(requests[1].system(), requests[0].system());
    assert_eq!(user_texts(&requests[1]), ["[You are agent 1/]\n\ntwo"]);
}

#[test]
fn the_prompt_is_small_and_says_where_it_is() {
    let workspace = Workspace::new();
    let prompt = prompt_in(&workspace, ".");
    assert!(prompt.len() <= 3 * 1024, "{} bytes", prompt.len());
    assert_eq!(instructions(&prompt), "");
    let lines: Vec<&str> = prompt.lines().rev().take(3).collect();
    let [date, directory, platform] = lines[..] else { panic!("{prompt}") };
    let system = format!("Platform: {} {}", std::env::consts::OS, std::env::consts::ARCH);
    assert_eq!(platform, system);
    assert_eq!(directory, format!("Working directory: {}", workspace.directory().display()));
    let log = workspace.log("0/");
    let written = log[0]["created_at"].as_str().unwrap();
    // The prompt was made a moment before it was written, which may be on the day before.
    let date = date.strip_prefix("Date: ").unwrap();
    let (before, after) = (&date.replace('-', ""), &written[..10].replace('-', ""));
    let numbers = [before, after].map(|date| date.parse::<u32>().unwrap());
    assert!(date.len() == 10 && numbers[0] <= numbers[1], "{date} {written}");
}

#[test]
fn the_directory_that_was_chosen_is_the_one_it_works_in() {
    let workspace = Workspace::new();
    workspace.folder("inner");
    let prompt = prompt_in(&workspace, "inner");
    let line = format!("\nWorking directory: {}\n", workspace.path("inner").display());
    assert!(prompt.contains(&line), "{prompt}");
}

#[test]
fn instructions_come_from_the_repositorys_root_down() {
    let workspace = Workspace::new();
    workspace.folder("repo/.git").folder("repo/a/b/c");
    workspace
        .write("AGENTS.md", "outside of the repository")
        .write("repo/AGENTS.md", "root\n")
        .write("repo/a/AGENTS.md", "middle")
        .write("repo/a/b/c/AGENTS.md", "below");
    let part = |file: &str, text: &str| format!("\n# {}\n\n{text}\n", workspace.text(file));
    let expected = [part("repo/AGENTS.md", "root"), part("repo/a/AGENTS.md", "middle")].concat();
    assert_eq!(instructions(&prompt_in(&workspace, "repo/a/b")), expected);
    assert_eq!(instructions(&prompt_in(&workspace, "repo")), part("repo/AGENTS.md", "root"));
    let outside = part("AGENTS.md", "outside of the repository");
    assert_eq!(instructions(&prompt_in(&workspace, ".")), outside);
}

/// In a worktree `.git` is a file.
#[test]
fn a_worktree_is_a_repository_too() {
    let workspace = Workspace::new();
    workspace.write("AGENTS.md", "outside").write("tree/.git", "gitdir: elsewhere");
    workspace.write("tree/AGENTS.md", "root").folder("tree/in");
    let expected = format!("\n# {}\n\nroot\n", workspace.text("tree/AGENTS.md"));
    assert_eq!(instructions(&prompt_in(&workspace, "tree/in")), expected);
}

#[test]
fn all_instructions_together_have_at_most_32_kib() {
    const LIMIT: usize = 32 * 1024;
    let workspace = Workspace::new();
    workspace.folder(".git").folder("a/b");
    // None of these characters is in the paths above the texts.
    workspace.write("AGENTS.md", "=".repeat(LIMIT - 10));
    // Two bytes each: the tenth byte that is left is the end of the fifth.
    workspace.write("a/AGENTS.md", "ä".repeat(100)).write("a/b/AGENTS.md", "never seen");
    let prompt = prompt_in(&workspace, "a/b");
    let text = instructions(&prompt);
    assert_eq!(text.matches('=').count(), LIMIT - 10);
    assert_eq!(text.matches('ä').count(), 5);
    assert!(!text.contains("never seen"));
    assert!(text.ends_with("ä\n[cut: all AGENTS.md together may have 32768 bytes]\n"));
}

#[test]
fn instructions_are_not_read_again_when_a_session_goes_on() {
    for format in Format::BOTH {
        let server = server();
        let workspace = Workspace::new();
        workspace.write("AGENTS.md", "old words");
        workspace.run_model(&server, format, ["one"]);
        workspace.write("AGENTS.md", "new words");
        workspace.run_model(&server, format, ["-c", "two"]);
        let requests = server.requests();
        assert!(requests[0].system().unwrap().ends_with("old words\n"));
        assert_stable(&requests);
        workspace.run_model(&server, format, ["a new session"]);
        assert!(server.requests()[2].system().unwrap().ends_with("new words\n"));
    }
}

/// A fifo of this name would keep a program waiting that just opens it.
#[test]
fn instructions_that_are_no_file_or_no_text_keep_nobody_from_working() {
    let workspace = Workspace::new();
    workspace.folder(".git").folder("a/AGENTS.md").folder("a/b").fifo("a/b/AGENTS.md");
    workspace.write("AGENTS.md", b"raw \xff bytes\0 here");
    let expected = format!("\n# {}\n\nraw \u{fffd} bytes\0 here\n", workspace.text("AGENTS.md"));
    assert_eq!(instructions(&prompt_in(&workspace, "a/b")), expected);
}

#[test]
fn who_an_agent_is_stands_before_its_first_message_and_only_in_what_is_sent() {
    for format in Format::BOTH {
        let server = server();
        let workspace = Workspace::new();
        let (_, first) = workspace.run_json(&server, format, ["one"]);
        let (_, second) = workspace.run_json(&server, format, ["-c", "two"]);
        let requests = server.requests();
        assert_eq!(user_texts(&requests[0]), ["[You are agent 0/]\n\none"]);
        assert_eq!(user_texts(&requests[1]), ["[You are agent 0/]\n\none", "two"]);
        assert_stable(&requests);
        let log = workspace.log("0/");
        for message in [log, first, second].concat() {
            assert!(!message.to_string().contains("You are agent 0/"), "{message}");
        }
    }
}

#[test]
fn the_tools_are_those_that_the_command_lists() {
    let workspace = Workspace::new();
    let schemas = workspace.json(["tools", "--json"]);
    for format in Format::BOTH {
        let server = server();
        workspace.run_model(&server, format, ["go"]);
        let sent = server.requests()[0].json()["tools"].take();
        let expected: Value = match format {
            Format::Chat => schemas.clone(),
            Format::Anthropic => {
                let tools = schemas.as_array().unwrap().iter();
                let tool = |tool: &Value| {
                    let function = &tool["function"];
                    json!({"name": function["name"], "description": function["description"],
                        "input_schema": function["parameters"]})
                };
                tools.map(tool).collect()
            }
        };
        assert_eq!(sent, expected);
        assert_strict(&server.requests());
    }
}
