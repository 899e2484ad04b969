//! Tests of the checker: it notices and names each kind of damage to a database.

use std::fs;
use std::path::{Path, PathBuf};

use ikigai_conversation::Correspondent;
use ikigai_testkit::{PLENTY, Raw, TestDatabase, TestStore, checker, send_to, send_to_user};

/// A consistent database in one file: mail 1 was announced and read, mail 2 was listed, mail 3 is
/// from the user, mail 4 went the other way, mail 5 was read with its announcement, and mail 6 is for
/// the user.
async fn consistent_database() -> (TestDatabase, PathBuf) {
    let store = TestStore::new();
    let (session, mut agents) = store.session_of(2).await;
    let [sender, reader] = &mut agents[..] else { panic!() };
    let long = format!("agent one {}", "x".repeat(1_000));
    let mail = sender.send(&store, &reader.id, &long).await;
    reader.announce(&store).await.unwrap().unwrap();
    reader.read(&store, mail).await;
    sender.send(&store, &reader.id, "agent two").await;
    reader.look(&store).await;
    let step = send_to(&reader.id, "user three");
    store.perform(session, Correspondent::User, step, Some(PLENTY)).await.unwrap();
    reader.send(&store, &sender.id, "agent four").await;
    sender.send(&store, &reader.id, "agent five").await;
    reader.announce(&store).await.unwrap().unwrap();
    reader.call(&store, send_to_user("agent six")).await.unwrap();
    let path = store.path();
    let database = store.close();
    database.raw().script("PRAGMA journal_mode = delete");
    (database, path)
}

/// The faults that the checker finds in a copy of `database` after `sql`.
fn faults_after(database: &Path, sql: &str) -> Vec<String> {
    let copy = database.with_file_name("copy.db");
    fs::copy(database, &copy).unwrap();
    let copy = copy.to_str().unwrap();
    Raw::open(copy).script(&format!("PRAGMA foreign_keys = OFF; {sql}"));
    checker::check(copy, &[])
}

#[tokio::test]
async fn m8_the_checker_notices_each_kind_of_damage() {
    let (_guard, database) = consistent_database().await;
    assert_eq!(faults_after(&database, ""), Vec::<String>::new());
    let result = |action: &str| {
        format!(
            "(SELECT id FROM messages WHERE kind = 'tool_result' AND data LIKE '%{action}%' LIMIT 1)"
        )
    };
    let (sent, listed) = (result("agent one"), result("unread_count"));
    for (sql, expected) in [
        ("DELETE FROM mail WHERE id = 1", "sent mail 1, which is not there"),
        (
            "INSERT INTO mail (recipient, sender, body, sent_at) SELECT recipient, sender, body, 0 FROM mail
                WHERE id = 1",
            "mail 7: exists, and no log says that it was sent",
        ),
        ("UPDATE mail SET sent_by = NULL WHERE id = 2", "mail 2: exists, and no log says"),
        ("UPDATE mail SET sent_by = 99 WHERE id = 2", "mail 2: was sent by 99, which is no such result"),
        ("UPDATE mail SET recipient = sender WHERE id = 2", "sent mail 2 to 1/, and its row says"),
        ("UPDATE mail SET unread = 1 WHERE id = 1", "mail 1: is unread although the row says who read it"),
        ("UPDATE mail SET unread = 0 WHERE id = 2", "mail 2: is read, but no log or user read it"),
        ("UPDATE mail SET unread = 1, read_by = NULL WHERE id = 1", "read mail 1, which is not marked"),
        (&format!("UPDATE mail SET read_by = {listed} WHERE id = 1"), "which does not say so"),
        (&format!("UPDATE mail SET told_by = {sent} WHERE id = 2"), "which does not say so"),
        ("UPDATE mail SET told_by = NULL WHERE id = 1", "announced mail 1, whose row says None"),
        ("UPDATE mail SET unread = 1, read_by = NULL WHERE id = 5", "showed mail 5 whole, which is not marked"),
        ("UPDATE mail SET read_by = NULL, read_by_person = 1 WHERE id = 5", "showed mail 5 whole, which is not marked"),
        ("UPDATE mail SET unread = 0, read_by = told_by WHERE id = 2", "which does not say so"),
        ("UPDATE mail SET body = body || '!' WHERE id = 5", "mail 5: was read by "),
        ("UPDATE mail SET told_by = NULL WHERE id = 2", "listed mail 2, which is not told"),
        (
            "INSERT INTO messages (agent, kind, content, data, created_at)
                SELECT agent, kind, content, data, 0 FROM messages WHERE kind = 'notification'",
            "announced mail 1, whose row says Some",
        ),
        ("UPDATE mail SET sent_by = NULL WHERE id = 6", "mail 6: exists, and no log says"),
        (
            "UPDATE mail SET unread = 0, read_by = (SELECT max(id) FROM messages) WHERE id = 6",
            "mail 6: is for the user, and a log announced or read it",
        ),
        ("UPDATE mail SET recipient = sender WHERE id = 6", "sent mail 6 to user, and its row says"),
        ("UPDATE mail SET sent_by = (SELECT max(id) FROM messages) WHERE id = 3", "mail 3: was sent by a message"),
        ("DELETE FROM messages WHERE kind = 'tool_call'", " closes no open call"),
        ("UPDATE messages SET data = '{' WHERE kind = 'notification'", "does not decode"),
        ("UPDATE mail SET id = 9 WHERE id = 1", "mail 9: was sent in "),
        ("DELETE FROM agents WHERE id = '1/'", "foreign_key_check: "),
    ] {
        let faults = faults_after(&database, sql);
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{sql}: {faults:?}");
    }
}

#[tokio::test]
async fn m8_the_checker_notices_a_broken_promise() {
    let (_guard, database) = consistent_database().await;
    let promises = database.with_file_name("acknowledged");
    for (line, broken) in [
        ("ack sent 2 1/ agent two\n", false),
        ("ack sent 2 0/ agent two\n", true),
        ("ack sent 2 1/ another text\n", true),
        ("ack sent 6 user agent six\n", false),
        ("ack sent 6 1/ agent six\n", true),
        ("ack sent 9 1/ agent nine\n", true),
        ("ack read 1\n", false),
        ("ack read 9\n", true),
        ("ack step\n", false),
        // A line that a kill cut off promises nothing.
        ("ack sent 9 1/ agent ni", false),
    ] {
        fs::write(&promises, line).unwrap();
        let faults = checker::check(database.to_str().unwrap(), std::slice::from_ref(&promises));
        assert_eq!(!faults.is_empty(), broken, "{line}: {faults:?}");
    }
}
