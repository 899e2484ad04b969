//! Copying a session to another database.

use std::time::Instant;

use ikigai_conversation::{AgentId, Correspondent, Message, NewMessage, SessionId, Summary};
use ikigai_store::{
    Change, Content, FileAccess, LogEntry, Next, Process, RootFolder, SeenFile, Session,
    StoreError, StoredContent, UndoEntry,
};
use ikigai_testkit::{Kind, PLENTY, TestStore, new_fork, said, send_to, send_to_user};

use crate::support::{PATIENCE, agent, check_database};

/// Everything that can be seen of a session.
#[derive(Debug, PartialEq)]
struct Seen {
    session: Session,
    agents: Vec<ikigai_store::Agent>,
    logs: Vec<Vec<Message>>,
    sights: Vec<Vec<SeenFile>>,
    undoable: Vec<UndoEntry>,
    mail: Vec<String>,
    roots: Vec<String>,
}

async fn see(store: &TestStore, session: SessionId) -> Seen {
    let agents = store.agents(session).await.unwrap();
    let (mut logs, mut sights) = (Vec::new(), Vec::new());
    for agent in &agents {
        logs.push(store.whole_log(session, agent.id.clone()).await.unwrap());
        let mut seen = store.sights(session, agent.id.clone()).await.unwrap();
        seen.sort_by(|a, b| a.path.cmp(&b.path));
        sights.push(seen);
    }
    let sql = "SELECT m.id, r.id, s.id, m.body, m.unread, coalesce(m.sent_by, 0), coalesce(m.told_by, 0),
            coalesce(m.read_by, 0), m.sent_at
        FROM mail m JOIN agents r ON r.key = m.recipient JOIN agents s ON s.key = m.sender ORDER BY m.id";
    let mail = store.raw().rows(sql, |row| {
        let numbers: Vec<i64> = [0, 4, 5, 6, 7, 8].map(|at| row.integer(at).unwrap()).to_vec();
        format!("{numbers:?} {:?}", [1, 2, 3].map(|at| row.text(at).unwrap()))
    });
    let sql = "SELECT s.id, r.machine, r.host, r.boot, r.device, r.inode
        FROM roots r JOIN sessions s ON s.key = r.session ORDER BY r.path";
    let mut roots = store.raw().rows(sql, |row| {
        let texts = [0, 1, 2, 3].map(|at| row.text(at).unwrap());
        format!("{texts:?} {:?}", (row.integer(4), row.integer(5)))
    });
    let paths = store.root_paths(session, Process::current()).await.unwrap();
    roots.extend(paths.iter().map(|path| path.display().to_string()));
    let sessions = store.sessions().await.unwrap();
    let session = sessions.into_iter().find(|found| found.id == session).unwrap();
    let undoable = store.undoable(session.id).await.unwrap();
    Seen { session, agents, logs, sights, undoable, mail, roots }
}

/// A session with a bit of everything, which no process runs any more.
async fn full_session(store: &TestStore) -> SessionId {
    let (session, mut agents) = store.session_of(2).await;
    let [one, two] = &mut agents[..] else { panic!() };
    store
        .append_user_input(
            one.lease.clone(),
            one.id.clone(),
            said("do a\0b \u{10FFFD}0 it", PLENTY),
        )
        .await
        .unwrap();
    let before = StoredContent::Content(Content { bytes: vec![0, 255, 7], mode: 0o644 });
    let change = Change {
        path: "/w/\u{e4}".into(),
        before,
        looks: "looks".to_owned(),
        hash: "hash".to_owned(),
        new_folders: 1,
    };
    let file = Some(FileAccess::Changed(change));
    let entry = LogEntry { message: NewMessage::user("changed"), file, ended: Vec::new() };
    let (lease, id) = (one.lease.clone(), one.id.clone());
    store.append_entries(lease, id, vec![entry], Next::Request).await.unwrap();
    let mail = one.send(store, &two.id, "hello").await;
    two.announce(store).await.unwrap().unwrap();
    two.read(store, mail).await;
    let mark = two.mark(store).await;
    one.send(store, &two.id, "unread").await;
    two.look(store).await;
    two.rewind(store, mark).await.unwrap();
    one.call(store, send_to_user("to the user")).await.unwrap();
    let by_user = send_to(&two.id, "from the user");
    store.perform(session, Correspondent::User, by_user, Some(PLENTY)).await.unwrap();
    let full = new_fork(ikigai_store::ForkContext::Full, Some("a task"));
    let child = one.fork(store, full).await.unwrap();
    store.queue_input(one.lease.clone(), one.id.clone(), "later".to_owned()).await.unwrap();
    child.answer(store, "done").await;
    let up_to = one.mark(store).await;
    let (cut, obligations) = (Some(2), "owed".to_owned());
    let (kept, elapsed_ms) = (vec![up_to, up_to], 5);
    let data = Summary { up_to, kept, cut, obligations, before: 2, after: 1, elapsed_ms };
    let summary = NewMessage::summary("so far", data);
    one.append(store, summary, Next::GrantedRequest).await.unwrap();
    let root = |path: &str, device, inode| RootFolder { path: path.into(), device, inode };
    let roots =
        vec![root("/w/\u{e4}", Some(u64::MAX), Some(7)), root("/nfs", None, Some(u64::MAX))];
    store.keep_roots(session, Process::current(), roots).await.unwrap();
    for agent in agents {
        store.release(agent.lease).await.unwrap();
    }
    session
}

async fn there_and_back(from: Kind, over: Kind) {
    let (first, second, third) = (TestStore::of(from), TestStore::of(over), TestStore::of(from));
    let session = full_session(&first).await;
    let seen = see(&first, session).await;
    first.copy_session(session, &second, Process::current()).await.unwrap();
    assert_eq!(see(&second, session).await, seen);
    second.copy_session(session, &third, Process::current()).await.unwrap();
    assert_eq!(see(&third, session).await, seen);
    for store in [&first, &second, &third] {
        check_database(store.database(), &[]);
    }
    // It continues there as it would have here.
    let mut again = ikigai_testkit::TestAgent::claim(&third, session, agent("1/")).await.unwrap();
    let newest = again.send(&third, &agent("0/"), "more").await;
    assert_eq!(newest.value(), third.number("SELECT max(id) FROM mail"));
    check_database(third.database(), &[]);
    let again = second.copy_session(session, &third, Process::current()).await.unwrap_err();
    assert!(matches!(again, StoreError::SessionExists(id) if id == session), "{again}");
}

#[tokio::test]
async fn a_session_survives_a_round_trip_through_a_server() {
    there_and_back(Kind::Sqlite, Kind::Postgres).await;
}

#[tokio::test]
async fn a_session_survives_a_round_trip_through_a_file() {
    there_and_back(Kind::Postgres, Kind::Sqlite).await;
}

/// A session with some ten thousand rows and some megabytes.
async fn long_session(store: &TestStore) -> SessionId {
    let session = full_session(store).await;
    let text = "hex(zeroblob(400))";
    store.raw().script(&format!(
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 9000)
            INSERT INTO mail (recipient, sender, body, sent_at, unread, read_by_person)
            SELECT r.key, s.key, 'user ' || n || {text}, n, 0, 1 FROM n
                JOIN agents r ON r.id = CASE n % 2 WHEN 0 THEN '0/' ELSE '1/' END JOIN agents s ON s.id = '0/';
        WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 9000)
            INSERT INTO messages (agent, kind, content, data, created_at)
            SELECT agent, kind, n || {text}, data, n FROM n
                JOIN (SELECT * FROM messages WHERE kind = 'user' ORDER BY id LIMIT 1);"
    ));
    session
}

/// Everything was sent at once at the end: the server waited for its answers to be read, and the
/// client for the server.
#[tokio::test]
async fn a_long_session_survives_a_round_trip_through_a_server() {
    let (first, second, third) = (
        TestStore::fast(Kind::Sqlite),
        TestStore::fast(Kind::Postgres),
        TestStore::fast(Kind::Sqlite),
    );
    let session = long_session(&first).await;
    let seen = see(&first, session).await;
    first.copy_session(session, &second, Process::current()).await.unwrap();
    second.copy_session(session, &third, Process::current()).await.unwrap();
    assert!(see(&third, session).await == seen, "the session differs");
    check_database(third.database(), &[]);
    third.remove_session(session, Process::current()).await.unwrap();
    second.remove_session(session, Process::current()).await.unwrap();
}

/// Ids that are in use are shifted, together with all references to them.
#[tokio::test]
async fn a_session_is_copied_beside_others() {
    for (from, to) in [(Kind::Sqlite, Kind::Postgres), (Kind::Postgres, Kind::Sqlite)] {
        let (first, second) = (TestStore::of(from), TestStore::of(to));
        let session = full_session(&first).await;
        let other = full_session(&second).await;
        let kept = see(&second, other).await;
        first.copy_session(session, &second, Process::current()).await.unwrap();
        let still = see(&second, other).await;
        assert_eq!((still.logs, still.agents), (kept.logs, kept.agents));
        let copied = see(&second, session).await;
        let original = see(&first, session).await;
        let texts = |seen: &Seen| -> Vec<(AgentId, String)> {
            seen.logs
                .iter()
                .flatten()
                .map(|message| (message.agent.clone(), message.content.clone()))
                .collect()
        };
        assert_eq!(texts(&copied), texts(&original));
        assert_eq!(copied.agents, original.agents);
        assert_eq!((copied.sights, copied.undoable), (original.sights, original.undoable));
        // Every mark names a message of the same session, and of the right agent.
        let strays = "SELECT count(*) FROM mail m JOIN messages l ON l.id IN (m.told_by, m.read_by)
            WHERE l.agent <> m.recipient";
        assert_eq!(second.number(strays), 0);
        let step = send_to(&agent("1/"), "user");
        second.perform(session, agent("0/"), step, None).await.unwrap();
    }
}

/// A copy and a unit each held a lock that the other waited for, and the server ended one of them.
#[tokio::test]
async fn a_copy_holds_no_lock_while_it_waits_for_others() {
    let (first, second) = (TestStore::of(Kind::Sqlite), TestStore::of(Kind::Postgres));
    let session = full_session(&first).await;
    let other = full_session(&second).await;
    // In the middle of a unit: a message is written, and the session is not updated yet.
    let unit = second.raw();
    unit.script("BEGIN; UPDATE messages SET content = content");
    let looking = second.raw();
    let meddling = tokio::task::spawn_blocking(move || {
        let tries = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND (query LIKE 'LOCK TABLE%' OR query LIKE '%locks')";
        let started = Instant::now();
        while looking.number(tries) == 0 {
            assert!(started.elapsed() < PATIENCE, "nothing waits for the locks");
        }
        unit.script("UPDATE sessions SET updated_at = updated_at; COMMIT");
    });
    let copying = first.copy_session(session, &second, Process::current());
    let (copied, meddled) = tokio::join!(copying, meddling);
    copied.unwrap();
    meddled.unwrap();
    assert_eq!(see(&second, session).await.agents, see(&second, other).await.agents);
}

#[tokio::test]
async fn a_session_that_a_live_process_runs_is_not_copied() {
    let (first, second) = (TestStore::of(Kind::Sqlite), TestStore::of(Kind::Postgres));
    let (session, _agents) = first.session_of(1).await;
    let stranger = Process { machine: "elsewhere".to_owned(), ..Process::current() };
    let refused = first.copy_session(session, &second, stranger).await.unwrap_err();
    assert!(matches!(refused, StoreError::LeaseHeld { .. }), "{refused}");
    assert_eq!(second.sessions().await.unwrap(), []);
}
