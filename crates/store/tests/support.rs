//! Child processes, and helpers for several modules.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use ikigai_conversation::{AgentId, SessionId};
use ikigai_store::{NewFork, Options, Outcome, Process, Step, Store, TakeoverPolicy};
use ikigai_testkit::driver::Plan;
use ikigai_testkit::{PLENTY, Raw, TestAgent, TestStore, by_id, checker, driver, location};
use tokio::task::unconstrained;

/// The time limit of all tests: what takes this long hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Tells a child process what to do: `driver`, `checker` or a part of one test, and its arguments,
/// one per line.
const ROLE: &str = "STORE_TEST_CHILD";

/// This test binary as another program.
pub(crate) fn child(role: &str, arguments: &[String]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--ignored", "--nocapture"]);
    command.env(ROLE, [&[role.to_owned()], arguments].concat().join("\n"));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// The program of a child, instead of a test.
pub(crate) fn run_as_child() {
    let role = std::env::var(ROLE).expect("only children of other tests run this");
    let mut lines = role.lines().map(str::to_owned);
    let role = lines.next().unwrap();
    let arguments: Vec<String> = lines.collect();
    let code = match role.as_str() {
        "driver" => driver::main(&arguments),
        "checker" => checker::main(&arguments),
        "crowd" => crate::crowd::work_as_child(&arguments),
        "open" => crate::opening::open_as_child(&arguments),
        "full-disk" => crate::writer::fill_disk_as_child(&arguments),
        _ => panic!("no such child: {role}"),
    };
    // `ExitCode` has no accessor for its number. Only these are used.
    let number = (0..=4).find(|number| std::process::ExitCode::from(*number) == code);
    std::process::exit(number.map_or(99, i32::from));
}

/// A child that ends with the test, even if the test fails.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        Running(command.spawn().unwrap())
    }

    /// Kills it unless it has ended, and returns its exit status.
    pub(crate) fn kill(mut self) -> ExitStatus {
        self.0.kill().unwrap();
        self.0.wait().unwrap()
    }

    /// Waits for its end, and fails the test if it does not end.
    #[track_caller]
    pub(crate) fn end(mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < PATIENCE, "a child hangs");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A driver that prints to `acknowledged`.
pub(crate) fn driver_process(plan: &Plan, acknowledged: &Path) -> Running {
    let out = File::options().append(true).create(true).open(acknowledged).unwrap();
    Running::start(child("driver", &plan.arguments()).stdout(out))
}

/// The faults that the checker, a separate process, has found. Empty if there are none.
#[track_caller]
pub(crate) fn verdict(database: &str, acknowledged: &[PathBuf]) -> Vec<String> {
    let files = acknowledged.iter().map(|path| path.to_str().unwrap().to_owned());
    let arguments: Vec<String> = [database.to_owned()].into_iter().chain(files).collect();
    let output = child("checker", &arguments).stderr(Stdio::piped()).output().unwrap();
    let faults: Vec<String> =
        String::from_utf8(output.stderr).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(output.status.code(), Some(i32::from(!faults.is_empty())), "{faults:?}");
    faults
}

#[track_caller]
pub(crate) fn check_database(database: &str, acknowledged: &[PathBuf]) {
    assert_eq!(verdict(database, acknowledged), Vec::<String>::new());
}

/// A session with `agents` top-level agents that no process runs.
pub(crate) async fn free_agents(store: &TestStore, agents: u32) -> SessionId {
    let session = store.session_with(ikigai_testkit::PLENTY).await;
    for _ in 1..agents {
        store.add_agent(session, None, location(), ROOM).await.unwrap();
    }
    session
}

pub(crate) use ikigai_testkit::ROOM;

/// Kills an agent as the user does. Returns the dead, or why it was refused.
pub(crate) async fn kill_by_hand(
    store: &TestStore,
    agent: &TestAgent,
    victim: &AgentId,
) -> Result<Vec<AgentId>, String> {
    let (lease, id) = (agent.lease.clone(), agent.id.clone());
    match store.act(lease, id, Step::Kill(by_id(victim)), PLENTY).await.unwrap().outcome {
        Outcome::Killed(dead) => Ok(dead),
        Outcome::Refused(refusal) => Err(refusal.to_string()),
        other => panic!("{other:?}"),
    }
}

/// Forks a child as the user does. Returns it, or why it was refused.
pub(crate) async fn fork_by_hand(
    store: &TestStore,
    parent: &TestAgent,
    fork: NewFork,
) -> Result<TestAgent, String> {
    let (session, id) = (parent.session(), parent.id.clone());
    match store.perform(session, id, Step::Fork(fork), Some(PLENTY)).await.unwrap() {
        Outcome::Forked(child) => Ok(parent.child(child)),
        Outcome::Refused(refusal) => Err(refusal.to_string()),
        other => panic!("{other:?}"),
    }
}

/// The idle agents with mail that would wake them, as a process finds them.
pub(crate) async fn to_wake(store: &Store, session: SessionId) -> Vec<AgentId> {
    let work = store
        .pending_work(session, location(), Process::current(), TakeoverPolicy::Immediate)
        .await
        .unwrap();
    let mut found = [work.to_wake, work.to_take_up].concat();
    found.sort();
    found
}

/// A real process that does nothing, and its identity.
pub(crate) fn idle_process() -> (Running, Process) {
    let mut command = Command::new("sleep");
    let child = Running::start(command.arg("1000").stdin(Stdio::null()).stdout(Stdio::null()));
    let pid = child.0.id();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let start = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().parse().unwrap();
    (child, Process { pid, start, ..Process::current() })
}

pub(crate) fn agent(id: &str) -> AgentId {
    AgentId::parse(id).unwrap()
}

pub(crate) fn open(path: &Path) -> Store {
    Store::open(&format!("sqlite://{}", path.display()), Options::default()).unwrap()
}

/// Polls a future once, so that its unit of work is in the writer's queue.
pub(crate) fn submit<F: Future + ?Sized>(future: Pin<&mut F>) {
    // Unconstrained: tokio would make a task pause that polls more than a hundred of them.
    let polled = pin!(unconstrained(future)).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "there is no answer yet");
}

/// Blocks all writers until it is dropped.
pub(crate) struct Blockade(Raw);

impl Blockade {
    pub(crate) fn of(store: &TestStore) -> Blockade {
        let raw = store.raw();
        raw.script_of("BEGIN IMMEDIATE", "BEGIN; LOCK TABLE sessions IN EXCLUSIVE MODE");
        Blockade(raw)
    }
}

impl Drop for Blockade {
    fn drop(&mut self) {
        self.0.script("ROLLBACK");
    }
}

/// Prints that a test cannot run here.
pub(crate) fn skip(reason: &str) {
    use std::io::Write;
    let test = std::thread::current();
    let test = test.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
}
