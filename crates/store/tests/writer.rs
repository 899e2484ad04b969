//! The writer: shared commits, their limits, a full disk, and many processes on one file.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Command, ExitCode, Stdio};

use ikigai_conversation::{NewMessage, SessionId};
use ikigai_store::{Next, Outcome, StoreError};
use ikigai_testkit::driver::Plan;
use ikigai_testkit::{Kind, PLENTY, TestStore, location, send_to};
use uuid::Uuid;

use crate::support::{
    Blockade, ROOM, Running, agent, check_database, child, driver_process, free_agents, open, skip,
    submit,
};

/// A unit of work that waits for its result.
type Pending<'a> = Pin<Box<dyn Future<Output = Result<(), StoreError>> + 'a>>;

/// The number of transactions in a database's write-ahead log: the frame that ends a transaction
/// contains the size of the database.
fn commits(database: &Path) -> usize {
    let log = fs::read(format!("{}-wal", database.display())).unwrap();
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let page = number(&log[8..12]) as usize;
    let salts = &log[16..24];
    let frames = log[32..].chunks_exact(24 + page).take_while(|frame| frame[8..16] == *salts);
    frames.filter(|frame| number(&frame[4..8]) != 0).count()
}

fn sends<'a>(store: &'a TestStore, session: SessionId, count: usize) -> Vec<Pending<'a>> {
    let send = |number| -> Pending<'a> {
        Box::pin(async move {
            let step = send_to(&agent("0/"), &format!("user {number}"));
            let sent = store.perform(session, agent("0/"), step, None).await?;
            assert!(matches!(sent, Outcome::Sent { .. }), "{sent:?}");
            Ok(())
        })
    };
    (0..count).map(send).collect()
}

/// Queues all units while nothing can write, and then lets them run. Returns their outcomes, and
/// the number of commits.
async fn share(store: &TestStore, mut units: Vec<Pending<'_>>) -> (Vec<Result<(), String>>, usize) {
    let before = commits(&store.path());
    let blockade = Blockade::of(store);
    units.iter_mut().for_each(|unit| submit(unit.as_mut()));
    drop(blockade);
    let mut outcomes = Vec::new();
    for unit in units {
        outcomes.push(unit.await.map_err(|error| error.to_string()));
    }
    (outcomes, commits(&store.path()) - before)
}

#[tokio::test]
async fn units_that_wait_together_share_a_commit_of_at_most_256() {
    let store = TestStore::new();
    let session = store.session_with(PLENTY).await;
    for (units, expected) in [(1, 1), (32, 1), (256, 1), (257, 2), (400, 2)] {
        let (outcomes, commits) = share(&store, sends(&store, session, units)).await;
        assert_eq!((outcomes, commits), (vec![Ok(()); units], expected), "{units}");
        store.raw().script("DELETE FROM mail");
    }
}

#[tokio::test]
async fn a_unit_that_fails_between_31_good_ones_fails_alone() {
    let store = TestStore::new();
    let (session, other) = (store.session_with(PLENTY).await, store.session_with(PLENTY).await);
    // The trigger fails after the unit has changed the other session's row.
    let poison = "CREATE TRIGGER poison BEFORE INSERT ON agents
        WHEN NEW.session = (SELECT max(key) FROM sessions)
        BEGIN SELECT RAISE(ABORT, 'poisoned'); END";
    store.raw().script(poison);
    let other_row = "SELECT next_agent + updated_at FROM sessions ORDER BY key DESC LIMIT 1";
    let before = store.number(other_row);
    store.advance(std::time::Duration::from_secs(1));
    let mut units = sends(&store, session, 31);
    units.insert(
        15,
        Box::pin(async { store.add_agent(other, None, location(), ROOM).await.map(drop) }),
    );
    let (mut outcomes, commits) = share(&store, units).await;
    assert_eq!(outcomes.remove(15), Err("Database error: poisoned".to_owned()));
    assert_eq!((outcomes, commits), (vec![Ok(()); 31], 1));
    assert_eq!(store.number("SELECT count(*) FROM mail"), 31);
    assert_eq!(store.number(other_row), before);
}

/// It once ended the writer's thread, and with it the others' units and the store.
#[tokio::test]
async fn a_unit_that_panics_between_31_good_ones_fails_alone() {
    let store = TestStore::new();
    let (session, agents) = store.session_of(1).await;
    let mut units = sends(&store, session, 31);
    units.insert(
        15,
        Box::pin(async {
            // The mail has been inserted when the text is rendered.
            let (lease, id) = (agents[0].lease.clone(), agents[0].id.clone());
            let render = |_: &Outcome| -> NewMessage { panic!("a test's panic, to be caught") };
            let step = send_to(&agent("0/"), "lost");
            store.close_call(lease, id, step, render, Next::Request).await.map(drop)
        }),
    );
    let (mut outcomes, commits) = share(&store, units).await;
    let error = "Database error: a unit of work panicked".to_owned();
    assert_eq!(outcomes.remove(15), Err(error));
    assert_eq!((outcomes, commits), (vec![Ok(()); 31], 1));
    assert_eq!(store.number("SELECT count(*) FROM mail WHERE body LIKE 'user %'"), 31);
    assert_eq!(store.number("SELECT count(*) FROM mail"), 31);
    let (outcomes, _) = share(&store, sends(&store, session, 1)).await;
    assert_eq!(outcomes, [Ok(())], "the store works as before");
}

#[tokio::test]
async fn dropping_the_store_waits_for_what_was_queued() {
    let store = TestStore::new();
    let session = store.session_with(PLENTY).await;
    let blockade = Blockade::of(&store);
    let mut units = sends(&store, session, 50);
    units.iter_mut().for_each(|unit| submit(unit.as_mut()));
    // No caller waits for the results any more.
    drop(units);
    drop(blockade);
    let database = store.close();
    assert_eq!(database.raw().number("SELECT count(*) FROM mail"), 50);
}

#[tokio::test]
async fn the_queue_holds_1024_units_and_the_next_waits_for_room() {
    let queued = async |wait: bool| {
        let store = TestStore::fast(Kind::Sqlite);
        let session = store.session_with(PLENTY).await;
        // Mailboxes are limited to 1,000 unread messages.
        store.raw().script(
            "CREATE TRIGGER seen AFTER INSERT ON mail BEGIN UPDATE mail SET unread = 0 WHERE id = new.id; END",
        );
        let blockade = Blockade::of(&store);
        let mut units = sends(&store, session, 1_100);
        units.iter_mut().for_each(|unit| submit(unit.as_mut()));
        drop(blockade);
        if wait {
            for unit in units {
                unit.await.unwrap();
            }
        } else {
            drop(units);
        }
        let database = store.close();
        database.raw().number("SELECT count(*) FROM mail")
    };
    assert_eq!(queued(true).await, 1_100);
    // A caller that gave up waiting for room was never in the queue. The writer may hold one unit.
    let given_up = queued(false).await;
    assert!((1_024..=1_025).contains(&given_up), "{given_up}");
}

#[tokio::test]
async fn eight_processes_at_one_file_lose_nothing_and_are_never_locked_out() {
    let store = TestStore::new();
    let session = free_agents(&store, 8).await;
    let files: Vec<PathBuf> =
        (0..8).map(|number| store.folder().join(format!("acknowledged {number}"))).collect();
    let start = |(number, file): (usize, &PathBuf)| {
        let mut plan = Plan::new(store.database(), session, 8, u32::try_from(number).unwrap());
        plan.steps = 60;
        driver_process(&plan, file)
    };
    let processes: Vec<Running> = files.iter().enumerate().map(start).collect();
    for process in processes {
        // A driver ends at the first error of the store.
        assert_eq!(process.end().code(), Some(0));
    }
    let sent = |file: &PathBuf| {
        fs::read_to_string(file)
            .unwrap()
            .lines()
            .filter(|line| line.starts_with("ack sent"))
            .count()
    };
    let promised: usize = files.iter().map(sent).sum();
    assert_eq!(usize::try_from(store.number("SELECT count(*) FROM mail")).unwrap(), promised);
    check_database(store.database(), &files);
}

/// On a small disk: fills it, shares a commit, makes room, shares another. Prints all results.
pub(crate) fn fill_disk_as_child(arguments: &[String]) -> ExitCode {
    let folder = PathBuf::from(&arguments[0]);
    let store = open(&folder.join("store.db"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let new = SessionId::new(Uuid::now_v7());
    let session = runtime.block_on(store.create_session(location(), new, PLENTY)).unwrap();
    let send_all = |what: &str, large: usize, small: usize| {
        let count = async || {
            let agents = store.agents(session).await.unwrap();
            agents[0].unread
        };
        runtime.block_on(async {
            let raw = rusqlite::Connection::open(folder.join("store.db")).unwrap();
            raw.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
            raw.execute_batch("BEGIN IMMEDIATE").unwrap();
            let body = |number| {
                let length = if number < large { 16_000 } else { 1 };
                format!("user {what} {number} {}", "x".repeat(length))
            };
            let mut units: Vec<_> = (0..large + small)
                .map(|number| {
                    let step = send_to(&agent("0/"), &body(number));
                    Box::pin(store.perform(session, agent("0/"), step, None))
                })
                .collect();
            units.iter_mut().for_each(|unit| submit(unit.as_mut()));
            raw.execute_batch("ROLLBACK").unwrap();
            let mut told = Vec::new();
            for unit in units {
                told.push(unit.await.map_or_else(|error| error.to_string(), |_| "kept".to_owned()));
            }
            told.sort();
            told.dedup();
            let told = format!("{what}: {} unread, everybody was told {told:?}", count().await);
            let mut out = std::io::stdout().lock();
            writeln!(out, "{told}").unwrap();
        });
    };
    let ballast = folder.join("ballast");
    send_all("with room", 32, 0);
    // Leaves some kilobytes, so that it fails on the way and not at the start.
    let disk = rustix::fs::statvfs(&folder).unwrap();
    let free = disk.f_bavail * disk.f_frsize - 100_000;
    fs::write(&ballast, vec![0; usize::try_from(free).unwrap()]).unwrap();
    // More than SQLite keeps in memory: it fails in the middle of a unit, and the whole transaction
    // is rolled back at once. There would be room for the units after it.
    send_all("when full", 200, 56);
    // Less than that: it fails at the commit.
    send_all("still full", 32, 0);
    fs::remove_file(&ballast).unwrap();
    send_all("with room again", 32, 0);
    ExitCode::SUCCESS
}

#[test]
fn a_full_disk_in_a_shared_commit_keeps_nothing_and_promises_nothing() {
    let mut variants = [vec!["-m"], vec!["-r", "-m"]].into_iter();
    let options = variants.find(|options| {
        let mut probe = Command::new("unshare");
        probe.args(options).args(["sh", "-c", "mount -t tmpfs -o size=64k tmpfs /mnt"]);
        probe.output().is_ok_and(|output| output.status.success())
    });
    let Some(options) = options else {
        skip("this system does not let the tests mount a small file system");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let scene = child("full-disk", &[disk.to_str().unwrap().to_owned()]);
    let script = r#"
        mount -t tmpfs -o size=12m tmpfs "$0" && "$@" && cp "$0"/store.db* "$0/.." "#;
    let mut command = Command::new("unshare");
    command.args(options).args(["bash", "-c", script]).arg(&disk);
    command.arg(scene.get_program()).args(scene.get_args());
    command.envs(scene.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let told: Vec<_> = text.lines().filter(|line| line.contains(" unread, ")).collect();
    let full = format!(
        r#"["No space left for the database {}/store.db: free some space; nothing was lost"]"#,
        disk.display()
    );
    let expected = [
        r#"with room: 32 unread, everybody was told ["kept"]"#.to_owned(),
        format!("when full: 32 unread, everybody was told {full}"),
        format!("still full: 32 unread, everybody was told {full}"),
        r#"with room again: 64 unread, everybody was told ["kept"]"#.to_owned(),
    ];
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told, expected, "{stderr}");
    check_database(folder.path().join("store.db").to_str().unwrap(), &[]);
}
