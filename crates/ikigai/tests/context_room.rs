//! Making room in the context of a model, rule by rule.

use ikigai_testkit::{CapturedRequest, ModelServer, Point, Reply};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::support::model::{Running, events};
use crate::support::small_window::{
    WINDOW, Wire, counted, is_summarized, is_summary, reader, server, summaries, tokens,
    unknown_window, workspace,
};
use crate::support::story::{contents, of_type};
use crate::support::terminal::{Terminal, leave};
use crate::support::{Workspace, ended, pid};

/// A headless run of one message; a later one continues the session.
fn run(
    workspace: &Workspace,
    server: &ModelServer,
    variables: &[(&str, &str)],
    text: &str,
) -> (i32, Vec<Value>, String) {
    let mut command = Wire::Chat.ikigai(workspace, server);
    let known = workspace.print(["sessions"]) != "No sessions yet\n";
    command.args(["run", "--json"]).args(known.then_some("-c")).arg(text);
    let (code, stdout, stderr) = ended(command.envs(variables.iter().copied()));
    (code, events(&stdout), stderr)
}

/// Says things until a summary is due, which `SAY-N` then meets.
#[track_caller]
fn fill(workspace: &Workspace, server: &ModelServer, limit: usize) -> usize {
    for number in 0..30 {
        if server.requests().last().is_some_and(|last| tokens(last) + 20 > limit) {
            return number;
        }
        let (code, events, stderr) = run(workspace, server, &[], &format!("SAY-{number}"));
        assert_eq!((code, &*stderr), (0, ""), "{events:?}");
    }
    panic!("the context does not fill up");
}

/// A model that answers at length, so that only a summary makes room.
fn talker(request: &CapturedRequest) -> Reply {
    match is_summary(request) {
        true => Reply::text("They talked."),
        false => Reply::text(&format!("said {} {}", tokens(request), "word ".repeat(500))),
    }
}

/// Above this many tokens of 8,000, room is made.
const DUE: usize = 5_440;

fn compactions(events: &[Value]) -> Vec<&Value> {
    of_type(events, "compaction")
}

#[test]
fn outputs_are_shortened_first_and_the_latest_stay_whole() {
    const CALLS: usize = 15;
    let server = ModelServer::choosing(|request: &CapturedRequest| {
        let calls = request.text().matches("\"tool_call_id\"").count();
        let reply = match calls {
            0..CALLS => Reply::call(&format!("c{calls}"), "file_read", json!({"path": "data.txt"})),
            _ => Reply::text("read"),
        };
        reply.usage(tokens(request) as u64, 20)
    });
    let workspace = unknown_window(&server);
    workspace.write_config("[models.\"openai/scripted\"]\ncontext_window = 16000\n");
    let (code, events, stderr) = run(&workspace, &server, &[], "read it many times");
    assert_eq!((code, &*stderr), (0, ""), "{events:?}");
    let compactions = compactions(&events);
    assert_eq!((compactions.len(), summaries(&server)), (1, 0), "{compactions:?}");
    let [before, after] = ["before", "after"].map(|field| compactions[0][field].as_u64().unwrap());
    assert_eq!(compactions[0]["method"], "trim");
    assert!(before > 10_880 && after < 7_680, "{before} {after}");
    // In the last request: the oldest is one line, the latest two are whole.
    let last = server.requests().last().unwrap().clone();
    let is_whole = |id: &str| last.tool_output(id).to_string().contains("CONTENT-");
    assert_eq!(["c0", "c13", "c14"].map(is_whole), [false, true, true]);
    // The log has them all.
    let log = workspace.log("0/");
    let outputs = log.iter().filter(|message| message["kind"] == "tool_result");
    let whole = |message: &Value| message["data"]["output"].as_str().unwrap().contains("CONTENT-");
    assert_eq!(outputs.filter(|message| whole(message)).count(), CALLS);
}

#[test]
fn a_summary_replaces_all_but_the_users_messages() {
    let server = server(talker);
    let workspace = workspace(&server);
    let number = fill(&workspace, &server, DUE);
    let (code, events, stderr) = run(&workspace, &server, &[], "and then?");
    assert_eq!((code, &*stderr), (0, ""));
    assert_eq!(compactions(&events)[0]["method"], "summary");
    assert_eq!(summaries(&server), 1);
    let requests = server.requests();
    let [.., asked, next] = &requests[..] else { panic!() };
    // The summary is asked for at the end of the same conversation, with a limit.
    assert!(is_summary(asked) && asked.json()["max_tokens"].as_u64().unwrap() < 600);
    assert_eq!(asked.tool_names(), requests[0].tool_names());
    let text = next.text();
    assert!(is_summarized(next) && text.contains("They talked."));
    assert!(text.contains(&format!("SAY-{}", number - 1)) && !text.contains("said "));
    assert!(text.rfind("and then?") > text.rfind("They talked."), "the last message is the last");
    let log = workspace.log("0/");
    let summary = log.iter().find(|message| message["kind"] == "summary").unwrap();
    let data = &summary["data"];
    assert!(data["before"].as_u64().unwrap() > data["after"].as_u64().unwrap());
    assert_eq!(data["obligations"], "");
    assert!(data["kept"].as_array().unwrap().len() >= 2);
    // The next process sends the same bytes.
    run(&workspace, &server, &[], "on");
    let later = server.requests().last().unwrap().clone();
    ikigai_testkit::assert_prefix(next, &later);
    Wire::Chat.assert_all_fit(&server);
}

#[test]
fn a_request_that_is_refused_as_too_long_is_repeated_after_making_room() {
    // With a named window, and without.
    for words in [None, Some("Input is too long for requested model.")] {
        let server = ModelServer::choosing(move |request: &CapturedRequest| {
            match (tokens(request) > WINDOW, words) {
                (true, Some(words)) => Reply::error(400, words),
                (true, None) | (false, _) => counted(request, talker),
            }
        });
        let workspace = unknown_window(&server);
        let mut seen = 0;
        for number in 0..20 {
            let (code, events, stderr) = run(&workspace, &server, &[], &format!("SAY-{number}"));
            assert_eq!((code, &*stderr), (0, ""), "{events:?}");
            seen += compactions(&events).len();
        }
        assert!(seen > 0, "{words:?}");
        let sizes = server.requests().iter().map(|request| tokens(request)).collect::<Vec<_>>();
        let last = server.requests().last().unwrap().clone();
        assert!(tokens(&last) <= WINDOW, "{sizes:?}");
    }
}

#[test]
fn a_summarizing_request_that_is_too_long_is_halved() {
    let server = server(|request: &CapturedRequest| talker(request));
    let workspace = workspace(&server);
    fill(&workspace, &server, DUE);
    let strict = ModelServer::choosing(|request: &CapturedRequest| {
        match is_summary(request) && tokens(request) > 2_500 {
            true => Reply::error(400, "prompt is too long"),
            false => counted(request, talker),
        }
    });
    let (code, events, stderr) = run(&workspace, &strict, &[], "and then?");
    assert_eq!((code, &*stderr), (0, ""), "{events:?}");
    let asked = summaries(&strict);
    assert!((2..=6).contains(&asked), "{asked}");
    Wire::Chat.assert_all_fit(&strict);
}

/// Meets a full context with a server that cannot summarize.
fn without_summary(reply: fn() -> Reply) -> (Workspace, ModelServer, i32, Vec<Value>) {
    let server = server(talker);
    let workspace = workspace(&server);
    fill(&workspace, &server, DUE);
    let failing =
        ModelServer::choosing(
            move |request: &CapturedRequest| {
                if is_summary(request) { reply() } else { counted(request, talker) }
            },
        );
    let (code, events, _) = run(&workspace, &failing, &[], "and then?");
    (workspace, failing, code, events)
}

#[test]
fn without_a_summary_nothing_changes_and_the_error_says_what_to_do() {
    for reply in [|| Reply::error(400, "not today"), || Reply::text("")] {
        let (workspace, failing, code, events) = without_summary(reply);
        let error = events.last().unwrap()["error"].as_str().unwrap();
        assert_eq!(code, 1);
        assert!(error.starts_with("The context is full: answers "), "{error}");
        assert!(error.contains("Use /compact, /clear, or a model with a larger"), "{error}");
        let log = workspace.log("0/");
        assert_eq!((contents(&log, "summary").len(), contents(&log, "trim").len()), (0, 0));
        assert_eq!(failing.requests().len(), 1);
    }
}

#[test]
fn an_interrupted_summary_changes_nothing() {
    let filled = server(talker);
    let workspace = workspace(&filled);
    fill(&workspace, &filled, DUE);
    let stalled = ModelServer::choosing(|request: &CapturedRequest| match is_summary(request) {
        true => Reply::text("half of a summary").stall_at(Point::Text),
        false => counted(request, talker),
    });
    let mut command = Wire::Chat.ikigai(&workspace, &stalled);
    let run = Running::start(command.args(["run", "--json", "-c", "and then?"]));
    stalled.wait_for_stalls(1);
    kill_process(pid(&run.child), Signal::INT).unwrap();
    let (code, events, _) = run.finish();
    assert_eq!((code, &events.last().unwrap()["stop"]), (130, &json!("interrupted")));
    assert_eq!(contents(&workspace.log("0/"), "summary").len(), 0);
}

#[test]
fn a_second_summary_within_three_requests_ends_the_turn() {
    let server = ModelServer::choosing(|request: &CapturedRequest| match is_summary(request) {
        true => Reply::text("They talked.").usage(7_900, 20),
        false => reader(request).usage(7_900, 20),
    });
    let workspace = workspace(&server);
    let (code, _, stderr) = run(&workspace, &server, &[], "SAY-1");
    assert_eq!((code, &*stderr), (0, ""));
    let (code, events, _) = run(&workspace, &server, &[], "SAY-2");
    let error = events.last().unwrap()["error"].as_str().unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!(code, 1);
    assert!(error.starts_with("The context is full: "), "{error}");
    assert!(error.contains("tools ") && error.contains("summarized just before"), "{error}");
    assert_eq!(summaries(&server), 1);
}

#[test]
fn without_context_auto_the_user_is_only_warned() {
    let server = server(talker);
    let workspace = workspace(&server);
    fill(&workspace, &server, DUE);
    let (code, events, stderr) =
        run(&workspace, &server, &[("IKIGAI_CONTEXT__AUTO", "false")], "and then?");
    assert_eq!((code, compactions(&events).len()), (0, 0));
    assert!(stderr.contains("% context; /compact makes room"), "{stderr}");
    assert_eq!(summaries(&server), 0);
}

#[test]
fn another_model_can_write_the_summaries() {
    let server = server(talker);
    let workspace = workspace(&server);
    fill(&workspace, &server, DUE);
    let model = [("IKIGAI_CONTEXT__MODEL", "anthropic/scripted")];
    let (code, _, stderr) = run(&workspace, &server, &model, "and then?");
    assert_eq!((code, &*stderr), (0, ""));
    let asked = server.requests().iter().find(|request| is_summary(request)).unwrap().clone();
    assert!(asked.path.ends_with("/messages"), "{}", asked.path);
}

#[test]
fn a_summary_takes_one_of_the_requests() {
    let server = server(talker);
    let workspace = workspace(&server);
    fill(&workspace, &server, DUE);
    let before = server.requests().len();
    let (code, events, _) = run(&workspace, &server, &[("IKIGAI_MAX_REQUESTS", "1")], "and then?");
    assert_eq!(code, 1);
    assert_eq!(events.last().unwrap()["error"], "Request budget used up (1)");
    assert_eq!((server.requests().len() - before, summaries(&server)), (1, 1));
    // The summary is not lost.
    let (code, _, _) = run(&workspace, &server, &[], "go on");
    assert_eq!((code, summaries(&server)), (0, 1));
}

#[test]
fn one_output_has_at_most_an_eighth_of_the_window() {
    let server =
        server(|request: &CapturedRequest| match request.text().contains("\"tool_call_id\"") {
            false => Reply::call("c", "bash", json!({"command": "seq 100000"})),
            true => Reply::text("long"),
        });
    let workspace = workspace(&server);
    run(&workspace, &server, &[], "count");
    let output = server.requests()[1].tool_output("c");
    let length = output["data"]["output"].as_str().unwrap().len();
    assert!((2_000..WINDOW / 8 * 4 + 300).contains(&length), "{length}");
}

#[test]
fn a_long_log_is_summarized_with_one_request() {
    let server = server(reader);
    let workspace = workspace(&server);
    run(&workspace, &server, &[], "SAY-0");
    workspace.sql(
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100000)
            INSERT INTO messages (agent, kind, content, data, created_at)
            SELECT (SELECT min(key) FROM agents),
                CASE n % 2 WHEN 0 THEN 'assistant' ELSE 'user' END, 'words ' || n,
                CASE n % 2 WHEN 0 THEN '{\"response\":\"r' || n || '\"}' ELSE '{}' END, 0 FROM n",
    );
    let (code, events, stderr) = run(&workspace, &server, &[], "SAY-1");
    assert_eq!((code, &*stderr), (0, ""), "{events:?}");
    assert_eq!((compactions(&events).len(), summaries(&server)), (1, 1));
    Wire::Chat.assert_all_fit(&server);
}

fn talk(workspace: &Workspace, server: &ModelServer) -> Terminal {
    let terminal = Terminal::start(Wire::Chat.ikigai(workspace, server).arg("--plain"));
    terminal.wait_for("❯ ");
    terminal
}

#[test]
fn compact_makes_room_at_once_and_context_shows_what_fills_it() {
    let server = server(reader);
    let workspace = workspace(&server);
    let mut terminal = talk(&workspace, &server);
    terminal.type_line("/compact");
    terminal.wait_for("There is no message yet");
    for number in 0..2 {
        terminal.type_line(&format!("SAY-{number}"));
        terminal.wait_for(&format!("● answer-{number}."));
    }
    terminal.type_line("/context");
    terminal.wait_for("results of file_read");
    terminal.type_line("/compact the parser");
    terminal.wait_for("Context compacted: ");
    terminal.type_line("/context");
    terminal.wait_for("  summary ");
    let shown = leave(terminal);
    assert!(shown.contains(" of 8k tokens, by part (estimated):") && shown.contains("  free "));
    assert!(!shown.contains("nothing to say"), "{shown}");
    let asked = server.requests().last().unwrap().clone();
    assert!(is_summary(&asked) && asked.text().contains("in particular: the parser"));
}

#[test]
fn a_rewind_to_before_a_summary_brings_everything_back() {
    let server = server(reader);
    let workspace = workspace(&server);
    let mut terminal = talk(&workspace, &server);
    let mut say = |text: &str, answer: &str| {
        terminal.type_line(text);
        terminal.wait_for(answer);
    };
    say("SAY-0", "● answer-0.\r\n❯ ");
    say("/mark here", "Marked");
    say("SAY-1", "● answer-1.\r\n❯ ");
    say("/compact", "Context compacted: ");
    say("SAY-2", "● answer-2.\r\n❯ ");
    say("/rewind here", "no longer sees");
    say("SAY-3", "● answer-3.");
    leave(terminal);
    let requests = server.requests();
    let first = requests.iter().find(|request| request.text().contains("SAY-1")).unwrap();
    let last = requests.last().unwrap();
    assert!(!is_summarized(last) && last.text().contains("answer-0."));
    assert!(!last.text().contains("SAY-1") && first.text().contains("answer-0."));
}

#[test]
fn a_full_fork_inherits_the_summary() {
    let server = server(reader);
    let workspace = workspace(&server);
    let mut terminal = talk(&workspace, &server);
    for (text, answer) in [
        ("SAY-0", "● answer-0."),
        ("/compact", "Context compacted: "),
        ("SAY-1", "● answer-1."),
        ("/fork", "Forked agent 0/0/"),
        ("/agent 0/0/", "❯ "),
        ("SAY-2", "● answer-2."),
    ] {
        terminal.type_line(text);
        terminal.wait_for(answer);
    }
    leave(terminal);
    let requests = server.requests();
    let parent = requests.iter().rfind(|request| !request.text().contains("SAY-2")).unwrap();
    let child = requests.last().unwrap();
    assert!(is_summarized(child));
    ikigai_testkit::assert_prefix(parent, child);
}
