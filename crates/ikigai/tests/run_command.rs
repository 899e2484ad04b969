//! `ikigai run` as a command: what it prints where, what it reads, how it ends.

use std::process::Stdio;

use ikigai_testkit::{Gate, ModelServer, Point, Reply};
use serde_json::json;

use crate::support::model::Format;
use crate::support::{Ended, Workspace, ended, finish, input};

/// A server that answers all that is asked.
fn server() -> ModelServer {
    ModelServer::choosing(|_| Reply::text("ok"))
}

fn failed(code: i32, text: &str) -> Ended {
    (code, String::new(), format!("{text}\n"))
}

#[test]
fn the_answer_is_on_standard_output_and_everything_else_on_standard_error() {
    for format in Format::BOTH {
        let calls = [
            ("c1", "bash", json!({"command": "echo hi; exit 3"})),
            ("c2", "file_read", json!({"path": "no such file"})),
        ];
        let server = ModelServer::start([
            Reply::text_and_calls("I look\nat it.", calls),
            Reply::call("c3", "glob", json!({"pattern": "*"})),
            Reply::text("Line one,\nline two."),
        ]);
        let workspace = Workspace::new();
        let (code, stdout, stderr) = workspace.run_model(&server, format, ["go"]);
        assert_eq!((code, &*stdout), (0, "Line one,\nline two.\n"));
        let expected = "I look\nat it.\n\
            ● Bash  echo hi; exit 3\n  ✗ exit 3\n\
            ● Read  no such file\n  ✗ File not found: no such file\n\
            ● Find  *\n  0 files\n";
        assert_eq!(stderr, expected);
    }
}

#[test]
fn an_answer_of_nothing_is_said_to_be_one() {
    for answer in ["", " "] {
        let server = ModelServer::start([Reply::text(answer)]);
        let ended = Workspace::new().run_model(&server, Format::Chat, ["go"]);
        assert_eq!(ended, (0, String::new(), "⚠ The model gave no answer\n".to_owned()));
    }
}

#[test]
fn an_answer_is_printed_with_one_line_break_at_its_end() {
    for (answer, printed) in [("a", "a\n"), ("a\n", "a\n"), ("a\n\n", "a\n\n")] {
        let server = ModelServer::start([Reply::text(answer)]);
        let ended = Workspace::new().run_model(&server, Format::Chat, ["go"]);
        assert_eq!(ended, (0, printed.to_owned(), String::new()));
    }
}

#[test]
fn an_answer_is_printed_only_when_it_is_complete() {
    let gate = Gate::new();
    let server = ModelServer::start([
        Reply::text("never seen at all").close_at(Point::Text),
        Reply::text("one two three").hold_at(Point::Text, &gate),
    ]);
    let workspace = Workspace::new();
    let output = workspace.path("out");
    let mut command = workspace.run_command(&server, Format::Chat, ["go"]);
    let child = command.stdout(std::fs::File::create(&output).unwrap()).spawn().unwrap();
    server.wait_for_requests(2);
    assert_eq!(workspace.read_text("out"), "");
    gate.open();
    assert_eq!(finish(child).status.code(), Some(0));
    assert_eq!(workspace.read_text("out"), "one two three\n");
}

#[test]
fn an_answer_that_was_cut_is_printed_and_said_to_be_cut() {
    let server = ModelServer::start([Reply::text("as far as").finish("length")]);
    let ended = Workspace::new().run_model(&server, Format::Chat, ["go"]);
    let told = "⚠ The answer was cut at the model's token limit\n".to_owned();
    assert_eq!(ended, (0, "as far as\n".to_owned(), told));
}

#[test]
fn a_failure_is_told_in_the_providers_own_words() {
    for format in Format::BOTH {
        let server = ModelServer::start([Reply::error(400, "the field x is odd")]);
        let (code, stdout, stderr) = Workspace::new().run_model(&server, format, ["go"]);
        assert_eq!((code, &*stdout), (1, ""));
        assert!(
            stderr.starts_with("ikigai: ") && stderr.contains("the field x is odd"),
            "{stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn a_dash_reads_the_prompt_from_standard_input() {
    let server = server();
    let workspace = Workspace::new();
    let mut command = workspace.run_command(&server, Format::Chat, ["-"]);
    command.stdin(input("read me\n\nüber\n"));
    assert_eq!(ended(&mut command), (0, "ok\n".to_owned(), String::new()));
    assert_eq!(workspace.log("0/")[1]["content"], "read me\n\nüber\n");
    let mut command = workspace.run_command(&server, Format::Chat, ["-c", "-"]);
    command.stdin(input(b"raw \xff byte"));
    assert_eq!(ended(&mut command).0, 0);
    assert_eq!(server.requests()[1].last_user_text().unwrap(), "raw \u{fffd} byte");
}

/// A pipe that nobody closes must keep neither the run nor its commands.
#[test]
fn standard_input_is_not_touched_without_a_dash() {
    let cat = Reply::call("c1", "bash", json!({"command": "cat"}));
    let server = ModelServer::start([cat, Reply::text("ok")]);
    let workspace = Workspace::new();
    let mut command = workspace.run_command(&server, Format::Chat, ["go"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let held_open = child.stdin.take();
    let output = finish(child);
    drop(held_open);
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"ok\n"[..]));
}

#[test]
fn an_empty_prompt_is_wrong_usage_and_makes_no_session() {
    let server = server();
    let workspace = Workspace::new();
    let expected = failed(2, "ikigai: the prompt is empty: describe the task");
    for prompt in ["", " \n\t"] {
        assert_eq!(workspace.run_model(&server, Format::Chat, [prompt]), expected);
        assert_eq!(workspace.run_model(&server, Format::Chat, ["--json", prompt]), expected);
    }
    let mut command = workspace.run_command(&server, Format::Chat, ["-"]);
    assert_eq!(ended(command.stdin(input("\n"))), expected);
    assert_eq!(workspace.print(["sessions"]), "No sessions yet\n");
    assert_eq!(server.requests().len(), 0);
    assert_eq!(workspace.run(["run"]).0, 2);
}

#[test]
fn without_a_model_it_says_how_to_connect_one() {
    let workspace = Workspace::new();
    let how = "Connect one:
  a key           ikigai auth add anthropic (or openai, google),
                  or export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY, GEMINI_API_KEY)
  a local server  export OPENAI_BASE_URL=http://127.0.0.1:11434/v1
                  and add --model openai/NAME
  the tour        ikigai tour";
    let expected = failed(1, &format!("ikigai: no model is connected. {how}"));
    assert_eq!(workspace.run(["run", "go"]), expected);
    assert_eq!(workspace.run(["run", "--json", "go"]), expected);
    let needs = "ikigai: openai/gpt-5 needs a key: store one with 'ikigai auth add openai', set OPENAI_API_KEY, or choose another model with --model";
    assert_eq!(workspace.run(["run", "--model", "gpt-5", "go"]), failed(1, needs));
    assert_eq!(workspace.print(["sessions"]), "No sessions yet\n");
}

#[test]
fn a_wrong_model_is_refused_with_what_would_be_right() {
    let server = server();
    let workspace = Workspace::new();
    for (model, told) in [
        ("opnai/gpt-5", "did you mean 'openai'?"),
        ("nobody/x", "known: openai, anthropic, google"),
        ("llama", "write provider/llama"),
        ("openai/", "write provider/name"),
        ("", "write provider/name"),
    ] {
        let (code, stdout, stderr) =
            workspace.run_model(&server, Format::Chat, ["--model", model, "go"]);
        assert_eq!((code, &*stdout), (2, ""));
        assert!(stderr.contains("--model") && stderr.contains(told), "{stderr}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_model_is_found_by_its_name_alone_where_that_is_clear() {
    let server = server();
    let workspace = Workspace::new();
    for (model, label) in [
        ("gpt-5", "openai/gpt-5"),
        ("claude-opus-5", "anthropic/claude-opus-5"),
        ("openai/meta/llama", "openai/meta/llama"),
    ] {
        let (code, events) = workspace.run_json(&server, Format::Chat, ["--model", model, "go"]);
        assert_eq!((code, &events[0]["model"]), (0, &json!(label)));
    }
    let names: Vec<_> =
        server.requests().iter().map(|request| request.json()["model"].take()).collect();
    assert_eq!(names, ["gpt-5", "claude-opus-5", "meta/llama"]);
}

#[test]
fn options_stand_before_or_behind_the_command() {
    let server = server();
    let workspace = Workspace::new();
    let mut command = workspace.run_command(&server, Format::Chat, ["go"]);
    command.args(["--json", "--model", "openai/behind"]);
    assert_eq!(ended(&mut command).0, 0);
    assert_eq!(server.requests()[0].json()["model"], "behind");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    // Nobody listens on this port unless root wants it.
    let host = "127.0.0.1:1";
    let workspace = Workspace::new();
    let mut command = workspace.ikigai();
    command.env("OPENAI_BASE_URL", format!("http://{host}/v1")).args([
        "run",
        "--model",
        "openai/x",
        "--timeout",
        "1",
    ]);
    let (code, stdout, stderr) = ended(command.arg("go"));
    assert!(matches!(code, 1 | 130), "{code} {stderr}");
    assert_eq!(stdout, "");
    assert!(stderr.contains(host), "{stderr}");
}

#[test]
fn a_key_is_not_sent_unencrypted_to_another_machine() {
    let workspace = Workspace::new();
    let mut command = workspace.ikigai();
    // An address for documentation: nobody is there.
    command.env("OPENAI_BASE_URL", "http://192.0.2.1/v1").env("OPENAI_API_KEY", "k");
    let (code, stdout, stderr) = ended(command.args(["run", "--model", "openai/x", "go"]));
    assert_eq!((code, &*stdout), (1, ""));
    let expected = "ikigai: the key for openai/x would be sent unencrypted to http://192.0.2.1/v1: use https://, \
        or set providers.openai.allow_http = true in your own configuration ('ikigai config' names the file)\n";
    assert_eq!(stderr, expected);
}

/// What a model says must not be able to move the cursor, but what goes into a pipe is its own words.
#[test]
fn control_characters_of_a_call_do_not_reach_the_terminal() {
    let odd = json!({"command": "echo \u{1b}]0;title\u{7}"});
    let calls = [("c1", "bash", odd)];
    let server = ModelServer::start([Reply::text_and_calls("\u{1b}[2J", calls), Reply::text("ok")]);
    let (_, _, stderr) = Workspace::new().run_model(&server, Format::Chat, ["go"]);
    let dangerous: String = stderr.chars().filter(|c| c.is_control() && *c != '\n').collect();
    assert_eq!(dangerous, "");
}
