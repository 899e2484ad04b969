//! What only a server has: row locks, lost connections, restarts, poolers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ikigai_conversation::{AgentId, SessionId};
use ikigai_postgres::{Address, Client};
use ikigai_store::{
    Changes, Lease, Locks, Options, Outcome, Process, Sleep, Step, Store, StoreError,
};
use ikigai_testkit::{
    Cut, Kind, PLENTY, Pooler, PostgresServer, Proxy, Raw, TestAgent, TestStore, checker, location,
    said, send_to,
};
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::support::{Blockade, PATIENCE, ROOM, agent, check_database, free_agents, skip, submit};

fn postgres() -> TestStore {
    TestStore::of(Kind::Postgres)
}

/// Waits until a statement waits for a lock in this database.
fn await_waiting(raw: &Raw) {
    let sql = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let started = Instant::now();
    while raw.number(sql) == 0 {
        assert!(started.elapsed() < PATIENCE, "nothing waits");
        std::thread::yield_now();
    }
}

/// A sender in one transaction and an agent going idle in another, both open at once. Returns how
/// the latter ends.
async fn sleep_while_mail_is_under_way(locks: Locks) -> Sleep {
    let store = postgres();
    let (session, agents) = store.session_of(2).await;
    let (lease, id) = (agents[1].lease.clone(), agents[1].id.clone());
    store.append_user_input(lease.clone(), id.clone(), said("go on", PLENTY)).await.unwrap();
    let sleeper = store.open_with(Options { locks, ..Options::default() });
    let sender = store.raw();
    sender.script("BEGIN");
    if locks == Locks::Taken {
        sender.script(&format!("SELECT 1 FROM sessions WHERE id = '{session}' FOR NO KEY UPDATE"));
    }
    sender.script(
        "INSERT INTO mail (recipient, sender, body, sent_at)
            SELECT r.key, s.key, 'user', 0 FROM agents r, agents s WHERE r.id = '1/' AND s.id = '0/'",
    );
    let going = tokio::spawn(async move { sleeper.rest(lease, id).await.unwrap() });
    // Only once it is in the middle of its transaction.
    let looking = store.raw();
    tokio::task::spawn_blocking(move || await_waiting(&looking)).await.unwrap();
    sender.script("COMMIT");
    going.await.unwrap()
}

#[tokio::test]
async fn m5_going_idle_waits_for_mail_in_an_open_transaction() {
    assert_eq!(sleep_while_mail_is_under_way(Locks::Taken).await, Sleep::MailWaits);
}

#[tokio::test]
async fn m5_without_the_row_lock_the_same_agent_misses_the_mail() {
    assert_eq!(sleep_while_mail_is_under_way(Locks::LeftOut).await, Sleep::Asleep);
}

#[tokio::test]
async fn m7_a_later_sender_gets_a_larger_id_even_before_the_first_commits() {
    let store = postgres();
    let session = free_agents(&store, 2).await;
    let first = store.raw();
    first
        .script(&format!("BEGIN; SELECT 1 FROM sessions WHERE id = '{session}' FOR NO KEY UPDATE"));
    let before = first.number(
        "INSERT INTO mail (recipient, sender, body, sent_at)
            SELECT r.key, s.key, 'user', 0 FROM agents r, agents s WHERE r.id = '1/' AND s.id = '0/'
            RETURNING id",
    );
    let second = store.open_again();
    let sending = tokio::spawn(async move {
        second.perform(session, agent("0/"), send_to(&agent("1/"), "user two"), None).await
    });
    let looking = store.raw();
    tokio::task::spawn_blocking(move || await_waiting(&looking)).await.unwrap();
    assert_eq!(store.number("SELECT count(*) FROM mail"), 0);
    first.script("COMMIT");
    match sending.await.unwrap().unwrap() {
        Outcome::Sent { id, .. } => assert!(id.value() > before),
        other => panic!("{other:?}"),
    }
}

/// Sends a letter from `0/` to `1/` that has to wait for the lock, while `meanwhile` is done.
/// Returns the sender's result.
async fn send_behind(meanwhile: &str) -> (Result<Outcome, StoreError>, TestStore) {
    let store = postgres();
    let name = store.raw().text("SELECT current_database()::text");
    // In such a transaction, commits made meanwhile would be invisible.
    let isolation = "default_transaction_isolation = 'repeatable read'";
    store.raw().script(&format!("ALTER DATABASE {name} SET {isolation}"));
    let session = free_agents(&store, 2).await;
    let first = store.raw();
    first
        .script(&format!("BEGIN; SELECT 1 FROM sessions WHERE id = '{session}' FOR NO KEY UPDATE"));
    let second = store.open_again();
    let sending = tokio::spawn(async move {
        second.perform(session, agent("0/"), send_to(&agent("1/"), "user"), None).await
    });
    let looking = store.raw();
    tokio::task::spawn_blocking(move || await_waiting(&looking)).await.unwrap();
    // Nothing else is locked yet, or this would be a deadlock.
    first.script(meanwhile);
    first.script("COMMIT");
    (sending.await.unwrap(), store)
}

#[tokio::test]
async fn a_letter_that_waited_for_the_lock_sees_commits_made_meanwhile() {
    for meanwhile in [
        "UPDATE agents SET state = 'dead' WHERE id = '0/'",
        "UPDATE agents SET state = 'dead' WHERE id = '1/'",
        "UPDATE agents SET unread = 1000 WHERE id = '1/'",
    ] {
        let (told, store) = send_behind(meanwhile).await;
        assert!(!matches!(told, Ok(Outcome::Sent { .. })), "{meanwhile}: {told:?}");
        assert_eq!(store.number("SELECT count(*) FROM mail"), 0, "{meanwhile}");
    }
    let cause = "INSERT INTO causes (key, session, title, created_at) SELECT 7, session, '', 0
            FROM agents WHERE id = '0/';
        UPDATE agents SET cause = 7 WHERE id = '0/'; UPDATE agents SET unread = 5 WHERE id = '1/'";
    let (told, store) = send_behind(cause).await;
    assert!(matches!(told, Ok(Outcome::Sent { .. })), "{told:?}");
    assert_eq!(store.number("SELECT cause FROM mail"), 7);
    assert_eq!(store.number("SELECT unread FROM agents WHERE id = '1/'"), 6);
}

/// Sends letters from `0/` while nothing can write, so that all wait
/// together. Returns their results.
async fn send_together(
    location: &TestStore,
    store: &Store,
    session: SessionId,
    to: &[&str],
) -> Vec<String> {
    let blockade = Blockade::of(location);
    let mut sends = Vec::new();
    for (number, to) in to.iter().enumerate() {
        let step = send_to(&agent(to), &format!("user {number}"));
        let mut send = Box::pin(store.perform(session, agent("0/"), step, None));
        submit(send.as_mut());
        sends.push(send);
    }
    drop(blockade);
    let mut told = Vec::new();
    for send in sends {
        told.push(match send.await {
            Ok(Outcome::Sent { id, .. }) => id.value().to_string(),
            Ok(other) => format!("{other:?}").split('(').next().unwrap().to_owned(),
            Err(error) => error.to_string(),
        });
    }
    told
}

#[tokio::test]
async fn letters_that_wait_together_are_counted_together_and_refused_separately() {
    let store = postgres();
    let session = free_agents(&store, 3).await;
    let fill = "INSERT INTO mail (recipient, sender, body, sent_at)
        SELECT r.key, r.key, 'user', 0 FROM agents r, generate_series(1, 998) WHERE r.id = '1/'";
    store.raw().script(fill);
    let to = ["1/", "9/", "2/", "1/", "1/", "2/"];
    let told = send_together(&store, &store, session, &to).await;
    let is_sent = |told: &&String| told.parse::<i64>().is_ok();
    assert_eq!((&*told[1], &*told[4]), ("NoAgent", "Full"), "{told:?}");
    let ids: Vec<i64> = told.iter().filter(is_sent).map(|id| id.parse().unwrap()).collect();
    assert!(ids.len() == 4 && ids.is_sorted(), "{told:?}");
    let bodies = "SELECT body FROM mail WHERE sent_at > 0 ORDER BY id";
    let bodies = store.raw().rows(bodies, |row| row.text(0).unwrap());
    assert_eq!(bodies, ["user 0", "user 2", "user 3", "user 5"]);
    assert_eq!(store.number("SELECT unread FROM agents WHERE id = '1/'"), 1_000);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn a_letter_that_the_server_refuses_fails_and_the_others_are_sent() {
    let store = postgres();
    let session = free_agents(&store, 3).await;
    store.raw().refuse("INSERT ON mail", "NEW.body = 'user 3'");
    let told = send_together(&store, &store, session, &["1/", "2/", "1/", "2/", "1/"]).await;
    let is_sent: Vec<bool> = told.iter().map(|told| told.parse::<i64>().is_ok()).collect();
    assert_eq!(is_sent, [true, true, true, false, true], "{told:?}");
    assert_eq!(store.number("SELECT count(*) FROM mail"), 4);
    store.raw().allow("mail");
    let told = send_together(&store, &store, session, &["1/", "2/"]).await;
    assert!(told.iter().all(|told| told.parse::<i64>().is_ok()), "{told:?}");
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m1_the_writers_own_connection_flushes_every_commit_whatever_the_server_is_set_to() {
    let store = postgres();
    let name = store.raw().text("SELECT current_database()::text");
    store.raw().script(&format!("ALTER DATABASE {name} SET synchronous_commit = off"));
    assert_eq!(store.raw().text("SELECT current_setting('synchronous_commit')"), "off");
    // A unit's own transaction shows its settings.
    store.raw().script(
        "CREATE TABLE seen (setting TEXT);
        CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$;
        CREATE TRIGGER look BEFORE INSERT ON mail FOR EACH ROW EXECUTE FUNCTION look()",
    );
    let proxy = Proxy::before(store.database());
    proxy.pose_as_pooler();
    let pooled = proxy.address(store.database());
    let session = free_agents(&store, 1).await;
    for address in [store.database(), &pooled] {
        let other = Store::open(address, Options::default()).unwrap();
        let step = send_to(&agent("0/"), "user");
        other.perform(session, agent("0/"), step, None).await.unwrap();
    }
    assert_eq!(
        store.raw().rows("SELECT setting FROM seen", |row| row.text(0).unwrap()),
        ["on", "on"]
    );
}

/// Repeats something until the server allows it.
async fn insist<T>(mut work: impl AsyncFnMut() -> Result<T, StoreError>) -> T {
    let started = Instant::now();
    loop {
        match work().await {
            Ok(value) => return value,
            Err(error) if error.is_transient() && started.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn m11_a_connection_cut_at_any_point_of_a_unit_duplicates_and_loses_nothing() {
    let store = postgres();
    let session = free_agents(&store, 2).await;
    let proxy = Proxy::before(store.database());
    let cut = Store::open(&proxy.address(store.database()), Options::default()).unwrap();
    let answers = [Cut::AnswerOfCommit, Cut::AnswerOfInsert].repeat(2);
    let points = (1..=5).map(Cut::Request).chain(answers);
    let mut sent = 0;
    for point in points.cycle().take(27) {
        proxy.cut(point);
        let before = proxy.cuts();
        // Until it was cut: a unit makes fewer round trips if others share its transaction.
        while proxy.cuts() == before {
            // Letters, and units with several round trips.
            let by_hand = (sent % 2 == 1).then_some(PLENTY);
            insist(async || {
                let step = send_to(&agent("1/"), "user");
                cut.perform(session, agent("0/"), step, by_hand).await
            })
            .await;
            sent += 1;
        }
    }
    assert_eq!(store.number("SELECT count(*) FROM mail"), sent);
    check_database(store.database(), &[]);
}

#[tokio::test]
async fn m11_a_commit_whose_answer_was_lost_is_not_reported_as_failed() {
    let store = postgres();
    let session = free_agents(&store, 2).await;
    let proxy = Proxy::before(store.database());
    let cut = Store::open(&proxy.address(store.database()), Options::default()).unwrap();
    let lone_letter = (1, Cut::AnswerOfInsert, None);
    for (cuts, answer, by_hand) in [lone_letter, (2, Cut::AnswerOfCommit, Some(PLENTY))] {
        proxy.cut(answer);
        let step = send_to(&agent("1/"), "user");
        let sent = cut.perform(session, agent("0/"), step, by_hand).await.unwrap();
        let Outcome::Sent { id, .. } = sent else { panic!("{sent:?}") };
        assert_eq!(id.value(), store.number("SELECT max(id) FROM mail"));
        assert_eq!(
            (i64::from(proxy.cuts()), store.number("SELECT count(*) FROM mail")),
            (cuts, cuts)
        );
    }
}

#[tokio::test]
async fn m11_letters_whose_answer_was_lost_each_get_their_own_result() {
    let store = postgres();
    let session = free_agents(&store, 3).await;
    let proxy = Proxy::before(store.database());
    let cut = Store::open(&proxy.address(store.database()), Options::default()).unwrap();
    proxy.cut_all([Cut::AnswerOfCommit, Cut::AnswerOfCommit]);
    let told = send_together(&store, &cut, session, &["1/", "2/", "9/", "1/", "9/"]).await;
    assert_eq!((&*told[2], &*told[4]), ("NoAgent", "NoAgent"), "{told:?}");
    // The first letter may have been sent before the others.
    assert!((1..=2).contains(&proxy.cuts()));
    let ids = store.raw().rows("SELECT id FROM mail ORDER BY id", |row| row.integer(0).unwrap());
    let sent = [0, 1, 3].map(|number: usize| told[number].parse::<i64>().unwrap());
    assert_eq!(ids, sent);
    check_database(store.database(), &[]);
}

/// The lookup of the key used the same outcome as a commit, and found its own row.
#[tokio::test]
async fn m11_a_lost_commit_is_not_reported_as_done_when_the_answer_to_the_lookup_is_lost_too() {
    let store = postgres();
    let session = free_agents(&store, 2).await;
    let proxy = Proxy::before(store.database());
    let cut = Store::open(&proxy.address(store.database()), Options::default()).unwrap();
    let lone_letter = (Cut::Request(1), Cut::AnswerOfInsert, None);
    let unit = (Cut::Commit, Cut::AnswerOfCommit, Some(PLENTY));
    for (mails, (commit, answer, by_hand)) in (1..).zip([lone_letter, unit]) {
        let step = send_to(&agent("1/"), "user");
        let send = || cut.perform(session, agent("0/"), step.clone(), by_hand);
        let state = || (i64::from(proxy.cuts()), store.number("SELECT count(*) FROM mail"));
        proxy.cut_all([commit, Cut::AnswerOfInsert]);
        let lost = send().await.unwrap_err();
        assert!(matches!(lost, StoreError::ServerAway { .. }), "{lost}");
        assert_eq!(state(), (4 * mails - 2, mails - 1));
        proxy.cut_all([answer, Cut::AnswerOfInsert]);
        let sent = send().await.unwrap();
        assert!(matches!(sent, Outcome::Sent { .. }), "{sent:?}");
        assert_eq!(state(), (4 * mails, mails));
    }
}

#[tokio::test]
async fn m6_behind_a_pooler_the_sweep_finds_mail_without_signals() {
    let store = postgres();
    let session = free_agents(&store, 2).await;
    let proxy = Proxy::before(store.database());
    proxy.pose_as_pooler();
    let pooled = Store::open(&proxy.address(store.database()), Options::default()).unwrap();
    let mut changes = pooled.changes(session).unwrap();
    for number in 1..=3 {
        let step = send_to(&agent("1/"), "user");
        pooled.perform(session, agent("0/"), step.clone(), None).await.unwrap();
        store.perform(session, agent("0/"), step, None).await.unwrap();
        tokio::time::timeout(PATIENCE, changes.wait(Changes::SWEEP)).await.unwrap().unwrap();
        let found = pooled.agents(session).await.unwrap();
        assert_eq!(found[1].unread, 2 * number);
    }
    let statements = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND query LIKE 'LISTEN%'";
    assert_eq!(store.number(statements), 0, "no connection listens through it");
}

#[tokio::test]
async fn others_are_notified_of_changes_that_concern_them_only() {
    let store = postgres();
    let (session, agents) = store.session_of(1).await;
    let (address, lease) = (store.database().to_owned(), agents[0].lease.clone());
    // A dropped store has sent everything.
    let database = store.close();
    let mut listening = Client::connect(&Address::parse(&address).unwrap()).unwrap();
    listening.script("LISTEN ikigai").unwrap();
    let own = listening.process();
    let quiet = Store::open(&address, Options::default()).unwrap();
    quiet.renew(lease).await.unwrap();
    let new = SessionId::new(Uuid::now_v7());
    assert_eq!(
        quiet.session_at(location(), new, PLENTY, Process::current()).await.unwrap(),
        session
    );
    drop(quiet);
    listening.script("NOTIFY ikigai").unwrap();
    let heard = listening.notified(PATIENCE).unwrap().unwrap();
    assert_eq!(heard.process, own, "{heard:?}");
    let loud = Store::open(&address, Options::default()).unwrap();
    let step = send_to(&agent("0/"), "user");
    // The first and the second notification use different connections.
    for _ in 0..2 {
        loud.perform(session, agent("0/"), step.clone(), None).await.unwrap();
        let heard = listening.notified(PATIENCE).unwrap().unwrap();
        assert!(heard.process != own && heard.text == session.to_string(), "{heard:?}");
    }
    drop((loud, database));
}

/// The real PgBouncer: three server connections, shared by all clients.
#[tokio::test]
async fn pgbouncer_in_transaction_mode_keeps_every_guarantee() {
    let server = PostgresServer::start();
    let Some(pooler) = Pooler::before(server.folder()) else {
        return skip("PgBouncer is not installed: install the package pgbouncer");
    };
    let stores: Vec<Store> = (0..4)
        .map(|_| Store::open(&pooler.address("postgres"), Options::default()).unwrap())
        .collect();
    let session = SessionId::new(Uuid::now_v7());
    stores[0].create_session(location(), session, PLENTY).await.unwrap();
    for _ in 1..4 {
        stores[0].add_agent(session, None, location(), ROOM).await.unwrap();
    }
    let mut changes = stores[3].changes(session).unwrap();
    for round in 0..20 {
        let send = async |from: u32| {
            let to = AgentId::top_level((from + 1) % 4);
            let step = send_to(&to, &format!("user {from} {round}"));
            let store = &stores[from as usize];
            store.perform(session, AgentId::top_level(from), step, None).await.unwrap();
        };
        tokio::join!(send(0), send(1), send(2), send(3));
    }
    changes.wait(Changes::SWEEP).await.unwrap();
    let agents = stores[3].agents(session).await.unwrap();
    assert!(agents.iter().all(|agent| agent.unread == 20), "{agents:?}");
    assert_eq!(checker::check(&server.address("postgres"), &[]), Vec::<String>::new());
}

/// A server that requires the password `geheim` over the loopback.
fn with_password(mut server: PostgresServer, kind: &str) -> PostgresServer {
    let stored = if kind == "md5" { "md5" } else { "scram-sha-256" };
    let sql =
        format!("SET password_encryption = '{stored}'; ALTER ROLE postgres PASSWORD 'geheim'");
    Raw::open(&server.address("postgres")).script(&sql);
    server.require_login(kind);
    server
}

#[tokio::test]
async fn a_password_is_proven_only_to_a_server_that_knows_it() {
    let mut server = with_password(PostgresServer::start_on_loopback(), "scram-sha-256");
    let port = server.loopback_port();
    let open = |login: &str, options: &str| {
        let address = format!("postgres://{login}@127.0.0.1:{port}/postgres?{options}");
        Store::open(&address, Options::default()).map(drop).map_err(|error| error.to_string())
    };
    let refusal = |login: &str, options: &str| {
        let text = open(login, options).unwrap_err();
        assert!(!text.contains("geheim"), "{text}");
        text
    };
    open("postgres:geheim", "").unwrap();
    open("postgres:geheim", "require_auth=scram-sha-256").unwrap();
    assert!(refusal("postgres:geheimer", "").contains("pg_hba.conf"));
    assert!(refusal("postgres", "").contains("postgres://USER:PASSWORD@HOST/NAME"));
    assert!(refusal("postgres:geheim", "require_auth=none").contains("remove require_auth"));
    // A server without a password could be any program.
    server.require_login("trust");
    assert!(refusal("postgres:geheim", "").contains("remove the password"));
    open("postgres:geheim", "require_auth=none").unwrap();
    open("postgres", "").unwrap();
    server.require_login("password");
    assert!(refusal("postgres:geheim", "").contains("the password in clear text"));
    assert!(refusal("postgres:geheim", "require_auth=password").contains("sslmode=require"));
    let server = with_password(server, "md5");
    assert!(refusal("postgres:geheim", "").contains("add require_auth=md5"));
    open("postgres:geheim", "require_auth=md5").unwrap();
    drop(server);
}

#[tokio::test]
async fn a_login_through_tls_is_bound_to_the_certificate() {
    let mut server = with_password(PostgresServer::start_with_tls(), "scram-sha-256");
    let (port, certificate) = (server.loopback_port(), server.certificate());
    let open = |options: &str| {
        let tls = format!("sslmode=require&sslrootcert={}", certificate.display());
        let address =
            format!("postgres://postgres:geheim@localhost:{port}/postgres?{tls}{options}");
        Store::open(&address, Options::default()).map(drop).map_err(|error| error.to_string())
    };
    for binding in ["", "&channel_binding=require", "&channel_binding=disable"] {
        open(binding).unwrap();
    }
    server.require_login("password");
    assert!(open("").unwrap_err().contains("add require_auth=password"));
    open("&require_auth=password").unwrap();
}

#[tokio::test]
async fn tls_verifies_the_name_in_the_certificate() {
    let server = with_password(PostgresServer::start_with_tls(), "scram-sha-256");
    let port = server.loopback_port();
    let address = |host: &str, options: &str| {
        format!("postgres://postgres:geheim@{host}:{port}/postgres?sslmode=require{options}")
    };
    let trusted = format!("&sslrootcert={}", server.certificate().display());
    drop(Store::open(&address("localhost", &trusted), Options::default()).unwrap());
    let encrypted = "SELECT count(*) FROM pg_stat_ssl WHERE ssl";
    let store = Store::open(&address("localhost", &trusted), Options::default()).unwrap();
    store.sessions().await.unwrap();
    assert!(Raw::open(&server.address("postgres")).number(encrypted) >= 2);
    for (host, options) in [("localhost", ""), ("127.0.0.1", trusted.as_str())] {
        let refused = Store::open(&address(host, options), Options::default()).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("is not trusted") && text.contains("sslrootcert=FILE"), "{text}");
        assert!(!text.contains("geheim"), "{text}");
    }
}

#[tokio::test]
async fn the_error_for_a_refused_login_says_what_to_do() {
    let server = PostgresServer::start();
    let refusal = |address: &str| {
        let error = Store::open(address, Options::default()).unwrap_err();
        assert!(!error.to_string().contains("geheim") && !format!("{error:?}").contains("geheim"));
        error.to_string()
    };
    let trusting = |database: &str, user: &str| {
        let address = server.address(database).replace("postgres@", &format!("{user}:geheim@"));
        format!("{address}&require_auth=none")
    };
    let address = trusting("nowhere", "postgres");
    assert!(refusal(&address).contains("createdb NAME"), "{}", refusal(&address));
    let raw = Raw::open(&server.address("postgres"));
    for sql in ["CREATE ROLE guest LOGIN", "CREATE DATABASE theirs", "CREATE DATABASE others"] {
        raw.script(sql);
    }
    Raw::open(&server.address("theirs")).script("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    let address = trusting("theirs", "guest");
    assert!(
        refusal(&address).contains("ALTER DATABASE NAME OWNER TO USER"),
        "{}",
        refusal(&address)
    );
    Raw::open(&server.address("others")).script("CREATE TABLE messages (text TEXT)");
    let address = server.address("others");
    assert!(refusal(&address).contains("tables of another program"), "{}", refusal(&address));
    let address = "postgres://me:geheim@127.0.0.1:1/db";
    assert!(
        refusal(address).contains("cannot be reached (Connection refused)"),
        "{}",
        refusal(address)
    );
    drop(Store::open(&server.address("postgres"), Options::default()).unwrap());
    raw.script("UPDATE ikigai SET version = 99");
    assert!(
        refusal(&server.address("postgres"))
            .contains("made by a newer version of ikigai (schema 99")
    );
}

/// Agents on two machines that write to each other while the server is killed and restarted.
struct Outage {
    server: PostgresServer,
    session: SessionId,
    is_over: Arc<AtomicBool>,
    sent: Arc<AtomicU32>,
}

impl Outage {
    fn new() -> Outage {
        let server = PostgresServer::start();
        let store = Store::open(&server.address("postgres"), Options::default()).unwrap();
        let session = SessionId::new(Uuid::now_v7());
        runtime().block_on(async {
            store.create_session(location(), session, PLENTY).await.unwrap();
            for _ in 1..4 {
                store.add_agent(session, None, location(), ROOM).await.unwrap();
            }
        });
        Outage { server, session, is_over: Arc::default(), sent: Arc::default() }
    }

    /// Two agents on one machine, at work until it is over. Each sends, looks and reads.
    fn machine(&self, name: &'static str, address: &str, agents: [u32; 2]) -> JoinHandle<()> {
        let store = Store::open(address, Options::default()).unwrap();
        let process = Process { machine: name.to_owned(), ..Process::current() };
        let (session, is_over, sent) =
            (self.session, Arc::clone(&self.is_over), Arc::clone(&self.sent));
        let run = move || {
            runtime().block_on(async move {
                let one = async |number: u32| {
                    let top = AgentId::top_level(number);
                    let claim = async || store.claim(session, top.clone(), process.clone()).await;
                    work(&store, insist(claim).await, number, &is_over, &sent).await;
                };
                tokio::join!(one(agents[0]), one(agents[1]));
            });
        };
        std::thread::spawn(run)
    }

    /// Waits until this many more messages were sent.
    fn wait_for_more(&self, count: u32) {
        let before = self.sent.load(Ordering::SeqCst);
        let started = Instant::now();
        while self.sent.load(Ordering::SeqCst) < before + count {
            assert!(started.elapsed() < PATIENCE, "no agent continues");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Stops the agents, and checks the database.
    fn settle(&self, address: &str, machines: [JoinHandle<()>; 2]) {
        self.is_over.store(true, Ordering::SeqCst);
        for machine in machines {
            machine.join().unwrap();
        }
        assert_eq!(checker::check(address, &[]), Vec::<String>::new());
        let mail = Raw::open(address).number("SELECT count(*) FROM mail");
        assert_eq!(mail, i64::from(self.sent.load(Ordering::SeqCst)));
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn work(store: &Store, lease: Lease, number: u32, is_over: &AtomicBool, sent: &AtomicU32) {
    let mut me = TestAgent::with(lease, AgentId::top_level(number));
    for step in 0.. {
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        let call = insist(async || me.open(store).await).await;
        let what = match step % 3 {
            0 | 1 => send_to(
                &AgentId::top_level((number + 1 + step % 3) % 4),
                &format!("agent {number}/ {step}"),
            ),
            _ => ikigai_testkit::everything(),
        };
        let result = insist(async || me.close(store, call.clone(), what.clone()).await).await;
        let output = ikigai_testkit::output_of(&result);
        if output["sent"] == true {
            sent.fetch_add(1, Ordering::SeqCst);
        }
        if let Some(first) = output["messages"].as_array().and_then(|all| all.first()) {
            let call = insist(async || me.open(store).await).await;
            let read = Step::Read(first["id"].as_i64().unwrap());
            insist(async || me.close(store, call.clone(), read.clone()).await).await;
        }
    }
}

/// `STORE_RESTARTS=1000 cargo test -p ikigai-store a_server_killed` is a longer run.
#[test]
fn a_server_killed_and_restarted_loses_and_duplicates_nothing() {
    let restarts = std::env::var("STORE_RESTARTS").map_or(50, |number| number.parse().unwrap());
    let mut outage = Outage::new();
    let address = outage.server.address("postgres");
    let machines = [("one", [0, 1]), ("two", [2, 3])]
        .map(|(name, agents)| outage.machine(name, &address, agents));
    for _ in 0..restarts {
        outage.wait_for_more(12);
        outage.server.kill();
        outage.server.start_again();
    }
    outage.settle(&address, machines);
}

#[test]
fn agents_continue_on_a_promoted_standby() {
    let mut outage = Outage::new();
    let first = outage.server.address("postgres");
    let mut standby = outage.server.standby(5432);
    standby.start_again();
    // What is acknowledged is on both servers.
    Raw::open(&first).script("ALTER SYSTEM SET synchronous_standby_names = '*'");
    Raw::open(&first).script("SELECT pg_reload_conf()");
    let both = format!(
        "postgres://postgres@/postgres?host={},{}",
        outage.server.folder().display(),
        standby.folder().display()
    );
    let machines = [("one", [0, 1]), ("two", [2, 3])]
        .map(|(name, agents)| outage.machine(name, &both, agents));
    outage.wait_for_more(20);
    outage.server.kill();
    standby.promote();
    outage.wait_for_more(20);
    outage.settle(&standby.address("postgres"), machines);
}
