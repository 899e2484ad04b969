//! What stays beside a summary, and what happens where there cannot be one.

use std::sync::atomic::{AtomicUsize, Ordering};

use ikigai_testkit::{CapturedRequest, ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::model::events;
use crate::support::screen::{Screen, command};
use crate::support::small_window::{
    Wire, counted, is_summarized, is_summary, reader, server, summaries, tokens, unknown_window,
    workspace,
};
use crate::support::story::{contents, of_type};
use crate::support::terminal::{leave, start_talking};
use crate::support::{Workspace, ended};

/// A headless run of one message; a later one continues the session.
fn run(workspace: &Workspace, server: &ModelServer, text: &str) -> (i32, Vec<Value>, String) {
    let mut command = Wire::Chat.ikigai(workspace, server);
    let known = workspace.print(["sessions"]) != "No sessions yet\n";
    command.args(["run", "--json"]).args(known.then_some("-c")).arg(text);
    let (code, stdout, stderr) = ended(&mut command);
    (code, events(&stdout), stderr)
}

/// Says things until a summary is nearly due.
#[track_caller]
fn fill(workspace: &Workspace, server: &ModelServer) {
    const DUE: usize = 5_440;
    for number in 0..30 {
        let (code, events, stderr) = run(workspace, server, &format!("SAY-{number}"));
        assert_eq!((code, &*stderr), (0, ""), "{events:?}");
        if server.requests().last().is_some_and(|last| tokens(last) + 40 > DUE) {
            return;
        }
    }
    panic!("the context does not fill up");
}

/// A model that answers at length.
fn talker(request: &CapturedRequest) -> Reply {
    match is_summary(request) {
        true => Reply::text("They talked."),
        false => Reply::text(&format!("said {} {}", tokens(request), "word ".repeat(500))),
    }
}

#[test]
fn the_last_message_stays_even_if_it_has_to_be_cut() {
    let server = server(talker);
    let workspace = workspace(&server);
    fill(&workspace, &server);
    let long = format!("LONG {}", "and so on ".repeat(500));
    let (code, events, stderr) = run(&workspace, &server, &long);
    assert_eq!((code, &*stderr), (0, ""), "{events:?}");
    assert_eq!(summaries(&server), 1);
    let log = workspace.log("0/");
    let summary = log.iter().find(|message| message["kind"] == "summary").unwrap();
    let cut = summary["data"]["cut"].as_u64().unwrap() as usize;
    assert!((1_000..long.len()).contains(&cut), "{cut}");
    let requests = server.requests();
    let text = requests.last().unwrap().text();
    assert!(text.contains(&long[..cut]) && !text.contains(&long[..cut + 1]), "{cut}: {text}");
    assert!(text.contains(&format!("The user's last message above is cut after {cut} bytes.")));
    // The log has all of it.
    assert!(log.iter().any(|message| message["content"] == long));
    Wire::Chat.assert_all_fit(&server);
}

#[test]
fn in_the_middle_of_a_turn_its_latest_steps_stay() {
    const STEPS: usize = 20;
    let step = AtomicUsize::new(0);
    let server = server(move |request: &CapturedRequest| {
        if is_summary(request) {
            return Reply::text("Some steps were made.");
        }
        match step.fetch_add(1, Ordering::Relaxed) {
            number @ 0..STEPS => {
                let call = json!({"command": format!("echo RESULT-{number}-")});
                let text = format!("step {number} {}", "word ".repeat(180));
                Reply::text_and_calls(&text, [(format!("c{number}").as_str(), "bash", call)])
            }
            _ => Reply::text("All steps."),
        }
    });
    let workspace = workspace(&server);
    let (code, events, stderr) = run(&workspace, &server, "do it");
    assert_eq!((code, &*stderr), (0, ""), "{events:?}");
    assert_eq!(events.last().unwrap()["text"], "All steps.");
    assert!(summaries(&server) >= 1);
    let requests = server.requests();
    for pair in requests.windows(2).filter(|pair| is_summary(&pair[0])) {
        let before = pair[0].text();
        let last = (0..STEPS).rfind(|n| before.contains(&format!("RESULT-{n}-\\\\n"))).unwrap();
        let after = pair[1].text();
        assert!(after.contains(&format!("RESULT-{last}-\\\\n")), "{last} is lost: {after}");
        assert!(!after.contains("step 0 ") && after.contains("do it"), "{after}");
    }
    Wire::Chat.assert_all_fit(&server);
}

#[test]
fn without_a_summary_a_harder_trim_is_enough_where_outputs_fill_the_context() {
    let reader = |request: &CapturedRequest| match is_summary(request) {
        true => Reply::error(400, "not today"),
        false => match request.results_since_user() {
            0 => {
                let id = format!("c{}", request.messages().len());
                Reply::call(&id, "file_read", json!({"path": "data.txt"}))
            }
            _ => Reply::text(&format!("read. {}", "word ".repeat(150))),
        },
    };
    let server = server(reader);
    let workspace = workspace(&server);
    let mut trims = 0;
    for number in 0..8 {
        let (code, events, stderr) = run(&workspace, &server, &format!("SAY-{number}"));
        assert_eq!((code, &*stderr), (0, ""), "{events:?}");
        trims += of_type(&events, "compaction").len();
        if trims > 0 && summaries(&server) > 0 {
            break;
        }
    }
    let log = workspace.log("0/");
    assert!(summaries(&server) > 0 && trims > 0, "{trims}");
    assert_eq!(contents(&log, "summary").len(), 0);
    assert!(!contents(&log, "trim").is_empty());
}

#[test]
fn what_the_agent_changed_is_not_forgotten() {
    let server = server(|request: &CapturedRequest| {
        match request.text().contains("WRITE")
            && request.results_since_user() == 0
            && !is_summary(request)
        {
            true if request.messages().len() < 4 => {
                let file = json!({"path": "notes/a.txt", "content": "x"});
                Reply::call("w", "file_write", file)
            }
            _ => talker(request),
        }
    });
    let workspace = workspace(&server);
    run(&workspace, &server, "WRITE");
    fill(&workspace, &server);
    run(&workspace, &server, "and then?");
    let requests = server.requests();
    let after = requests.last().unwrap();
    assert!(is_summarized(after));
    assert!(after.text().contains("Files that you changed:\\n- notes/a.txt"), "{}", after.text());
}

#[test]
fn a_command_in_the_background_is_not_forgotten() {
    let server =
        ModelServer::choosing(|request: &CapturedRequest| match request.results_since_user() {
            _ if is_summary(request) => Reply::text("A server was started."),
            0 if request.text().contains("SERVE") && !is_summarized(request) => {
                let command = json!({"command": "sleep 1000", "background": true});
                Reply::call("b", "bash", command)
            }
            _ => Reply::text("ok"),
        });
    let workspace = Workspace::new();
    let mut terminal = start_talking(&workspace, &server);
    terminal.type_line("SERVE");
    terminal.wait_for("● ok\r\n❯ ");
    terminal.type_line("/compact");
    terminal.wait_for("Context compacted: ");
    terminal.type_line("and now?");
    terminal.wait_for_count("● ok", 2);
    leave(terminal);
    let requests = server.requests();
    let text = requests.last().unwrap().text();
    assert!(
        text.contains("Your commands that run in the background:\\n- #1: sleep 1000"),
        "{text}"
    );
}

#[test]
fn a_window_that_is_too_small_ends_the_turn_with_what_fills_it() {
    let server = ModelServer::choosing(|_| Reply::text("never"));
    let workspace = unknown_window(&server);
    workspace.write_config("[models.\"openai/scripted\"]\ncontext_window = 2000\n");
    let (code, events, _) = run(&workspace, &server, "hi");
    let error = events.last().unwrap()["error"].as_str().unwrap();
    assert_eq!((code, server.requests().len()), (1, 0));
    assert!(error.starts_with("The context is full: tools "), "{error}");
    assert!(
        error.contains(" of 2000 tokens. A summary would not make room. Use /compact"),
        "{error}"
    );
}

#[test]
fn usage_counts_summaries_as_the_server_billed_them() {
    let server = server(talker);
    let workspace = workspace(&server);
    fill(&workspace, &server);
    run(&workspace, &server, "and then?");
    assert_eq!(summaries(&server), 1);
    let requests = server.requests();
    let billed: usize = requests.iter().map(|request| tokens(request)).sum();
    let table = workspace.json(["usage", "--by", "session", "--json"]);
    let row = &table[0];
    assert_eq!(
        [&row["requests"], &row["input_tokens"], &row["output_tokens"], &row["unreported"]],
        [&json!(requests.len()), &json!(billed), &json!(20 * requests.len()), &json!(0)]
    );
}

#[test]
fn ctrl_o_shows_the_summary_on_the_screen() {
    let server = ModelServer::choosing(|request: &CapturedRequest| counted(request, reader));
    let workspace = Workspace::new();
    workspace.write("data.txt", "CONTENT- of a line\n");
    let mut screen = Screen::start(&mut command(&workspace, &server), 80, 24);
    screen.asks("SAY-0", "● answer-0.");
    screen.wait_until_idle();
    screen.asks("/compact", "Context compacted: ");
    screen.wait_until_idle();
    assert!(!screen.text().contains("The user counts"), "{}", screen.text());
    screen.types("\x0f");
    screen.wait_for("The user counts, and the file was read.");
    screen.leave();
}
