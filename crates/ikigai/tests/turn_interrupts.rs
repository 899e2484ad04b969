//! Interrupts: whatever the agent waits for, it stops at once, what had arrived is kept and marked, and the next
//! request is valid.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Child;

use ikigai_testkit::{ModelServer, Point, Reply};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::support::model::{Format, Running, assert_stable};
use crate::support::story::{
    WELL_AGAIN, answered, at_once, bash, check_goes_on, contents, interrupted, kinds, of_type,
};
use crate::support::{Workspace, pid, wait_for, wait_for_pid, wait_until_gone};

fn signal(child: &Child, signal: Signal) {
    kill_process(pid(child), signal).unwrap();
}

/// Ends a run by a signal as soon as `meanwhile` has seen that it is where it should be, and goes on with `-c`.
/// Gives the events and the log.
#[track_caller]
fn check_interrupted(
    format: Format,
    script: impl IntoIterator<Item = Reply>,
    by: Signal,
    meanwhile: impl FnOnce(&Workspace, &ModelServer, &Running),
) -> (Vec<Value>, Vec<Value>) {
    let server = ModelServer::start(script.into_iter().chain([Reply::text(WELL_AGAIN)]));
    let workspace = Workspace::unconfined();
    let mut command = workspace.run_command(&server, format, ["--json", "go"]);
    let run = Running::start(&mut command);
    meanwhile(&workspace, &server, &run);
    signal(&run.child, by);
    let (code, events, stderr) = run.finish();
    assert_eq!((code, &*stderr), (130, ""));
    assert!(is_free(&workspace), "the lease is given back");
    let log = check_goes_on(&workspace, &server, format);
    (events, log)
}

/// Whether no process has the agent.
fn is_free(workspace: &Workspace) -> bool {
    let connection = rusqlite::Connection::open(workspace.database()).unwrap();
    let sql = "SELECT max(until) FROM leases";
    connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() == 0
}

#[test]
fn a_server_that_says_nothing_more_is_left_at_once() {
    let silent = Reply::silence();
    let halfway_into_a_refusal = Reply::error(400, "no, because").stall_at(Point::Byte(30));
    at_once(
        [
            (Format::Chat, silent.clone(), Signal::INT),
            (Format::Anthropic, silent, Signal::TERM),
            (Format::Chat, halfway_into_a_refusal, Signal::INT),
        ],
        |(format, reply, by)| {
            let (events, log) = check_interrupted(format, [reply], by, |_, server, _| {
                server.wait_for_stalls(1);
            });
            assert_eq!(events.last(), Some(&interrupted("")));
            assert_eq!(kinds(&log), ["user", "interrupted", "user", "assistant"]);
        },
    );
}

/// A server so busy that it takes no connection: its queue is full, and the system drops what comes.
#[test]
fn a_connection_that_is_not_taken_is_given_up_at_once() {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    listen(&socket, 0).unwrap();
    let address = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
    let _first = TcpStream::connect(address).unwrap();
    let workspace = Workspace::new();
    let server = ModelServer::start([Reply::text(WELL_AGAIN)]);
    let mut command = workspace.run_command(&server, Format::Chat, ["--json", "go"]);
    let run = Running::start(command.env("OPENAI_BASE_URL", format!("http://{address}/v1")));
    wait_for("an attempt to connect", || is_connecting(address.port()).then_some(()));
    signal(&run.child, Signal::INT);
    let (code, events, stderr) = run.finish();
    assert_eq!((code, events.last(), &*stderr), (130, Some(&interrupted("")), ""));
    check_goes_on(&workspace, &server, Format::Chat);
}

/// Whether somebody waits for a connection to this port: state `SYN_SENT`.
fn is_connecting(port: u16) -> bool {
    let remote = format!("0100007F:{port:04X} 02 ");
    fs::read_to_string("/proc/net/tcp").unwrap().contains(&remote)
}

#[test]
fn a_pause_before_a_retry_is_ended_at_once() {
    let busy = Reply::error(503, "busy").retry_after(200);
    at_once(Format::BOTH, |format| {
        let script = [busy.clone()];
        let (events, log) = check_interrupted(format, script, Signal::INT, |_, _, run| {
            run.until("retry");
        });
        assert_eq!(events, [interrupted("")]);
        assert_eq!(kinds(&log), ["user", "interrupted", "user", "assistant"]);
    });
}

#[test]
fn what_had_arrived_of_an_answer_is_kept_and_marked() {
    for (format, by) in
        [(Format::Chat, Signal::INT), (Format::Anthropic, Signal::INT), (Format::Chat, Signal::HUP)]
    {
        let script = [bash("c1", "echo one"), Reply::text("It is o ne").stall_at(Point::Text)];
        let (events, log) = check_interrupted(format, script, by, |_, server, run| {
            server.wait_for_stalls(1);
            run.until("tool_result");
            // Both whole pieces of the text.
            run.until("text");
            while run.next().unwrap()["delta"] != "o " {}
        });
        assert_eq!(events, [interrupted("It is o ")]);
        let expected =
            ["user", "tool_call", "tool_result", "assistant", "interrupted", "user", "assistant"];
        assert_eq!(kinds(&log), expected);
        assert_eq!(contents(&log, "assistant"), ["It is o ", WELL_AGAIN]);
        let (kept, mark) = (&log[log.len() - 5], &log[log.len() - 4]);
        assert_eq!(mark["kind"], "interrupted");
        assert_eq!(mark["data"]["response"], kept["data"]["response"]);
        assert_ne!(mark["data"]["response"], Value::Null);
    }
}

#[test]
fn half_a_call_is_not_kept() {
    at_once(Format::BOTH, |format| {
        let script = [Reply::text_and_calls(
            "I look.",
            [("c1", "bash", json!({"command": "touch trace; echo and much more"}))],
        )
        .stall_at(Point::Arguments)];
        let (events, log) =
            check_interrupted(format, script, Signal::INT, |workspace, server, run| {
                server.wait_for_stalls(1);
                while run.next().unwrap()["delta"] != "look." {}
                assert_eq!(workspace.names(), Vec::<String>::new());
            });
        assert_eq!(events, [interrupted("I look.")]);
        assert_eq!(kinds(&log), ["user", "assistant", "interrupted", "user", "assistant"]);
    });
}

/// A leader, a child of it, and one that does not want to be told; each tells its number.
const FAMILY: &str = "(echo $BASHPID > child; sleep 31415.1; true) & \
    (trap '' TERM; echo $BASHPID > stubborn; while :; do sleep 0.01; done) & \
    echo begun; echo $BASHPID > leader; wait";

/// The result of the family, which printed `begun` before it was ended.
fn ended() -> Value {
    let output = "begun\n[Interrupted: the command was ended]";
    json!({"success": true, "data": {"output": output, "exit_code": 130}})
}

#[test]
fn a_command_is_ended_with_all_that_it_started_and_its_result_says_so() {
    at_once(
        [
            (Format::Chat, Signal::INT),
            (Format::Anthropic, Signal::TERM),
            (Format::Chat, Signal::HUP),
        ],
        |(format, by)| {
            // The second call of the same response is not begun any more.
            let command = |command| json!({ "command": command });
            let calls = [("c1", "bash", command(FAMILY)), ("c2", "bash", command("touch trace"))];
            let mut family = Vec::new();
            let script = [Reply::calls(calls)];
            let (events, log) = check_interrupted(format, script, by, |workspace, _, run| {
                run.until("tool_call");
                family = ["leader", "child", "stubborn"]
                    .map(|name| wait_for_pid(&workspace.path(name)))
                    .to_vec();
            });
            family.into_iter().for_each(wait_until_gone);
            let results = of_type(&events, "tool_result");
            assert_eq!(results.len(), 1);
            assert_eq!(results[0]["result"], ended());
            assert_eq!(events.last(), Some(&interrupted("")));
            let expected = ["user", "tool_call", "tool_result", "interrupted", "user", "assistant"];
            assert_eq!(kinds(&log), expected);
        },
    );
}

#[test]
fn a_time_limit_is_an_interrupt() {
    let stalled = Reply::text("as far as I know").stall_at(Point::Text);
    at_once(
        [
            (Reply::silence(), "", vec!["user", "interrupted"]),
            (stalled, "as far as I ", vec!["user", "assistant", "interrupted"]),
            (
                bash("c1", "sleep 31415.2"),
                "",
                vec!["user", "tool_call", "tool_result", "interrupted"],
            ),
            (Reply::error(503, "busy").retry_after(200), "", vec!["user", "interrupted"]),
        ],
        |(reply, text, kept)| {
            let server = ModelServer::start([reply, Reply::text(WELL_AGAIN)]);
            let workspace = Workspace::new();
            let arguments = ["--timeout", "2", "go"];
            let told = "ikigai: interrupted after 2 s (--timeout)\n";
            let (code, events) = workspace.run_json_telling(&server, Format::Chat, arguments, told);
            assert_eq!((code, events.last()), (130, Some(&interrupted(text))));
            assert!(is_free(&workspace));
            let log = check_goes_on(&workspace, &server, Format::Chat);
            assert_eq!(kinds(&log), [kept, vec!["user", "assistant"]].concat());
        },
    );
}

#[test]
fn an_interrupt_is_told_as_text_beside_what_had_arrived() {
    let server = ModelServer::start([Reply::text("as far as I know").stall_at(Point::Text)]);
    let workspace = Workspace::new();
    let ended = workspace.run_model(&server, Format::Chat, ["--timeout", "2", "go"]);
    let told = "ikigai: interrupted after 2 s (--timeout)\n✗ interrupted\n";
    assert_eq!(ended, (130, "as far as I \n".to_owned(), told.to_owned()));
}

/// What was sent meanwhile does not wake an agent that the person has stopped.
#[test]
fn mail_is_held_after_an_interrupt_and_told_after_the_next_turn() {
    let stalled = Reply::text("half way").stall_at(Point::Text);
    let script = [stalled, Reply::text("done"), Reply::text("I have read it")];
    let server = ModelServer::start(script);
    let workspace = Workspace::new();
    let mut command = workspace.run_command(&server, Format::Chat, ["--json", "go"]);
    let run = Running::start(&mut command);
    run.until("text");
    workspace.print(["mail", "send", "0/", "psst"]);
    signal(&run.child, Signal::INT);
    let (code, events, _) = run.finish();
    assert_eq!((code, events), (130, vec![interrupted("half ")]));
    assert_eq!(server.requests().len(), 1);
    let (code, events) = workspace.run_json(&server, Format::Chat, ["-c", "go on"]);
    assert_eq!((code, events.last()), (0, Some(&answered("I have read it"))));
    let told: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let done = told.iter().position(|kind| *kind == "done").unwrap();
    assert!(told[done..].contains(&"notification"), "{told:?}");
    assert_stable(&server.requests());
}
