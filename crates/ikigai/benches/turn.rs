//! Whole turns as whole programs, against a scripted server on this machine that answers at once.
//!
//! `cargo bench --bench turn` prints a table. A run is one process from its start to its end: it opens the
//! database, asks, runs the calls, commits every step to the disk and gives its lease back.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench prints, and starts programs"
)]
#![allow(missing_docs, reason = "nobody links against a bench")]

mod home;
mod measure;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ikigai_conversation::{NewMessage, ResponseId, SessionId, Summary, ToolCallId};
use ikigai_store::{
    AgentLimits, Budget, Ending, Input, Location, Next, Opening, Options, Process, Store,
};
use ikigai_testkit::{CapturedRequest, ModelServer, Reply};
use measure::{Measure, run};
use serde_json::{Value, json};

const IKIGAI: &str = env!("CARGO_BIN_EXE_ikigai");
const ROUNDS: usize = 30;
const CALLS: usize = 20;
/// Shorter than that of any model.
const THOUGHT: Duration = Duration::from_millis(50);

/// Runs a program where no bubblewrap is to be found, so that landlock takes its place.
const WITHOUT_BUBBLEWRAP: [&str; 5] =
    ["unshare", "-rm", "bash", "-c", include_str!("../tests/support/without-bubblewrap.sh")];

fn main() {
    if let Some(scenario) = std::env::var_os(SERVE) {
        return serve(&scenario.to_string_lossy());
    }
    // `cargo test --benches` runs this with another flag: that it builds is enough there.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    home::furnish(folder.path());
    let work = folder.path().join("work");
    std::fs::create_dir(&work).expect("it can be made");
    std::fs::write(work.join("file.txt"), "a line\n".repeat(100)).expect("it can be written");
    let bench = Bench { home: folder.path(), folder: &work };
    println!("| what | median ms | fastest ms | CPU ms | peak MB |");
    println!("| --- | --- | --- | --- | --- |");
    bench.row("`true`", || Command::new("true"));
    bench.row("`bash -c true`", || {
        let mut bash = Command::new("bash");
        bash.args(["-c", "true"]);
        bash
    });
    let text = Server::start("text");
    let alone = bench.row("a text turn", || bench.ikigai(&text.base_url, &["run", "hi"]));
    let once = Server::start("once");
    for mode in ["full", "work"] {
        bench.row(&format!("a turn with one `bash` call, mode {mode}"), || {
            bench.ikigai(&once.base_url, &["run", "--mode", mode, "hi"])
        });
    }
    bench.calls("bash", "full", alone);
    bench.calls("bash", "work", alone);
    bench.calls("file_read", "work", alone);
    for (scenario, what) in READS {
        let reads = Server::start(scenario);
        bench.row(what, || bench.ikigai(&reads.base_url, &["run", "hi"]));
    }
    let deltas = Server::start("deltas");
    bench.row("a stream of 5,000 deltas", || bench.ikigai(&deltas.base_url, &["run", "hi"]));
    bench.row("the command that prints 50 MB, alone", || {
        let mut bash = Command::new("bash");
        bash.args(["-c", PRINT]);
        bash
    });
    let printing = Server::start("print");
    bench.row("a turn with that command", || bench.ikigai(&printing.base_url, &["run", "hi"]));
    for count in [10, 1_000, 100_000] {
        bench.long_session(&text, count);
    }
    bench.sandboxes();
    let here = ModelServer::choosing(|_| Reply::text("Hello."));
    run(&mut bench.ikigai(&here.base_url(), &["run", "hi"]));
    println!();
    println!("first request, all tools, no AGENTS.md: {} bytes", here.requests()[0].body.len());
    println!("a turn of 20 calls: {}", bench.cached_share());
}

const READS: [(&str, &str); 2] = [
    ("a read", "a turn with one `file_read` call"),
    ("eight reads", "a turn with eight `file_read` calls in one response"),
];

/// The server is a process of its own: a child's peak of memory counts what its parent had when it forked.
struct Server {
    process: Child,
    base_url: String,
}

/// Tells this program to be the server, and for what.
const SERVE: &str = "BENCH_SERVE";

const PRINT: &str = "yes 0123456789012345678901234567890123456789 | head -c 50000000";

impl Server {
    fn start(scenario: &str) -> Server {
        let mut command = Command::new(std::env::current_exe().expect("this program has a file"));
        command.env(SERVE, scenario).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("it starts");
        let mut base_url = String::new();
        let stdout = process.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut base_url).expect("it says where it is");
        Server { process, base_url: base_url.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Serves until standard input ends, which it does with the bench.
fn serve(scenario: &str) {
    let bash = |count, command| calling(count, "bash", json!({ "command": command }));
    let server = match scenario {
        "bash" => ModelServer::choosing(bash(CALLS, "true")),
        "file_read" => {
            ModelServer::choosing(calling(CALLS, "file_read", json!({"path": "file.txt"})))
        }
        "a read" => ModelServer::choosing(reading(1)),
        "eight reads" => ModelServer::choosing(reading(8)),
        "once" => ModelServer::choosing(bash(1, "true")),
        "once after a thought" => {
            let reply = bash(1, "true");
            ModelServer::choosing(move |request| {
                std::thread::sleep(THOUGHT);
                reply(request)
            })
        }
        "print" => ModelServer::choosing(bash(1, PRINT)),
        "deltas" => {
            ModelServer::choosing(|_| Reply::pieces((0..5_000).map(|n| format!("word{n} "))))
        }
        _ => ModelServer::choosing(|_| Reply::text("Hello.")),
    };
    println!("{}", server.base_url());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

struct Bench<'a> {
    home: &'a Path,
    /// Where the program works.
    folder: &'a Path,
}

impl Bench<'_> {
    fn ikigai(&self, base_url: &str, arguments: &[&str]) -> Command {
        self.ikigai_by(&[], base_url, arguments)
    }

    /// Started by another program.
    fn ikigai_by(&self, by: &[&str], base_url: &str, arguments: &[&str]) -> Command {
        let mut words = by.iter().chain([&IKIGAI]).chain(arguments);
        let mut command = Command::new(words.next().expect("there is one"));
        command.args(words).current_dir(self.folder).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.home).env("OPENAI_API_KEY", "none");
        command.env("OPENAI_BASE_URL", base_url);
        command
    }

    /// Prints a row, and returns the median of the wall time in milliseconds.
    fn row(&self, what: &str, command: impl Fn() -> Command) -> f64 {
        let mut measures: Vec<Measure> = (0..ROUNDS).map(|_| run(&mut command())).collect();
        measures.sort_by_key(|measure| measure.wall);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let median = ms(measures[ROUNDS / 2].wall);
        let fastest = ms(measures[0].wall);
        let peak =
            measures.iter().map(|measure| measure.peak_kb).max().unwrap_or(0) as f64 / 1024.0;
        measures.sort_by_key(|measure| measure.cpu);
        let cpu = ms(measures[ROUNDS / 2].cpu);
        println!("| {what} | {median:.2} | {fastest:.2} | {cpu:.2} | {peak:.1} |");
        median
    }

    /// A turn of many calls, and what one of them costs.
    fn calls(&self, name: &str, mode: &str, alone: f64) {
        let server = Server::start(name);
        let what = format!("{CALLS} `{name}` calls, one a response, mode {mode}");
        let all = self.row(&what, || self.ikigai(&server.base_url, &["run", "--mode", mode, "hi"]));
        let one = (all - alone) / CALLS as f64;
        let servers = bare_request(&server.base_url);
        println!("| … one of them | {one:.2} | | | |");
        println!("| … without the server's own time ({servers:.2}) | {:.2} | | | |", one - servers);
    }

    /// What each sandbox adds to a call.
    fn sandboxes(&self) {
        for (by, kind) in [(&[][..], "bubblewrap"), (&WITHOUT_BUBBLEWRAP, "landlock")] {
            let doctor = self.ikigai_by(by, "", &["doctor"]).output().expect("it starts");
            let found = String::from_utf8_lossy(&doctor.stdout);
            assert!(found.contains(&format!("sandbox        {kind},")), "no {kind}: {found}");
        }
        println!();
        println!("| what `--mode work` adds to a `bash` call | bubblewrap ms | landlock ms |");
        println!("| --- | --- | --- |");
        for (what, scenario, calls) in [
            ("the only one of a turn, from a model that takes 50 ms", "once after a thought", 1),
            ("the only one of a turn, from one that answers at once", "once", 1),
            ("one of many, from one that answers at once", "bash", CALLS),
        ] {
            let server = Server::start(scenario);
            let [bubblewrap, landlock] = [&[][..], &WITHOUT_BUBBLEWRAP]
                .map(|by| self.sandbox_adds(by, &server) / calls as f64);
            println!("| {what} | {bubblewrap:.1} | {landlock:.1} |");
        }
    }

    /// How much longer a turn takes with a sandbox, in milliseconds; with and without one in turn.
    fn sandbox_adds(&self, by: &[&str], server: &Server) -> f64 {
        let [mut with, mut without] = [const { Vec::new() }; 2];
        for _ in 0..ROUNDS {
            for (mode, times) in [("work", &mut with), ("full", &mut without)] {
                let arguments = ["run", "--mode", mode, "hi"];
                times.push(run(&mut self.ikigai_by(by, &server.base_url, &arguments)).wall);
            }
        }
        let [with, without] = [&mut with, &mut without].map(|times| {
            times.sort();
            times[ROUNDS / 2].as_secs_f64() * 1e3
        });
        with - without
    }

    /// How much of what a turn sends is in the cache of a server that caches prefixes.
    fn cached_share(&self) -> String {
        const CALLS: usize = 20;
        let file = json!({"path": "file.txt", "limit": 10});
        let server = ModelServer::choosing(calling(CALLS, "file_read", file));
        run(&mut self.ikigai(&server.base_url(), &["run", "hi"]));
        let requests = server.requests();
        let common = |pair: &[std::sync::Arc<CapturedRequest>]| {
            let (one, next) = (pair[0].body.iter(), &pair[1].body);
            one.zip(next).take_while(|(one, next)| one == next).count()
        };
        let sent: usize = requests.iter().map(|request| request.body.len()).sum();
        let cached: usize = requests.windows(2).map(common).sum();
        format!("{sent} bytes sent, {}% of them a prefix sent before", cached * 100 / sent.max(1))
    }

    /// `-c` on a session of `count` messages, of which a summary leaves the latest. Each run adds two.
    fn long_session(&self, server: &Server, count: usize) {
        let place = Location {
            machine: Process::current().machine,
            directory: self
                .folder
                .canonicalize()
                .expect("it is there")
                .to_string_lossy()
                .into_owned(),
        };
        let database = self.home.join(format!(".local/share/ikigai/{count}.db"));
        let address = format!("sqlite://{}", database.display());
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(fill(&address, place, count));
        self.row(&format!("`-c` on a session of {count} messages"), || {
            self.ikigai(&server.base_url, &["--db", &address, "run", "-c", "hi"])
        });
    }
}

/// What the server and the loopback take for a request of the usual size, in milliseconds: the median of many, by
/// a client that does nothing but write and read.
fn bare_request(base_url: &str) -> f64 {
    let address = base_url.trim_start_matches("http://").trim_end_matches("/v1");
    let mut stream = TcpStream::connect(address).expect("the server is there");
    stream.set_nodelay(true).expect("it is a socket");
    let content = "x".repeat(8_000);
    let body =
        json!({"stream": true, "messages": [{"role": "user", "content": content}]}).to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let request = [head.as_bytes(), body.as_bytes()].concat();
    let mut times: Vec<f64> = (0..200).map(|_| ask(&mut stream, &request)).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn ask(stream: &mut TcpStream, request: &[u8]) -> f64 {
    let started = Instant::now();
    stream.write_all(request).expect("the server reads");
    let mut answer = Vec::new();
    let mut chunk = [0; 16 * 1024];
    while !answer.ends_with(b"0\r\n\r\n") {
        let count = stream.read(&mut chunk).expect("the server answers");
        assert!(count > 0, "the server left");
        answer.extend_from_slice(&chunk[..count]);
    }
    started.elapsed().as_secs_f64() * 1e3
}

/// Asks for so many calls, one a response, and then answers.
fn calling(
    count: usize,
    name: &'static str,
    arguments: Value,
) -> impl Fn(&CapturedRequest) -> Reply + Send + Sync + 'static {
    move |request| match request.results_since_user() {
        done if done < count => Reply::call(&format!("call_{done}"), name, arguments.clone()),
        _ => Reply::text("Done."),
    }
}

/// Asks for so many reads in one response, and then answers.
fn reading(count: usize) -> impl Fn(&CapturedRequest) -> Reply + Send + Sync + 'static {
    let ids: Vec<String> = (0..count).map(|number| format!("call_{number}")).collect();
    move |request| match request.results_since_user() {
        0 => Reply::calls(
            ids.iter().map(|id| (id.as_str(), "file_read", json!({"path": "file.txt"}))),
        ),
        _ => Reply::text("Done."),
    }
}

/// A session of `count` messages: prompts, calls with results, answers.
async fn fill(address: &str, place: Location, count: usize) {
    let store = Store::open(address, Options::default()).expect("it opens");
    let budget = Budget { wakes: 32, requests: 300 };
    let messages = vec![NewMessage::system("be good"), NewMessage::user("begin")];
    let input = Input { messages, budget, model: "openai/gpt-5".to_owned() };
    let session = SessionId::new(uuid::Uuid::now_v7());
    let (roots, limits) = (Vec::new(), AgentLimits::DEFAULT);
    let process = Process::current();
    let opening = Opening { location: place, process, roots, budget, limits };
    let begun = store.start_session(session, &opening, input).await;
    let (lease, _) = begun.expect("it begins");
    let mut messages = Vec::new();
    for number in 0..count / 4 {
        let response = ResponseId::new(format!("r{number}"));
        let arguments = r#"{"path":"src/main.rs","offset":100,"limit":20}"#;
        let id = ToolCallId::new(format!("call_{number}"));
        let call = NewMessage::tool_call(id, "file_read", arguments, response);
        let ikigai_conversation::Body::ToolCall(facts) = call.body.clone() else {
            unreachable!("it is a call")
        };
        let output = json!({"success": true, "data": {"output": "let x = 1;\n".repeat(20)}});
        let answer = ResponseId::new(format!("a{number}"));
        messages.push(call);
        messages.push(NewMessage::tool_result(&facts, output.to_string()));
        messages.push(NewMessage::assistant("It reads a number and adds it up.", answer));
        messages.push(NewMessage::user("And the next one?"));
    }
    let agent = lease.top().clone();
    let written = store
        .append(lease.clone(), agent.clone(), messages, Next::Request)
        .await
        .expect("it is written");
    // As in a session that has made room for itself: only the last messages are sent.
    let up_to = written.messages[written.messages.len() - 4].id;
    let (kept, obligations) = (Vec::new(), String::new());
    let data = Summary { up_to, kept, cut: None, obligations, before: 0, after: 0, elapsed_ms: 0 };
    let summary = vec![NewMessage::summary("They read files and added numbers up.", data)];
    store
        .append(lease.clone(), agent.clone(), summary, Next::Request)
        .await
        .expect("it is written");
    store.end_turn(lease.clone(), agent, Vec::new(), Ending::Answered).await.expect("it ends");
    store.release(lease).await.expect("it is given back");
}
