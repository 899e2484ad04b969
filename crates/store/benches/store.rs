//! The store beside a raw durable insert into the same kind of file, in the same run.
//!
//! `cargo bench --bench store` prints a table; the folder of the databases is the target folder, so that the
//! disk is a real one.
#![allow(clippy::print_stdout, reason = "a bench prints")]
#![allow(missing_docs, reason = "nobody links against a bench")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_conversation::{AgentId, Log, NewMessage, ResponseId, SessionId, ToolCallId};
use ikigai_store::{
    Address, AgentLimits, Budget, Context, InboxFilter, Lease, NewFork, Next, Options, Place,
    Process, Step, Store,
};
use rusqlite::{Connection, params};
use tokio::runtime::Runtime;
use uuid::Uuid;

const BUDGET: Budget = Budget { wakes: 32, requests: 300 };
const LIMITS: AgentLimits = AgentLimits { agents: 1_000, depth: 10 };

fn main() {
    // `cargo test --benches` runs this with another flag: that it builds is enough there.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("| what | figure | beside a raw insert |");
    println!("| --- | --- | --- |");
    rates();
    large_mailbox();
    long_log();
}

/// Units per second. All kinds take their turns several times, so that what disturbs the machine disturbs them
/// alike; the median counts.
fn rates() {
    let mut measured: [Vec<f64>; 4] = Default::default();
    let mut commits_per_unit = 0.0;
    for _ in 0..7 {
        let [raw, appended, sent, many] = &mut measured;
        raw.push(raw_insert());
        let world = World::new("alone");
        appended.push(append(&world));
        sent.push(send(&world));
        let (rate, commits) = many_senders();
        many.push(rate);
        commits_per_unit = commits;
    }
    let [raw, append, send, many] = measured.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    row("raw durable insert of 100 bytes", raw, raw);
    row("append", append, raw);
    row("mail send, alone", send, raw);
    row("mail send, 32 senders", many, raw);
    println!("| commits per unit with 32 senders | {commits_per_unit:.3} | |");
    disk_use();
}

/// The rate of one-row transactions, each flushed, with the same settings as the store's.
fn raw_insert() -> f64 {
    let path = fresh("raw");
    let connection = Connection::open(path).expect("it opens");
    connection.pragma_update(None, "journal_mode", "wal").expect("it takes");
    connection.pragma_update(None, "synchronous", "full").expect("it takes");
    connection
        .execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)")
        .expect("it runs");
    let body = "x".repeat(100);
    rate(1_000, || {
        connection.execute("INSERT INTO t (body) VALUES (?1)", [&body]).expect("it runs");
    })
}

fn append(world: &World) -> f64 {
    world.rate(1_000, |world| {
        let message = NewMessage::user("x".repeat(100));
        let agent = AgentId::top_level(0);
        world.wait(world.store.append(world.lease.clone(), agent, vec![message], Next::Tool))
    })
}

fn send(world: &World) -> f64 {
    world.rate(900, |world| {
        let (session, to) = (world.session, AgentId::top_level(1));
        world.wait(world.store.perform(session, AgentId::top_level(0), mail_to(&to), None))
    })
}

/// What a tool call costs the disk.
fn disk_use() {
    let world = World::new("disk");
    let before = written_bytes();
    let calls = 1_000;
    for _ in 0..calls {
        world.call(Step::Inbox(page()));
    }
    let kib = (written_bytes() - before) / 1024 / calls;
    println!("| written to the disk by a tool call (two commits) | {kib} KiB | |");
}

/// 32 senders at once, to 32 mailboxes, so that none is full: their rate, and the commits per unit.
fn many_senders() -> (f64, f64) {
    let world = World::new("many");
    for _ in 0..32 {
        let added = world.store.add_agent(world.session, None, place(), LIMITS);
        world.wait(added).expect("there is room");
    }
    let (senders, each) = (32u32, 300u32);
    let commits = world.store.commits();
    let started = Instant::now();
    world.wait(async {
        let mut tasks = tokio::task::JoinSet::new();
        for sender in 0..senders {
            let (store, session) = (world.store.clone(), world.session);
            tasks.spawn(async move {
                for number in 0..each {
                    let to = AgentId::top_level((sender + number) % senders);
                    let from = AgentId::top_level(sender);
                    store.perform(session, from, mail_to(&to), None).await.expect("it is sent");
                }
            });
        }
        while tasks.join_next().await.is_some() {}
    });
    let units = f64::from(senders * each);
    let rate = units / started.elapsed().as_secs_f64();
    (rate, (world.store.commits() - commits) as f64 / units)
}

/// The first page of a mailbox with a million messages.
fn large_mailbox() {
    let world = World::new("mailbox");
    let raw = Connection::open(&world.path).expect("it opens");
    raw.execute_batch(
        "BEGIN;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)
        INSERT INTO mail (recipient, sender, body, sent_at, unread)
            SELECT 1, 2, 'message number ' || i || ' with some words in it', i, i % 1000 = 0 FROM n;
        COMMIT;",
    )
    .expect("it runs");
    let time = world.time(50, |world| {
        let step = Step::Inbox(page());
        world.wait(world.store.perform(world.session, AgentId::top_level(0), step, None))
    });
    figure("inbox page at 1,000,000 messages, with its commit", time);
}

/// Opening a session of 100,000 messages up to what a model may see of it, and forking it.
fn long_log() {
    for (messages, name) in [(10, "log-10"), (100_000, "log-100000")] {
        let world = World::new(name);
        fill_log(&world.path, messages);
        if messages > 10 {
            let time = world.time(5, |world| {
                let log = world.wait(world.store.whole_log(world.session, AgentId::top_level(0)));
                let log = log.expect("it is read");
                std::hint::black_box(Log::new(&log).view().len());
            });
            figure("open a session of 100,000 messages of 500 bytes, up to the model's view", time);
        }
        let time = world.time(100, |world| {
            let fork = NewFork {
                prompt: Some("go".to_owned()),
                name: None,
                context: Context::Full,
                limits: LIMITS,
                system: None,
            };
            world.wait(world.store.perform(
                world.session,
                AgentId::top_level(0),
                Step::Fork(fork),
                None,
            ))
        });
        figure(&format!("full fork of {messages} messages"), time);
    }
}

fn fill_log(path: &Path, messages: u32) {
    let raw = Connection::open(path).expect("it opens");
    raw.execute_batch("BEGIN").expect("it runs");
    for number in 0..messages {
        let message = match number % 2 {
            0 => NewMessage::user("u".repeat(500)),
            _ => NewMessage::assistant("a".repeat(500), ResponseId::new(format!("r{number}"))),
        };
        raw.prepare_cached("INSERT INTO messages (agent, kind, content, data, created_at) VALUES (1, ?1, ?2, ?3, 0)")
            .and_then(|mut insert| {
                let body = &message.body;
                insert.execute(params![body.kind().name(), message.content, body.data_json()])
            })
            .expect("it runs");
    }
    raw.execute_batch("COMMIT").expect("it runs");
}

/// A fresh store with a session of two agents, the first of them ours.
struct World {
    runtime: Runtime,
    store: Arc<Store>,
    path: PathBuf,
    session: SessionId,
    lease: Lease,
}

impl World {
    fn new(name: &str) -> World {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it starts");
        let path = fresh(name);
        let address = format!("sqlite://{}", path.display());
        let store = Arc::new(Store::open(&address, Options::default()).expect("it opens"));
        let session = SessionId::new(Uuid::now_v7());
        let lease = runtime.block_on(async {
            store.create_session(place(), session, BUDGET).await.expect("it is made");
            store.add_agent(session, None, place(), LIMITS).await.expect("there is room");
            store
                .claim(session, AgentId::top_level(0), Process::current())
                .await
                .expect("it is free")
        });
        World { runtime, store, path, session, lease }
    }

    fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    fn call(&self, step: Step) {
        let agent = AgentId::top_level(0);
        let (call, response) = (ToolCallId::new("call"), ResponseId::new("response"));
        let opened = NewMessage::tool_call(call, "mail", "{}", response);
        self.wait(self.store.append(self.lease.clone(), agent.clone(), vec![opened], Next::Tool))
            .expect("it opens");
        let close = self.store.close_call(
            self.lease.clone(),
            agent,
            step,
            |_| NewMessage::user("done"),
            Next::Tool,
        );
        self.wait(close).expect("it closes");
    }

    fn rate<T>(&self, units: u32, mut unit: impl FnMut(&World) -> T) -> f64 {
        rate(units, || drop(unit(self)))
    }

    /// The median of so many runs.
    fn time<T>(&self, runs: usize, mut work: impl FnMut(&World) -> T) -> Duration {
        let mut times: Vec<Duration> = (0..runs)
            .map(|_| {
                let started = Instant::now();
                drop(work(self));
                started.elapsed()
            })
            .collect();
        times.sort();
        times[runs / 2]
    }
}

fn place() -> Place {
    Place { machine: "bench".to_owned(), directory: "/bench".to_owned() }
}

fn mail_to(to: &AgentId) -> Step {
    Step::Send { to: Address::Id(to.clone()), given: to.to_string(), body: "x".repeat(100) }
}

fn page() -> InboxFilter {
    InboxFilter { unread: None, from: None, limit: 50, offset: 0 }
}

fn rate(units: u32, mut unit: impl FnMut()) -> f64 {
    let started = Instant::now();
    for _ in 0..units {
        unit();
    }
    f64::from(units) / started.elapsed().as_secs_f64()
}

fn row(name: &str, rate: f64, raw: f64) {
    println!("| {name} | {rate:.0}/s | {:.2} |", rate / raw);
}

fn figure(name: &str, time: Duration) {
    println!("| {name} | {:.2} ms | |", time.as_secs_f64() * 1e3);
}

/// Bytes that this process has caused to be written to a disk.
fn written_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    io.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok()).unwrap_or(0)
}

/// An empty place for a database.
fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-store");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    for ending in ["db", "db-wal", "db-shm"] {
        let _ = std::fs::remove_file(folder.join(format!("{name}.{ending}")));
    }
    folder.join(format!("{name}.db"))
}
