//! Many agents in one program and in several: how soon mail wakes, what a ring takes, what idle agents cost, and
//! many streams at once.
//!
//! `cargo bench -p ikigai --bench agents` prints a table. The model is a scripted server in this process that answers
//! at once. Latencies are taken from the database: from the commit of a mail to that of the notification that begins
//! the receiver's turn, in whole milliseconds.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench prints, and starts programs"
)]
#![allow(missing_docs, reason = "nobody links against a bench")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ikigai_conversation::{AgentId, SessionId};
use ikigai_store::{
    AgentAddress, AgentLimits, Budget, ForkContext, Location, MailAddress, NewFork, Options,
    Outcome, Process, Step, Store,
};
use ikigai_testkit::{CapturedRequest, ModelServer, Reply};
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const IKIGAI: &str = env!("CARGO_BIN_EXE_ikigai");
const RING: u32 = 100;
/// With their parent, as many as a session may have.
const IDLE: u32 = 999;
const STREAMS: u32 = 100;
/// How long the idle agents are watched.
const WATCHED: Duration = Duration::from_secs(60);
const BUDGET: Budget = Budget { wakes: 100_000, requests: 100_000 };
const LIMITS: AgentLimits = AgentLimits { agents: 10_000, depth: 4 };

fn main() {
    // `cargo test --benches` runs this with another flag: that it builds is enough there.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("| what | figure |");
    println!("| --- | --- |");
    wake_up();
    ring();
    round_trip();
    streams();
    idle();
}

/// Mail to idle agents of the same program and of another.
fn wake_up() {
    let bench = Bench::new(2, RING);
    let stays = bench.start("1/", "stay");
    bench.wait_for_requests(1);
    for (receiver, name) in [("0/", "in one process"), ("1/", "between processes")] {
        bench.run("0/", &format!("write to {receiver}"));
        bench.wait_until_told();
        let mut times = bench.numbers(&format!(
            "SELECT n.created_at - m.sent_at FROM mail m JOIN messages n ON n.id = m.told_by
                JOIN agents a ON a.key = m.recipient WHERE a.id LIKE '{receiver}_%'"
        ));
        times.sort_unstable();
        let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        row(
            &format!("mail to the start of the receiver's turn, {name}"),
            &format!("p50 {p50} ms, p99 {p99} ms ({} mails)", times.len()),
        );
    }
    end(stays);
}

/// A message from agent to agent, once around.
fn ring() {
    let bench = Bench::new(1, RING);
    bench.send("0/0/", "token 0");
    bench.run("0/", "hi");
    let hops = bench.numbers("SELECT count(*) FROM mail")[0];
    let took = bench.numbers("SELECT max(created_at) - min(created_at) FROM messages")[0];
    let requests = bench.server.requests().len();
    row(
        &format!("a message through a ring of {RING} agents"),
        &format!("{took} ms, {:.1} ms a hop, {requests} requests", took as f64 / hops as f64),
    );
}

/// What it costs that one agent asks another and gets an answer.
fn round_trip() {
    let bench = Bench::new(1, 1);
    bench.run("0/", "ask");
    let requests = bench.server.requests();
    let bytes: usize = requests.iter().map(|request| request.body.len()).sum();
    row(
        "a question by mail and its answer by mail",
        &format!("{} requests, {bytes} bytes sent, about {} tokens", requests.len(), bytes / 4),
    );
    let bench = Bench::new(1, 1);
    bench.send("0/0/", "just so that you know");
    bench.run("0/", "hi");
    let told = bench.server.requests().len() - 1;
    row("a short mail that needs no answer", &format!("{told} request of the receiver"));
}

/// Many streams at the same time, each as long as one alone.
fn streams() {
    for count in [1, STREAMS] {
        let bench = Bench::new(1, count);
        for agent in 0..count {
            bench.send(&format!("0/{agent}/"), "stream");
        }
        let mut command = bench.command("0/", "hi");
        let started = Instant::now();
        let mut child = command.spawn().expect("it starts");
        let mut peak = 0;
        while child.try_wait().expect("it is ours").is_none() {
            peak = peak.max(memory_kb(child.id(), "VmRSS:"));
            std::thread::sleep(Duration::from_millis(10));
        }
        let took = started.elapsed().as_secs_f64();
        let peak = peak as f64 / 1024.0;
        let what = format!("{count} streams of 200 pieces at once, every 10 ms a piece");
        row(&what, &format!("{took:.2} s, {peak:.1} MB"));
    }
}

/// Agents that have worked once and are idle now.
fn idle() {
    let bench = Bench::new(1, IDLE);
    let program = bench.start("0/", "stay");
    bench.wait_for_requests(1);
    let alone = memory_kb(program.id(), "VmRSS:");
    for agent in 0..IDLE {
        bench.send(&format!("0/{agent}/"), "hello");
        // The server has a thread and a socket for each.
        if agent % 50 == 49 {
            bench.wait_until_told();
        }
    }
    wait_until(|| bench.numbers("SELECT count(*) FROM agents WHERE state <> 'idle'")[0] == 1);
    let before = cpu(program.id());
    std::thread::sleep(WATCHED);
    let share = (cpu(program.id()) - before).as_secs_f64() / WATCHED.as_secs_f64() * 100.0;
    let [rss, peak] =
        ["VmRSS:", "VmHWM:"].map(|what| memory_kb(program.id(), what) as f64 / 1024.0);
    let alone = alone as f64 / 1024.0;
    row(
        &format!("{IDLE} idle agents in one process, each has worked once"),
        &format!("{rss:.1} MB resident ({alone:.1} before, {peak:.1} at most)"),
    );
    row("… over 60 s", &format!("{share:.2} % of a core"));
    end(program);
}

/// A session with agents, a model, and a folder.
struct Bench {
    folder: TempDir,
    server: ModelServer,
    store: Store,
    session: SessionId,
    runtime: Runtime,
}

impl Bench {
    /// So many top-level agents, each with so many idle children.
    fn new(tops: u32, children: u32) -> Bench {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let address = address(folder.path());
        let store = Store::open(&address, Options::default()).expect("it opens");
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let directory = folder.path().canonicalize().expect("it is there");
        let place = Location {
            machine: Process::current().machine,
            directory: directory.to_string_lossy().into_owned(),
        };
        let session = SessionId::new(uuid::Uuid::now_v7());
        runtime.block_on(async {
            store
                .session_at(place.clone(), session, BUDGET, Process::current())
                .await
                .expect("it is made");
            for top in 0..tops {
                if top > 0 {
                    store
                        .add_agent(session, None, place.clone(), LIMITS)
                        .await
                        .expect("it is made");
                }
                for _ in 0..children {
                    let step = Step::Fork(idle_child());
                    let forked = store.perform(session, AgentId::top_level(top), step, None).await;
                    assert!(matches!(forked, Ok(Outcome::Forked(_))), "{forked:?}");
                }
            }
        });
        Bench { folder, server: ModelServer::choosing(model), store, session, runtime }
    }

    fn command(&self, agent: &str, prompt: &str) -> Command {
        let mut command = Command::new(IKIGAI);
        let session = self.session.to_string();
        command.args(["run", "--json", "--session", &session, "--agent", agent, prompt]);
        command.current_dir(self.folder.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder.path()).env("OPENAI_API_KEY", "none");
        command.env("OPENAI_BASE_URL", self.server.base_url());
        command.env("IKIGAI_DATABASE_URL", address(self.folder.path()));
        command.env("IKIGAI_MAX_AGENTS", "10000").env("IKIGAI_MAIL__MAX_WAKES", "100000");
        command.env("IKIGAI_MAX_REQUESTS", "10000").env("IKIGAI_MAX_TOOL_TURNS", "1000");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn start(&self, agent: &str, prompt: &str) -> Child {
        self.command(agent, prompt).spawn().expect("it starts")
    }

    fn run(&self, agent: &str, prompt: &str) {
        let status = self.command(agent, prompt).status().expect("it runs");
        assert!(status.success(), "{status}");
    }

    fn send(&self, to: &str, body: &str) {
        let agent = AgentId::parse(to).expect("an id");
        let step = Step::Send {
            to: MailAddress::Agent(AgentAddress::Id(agent)),
            given: to.to_owned(),
            body: body.to_owned(),
        };
        let sent = self.store.perform(self.session, AgentId::top_level(0), step, Some(BUDGET));
        let sent = self.runtime.block_on(sent);
        assert!(matches!(sent, Ok(Outcome::Sent { .. })), "{sent:?}");
    }

    fn wait_for_requests(&self, count: usize) {
        self.server.wait_for_requests(count);
    }

    fn wait_until_told(&self) {
        let untold = "SELECT count(*) FROM mail WHERE told_by IS NULL AND unread";
        wait_until(|| self.numbers(untold)[0] == 0);
    }

    fn numbers(&self, sql: &str) -> Vec<i64> {
        let connection = Connection::open(file(self.folder.path())).expect("it opens");
        let mut statement = connection.prepare(sql).expect("it is right");
        let rows = statement.query_map([], |row| row.get(0)).expect("it runs");
        rows.collect::<Result<_, _>>().expect("numbers")
    }
}

/// In the folder that is ikigai's own: elsewhere in the tree a database is refused.
fn file(folder: &Path) -> PathBuf {
    folder.join(".local/share/ikigai/bench.db")
}

fn address(folder: &Path) -> String {
    format!("sqlite://{}", file(folder).display())
}

fn idle_child() -> NewFork {
    let (prompt, name, system) = (None, None, None);
    NewFork { prompt, name, context: ForkContext::Fresh, limits: LIMITS, system }
}

/// Plays all agents; what they are told says what they do.
fn model(request: &CapturedRequest) -> Reply {
    let said = request.last_user_text().unwrap_or_default();
    let done = request.results_since_user();
    let told = |what: &str| said.contains("[Notification") && said.contains(what);
    let number = said.rsplit("token ").next().map(|rest| rest.trim_end_matches('"'));
    let number: Option<u32> = number.and_then(|number| number.parse().ok());
    match done {
        _ if said.ends_with("stay") => Reply::silence(),
        // With a pause before each, so that the receiver before is done.
        done if said.contains("write to ") && done < RING as usize => {
            let to = said.rsplit("write to ").next().unwrap_or_default();
            letter(done, &format!("{to}{done}/"), "short").drip(Duration::from_millis(5))
        }
        0 if told("token ") => match number {
            Some(at) if at + 1 < RING => {
                letter(0, &format!("0/{}/", at + 1), &format!("token {}", at + 1))
            }
            _ => Reply::text("Once around."),
        },
        0 if said.ends_with("ask") => last_letter("0/0/", "What time is it?"),
        0 if told("What time") => last_letter("parent", "Noon."),
        _ if told("\"stream\"") => {
            let pieces = (0..200).map(|piece| format!("word{piece} "));
            Reply::pieces(pieces).drip(Duration::from_millis(10))
        }
        _ => Reply::text("Done."),
    }
}

/// One that ends the turn.
fn last_letter(to: &str, body: &str) -> Reply {
    let arguments = json!({"action": "send", "to": to, "body": body, "end_turn": true});
    Reply::call("call_0", "mail", arguments)
}

fn letter(number: usize, to: &str, body: &str) -> Reply {
    let arguments = json!({"action": "send", "to": to, "body": body});
    Reply::call(&format!("call_{number}"), "mail", arguments)
}

fn wait_until(is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(120), "it does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn end(mut program: Child) {
    program.kill().expect("it is ours");
    program.wait().expect("it ends");
}

fn memory_kb(process: u32, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// What a process has worked so far, in ticks of a hundredth of a second.
fn cpu(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks = fields.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

fn row(what: &str, figure: &str) {
    println!("| {what} | {figure} |");
}
