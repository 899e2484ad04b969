//! A server that is killed and started again while agents work: they wait for it, and the person sees one line.

use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use ikigai_testkit::{CapturedRequest, ModelServer, PostgresServer, Reply, checker};

use crate::support::Workspace;
use crate::support::model::Format;
use crate::support::scene::{forks, send, wait};

/// Every so many requests the server is killed, while the model thinks.
const BETWEEN: u32 = 4;

/// Two children write to their parent, which waits for them and says something to each mail.
fn play(request: &CapturedRequest) -> Reply {
    let results = request.results_since_user();
    match request.agent().as_deref() {
        Some("0/") | None => match results {
            0 if request.last_user_text().is_some_and(|said| said.ends_with("go")) => forks(2),
            2 => wait("w", serde_json::json!({})),
            _ => Reply::text("noted"),
        },
        Some(child) if results < 8 => {
            send(&format!("m{results}"), "parent", &format!("agent {child} {results}"))
        }
        Some(_) => Reply::text("done"),
    }
}

/// `IKIGAI_RESTARTS=50 cargo test killed_under_several_agents` is the long run.
#[test]
fn a_server_killed_under_several_agents_costs_one_line_each_time_and_nothing_else() {
    let wanted: u32 = std::env::var("IKIGAI_RESTARTS").map_or(4, |number| number.parse().unwrap());
    let mut restarts = 0;
    while restarts < wanted {
        restarts += one_run(wanted - restarts);
    }
}

/// One run of the program, with so many kills at most; returns how many there were.
fn one_run(most: u32) -> u32 {
    let server = Arc::new(Mutex::new(PostgresServer::start()));
    let address = server.lock().unwrap().address("postgres");
    let kills = Arc::new(AtomicU32::new(0));
    let asked = AtomicU32::new(0);
    let model = {
        let (server, kills) = (Arc::clone(&server), Arc::clone(&kills));
        ModelServer::choosing(move |request| {
            let number = asked.fetch_add(1, Ordering::SeqCst) + 1;
            let mut server = server.lock().unwrap();
            if number.is_multiple_of(BETWEEN)
                && server.is_running()
                && kills.load(Ordering::SeqCst) < most
            {
                kills.fetch_add(1, Ordering::SeqCst);
                server.kill();
            }
            play(request)
        })
    };
    let workspace = Workspace::new();
    let mut command = workspace.run_command(&model, Format::Chat, ["go"]);
    command.env("IKIGAI_DATABASE_URL", &address).stdout(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut lines = Vec::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if line.contains("cannot be reached") {
            // Only now: whoever waits was told.
            server.lock().unwrap().start_again();
        }
        lines.push(line);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "{lines:#?}");
    let told = lines.iter().filter(|line| line.contains("cannot be reached")).count();
    let kills = kills.load(Ordering::SeqCst);
    assert_eq!(u32::try_from(told).unwrap(), kills, "{lines:#?}");
    assert_eq!(checker::check(&address, &[]), Vec::<String>::new());
    assert_eq!(checker::check_settled(&address), Vec::<String>::new());
    assert!(kills > 0, "the run was too short");
    kills
}
