//! `ikigai sessions`: which there are, which one is meant, and how one ends.

use ikigai_conversation::SessionId;
use ikigai_store::{Budget, Location, Process};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{OpenDatabase, Workspace};

/// Ids that differ in their ninth digit.
const FIRST: &str = "01900000-1000-7000-8000-000000000000";
const SECOND: &str = "01900000-2000-7000-8000-000000000000";

fn create(database: &OpenDatabase, directory: String, id: &str) {
    let place = Location { machine: Process::current().machine, directory };
    let id = SessionId::new(Uuid::parse_str(id).unwrap());
    let budget = Budget { wakes: 32, requests: 300 };
    database.wait(database.store.create_session(place, id, budget));
}

/// Two sessions in the working directory, of which the first was last written to.
fn two_sessions() -> Workspace {
    let workspace = Workspace::new();
    assert_eq!(workspace.print(["sessions"]), "No sessions yet\n");
    let database = workspace.open();
    let directory = workspace.directory().to_str().unwrap().to_owned();
    create(&database, directory.clone(), FIRST);
    create(&database, directory, SECOND);
    workspace.sql(&format!(
        "UPDATE sessions SET created_at = 1705314600123, updated_at = 1705314600124;
            UPDATE sessions SET updated_at = 1705314600125 WHERE id = '{FIRST}'"
    ));
    workspace
}

fn ids(workspace: &Workspace) -> Vec<String> {
    let sessions = workspace.json(["sessions", "--json"]);
    let sessions = sessions.as_array().unwrap().iter();
    sessions.map(|session| session["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn sessions_are_listed_with_these_fields_the_newest_first() {
    let workspace = two_sessions();
    assert_eq!(Workspace::new().print(["sessions", "--json"]), "[]\n");
    let session = |id: &str, updated: &str| {
        json!({
            "id": id, "directory": workspace.directory(), "title": "",
            "created_at": "2024-01-15T10:30:00.123Z", "updated_at": updated,
            "agents": 1, "messages": 0
        })
    };
    let expected = json!([
        session(FIRST, "2024-01-15T10:30:00.125Z"),
        session(SECOND, "2024-01-15T10:30:00.124Z")
    ]);
    assert_eq!(workspace.print(["sessions", "--json"]), format!("{expected}\n"));
}

#[test]
fn a_session_is_shown_with_its_title_and_numbers() {
    let workspace = Workspace::with_agents(1);
    let id = workspace.open().session();
    let directory = workspace.directory();
    let shown = |title: &str, numbers: &str| {
        format!("{id}  {title}\n    {} · {numbers} · just now\n", directory.display())
    };
    assert_eq!(workspace.print(["sessions"]), shown("(nothing said yet)", "1 agent, 0 messages"));
    workspace.print(["agents", "add"]);
    workspace.open().say("0/", "hello");
    workspace.sql("UPDATE sessions SET title = 'hello'");
    assert_eq!(workspace.print(["sessions"]), shown("hello", "2 agents, 1 message"));
}

#[test]
fn a_directory_has_its_own_sessions() {
    let workspace = Workspace::new();
    workspace.folder("sub");
    workspace.print(["mail", "send", "0/", "above"]);
    workspace.print(["mail", "-C", "sub", "send", "0/", "below"]);
    let inbox = |from: &str| workspace.json(["mail", "inbox", "--json", "-C", from]);
    let listed = |id: i64, preview: &str| {
        let mail = json!({"id": id, "from": "user", "unread": true, "preview": preview});
        json!({"messages": [mail], "unread_count": 1})
    };
    assert_eq!(inbox("."), listed(1, "above"));
    assert_eq!(inbox("sub"), listed(2, "below"));
    assert_eq!(ids(&workspace).len(), 2);
}

#[test]
fn the_session_last_written_to_is_meant() {
    let workspace = two_sessions();
    workspace.print(["mail", "send", "0/", "x"]);
    let messages = |session: &str| {
        let inbox = workspace.json(["mail", "inbox", "--json", "--session", session]);
        inbox["messages"].as_array().unwrap().len()
    };
    assert_eq!((messages(FIRST), messages(SECOND)), (1, 0));
    // Looking is not writing.
    workspace.sql(
        "UPDATE sessions SET updated_at = 1 WHERE id = '01900000-1000-7000-8000-000000000000'",
    );
    workspace.print(["mail", "inbox", "--session", FIRST]);
    workspace.print(["mail", "send", "0/", "x"]);
    assert_eq!((messages(FIRST), messages(SECOND)), (1, 1));
}

#[test]
fn a_session_is_named_by_its_id_or_the_beginning_of_it() {
    let workspace = two_sessions();
    workspace.print(["mail", "send", "0/", "x", "--session", SECOND]);
    let unread = |session: &str| workspace.json(["mail", "inbox", "--json", "--session", session]);
    for named in
        [SECOND, "01900000-2", "01900000-2000-7000-8000-00000000000", &SECOND.to_uppercase()]
    {
        assert_eq!(unread(named)["unread_count"], json!(1), "{named}");
    }
    assert_eq!(unread("01900000-1")["unread_count"], json!(0));
    let failed = |named: &str, text: &str| {
        let expected = (1, String::new(), format!("ikigai: {text}\n"));
        assert_eq!(workspace.run(["mail", "inbox", "--session", named]), expected);
    };
    failed(
        "01900000",
        "more than one session starts with '01900000': 'ikigai sessions' lists them",
    );
    failed("7", "Session 7 not found: 'ikigai sessions' lists them");
    let unknown = "01900000-3000-7000-8000-000000000000";
    failed(unknown, &format!("Session {unknown} not found: 'ikigai sessions' lists them"));
    assert_eq!(ids(&workspace).len(), 2);
}

#[test]
fn a_session_is_deleted_with_all_that_is_in_it_and_nothing_else() {
    let workspace = two_sessions();
    let database = workspace.open();
    for session in [FIRST, SECOND] {
        workspace.print(["agents", "add", "--session", session]);
        workspace.print(["mail", "send", "1/", "x", "--session", session]);
        // The session that was last written to.
        database.fork("0/", None);
        database.say("0/", "hello");
    }
    let deleted = format!("Session {FIRST} deleted\n");
    assert_eq!(workspace.print(["sessions", "rm", "01900000-1"]), deleted);
    assert_eq!(ids(&workspace), [SECOND]);
    let sessions = workspace.json(["sessions", "--json"]);
    assert_eq!((&sessions[0]["agents"], &sessions[0]["messages"]), (&json!(3), &json!(2)));
    let unread = workspace.json(["mail", "inbox", "--json", "--agent", "1/"]);
    assert_eq!(unread["unread_count"], json!(1));
    // The session, its agents and the user's mailbox, the mail, the messages.
    assert_eq!(workspace.rows().len(), 1 + 4 + 1 + 2);
    let gone = format!("ikigai: Session {FIRST} not found: 'ikigai sessions' lists them\n");
    assert_eq!(workspace.run(["sessions", "rm", FIRST]), (1, String::new(), gone));
    assert_eq!(workspace.run(["sessions", "rm"]).0, 2);
}

#[test]
fn a_session_that_somebody_runs_is_not_deleted() {
    let workspace = two_sessions();
    let database = workspace.open();
    let lease = database.claim("0/");
    let (code, stdout, stderr) = workspace.run(["sessions", "rm", FIRST]);
    assert_eq!((code, &*stdout), (1, ""));
    let told =
        format!("ikigai: Agent 0/ is run by another process (pid {} on ", std::process::id());
    assert!(stderr.starts_with(&told), "{stderr}");
    assert_eq!(ids(&workspace).len(), 2);
    database.wait(database.store.release(lease));
    workspace.print(["sessions", "rm", FIRST]);
}

#[test]
fn listing_makes_no_session() {
    let workspace = Workspace::new();
    workspace.print(["sessions"]);
    assert_eq!(workspace.json(["sessions", "--json"]), Value::Array(Vec::new()));
}
