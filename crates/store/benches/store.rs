//! Compares the store with a raw durable insert into the same kind of database, in the same run.
//!
//! `cargo bench --bench store` prints a table for each database (`-- postgres` for one of them).
//! The databases are in the target folder, so that the disk is a real one.
#![allow(clippy::print_stdout, reason = "a bench prints")]
#![allow(missing_docs, reason = "a bench has no API")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_conversation::{AgentId, Log, NewMessage, ResponseId, SessionId, ToolCallId};
use ikigai_store::{
    AgentAddress, AgentLimits, Budget, Changes, ForkContext, InboxFilter, Lease, Location,
    MailAddress, NewFork, Next, Options, Process, Step, Store,
};
use ikigai_testkit::{PostgresServer, Raw};
use rusqlite::{Connection, params};
use tokio::runtime::Runtime;
use uuid::Uuid;

const BUDGET: Budget = Budget { wakes: 32, requests: 300 };
const LIMITS: AgentLimits = AgentLimits { agents: 1_000, depth: 10 };

fn main() {
    // `cargo test --benches` passes another flag: it only has to build.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let wanted = |kind: &str| {
        let mut kinds = std::env::args().filter(|argument| !argument.starts_with('-')).skip(1);
        kinds.next().is_none_or(|named| named == kind)
    };
    if wanted("sqlite") {
        table("SQLite");
        rates(&Ground::Sqlite);
        disk_use();
        large_mailbox();
        long_log();
    }
    if wanted("postgres") {
        let location = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let ground = Ground::Postgres(PostgresServer::start_on_disk(location));
        table("PostgreSQL");
        rates(&ground);
        wake_up(&ground);
    }
}

fn table(database: &str) {
    println!("\n{database}\n");
    println!("| what | figure | beside a raw insert |");
    println!("| --- | --- | --- |");
}

/// The database to measure.
enum Ground {
    Sqlite,
    Postgres(PostgresServer),
}

impl Ground {
    /// The address of an empty database.
    fn fresh(&self, name: &str) -> String {
        match self {
            Ground::Sqlite => format!("sqlite://{}", fresh(name).display()),
            Ground::Postgres(server) => {
                let name = format!("b_{}", Uuid::now_v7().simple());
                let raw = Raw::open(&server.address("postgres"));
                raw.script(&format!("CREATE DATABASE {name}"));
                server.address(&name)
            }
        }
    }
}

/// A slow moment of the disk should affect all kinds of work alike. So they alternate many times in
/// a round, and each is compared with the raw insert of its own round.
const ROUNDS: usize = 7;
const TURNS: u32 = 6;
/// In one turn. A mailbox is limited to 1,000 in total.
const UNITS: u32 = 150;
const SENDERS: u32 = 32;
const SENDS: u32 = 48;

/// Units per second: the median of all rounds.
fn rates(ground: &Ground) {
    let mut rates: [Vec<f64>; 4] = Default::default();
    let mut commits_per_unit = 0.0;
    for _ in 0..ROUNDS {
        let (mut raw, alone, many) =
            (raw_insert(ground), World::on(ground, "alone"), crowd(ground));
        let commits = many.store.commits();
        let mut times = [Duration::ZERO; 4];
        for _ in 0..TURNS {
            let turns: [&mut dyn FnMut(); 4] = [
                &mut || (0..UNITS).for_each(|_| raw()),
                &mut || (0..UNITS).for_each(|_| append(&alone)),
                &mut || (0..UNITS).for_each(|_| send(&alone)),
                &mut || send_at_once(&many),
            ];
            for (turn, time) in turns.into_iter().zip(&mut times) {
                let started = Instant::now();
                turn();
                *time += started.elapsed();
            }
        }
        let units = [UNITS, UNITS, UNITS, SENDERS * SENDS].map(|units| f64::from(TURNS * units));
        commits_per_unit = (many.store.commits() - commits) as f64 / units[3];
        for ((rates, units), time) in rates.iter_mut().zip(units).zip(times) {
            rates.push(units / time.as_secs_f64());
        }
    }
    let names =
        ["raw durable insert of 100 bytes", "append", "mail send, alone", "mail send, 32 senders"];
    for (name, of_it) in names.into_iter().zip(&rates) {
        let beside_raw = of_it.iter().zip(&rates[0]).map(|(rate, raw)| rate / raw).collect();
        row(name, median(of_it.clone()), median(beside_raw));
    }
    println!("| commits per unit with 32 senders | {commits_per_unit:.3} | |");
}

/// Makes one-row transactions, each flushed, with the same settings as the store's.
fn raw_insert(ground: &Ground) -> Box<dyn FnMut()> {
    let body = "x".repeat(100);
    if let Ground::Postgres(_) = ground {
        let address = ikigai_postgres::Address::parse(&ground.fresh("raw")).expect("it is one");
        let mut client = ikigai_postgres::Client::connect(&address).expect("it runs");
        let table =
            "CREATE TABLE t (id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, body TEXT)";
        client.script(table).expect("it runs");
        return Box::new(move || {
            let value = [ikigai_postgres::Value::Text(Some(&body))];
            client.ask("INSERT INTO t (body) VALUES (?1)", &value).expect("it runs");
        });
    }
    let path = fresh("raw");
    let connection = Connection::open(path).expect("it opens");
    connection.pragma_update(None, "journal_mode", "wal").expect("it takes");
    connection.pragma_update(None, "synchronous", "full").expect("it takes");
    connection
        .execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)")
        .expect("it runs");
    Box::new(move || {
        connection.execute("INSERT INTO t (body) VALUES (?1)", [&body]).expect("it runs");
    })
}

/// The time from the commit of a mail in one process until another finds it: here two stores with
/// their own connections.
fn wake_up(ground: &Ground) {
    let world = World::on(ground, "wake");
    let other = Store::open(&world.address, Options::default()).expect("it opens");
    let mut times = Vec::new();
    let mut changes = world.store.changes(world.session).expect("it listens");
    for number in 1..=200 {
        let (session, to) = (world.session, AgentId::top_level(0));
        let waiting = async {
            loop {
                changes.wait(Changes::SWEEP).await.expect("it hears");
                let agents = world.store.agents(session).await.expect("it looks");
                if agents[0].unread == number {
                    return Instant::now();
                }
            }
        };
        let sending = async {
            let sent = other.perform(session, AgentId::top_level(1), mail_to(&to), Some(BUDGET));
            sent.await.expect("it is sent");
            Instant::now()
        };
        let (woken, sent) = world.wait(async { tokio::join!(waiting, sending) });
        times.push(woken.saturating_duration_since(sent));
    }
    times.sort();
    figure("from a mail's commit to another process that sees it, median", times[100]);
    figure("the same, 99th of 100", times[197]);
}

fn append(world: &World) {
    let message = NewMessage::user("x".repeat(100));
    let agent = AgentId::top_level(0);
    world
        .wait(world.store.append(world.lease.clone(), agent, vec![message], Next::Tool))
        .expect("it is written");
}

fn send(world: &World) {
    let (session, to) = (world.session, AgentId::top_level(1));
    world
        .wait(world.store.perform(session, AgentId::top_level(0), mail_to(&to), None))
        .expect("it is sent");
}

/// The disk use of a tool call.
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

/// A mailbox for each sender, so that none is full.
fn crowd(ground: &Ground) -> World {
    let world = World::on(ground, "many");
    for _ in 0..SENDERS {
        let added = world.store.add_agent(world.session, None, location(), LIMITS);
        world.wait(added).expect("there is room");
    }
    world
}

fn send_at_once(world: &World) {
    world.wait(async {
        let mut tasks = tokio::task::JoinSet::new();
        for sender in 0..SENDERS {
            let (store, session) = (world.store.clone(), world.session);
            tasks.spawn(async move {
                for number in 0..SENDS {
                    let to = AgentId::top_level((sender + number) % SENDERS);
                    let from = AgentId::top_level(sender);
                    store.perform(session, from, mail_to(&to), None).await.expect("it is sent");
                }
            });
        }
        while tasks.join_next().await.is_some() {}
    });
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

/// Opening a session of 100,000 messages up to the model's view, and forking it.
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
                context: ForkContext::Full,
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

/// A new store with a session of two agents. The first one is ours.
struct World {
    runtime: Runtime,
    store: Arc<Store>,
    address: String,
    path: PathBuf,
    session: SessionId,
    lease: Lease,
}

impl World {
    fn new(name: &str) -> World {
        World::on(&Ground::Sqlite, name)
    }

    fn on(ground: &Ground, name: &str) -> World {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it starts");
        let address = ground.fresh(name);
        let path = PathBuf::from(address.trim_start_matches("sqlite://"));
        let store = Arc::new(Store::open(&address, Options::default()).expect("it opens"));
        let session = SessionId::new(Uuid::now_v7());
        let lease = runtime.block_on(async {
            store.create_session(location(), session, BUDGET).await.expect("it is made");
            store.add_agent(session, None, location(), LIMITS).await.expect("there is room");
            store
                .claim(session, AgentId::top_level(0), Process::current())
                .await
                .expect("it is free")
        });
        World { runtime, store, address, path, session, lease }
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

    /// The median of this many runs.
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

fn location() -> Location {
    Location { machine: "bench".to_owned(), directory: "/bench".to_owned() }
}

fn mail_to(to: &AgentId) -> Step {
    Step::Send {
        to: MailAddress::Agent(AgentAddress::Id(to.clone())),
        given: to.to_string(),
        body: "x".repeat(100),
    }
}

fn page() -> InboxFilter {
    InboxFilter { unread: None, from: None, limit: 50, offset: 0 }
}

fn row(name: &str, rate: f64, beside_raw: f64) {
    println!("| {name} | {rate:.0}/s | {beside_raw:.2} |");
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn figure(name: &str, time: Duration) {
    println!("| {name} | {:.2} ms | |", time.as_secs_f64() * 1e3);
}

/// The number of bytes that this process has written to disk.
fn written_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    io.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok()).unwrap_or(0)
}

/// An empty folder for a database.
fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-store");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    for ending in ["db", "db-wal", "db-shm"] {
        let _ = std::fs::remove_file(folder.join(format!("{name}.{ending}")));
    }
    folder.join(format!("{name}.db"))
}
