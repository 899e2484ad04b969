//! Which models there are, and what is known about them.

use std::process::Command;

use ikigai_testkit::{CapturedRequest, ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::model::Format;
use crate::support::terminal::{Terminal, leave, start_talking};
use crate::support::{Workspace, ended, wait_for};

/// `ikigai` with a key for OpenAI, whose server this is.
fn ikigai(workspace: &Workspace, server: &ModelServer) -> Command {
    let mut command = workspace.ikigai();
    command.env("OPENAI_BASE_URL", server.base_url()).env("OPENAI_API_KEY", "key-of-openai");
    command
}

fn is_list(request: &CapturedRequest) -> bool {
    request.method == "GET"
}

/// How often the server was asked for its list.
fn lists(server: &ModelServer) -> usize {
    server.requests().iter().filter(|request| request.path.contains("models")).count()
}

/// A server with this list, whose models say hello.
fn listing(models: Value) -> ModelServer {
    let list = json!({"object": "list", "data": models});
    let choose = move |request: &CapturedRequest| match is_list(request) {
        true if request.path.ends_with("/models") => Reply::json(200, &list),
        true => Reply::status(404),
        false => Reply::text("Hello."),
    };
    ModelServer::choosing(choose).with_lists()
}

#[test]
fn models_are_listed_with_what_the_user_and_the_server_know() {
    let pricing = json!({"prompt": "0.00000125", "completion": "0.00001"});
    let server = listing(json!([
        {"id": "large", "context_length": 400_000, "pricing": pricing, "supported_parameters": ["reasoning"]},
        {"id": "small", "context_length": 32_768},
        {"id": "other"},
    ]));
    let workspace = Workspace::new();
    workspace.write_config("[models.'openai/small']\ncontext_window = 8000\nmax_output = 500\n");
    let (code, shown, stderr) = ended(ikigai(&workspace, &server).arg("models"));
    let expected = "\
model         context  input  output
openai/large     400k  $1.25  $10.00  effort
openai/small     8000      -       -
openai/other        -      -       -
";
    assert_eq!((code, &*shown, &*stderr), (0, expected, ""));
    let (code, shown, _) = ended(ikigai(&workspace, &server).args(["models", "--json", "AL"]));
    let facts: Value = serde_json::from_str(&shown).unwrap();
    let expected = json!([{
        "model": "openai/small", "context_window": 8_000, "max_output": 500,
        "input": null, "cached": null, "cache_write": null, "output": null,
        "images": null, "effort": null, "tools": null,
    }]);
    assert_eq!((code, facts), (0, expected));
    // No session is made.
    assert_eq!(workspace.print(["sessions"]), "No sessions yet\n");
}

#[test]
fn a_provider_without_a_list_is_named_and_the_others_are_listed() {
    let (server, without) = (listing(json!([{"id": "one"}])), ModelServer::start([]));
    let workspace = Workspace::new();
    let provider = format!("[providers.other]\nbase_url = '{}'\n", without.base_url());
    workspace.write_config(&provider);
    let (code, shown, stderr) = ended(ikigai(&workspace, &server).arg("models"));
    assert_eq!((code, shown.lines().count()), (0, 2), "{shown}");
    assert_eq!(
        stderr,
        "ikigai: other: the server refused the request: HTTP 404: no lists (is the provider's base_url right?)\n"
    );
    let (code, _, stderr) = ended(workspace.ikigai().arg("models"));
    assert_eq!((code, stderr.lines().count()), (1, 1), "{stderr}");
    workspace.write_config("");
    let (code, _, stderr) = ended(workspace.ikigai().arg("models"));
    assert_eq!(code, 1);
    assert!(stderr.contains("no provider is connected"), "{stderr}");
}

#[test]
fn a_window_is_asked_for_after_the_first_request_and_kept_for_a_day() {
    let server = listing(json!([{"id": "scripted", "max_model_len": 8_000}]));
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.");
    let kept = workspace.home().join("state/ikigai/models/openai.json");
    wait_for("the list in a file", || kept.exists().then_some(()));
    terminal.type_line("/context");
    terminal.wait_for(" of 8k tokens");
    leave(terminal);
    let requests = server.requests();
    assert!(!is_list(&requests[0]) && is_list(&requests[1]), "{requests:?}");
    // The next process has it.
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Hello.\r\n❯ ");
    terminal.type_line("/context");
    terminal.wait_for(" of 8k tokens");
    leave(terminal);
    assert_eq!(lists(&server), 1);
    // A day later it is asked again.
    let text = std::fs::read_to_string(&kept).unwrap();
    let mut list: Value = serde_json::from_str(&text).unwrap();
    list["asked_at"] = json!(list["asked_at"].as_i64().unwrap() - 86_400_000);
    std::fs::write(&kept, list.to_string()).unwrap();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("hi");
    wait_for("another list", || (lists(&server) == 2).then_some(()));
    leave(terminal);
}

#[test]
fn the_window_of_a_local_server_is_known_though_its_list_does_not_have_it() {
    let list = json!({"data": [{"id": "local", "owned_by": "unknown"}]});
    let shown =
        json!({"model_info": {"llama.context_length": 131_072}, "parameters": "num_ctx 16384"});
    let studio = json!({"data": [{"id": "local", "loaded_context_length": 4_096}]});
    let props = json!({"default_generation_settings": {"n_ctx": 8_192}});
    for (path, answer, window) in
        [("/api/show", shown, 16_384), ("/props", props, 8_192), ("/api/v0/models", studio, 4_096)]
    {
        let list = list.clone();
        let choose = move |request: &CapturedRequest| match &*request.path {
            "/v1/models" => Reply::json(200, &list),
            asked if asked == path => Reply::json(200, &answer),
            _ => Reply::status(404),
        };
        let server = ModelServer::choosing(choose).with_lists();
        let workspace = Workspace::new();
        let (_, shown, _) = ended(ikigai(&workspace, &server).args(["models", "--json"]));
        let facts: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(facts[0]["context_window"], window, "{path}");
    }
}

/// Ends a conversation in which nothing was said.
fn close(mut terminal: Terminal) {
    terminal.end_input();
    assert_eq!(terminal.finish("").0, Some(0));
}

#[test]
fn a_model_that_its_server_does_not_list_cannot_be_chosen() {
    let server = listing(json!([{"id": "gpt-5"}, {"id": "gpt-5-mini"}, {"id": "scripted"}]));
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("/model gpt-5-min");
    terminal.wait_for(
        "error: openai has no model 'gpt-5-min'. Did you mean gpt-5-mini or gpt-5? 'ikigai models openai' lists all",
    );
    terminal.type_line("/model openai/nonsense");
    terminal.wait_for("openai has no model 'nonsense'. 'ikigai models openai' lists all");
    terminal.type_line("/model");
    terminal.wait_for("openai/scripted");
    terminal.type_line("/model gpt-5-mini");
    terminal.wait_for("openai/gpt-5-mini");
    close(terminal);
    // What the user has configured exists, and without a list any name is accepted.
    workspace.write_config("[models.'openai/nonsense']\ncontext_window = 8000\n");
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("/model nonsense");
    terminal.wait_for("openai/nonsense");
    close(terminal);
    let without = ModelServer::choosing(|_| Reply::text("Hello."));
    let mut terminal = start_talking(&workspace, &without);
    terminal.type_line("/model any");
    terminal.wait_for("openai/any");
    close(terminal);
}

#[test]
fn the_flag_is_checked_by_the_kept_list_only() {
    let server = listing(json!([{"id": "gpt-5"}, {"id": "claude-x-20250929"}]));
    let workspace = Workspace::new();
    let run = |model: &str| {
        let mut command = ikigai(&workspace, &server);
        ended(command.args(["run", "hi", "--model", &format!("openai/{model}")]))
    };
    assert_eq!(run("gpt-4").0, 0, "nothing is known yet");
    ended(ikigai(&workspace, &server).arg("models"));
    let before = server.requests().len();
    let (code, _, stderr) = run("gpt-4");
    let expected = "ikigai: openai has no model 'gpt-4'. Did you mean gpt-5? 'ikigai models openai' lists all\n";
    assert_eq!((code, &*stderr), (1, expected));
    assert_eq!(server.requests().len(), before);
    // Names without their date are understood by servers.
    assert_eq!((run("gpt-5").0, run("claude-x").0), (0, 0));
    // A list of another address does not count.
    let other = listing(json!([{"id": "gpt-4"}]));
    let mut command = ikigai(&workspace, &other);
    assert_eq!(ended(command.args(["run", "hi", "--model", "openai/gpt-4"])).0, 0);
}

#[test]
fn a_name_that_the_provider_refuses_is_answered_with_the_nearest_ones() {
    let list = json!({"data": [{"id": "gpt-5"}, {"id": "whisper"}]});
    let choose = move |request: &CapturedRequest| match is_list(request) {
        true => Reply::json(200, &list),
        false => Reply::error(404, "The model `gpt-55` does not exist"),
    };
    let server = ModelServer::choosing(choose).with_lists();
    let workspace = Workspace::new();
    let mut command = ikigai(&workspace, &server);
    let (code, _, stderr) = ended(command.args(["run", "hi", "--model", "openai/gpt-55"]));
    assert_eq!(code, 1);
    assert!(stderr.contains("the model is not known: HTTP 404: The model"), "{stderr}");
    assert!(stderr.ends_with(" Did you mean gpt-5?\n"), "{stderr}");
}

#[test]
fn a_project_cannot_say_what_models_cost() {
    let workspace = Workspace::new();
    workspace.write(".ikigai/config.toml", "[models.'openai/scripted']\ninput = 0\noutput = 0\n");
    let server = listing(json!([]));
    let (code, _, stderr) = workspace.run_model(&server, Format::Chat, ["hi"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("cannot be set in a project's file"), "{stderr}");
}
