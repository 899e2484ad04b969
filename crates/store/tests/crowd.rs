//! Many processes with many agents each on one server: none waits forever, and none takes more
//! connections than its share.

use std::process::ExitCode;

use ikigai_conversation::{AgentId, SessionId};
use ikigai_store::{Options, Store};
use ikigai_testkit::{Kind, PLENTY, Random, TestAgent, TestStore, location};
use uuid::Uuid;

use crate::support::{ROOM, Running, check_database, child};

const PROCESSES: u32 = 16;
const AGENTS: u32 = 8;
const STEPS: u32 = 5;
/// A writer, a notifier, a listener and two readers.
const CONNECTIONS: i64 = 5;

/// One of many processes: its agents send, look and read, in two sessions at once.
pub(crate) fn work_as_child(arguments: &[String]) -> ExitCode {
    let [database, number, first, second] = arguments else { panic!("{arguments:?}") };
    let store = Store::open(database, Options::default()).unwrap();
    let number: u32 = number.parse().unwrap();
    let sessions = [first, second].map(|session| SessionId::parse(session).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = &store;
    runtime.block_on(async {
        let _changes = store.changes(sessions[0]).unwrap();
        let work = async |agent: u32| {
            let session = sessions[agent as usize % 2];
            let id = AgentId::top_level((number * AGENTS + agent) / 2);
            let mut me = TestAgent::claim(store, session, id).await.unwrap();
            let mut random = Random::new(u64::from(number * AGENTS + agent));
            for step in 0..STEPS {
                let to = random.below(u64::from(PROCESSES * AGENTS / 2));
                let to = AgentId::top_level(u32::try_from(to).unwrap());
                let body = format!("agent {} {number} {agent} {step}", me.id);
                me.send(store, &to, &body).await;
                me.look(store).await;
                store.agents(session).await.unwrap();
            }
        };
        tokio::join!(work(0), work(1), work(2), work(3), work(4), work(5), work(6), work(7));
    });
    ExitCode::SUCCESS
}

#[tokio::test]
async fn sixteen_processes_with_eight_agents_each_all_finish() {
    let store = TestStore::of(Kind::Postgres);
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let session = SessionId::new(Uuid::now_v7());
        store.create_session(location(), session, PLENTY).await.unwrap();
        for _ in 1..PROCESSES * AGENTS / 2 {
            store.add_agent(session, None, location(), ROOM).await.unwrap();
        }
        sessions.push(session.to_string());
    }
    let start = |number: u32| {
        let mut arguments = vec![store.database().to_owned(), number.to_string()];
        arguments.extend(sessions.clone());
        Running::start(&mut child("crowd", &arguments))
    };
    let raw = store.raw();
    let own = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
    let before = raw.number(own);
    let mut processes: Vec<Running> = (0..PROCESSES).map(start).collect();
    let mut most = 0;
    let running = |process: &mut Running| process.0.try_wait().unwrap().is_none();
    while processes.iter_mut().any(running) {
        most = most.max(raw.number(own) - before);
    }
    for process in processes {
        // It ends at the first error of the store, including a deadlock.
        assert_eq!(process.end().code(), Some(0));
    }
    assert!(most <= i64::from(PROCESSES) * CONNECTIONS, "{most} connections");
    let sent = store.number("SELECT count(*) FROM mail");
    assert_eq!(sent, i64::from(PROCESSES * AGENTS * STEPS));
    check_database(store.database(), &[]);
}
