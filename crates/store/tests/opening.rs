//! Opening a database: where it may be, and which processes may open it at the same time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use ikigai_conversation::SessionId;
use ikigai_store::{Options, Process, RootFolder, SeenFile, Store, StoreError};
use ikigai_testkit::{Kind, PLENTY, TestStore, location, send_to};
use rusqlite::Connection;
use uuid::Uuid;

use crate::support::{Running, agent, child, free_agents, open};

fn refusal(path: &Path, options: Options) -> String {
    Store::open(&format!("sqlite://{}", path.display()), options).unwrap_err().to_string()
}

#[test]
fn a_network_file_system_is_refused_before_anything_is_written_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let options = Options { network_file_system: |_| Some("nfs"), ..Options::default() };
    let text = format!(
        "The database {} is on a network file system (nfs), where SQLite can lose data: put it on a local \
         disk, or use PostgreSQL with database_url = \"postgres://…\"",
        path.display()
    );
    assert_eq!(refusal(&path, options), text);
    assert!(!path.exists(), "not even an empty file is left");
}

#[test]
fn a_bare_name_is_looked_up_in_the_working_directory() {
    fn nfs_here(folder: &Path) -> Option<&'static str> {
        (folder == std::env::current_dir().unwrap()).then_some("nfs")
    }
    let options = Options { network_file_system: nfs_here, ..Options::default() };
    let refused = Store::open("sqlite:store-that-is-never-made.db", options).unwrap_err();
    assert!(matches!(refused, StoreError::NetworkFileSystem { .. }), "{refused}");
}

/// How many migrations there are.
fn known_version() -> i64 {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
    i64::try_from(fs::read_dir(folder).unwrap().count()).unwrap()
}

/// A session of an older version gets its roots when it is next opened.
async fn keep_root(store: &Store) {
    let session = SessionId::parse("0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b").unwrap();
    let root = RootFolder { path: "/d".into(), device: Some(1), inode: Some(1) };
    store.keep_roots(session, Process::current(), vec![root.clone()]).await.unwrap();
    let other = RootFolder { inode: Some(2), ..root };
    let refused = store.keep_roots(session, Process::current(), vec![other]).await.unwrap_err();
    assert!(matches!(refused, StoreError::RootReplaced { .. }), "{refused}");
}

#[tokio::test]
async fn a_database_of_the_first_version_is_migrated_with_its_contents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch(include_str!("../migrations/sqlite/0001.sql")).unwrap();
    raw.pragma_update(None, "application_id", 0x696b_6967).unwrap();
    raw.pragma_update(None, "user_version", 1).unwrap();
    raw.execute_batch(
        "INSERT INTO sessions (id, machine, directory, created_at, updated_at, wakes_left, requests_left)
            VALUES ('0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b', 'm', '/d', 1, 1, 1, 1);
        INSERT INTO agents (session, id, state, machine, directory, created_at)
            VALUES (1, '0/', 'idle', 'm', '/d', 1);",
    )
    .unwrap();
    drop(raw);
    let store = open(&path);
    keep_root(&store).await;
    drop(store);
    let raw = Connection::open(&path).unwrap();
    let version: i64 = raw.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    let sql = "SELECT count(*) FROM agents WHERE last_error IS NULL AND in_turn = 0";
    let agents: i64 = raw.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!((version, agents), (known_version(), 1));
}

/// The same on a server: with seen files and changes, whose indexes the fourth version changes.
#[tokio::test]
async fn a_servers_database_of_the_third_version_is_migrated_with_its_contents() {
    let store = TestStore::of(Kind::Postgres);
    let raw = store.raw();
    raw.script("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    raw.script(include_str!("../migrations/postgres/0001.sql"));
    raw.script(include_str!("../migrations/postgres/0002.sql"));
    raw.script(include_str!("../migrations/postgres/0003.sql"));
    raw.script(
        "CREATE TABLE ikigai (version BIGINT NOT NULL); INSERT INTO ikigai VALUES (3);
        INSERT INTO sessions (id, machine, directory, created_at, updated_at, wakes_left, requests_left)
            VALUES ('0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b', 'm', '/d', 1, 1, 1, 1);
        INSERT INTO agents (session, id, state, machine, directory, created_at)
            VALUES (1, '0/', 'idle', 'm', '/d', 1);
        INSERT INTO sights (agent, path, looks, message) VALUES (1, '/w/a', 'old', 1)",
    );
    let updated = store.open_again();
    let session = SessionId::parse("0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b").unwrap();
    let seen = updated.sights(session, agent("0/")).await.unwrap();
    assert_eq!(seen, [SeenFile { path: "/w/a".into(), looks: "old".to_owned() }]);
    keep_root(&updated).await;
    assert_eq!(raw.number("SELECT version FROM ikigai"), known_version());
}

/// Deleting a session read the mail of all sessions once for every agent and every user message.
#[test]
fn references_to_a_row_are_indexed() {
    let file = "SELECT t.name || '.' || f.\"from\"
        FROM sqlite_schema t, pragma_foreign_key_list(t.name) f WHERE t.type = 'table'
            AND NOT EXISTS (SELECT 1 FROM pragma_index_list(t.name) i, pragma_index_info(i.name) c
                WHERE c.seqno = 0 AND c.name = f.\"from\")
            AND NOT EXISTS (SELECT 1 FROM pragma_table_info(t.name) c
                WHERE c.pk = 1 AND c.name = f.\"from\")";
    let server = "SELECT c.conrelid::regclass::text || '.' || a.attname
        FROM pg_constraint c
            JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
        WHERE c.contype = 'f' AND NOT EXISTS (SELECT 1 FROM pg_index i
            WHERE i.indrelid = c.conrelid AND i.indkey[0] = c.conkey[1])";
    for (kind, sql) in [(Kind::Sqlite, file), (Kind::Postgres, server)] {
        let store = TestStore::of(kind);
        let missing = store.raw().rows(sql, |row| row.text(0).unwrap());
        assert_eq!(missing, Vec::<String>::new(), "{kind:?}");
    }
}

#[test]
fn a_newer_schema_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(open(&path));
    let raw = Connection::open(&path).unwrap();
    raw.pragma_update(None, "user_version", 99).unwrap();
    raw.pragma_update(None, "journal_mode", "delete").unwrap();
    drop(raw);
    let before = fs::read(&path).unwrap();
    let text = format!(
        "The database {} was made by a newer version of ikigai (schema 99, this version knows {}): update ikigai",
        path.display(),
        known_version()
    );
    assert_eq!(refusal(&path, Options::default()), text);
    assert!(fs::read(&path).unwrap() == before, "not a byte has changed");
}

/// Its journal mode was changed before the check for its owner.
#[test]
fn the_database_of_another_program_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("browser.db");
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch("CREATE TABLE history (url TEXT); PRAGMA user_version = 1").unwrap();
    drop(raw);
    let before = fs::read(&path).unwrap();
    let text = format!(
        "{} is not a database: move it, or choose another path with --db sqlite://PATH",
        path.display()
    );
    assert_eq!(refusal(&path, Options::default()), text);
    assert!(fs::read(&path).unwrap() == before, "not a byte has changed");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "and nothing lies beside it");
}

#[test]
fn other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    fs::write(&path, "some text of some length, which is not what a database begins with").unwrap();
    assert!(refusal(&path, Options::default()).contains(" is not a database: "));
    assert!(refusal(folder.path(), Options::default()).contains(" is not a database: "));
    let refused = Store::open("mysql://me:secret@host/db", Options::default()).unwrap_err();
    let text = "mysql:… is not a supported database address: use sqlite://PATH or postgres://…";
    assert_eq!(refused.to_string(), text, "a password is not repeated");
}

#[tokio::test]
async fn a_file_that_vanished_or_was_replaced_accepts_no_writes_until_it_is_back() {
    let store = TestStore::new();
    let session = free_agents(&store, 2).await;
    let send = || store.perform(session, agent("0/"), send_to(&agent("1/"), "user"), None);
    send().await.unwrap();
    let (path, away) = (store.path(), store.folder().join("away.db"));
    let text = format!(
        "The database {} was moved or deleted while it was in use: put it back, or restart",
        path.display()
    );
    fs::rename(&path, &away).unwrap();
    assert_eq!(send().await.unwrap_err().to_string(), text);
    fs::write(&path, "").unwrap();
    assert_eq!(send().await.unwrap_err().to_string(), text);
    fs::rename(&away, &path).unwrap();
    send().await.unwrap();
    assert_eq!(store.number("SELECT count(*) FROM mail"), 2);
}

#[test]
fn only_the_user_has_access_to_the_database() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/store.db");
    let store = open(&path);
    for (path, mode) in [
        (folder.path().join("new"), 0o700),
        (path.clone(), 0o600),
        (folder.path().join("new/store.db-wal"), 0o600),
    ] {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{path:?}");
    }
    drop(store);
}

/// Waits for the end of its input, then opens the database and creates a session.
pub(crate) fn open_as_child(arguments: &[String]) -> ExitCode {
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    let store = open(&PathBuf::from(&arguments[0]));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let new = SessionId::new(Uuid::now_v7());
    runtime.block_on(store.create_session(location(), new, PLENTY)).unwrap();
    ExitCode::SUCCESS
}

#[test]
fn eight_processes_that_open_a_fresh_database_at_once_migrate_it_once() {
    for round in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let arguments = [path.to_str().unwrap().to_owned()];
        let start = || Running::start(child("open", &arguments).stdin(Stdio::piped()));
        let mut processes: Vec<Running> = (0..8).map(|_| start()).collect();
        // All processes wait for this.
        processes.iter_mut().for_each(|process| drop(process.0.stdin.take()));
        for process in processes {
            assert_eq!(process.end().code(), Some(0), "round {round}");
        }
        let raw = Connection::open(&path).unwrap();
        let sessions: i64 =
            raw.query_row("SELECT count(*) FROM sessions", [], |row| row.get(0)).unwrap();
        let version: i64 = raw.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!((sessions, version), (8, known_version()), "round {round}");
    }
}
