//! Each end of a background command is told exactly once, whatever happens at that moment.

use std::collections::BTreeMap;
use std::time::Duration;

use ikigai_testkit::{CapturedRequest, ModelServer, Reply, checker};
use serde_json::{Value, json};

use crate::support::model::{Format, Running, events};
use crate::support::processes::kill;
use crate::support::{Numbers, Workspace};

/// How many commands a response starts.
const AT_ONCE: usize = 5;

/// Starts commands that end after some moments, until the conversation has so many calls.
fn starter(most: usize) -> impl Fn(&CapturedRequest) -> Reply + Send + Sync + 'static {
    move |request| {
        let messages = request.messages();
        let calls = messages.iter().filter(|message| message["role"] == "tool").count();
        let is_told = messages.last().is_some_and(|last| last["role"] != "tool");
        if !is_told || calls >= most {
            return Reply::text("I wait.");
        }
        let ids: Vec<String> = (0..AT_ONCE).map(|number| format!("c{}", calls + number)).collect();
        Reply::calls(ids.iter().enumerate().map(|(number, id)| {
            let hundredths = (calls * 7 + number * 3) % 12;
            let command = format!("sleep 0.{hundredths:02}; exit {number}");
            (id.as_str(), "bash", json!({"command": command, "background": true}))
        }))
    }
}

/// How often each command was told to have ended, and how often to have been lost.
fn told(log: &[Value]) -> BTreeMap<i64, (usize, usize)> {
    let mut told: BTreeMap<i64, (usize, usize)> = BTreeMap::new();
    for message in log.iter().filter(|message| message["kind"] == "notification") {
        for line in message["content"].as_str().unwrap().lines() {
            let of = |start: &str| line.strip_prefix(start)?.split(' ').next()?.parse::<i64>().ok();
            if let Some(id) = of("[Notification: Command #") {
                told.entry(id).or_default().0 += 1;
            } else if let Some(id) = of("Command #") {
                told.entry(id).or_default().1 += 1;
            }
        }
    }
    told
}

/// Fails unless each command was told once. Returns how many there were.
#[track_caller]
fn check_each_once(workspace: &Workspace) -> usize {
    let log = workspace.log("0/");
    let told = told(&log);
    let started: Vec<i64> = log
        .iter()
        .filter(|message| message["kind"] == "tool_result")
        .filter_map(|message| {
            let output: Value =
                serde_json::from_str(message["data"]["output"].as_str().unwrap()).unwrap();
            output["data"]["command_id"].as_i64()
        })
        .collect();
    for id in &started {
        let (ended, lost) = told.get(id).copied().unwrap_or_default();
        assert_eq!(ended + lost, 1, "#{id} was told {ended} times, and lost {lost} times");
    }
    assert_eq!(told.len(), started.len(), "an end was told of a command that is not in the log");
    assert_eq!(checker::check(&workspace.address(), &[]), Vec::<String>::new());
    assert_eq!(checker::check_settled(&workspace.address()), Vec::<String>::new());
    started.len()
}

fn run(workspace: &Workspace, server: &ModelServer, words: &[&str]) -> std::process::Command {
    let mut command = workspace.run_command(server, Format::Chat, ["--json", "--wait-commands"]);
    command.args(words).env("IKIGAI_MAIL__MAX_WAKES", "10000");
    command.env("IKIGAI_MAX_REQUESTS", "10000");
    command
}

/// The ends come while the agent falls asleep, works, or is asleep.
#[test]
fn hundreds_of_ends_are_told_once_each() {
    const COMMANDS: usize = 250;
    let server = ModelServer::choosing(starter(COMMANDS));
    let workspace = Workspace::unconfined();
    let (code, stdout, stderr) = crate::support::ended(&mut run(&workspace, &server, &["go"]));
    assert_eq!((code, &*stderr), (0, ""));
    let ended = events(&stdout);
    let ended = ended.iter().filter(|event| event["type"] == "command_ended").count();
    let started = check_each_once(&workspace);
    assert_eq!(ended, started);
    // Some may have been refused because too many ran.
    assert!(started > COMMANDS / 2, "only {started} were started");
}

/// A process is killed again and again. What ran then is told to have ended with it.
#[test]
fn kills_at_random_moments_lose_no_end_and_double_none() {
    const KILLS: usize = 10;
    let server = ModelServer::choosing(starter(usize::MAX));
    let workspace = Workspace::unconfined();
    let mut numbers = Numbers(0x0ce);
    for number in 0..KILLS {
        let words: &[&str] = if number == 0 { &["go"] } else { &["-c", "go on"] };
        let run = Running::start(&mut run(&workspace, &server, words));
        (0..5 + numbers.below(60)).for_each(|_| drop(run.next()));
        std::thread::sleep(Duration::from_micros(numbers.below(20_000)));
        kill(run);
    }
    drop(server);
    let server = ModelServer::choosing(|_| Reply::text("enough"));
    let (code, _, stderr) =
        crate::support::ended(&mut run(&workspace, &server, &["-c", "that is all"]));
    assert_eq!(code, 0, "{stderr}");
    let started = check_each_once(&workspace);
    assert!(started > KILLS, "only {started} were started");
}
