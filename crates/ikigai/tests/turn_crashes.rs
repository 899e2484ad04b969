//! `kill -9` at any moment: the log is never torn, no command is left or run twice, and `run -c` goes on at once.

use std::collections::BTreeSet;
use std::time::Duration;

use ikigai_testkit::{CapturedRequest, ModelServer, Point, Reply};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::support::model::{Format, Running, assert_strict};
use crate::support::story::{
    WELL_AGAIN, assert_whole, at_once, bash, check_goes_on, contents, kinds,
};
use crate::support::{Numbers, Workspace, failure, finish, pid, wait_for_pid, wait_until_gone};

fn kill(run: Running) {
    kill_process(pid(&run.child), Signal::KILL).unwrap();
    finish(run.child);
}

/// Kills a run as soon as `meanwhile` has seen that it is where it should be, and goes on with `-c`. Gives the
/// log.
#[track_caller]
fn check_killed(
    format: Format,
    reply: Reply,
    meanwhile: impl FnOnce(&Workspace, &ModelServer, &Running),
) -> (Vec<Value>, ModelServer) {
    let server = ModelServer::start([bash("c1", "echo one"), reply, Reply::text(WELL_AGAIN)]);
    let workspace = Workspace::unconfined();
    let run = Running::start(&mut workspace.run_command(&server, format, ["--json", "go"]));
    meanwhile(&workspace, &server, &run);
    kill(run);
    let log = check_goes_on(&workspace, &server, format);
    // Nobody waited for the lease of the dead process: a second agent would have been made instead.
    assert_eq!(workspace.json(["agents", "--json"]).as_array().unwrap().len(), 1);
    (log, server)
}

#[test]
fn a_kill_during_a_command_ends_it_and_closes_its_call() {
    let command = "(echo $BASHPID > child; sleep 31415.3; true) & echo $$ > leader; wait";
    at_once(Format::BOTH, |format| {
        let mut family = Vec::new();
        let (log, server) = check_killed(format, bash("c2", command), |workspace, _, _| {
            family = ["leader", "child"].map(|name| wait_for_pid(&workspace.path(name))).to_vec();
        });
        family.into_iter().for_each(wait_until_gone);
        let pairs = ["tool_call", "tool_result"].repeat(2);
        assert_eq!(kinds(&log), [vec!["user"], pairs, vec!["user", "assistant"]].concat());
        let closed = failure(
            "Interrupted: the program ended before the call did; the command may have had effects",
        );
        assert_eq!(server.requests()[2].tool_output("c2"), closed);
    });
}

#[test]
fn a_kill_during_a_stream_leaves_nothing_of_it() {
    at_once(Format::BOTH, |format| {
        for reply in [
            Reply::text("half an answer").stall_at(Point::Text),
            bash("c2", "touch trace").stall_at(Point::Arguments),
            Reply::silence(),
        ] {
            let (log, _) = check_killed(format, reply, |workspace, server, _| {
                server.wait_for_stalls(1);
                assert_eq!(workspace.names(), Vec::<String>::new());
            });
            let expected = ["user", "tool_call", "tool_result", "user", "assistant"];
            assert_eq!(kinds(&log), expected);
        }
    });
}

#[test]
fn a_kill_before_a_retry_leaves_the_question() {
    let busy = Reply::error(503, "busy").retry_after(200);
    let (log, _) = check_killed(Format::Chat, busy, |_, _, run| drop(run.until("retry")));
    assert_eq!(kinds(&log), ["user", "tool_call", "tool_result", "user", "assistant"]);
}

/// Two runs after the crash: what the first has closed, the second does not close again.
#[test]
fn a_call_is_closed_once() {
    let server = ModelServer::start([
        bash("c1", "echo $$ > leader; sleep 31415.4"),
        Reply::text("one"),
        Reply::text(WELL_AGAIN),
    ]);
    let workspace = Workspace::new();
    let run = Running::start(&mut workspace.run_command(&server, Format::Chat, ["--json", "go"]));
    wait_for_pid(&workspace.path("leader"));
    kill(run);
    let (code, stdout, _) = workspace.run_model(&server, Format::Chat, ["-c", "first"]);
    assert_eq!((code, &*stdout), (0, "one\n"));
    let log = check_goes_on(&workspace, &server, Format::Chat);
    assert_eq!(contents(&log, "tool_result").len(), 1);
}

const CALLS: usize = 10;
const KILLS: usize = 15;

/// A turn of ten calls, every second one to the database. What a call does carries its id.
fn busy_model(captured: &CapturedRequest) -> Reply {
    let id = format!("call_{}", captured.messages().len());
    match captured.results_since_user() {
        CALLS => Reply::text(WELL_AGAIN),
        even if even.is_multiple_of(2) => bash(&id, &format!("echo {id} >> trace")),
        _ => Reply::call(&id, "mail", json!({"action": "send", "to": "1/", "body": id})),
    }
}

#[test]
fn kills_at_random_moments_never_tear_the_log_nor_do_a_thing_twice() {
    at_once([(Format::Chat, 0x5eed), (Format::Anthropic, 0xfeed)], |(format, seed)| {
        let server = ModelServer::choosing(busy_model);
        let workspace = Workspace::with_agents(2);
        // The other agent is not woken: this is about one.
        workspace.touch(["trace"]).sql("UPDATE agents SET mail_held = 1 WHERE id = '1/'");
        let mut numbers = Numbers(seed);
        for _ in 0..KILLS {
            let mut command = workspace.run_command(&server, format, ["-c", "--json", "go"]);
            let run = Running::start(&mut command);
            // Between the first event and some before the last one, and then at some moment after it.
            let events = 1 + numbers.below(3 * CALLS as u64);
            (0..events).for_each(|_| drop(run.next()));
            std::thread::sleep(Duration::from_micros(numbers.below(3_000)));
            kill(run);
        }
        check_goes_on(&workspace, &server, format);
        check_effects(&workspace);
        let agents = workspace.json(["agents", "--json"]);
        assert_eq!(agents.as_array().unwrap().len(), 2, "0/ was taken up each time");
    });
}

/// Nothing was done twice; what the log calls a success was done, and all mail that was sent is one.
#[track_caller]
fn check_effects(workspace: &Workspace) {
    let log = workspace.log("0/");
    let succeeded = |tool: &str| -> BTreeSet<String> {
        let results = log.iter().filter(|message| message["kind"] == "tool_result");
        let results = results.map(|message| &message["data"]);
        let good = results.filter(|data| data["name"] == tool && data["success"] == true);
        good.map(|data| data["tool_call_id"].as_str().unwrap().to_owned()).collect()
    };
    let trace = workspace.read_text("trace");
    let run: BTreeSet<String> = trace.lines().map(str::to_owned).collect();
    assert_eq!(run.len(), trace.lines().count(), "a command ran twice: {trace}");
    assert!(run.is_superset(&succeeded("bash")), "a command did not run");
    let connection = rusqlite::Connection::open(workspace.database()).unwrap();
    let mut statement = connection.prepare("SELECT body FROM mail").unwrap();
    let bodies: Vec<String> =
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let sent: BTreeSet<String> = bodies.iter().cloned().collect();
    assert_eq!(bodies.len(), sent.len(), "mail was sent twice");
    assert_eq!(sent, succeeded("mail"), "the log says sent if and only if it is");
}

/// The first commit makes the session: before it there is nothing, after it the question is there.
#[test]
fn a_kill_at_the_very_beginning_leaves_nothing_or_the_question() {
    let server = ModelServer::choosing(|captured| match captured.last_user_text() {
        Some(text) if text.ends_with("and now?") => Reply::text(WELL_AGAIN),
        _ => Reply::silence(),
    });
    let mut numbers = Numbers(0xbeef);
    for _ in 0..10 {
        let workspace = Workspace::new();
        let mut command = workspace.run_command(&server, Format::Chat, ["--json", "go"]);
        let run = Running::start(&mut command);
        run.next();
        std::thread::sleep(Duration::from_micros(numbers.below(5_000)));
        kill(run);
        let sessions = workspace.json(["sessions", "--json"]);
        match sessions.as_array().unwrap().len() {
            0 => {}
            1 => {
                let ended = workspace.run_model(&server, Format::Chat, ["-c", "and now?"]);
                assert_eq!(ended, (0, format!("{WELL_AGAIN}\n"), String::new()));
                let log = workspace.log("0/");
                assert_whole(&log);
                assert_eq!(kinds(&log), ["user", "user", "assistant"]);
            }
            _ => panic!("{sessions}"),
        }
    }
    assert_strict(&server.requests());
}
