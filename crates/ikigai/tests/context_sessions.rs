//! Sessions that are longer than the model's context.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ikigai_testkit::{CapturedRequest, ModelServer, Reply};
use rustix::process::{Signal, kill_process};

use crate::support::model::Running;
use crate::support::small_window::{
    Wire, counted, is_summarized, is_summary, reader, server, summaries, tokens, workspace,
};
use crate::support::story::assert_whole;
use crate::support::terminal::{Terminal, leave};
use crate::support::{Numbers, Workspace, ended, finish, pid};

/// Too long to be read with its announcement.
fn long_mail() -> String {
    "please look at this ".repeat(80)
}

/// A terminal with an agent that has unread mail and an idle child.
fn start_with_obligations(wire: Wire, workspace: &Workspace, server: &ModelServer) -> Terminal {
    let mut terminal = Terminal::start(wire.ikigai(workspace, server).arg("--plain"));
    terminal.wait_for("❯ ");
    say(&mut terminal, 0);
    terminal.type_line("/fork");
    terminal.wait_for("Forked agent 0/0/");
    terminal.type_line(&format!("/mail send 0/ {}", long_mail()));
    terminal.wait_for("● noted");
    terminal
}

fn say(terminal: &mut Terminal, number: usize) {
    terminal.type_line(&format!("SAY-{number}"));
    terminal.wait_for(&format!("● answer-{number}."));
}

/// Fails unless every request that sees a summary sees the child and the mail.
#[track_caller]
fn assert_obligations(server: &ModelServer) {
    let requests = server.requests();
    let after: Vec<_> = requests.iter().filter(|request| is_summarized(request)).collect();
    assert!(!after.is_empty(), "nothing was summarized");
    for request in after {
        let text = request.text();
        assert!(text.contains("- 0/0/, idle"), "the child is forgotten: {text}");
        assert!(text.contains("- #1 from "), "the mail is forgotten: {text}");
    }
}

fn check_never_stops(wire: Wire, turns: usize) {
    let server = server(reader);
    let workspace = workspace(&server);
    let mut terminal = start_with_obligations(wire, &workspace, &server);
    for number in 1..turns {
        say(&mut terminal, number);
    }
    let shown = leave(terminal);
    assert!(!shown.contains("✗"), "{shown}");
    assert!(shown.contains("Context compacted: "), "{shown}");
    wire.assert_all_fit(&server);
    assert_obligations(&server);
    assert_whole(&workspace.log("0/"));
}

#[test]
fn two_hundred_turns_with_calls_never_stop_and_lose_no_obligation() {
    check_never_stops(Wire::Chat, 200);
}

#[test]
fn a_long_session_never_stops_on_anthropic() {
    check_never_stops(Wire::Anthropic, 200);
}

#[test]
fn a_long_session_never_stops_on_responses() {
    check_never_stops(Wire::Responses, 200);
}

#[test]
fn a_long_session_never_stops_on_google() {
    check_never_stops(Wire::Google, 200);
}

/// Says something in a run of its own, which is killed a random moment after it asked for a summary.
/// Returns whether it was.
fn say_and_kill(
    workspace: &Workspace,
    server: &ModelServer,
    number: usize,
    random: &mut Numbers,
) -> bool {
    let before = summaries(server);
    let mut command = Wire::Chat.ikigai(workspace, server);
    let message = format!("SAY-{number}");
    let mut run = Running::start(command.args(["run", "--json", "-c", &message]));
    while run.child.try_wait().unwrap().is_none() {
        if summaries(server) > before {
            std::thread::sleep(Duration::from_millis(random.below(30)));
            // It may have ended meanwhile.
            let _ = kill_process(pid(&run.child), Signal::KILL);
            finish(run.child);
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let (code, _, stderr) = run.finish();
    assert_eq!((code, &*stderr), (0, ""));
    false
}

#[test]
fn a_process_killed_at_any_moment_of_a_compaction_loses_nothing() {
    const KILLS: usize = 50;
    let server = ModelServer::choosing(|request: &CapturedRequest| {
        let reply = counted(request, reader);
        match is_summary(request) {
            true => reply.drip(Duration::from_millis(2)),
            false => reply,
        }
    });
    let workspace = workspace(&server);
    leave(start_with_obligations(Wire::Chat, &workspace, &server));
    let (mut killed, mut number, mut random) = (0, 0, Numbers(7));
    while killed < KILLS {
        number += 1;
        assert!(number < 20 * KILLS, "only {killed} compactions");
        killed += usize::from(say_and_kill(&workspace, &server, number, &mut random));
    }
    let mut command = Wire::Chat.ikigai(&workspace, &server);
    let message = format!("SAY-{}", number + 1);
    let run = Running::start(command.args(["run", "--json", "-c", &message]));
    let (code, events, stderr) = run.finish();
    assert_eq!((code, &*stderr), (0, ""), "{events:?}");
    let expected = format!("answer-{}.", number + 1);
    assert_eq!(events.last().unwrap()["text"], expected);
    Wire::Chat.assert_all_fit(&server);
    assert_obligations(&server);
    let log = workspace.log("0/");
    assert_whole(&log);
    let before_summary =
        |pair: &[serde_json::Value]| pair[1]["kind"] != "summary" || pair[0]["kind"] == "usage";
    assert!(log.windows(2).all(before_summary), "a summary is one commit with its usage");
}

/// A server that caches prefixes has nine tenths of what a turn of many calls sends.
#[test]
fn a_turn_of_twenty_calls_reads_nine_tenths_from_a_cache_of_prefixes() {
    for wire in [Wire::Chat, Wire::Anthropic, Wire::Responses, Wire::Google] {
        let calls = AtomicUsize::new(0);
        let server = ModelServer::choosing(move |_| match calls.fetch_add(1, Ordering::Relaxed) {
            done @ 0..20 => {
                let arguments = serde_json::json!({"path": "data.txt", "limit": 5});
                Reply::call(&format!("c{done}"), "file_read", arguments)
            }
            _ => Reply::text("read"),
        });
        let workspace = crate::support::small_window::unknown_window(&server);
        let (code, _, stderr) =
            ended(wire.ikigai(&workspace, &server).args(["run", "--json", "read"]));
        assert_eq!((code, &*stderr), (0, ""));
        let requests = server.requests();
        assert_eq!(requests.len(), 21);
        let common = |pair: &[std::sync::Arc<CapturedRequest>]| {
            pair[0].body.iter().zip(&pair[1].body).take_while(|(old, new)| old == new).count()
        };
        let sent: usize = requests.iter().map(|request| request.body.len()).sum();
        let cached: usize = requests.windows(2).map(common).sum();
        assert!(cached * 10 >= sent * 9, "{wire:?}: {cached} of {sent}");
    }
}

#[test]
fn nearly_all_that_is_sent_again_is_an_exact_prefix() {
    let server = ModelServer::choosing(reader);
    let workspace = crate::support::small_window::unknown_window(&server);
    let mut terminal = Terminal::start(Wire::Chat.ikigai(&workspace, &server).arg("--plain"));
    terminal.wait_for("❯ ");
    for number in 0..196 {
        say(&mut terminal, number);
        if number % 49 == 48 {
            let child = format!("0/{}/", number / 49);
            terminal.type_line("/fork");
            terminal.wait_for(&format!("Forked agent {child}"));
            terminal.type_line(&format!("/agent {child}"));
            say(&mut terminal, 1_000 + number);
            terminal.type_line("/agent 0/");
        }
    }
    leave(terminal);
    // A child's first request continues its parent's latest.
    let requests = server.requests();
    let (mut sent_again, mut same) = (0, 0);
    for (number, request) in requests.iter().enumerate() {
        let common = |older: &CapturedRequest| {
            older.body.iter().zip(&request.body).take_while(|(old, new)| old == new).count()
        };
        let older = requests[..number].iter().rev().take(8).max_by_key(|older| common(older));
        let Some(older) = older else { continue };
        // What follows the last message is a few bytes.
        sent_again += older.body.len().min(request.body.len());
        same += common(older);
    }
    assert!(same * 100 >= sent_again * 99, "{same} of {sent_again} bytes");
    assert!(tokens(requests.last().unwrap()) > 50_000);
}
