//! Processes on several machines: other identities, other folders, one server.
//!
//! A machine is a namespace with a name and an identity of its own. It shares the loopback, on which the model answers.

use std::process::Command;
use std::time::{Duration, Instant};

use ikigai_testkit::{
    CapturedRequest, ModelServer, PostgresServer, Raw, Reply, checker, fresh_database,
};
use rustix::process::{Signal, geteuid, kill_process};
use serde_json::{Value, json};

use crate::support::model::{Format, Running};
use crate::support::scene::{forks, send, wait};
use crate::support::terminal::start_talking;
use crate::support::{PATIENCE, Workspace, ended, finish, pid, skip};

/// Processes of the long scenario, and the children that each of them forks.
const PROCESSES: usize = 16;
const CHILDREN: usize = 7;

/// The same command on another machine.
fn on_machine(name: &str, workspace: &Workspace, command: &Command) -> Command {
    let identity = format!("../{name}");
    workspace.write(&identity, format!("{:0>32}\n", name.len()));
    let script = r#"mount --bind "$1" /etc/machine-id && hostname "$2" && shift 2 && exec "$@""#;
    let mut there = Command::new("unshare");
    if !geteuid().is_root() {
        there.args(["--user", "--map-root-user"]);
    }
    there.args(["--mount", "--uts", "sh", "-c", script, "sh"]).arg(workspace.path(identity));
    there.arg(name).arg(command.get_program()).args(command.get_args()).env_clear();
    for (variable, value) in command.get_envs() {
        there.env(variable, value.unwrap_or_default());
    }
    there.current_dir(workspace.directory());
    there.stdin(std::process::Stdio::null());
    there.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    there
}

/// Whether this machine can be divided; if not, that is said.
fn can_be_divided() -> bool {
    let workspace = Workspace::new();
    let (code, stdout, stderr) =
        ended(&mut on_machine("elsewhere", &workspace, &Command::new("hostname")));
    let can = (code, &*stdout) == (0, "elsewhere\n");
    if !can {
        skip(&format!("no namespace of our own can be had here: {stderr}"));
    }
    can
}

/// `2/` asks and waits; who gets the question answers it.
fn answers(request: &CapturedRequest) -> Reply {
    let said = request.last_user_text().unwrap_or_default();
    match request.results_since_user() {
        0 if said.contains("question") => send("a", "1/", "reply"),
        0 if said.ends_with("ask") => send("q", "0/", "question"),
        1 if said.ends_with("ask") => wait("w", json!({"agents": ["0/"]})),
        _ => Reply::text("Well."),
    }
}

#[test]
fn two_machines_with_folders_of_their_own_write_to_each_other_in_one_session() {
    if !can_be_divided() {
        return;
    }
    let address = fresh_database();
    let (here, there) = (Workspace::on(&address), Workspace::on(&address));
    let server = ModelServer::choosing(answers);
    let mut terminal = start_talking(&here, &server);
    terminal.type_line("hi");
    terminal.wait_for("● Well.\r\n❯ ");
    let session = here.open().session().to_string();
    let arguments = ["--session", &session, "--json", "ask"];
    let command = there.run_command(&server, Format::Chat, arguments);
    let (code, stdout, stderr) = ended(&mut on_machine("two", &there, &command));
    let told = "ikigai: agent 0/ is run by another process, so you talk to agent 1/\n";
    assert_eq!((code, &*stderr), (0, told), "{stdout}");
    terminal.wait_for("   question");
    let waited = crate::support::model::events(&stdout)
        .into_iter()
        .find(|event| event["type"] == "tool_result" && event["name"] == "wait")
        .unwrap();
    assert_eq!(waited["result"]["data"]["unread"], 1, "{waited}");
    terminal.end_input();
    assert_eq!(terminal.finish("❯ ").0, Some(0));
    assert_eq!(here.number("SELECT count(DISTINCT (machine, directory)) FROM agents"), 2);
    let holder = "SELECT holder::json ->> 'host' FROM leases l JOIN agents a ON a.key = l.agent";
    assert_eq!(here.raw().text(&format!("{holder} WHERE a.id = '1/'")), "two");
    assert_eq!(checker::check(&address, &[]), Vec::<String>::new());
}

#[test]
fn another_machines_folder_under_the_same_path_is_not_refused() {
    if !can_be_divided() {
        return;
    }
    let here = Workspace::on(&fresh_database());
    let server = ModelServer::choosing(|_| Reply::text("ok"));
    assert_eq!(here.run_model(&server, Format::Chat, ["one"]).0, 0);
    let session = here.open().session().to_string();
    let moved = here.directory().with_file_name("moved");
    std::fs::rename(here.directory(), &moved).unwrap();
    std::fs::create_dir(here.directory()).unwrap();
    let mut command = here.run_command(&server, Format::Chat, ["--session", &session, "two"]);
    let (code, stdout, stderr) = ended(&mut on_machine("two", &here, &command));
    assert_eq!((code, &*stdout, &*stderr), (0, "ok\n", ""));
    let (code, _, stderr) = ended(&mut command);
    assert!(code == 1 && stderr.contains("was moved or replaced"), "{stderr}");
}

#[test]
fn of_another_machines_process_only_its_lease_tells_that_it_is_gone() {
    if !can_be_divided() {
        return;
    }
    let address = fresh_database();
    let (here, there) = (Workspace::on(&address), Workspace::on(&address));
    let silent = ModelServer::choosing(|_| Reply::silence());
    let command = there.run_command(&silent, Format::Chat, ["--json", "go"]);
    let run = on_machine("two", &there, &command).spawn().unwrap();
    silent.wait_for_requests(1);
    kill_process(pid(&run), Signal::KILL).unwrap();
    finish(run);
    let server = ModelServer::choosing(|_| Reply::text("Hello."));
    let session = here.open().session().to_string();
    let take = ["--session", &session, "--agent", "0/", "mine"];
    let (code, _, told) = here.run_model(&server, Format::Chat, take);
    assert_eq!(code, 1);
    assert!(
        told.contains("is run by another process (pid ") && told.contains(" on two)"),
        "{told}"
    );
    here.sql("UPDATE leases SET until = 1 WHERE until > 0");
    let (code, stdout, stderr) = here.run_model(&server, Format::Chat, take);
    assert_eq!((code, &*stdout, &*stderr), (0, "Hello.\n", ""));
}

/// Every process forks its children and waits for them; each of them writes to the next process's agent.
fn busy(request: &CapturedRequest) -> Reply {
    let id = request.agent().unwrap_or_else(|| "0/".to_owned());
    let number: usize = id.split('/').next().unwrap().parse().unwrap();
    let is_child = id.matches('/').count() > 1;
    match request.results_since_user() {
        done if is_child && done < 2 => {
            let next = format!("{}/", (number + 1) % PROCESSES);
            send(&format!("m{done}"), &next, &format!("agent {id} {done}"))
        }
        0 if !is_child && request.last_user_text().is_some_and(|said| said.ends_with("go")) => {
            forks(CHILDREN)
        }
        CHILDREN if !is_child => wait("w", json!({})),
        _ => Reply::text("done"),
    }
}

/// Waits until all have ended, as long as somebody gets on. Returns the most connections that were seen.
fn watch(raw: &Raw, runs: &mut [Running]) -> i64 {
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
    let (mut most, mut written, mut since) = (0, 0, Instant::now());
    while runs.iter_mut().any(|run| run.child.try_wait().unwrap().is_none()) {
        most = most.max(raw.number(connections));
        let now = raw.number("SELECT count(*) FROM messages");
        if now != written {
            (written, since) = (now, Instant::now());
        }
        assert!(since.elapsed() < PATIENCE, "nobody gets on, after {written} messages");
        std::thread::sleep(Duration::from_millis(20));
    }
    most
}

#[test]
fn sixteen_processes_with_eight_agents_each_neither_lock_up_nor_starve() {
    let server = PostgresServer::start();
    let address = server.address("postgres");
    let model = ModelServer::choosing(busy);
    let workspace = Workspace::on(&address);
    workspace.make_session();
    let session = workspace.open().session().to_string();
    let start = |_| {
        let arguments = ["--session", &session, "--json", "go"];
        let mut command = workspace.run_command(&model, Format::Chat, arguments);
        let limits = [("IKIGAI_MAX_AGENTS", "200"), ("IKIGAI_MAX_REQUESTS", "5000")];
        Running::start(command.envs(limits))
    };
    let mut runs: Vec<Running> = (0..PROCESSES).map(start).collect();
    let raw = workspace.raw();
    let most = watch(&raw, &mut runs);
    for run in runs {
        let (code, events, stderr) = run.finish();
        assert_eq!(code, 0, "{stderr} {:?}", events.last());
        let own = |event: &&Value| event["agent"] == events[0]["agent"];
        let done = events.iter().filter(own).find(|event| event["type"] == "done").unwrap();
        assert_eq!(done["stop"], "stop", "{done}");
    }
    // Five of each process, and the test's own.
    assert!(most <= 5 * 16 + 1, "{most} connections");
    let agents = i64::try_from(PROCESSES * (CHILDREN + 1)).unwrap();
    assert_eq!(raw.number("SELECT count(*) FROM agents WHERE state = 'idle'"), agents);
    let sent = "SELECT count(*) FROM mail WHERE body LIKE 'agent %'";
    assert_eq!(raw.number(sent), i64::try_from(PROCESSES * CHILDREN * 2).unwrap());
    assert_eq!(raw.number("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'"), 0);
    assert_eq!(checker::check(&address, &[]), Vec::<String>::new());
}
