//! Which session and agent a run works with, alone and beside others.

use ikigai_testkit::{CapturedRequest, Gate, Kind, ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::model::{Format, Running, assert_strict, events};
use crate::support::{Ended, Workspace, ended, kind, pid};

fn server() -> ModelServer {
    ModelServer::choosing(|_| Reply::text("ok"))
}

/// A server that waits with its answer to the first who says `wait`.
fn waiting(gate: &Gate) -> ModelServer {
    let gate = gate.clone();
    ModelServer::choosing(move |request| {
        let said = request.last_user_text().unwrap_or_default();
        let reply = Reply::text(&format!("answer to {said}"));
        if said.ends_with("wait") { reply.after(&gate) } else { reply }
    })
}

fn failed(text: &str) -> Ended {
    (1, String::new(), format!("ikigai: {text}\n"))
}

/// A local server has no usual model: who named one once need not do it again.
#[test]
fn a_session_that_goes_on_keeps_its_model_where_none_is_chosen() {
    let server = server();
    let workspace = Workspace::new();
    let run = |arguments: &[&str]| {
        let mut command = workspace.ikigai();
        command.env("OPENAI_BASE_URL", server.base_url()).args(["run", "--json"]).args(arguments);
        let (code, stdout, stderr) = ended(&mut command);
        let model = events(&stdout).first().map(|event| event["model"].clone());
        (code, model.unwrap_or_default(), stderr)
    };
    let kept = (0, json!("openai/tiny-1"), String::new());
    assert_eq!(run(&["--model", "openai/tiny-1", "one"]), kept);
    assert_eq!(run(&["-c", "two"]), kept);
    assert_eq!(run(&["-c", "--model", "openai/tiny-2", "three"]).1, "openai/tiny-2");
    assert_eq!(run(&["-c", "four"]).1, "openai/tiny-2");
    let (code, _, told) = run(&["five"]);
    assert!(code == 1 && told.contains("no model is selected"), "{told}");
}

/// What the person said to an agent of a session.
fn said_in(workspace: &Workspace, session: &str, agent: &str) -> Vec<String> {
    let lines = workspace.print(["log", "--json", "--session", session, "--agent", agent]);
    let is_user = |message: &&Value| message["kind"] == "user";
    let text = |message: &Value| message["content"].as_str().unwrap().to_owned();
    events(&lines).iter().filter(is_user).map(text).collect()
}

fn session_of(events: &[Value]) -> String {
    assert_eq!(events[0]["type"], "session");
    events[0]["session"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_begins_a_session_unless_it_is_told_to_go_on() {
    let server = server();
    let workspace = Workspace::new();
    let run = |arguments: [&str; 2]| {
        let (code, events) = workspace.run_json(&server, Format::Chat, arguments);
        assert_eq!((code, &events[0]["agent"]), (0, &json!("0/")));
        session_of(&events)
    };
    let first = run(["--new", "one"]);
    let second = run(["--agent=0/", "two"]);
    assert_ne!(first, second);
    assert_eq!(run(["-c", "three"]), second);
    let named = ["--session", &first, "four"];
    let (_, events) = workspace.run_json(&server, Format::Chat, named);
    assert_eq!(session_of(&events), first);
    // The newest one is the one last written to.
    assert_eq!(run(["-c", "five"]), first);
    assert_eq!(said_in(&workspace, &first, "0/"), ["one", "four", "five"]);
    assert_eq!(said_in(&workspace, &second, "0/"), ["two", "three"]);
}

#[test]
fn a_session_is_named_by_its_beginning() {
    let server = server();
    let workspace = Workspace::new();
    let (_, events) = workspace.run_json(&server, Format::Chat, ["one"]);
    let session = session_of(&events);
    let beginning = ["--session", &session[..8], "two"];
    let (code, events) = workspace.run_json(&server, Format::Chat, beginning);
    assert_eq!((code, session_of(&events)), (0, session.clone()));
    let nowhere = ["--session", "zzz", "three"];
    let told = failed("Session zzz not found: 'ikigai sessions' lists them");
    assert_eq!(workspace.run_model(&server, Format::Chat, nowhere), told);
    let (other, with_it) = ("01900000-0000-7000-8000-000000000000", "--session");
    let (code, stdout, stderr) = workspace.run_model(&server, Format::Chat, [with_it, other, "x"]);
    assert_eq!((code, &*stdout), (1, ""));
    assert!(stderr.contains(&format!("Session {other} not found")), "{stderr}");
    assert_eq!(said_in(&workspace, &session, "0/"), ["one", "two"]);
}

#[test]
fn a_session_is_joined_from_anywhere_and_works_where_the_run_is() {
    let server = server();
    let workspace = Workspace::new();
    workspace.folder("elsewhere");
    let (_, events) = workspace.run_json(&server, Format::Chat, ["one"]);
    let session = session_of(&events);
    let elsewhere = ["-C", "elsewhere", "--session", &session, "two"];
    assert_eq!(workspace.run_model(&server, Format::Chat, elsewhere).0, 0);
    assert_eq!(said_in(&workspace, &session, "0/"), ["one", "two"]);
    let told =
        format!("there is no session in {} to continue", workspace.path("elsewhere").display());
    let nothing_there = ["-C", "elsewhere", "-c", "three"];
    assert_eq!(workspace.run_model(&server, Format::Chat, nothing_there), failed(&told));
}

#[test]
fn going_on_where_nothing_was_is_refused() {
    let server = server();
    let workspace = Workspace::new();
    let told = format!("there is no session in {} to continue", workspace.directory().display());
    assert_eq!(workspace.run_model(&server, Format::Chat, ["-c", "go"]), failed(&told));
    assert_eq!(workspace.print(["sessions"]), "No sessions yet\n");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn an_agent_is_chosen_by_its_id() {
    let server = server();
    let workspace = Workspace::with_agents(2);
    for agent in ["1/", "1"] {
        let (code, events) =
            workspace.run_json(&server, Format::Chat, ["-c", "--agent", agent, "go"]);
        assert_eq!(code, 0);
        assert!(events.iter().all(|event| event["agent"] == "1/"), "{events:?}");
    }
    assert_eq!(workspace.log("0/"), Vec::<Value>::new());
    let request = server.requests()[0].last_user_text();
    assert_eq!(request.as_deref(), Some("[You are agent 1/]\n\ngo"));
    for (arguments, told) in [
        (["-c", "--agent", "7/", "go"], "Agent 7/ not found"),
        (["--new", "--agent", "1/", "go"], "a new session has only agent 0/, not 1/"),
        (["-c", "--agent", "x", "go"], "'x' is not an agent"),
    ] {
        let (code, stdout, stderr) = workspace.run_model(&server, Format::Chat, arguments);
        assert_eq!((code, &*stdout), (1, ""));
        assert!(stderr.starts_with(&format!("ikigai: {told}")), "{stderr}");
    }
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn runs_at_the_same_time_are_sessions_of_their_own() {
    const RUNS: usize = 4;
    let gate = Gate::new();
    let server = {
        let gate = gate.clone();
        ModelServer::choosing(move |request: &CapturedRequest| {
            let said = request.last_user_text().unwrap();
            match request.results_since_user() {
                0 => {
                    let command = json!({"command": format!("echo '{said}'")});
                    Reply::call("call_0", "bash", command).after(&gate)
                }
                _ => Reply::text(&format!("answer to {said}")),
            }
        })
    };
    let workspace = Workspace::new();
    let runs: Vec<Running> = (0..RUNS)
        .map(|number| {
            let prompt = format!("number {number}");
            Running::start(&mut workspace.run_command(&server, Format::Chat, ["--json", &prompt]))
        })
        .collect();
    server.wait_for_requests(RUNS);
    gate.open();
    let mut sessions = Vec::new();
    for (number, run) in runs.into_iter().enumerate() {
        let (code, events, stderr) = run.finish();
        assert_eq!((code, &*stderr), (0, ""));
        let session = session_of(&events);
        assert_eq!(said_in(&workspace, &session, "0/"), [format!("number {number}")]);
        let answer = format!("answer to [You are agent 0/]\n\nnumber {number}");
        assert_eq!(events.last().unwrap()["text"], answer);
        let result = events.iter().find(|event| event["type"] == "tool_result").unwrap();
        let output = result["result"]["data"]["output"].as_str().unwrap();
        assert!(output.ends_with(&format!("number {number}\n")), "{output}");
        sessions.push(session);
    }
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), RUNS);
    assert_strict(&server.requests());
}

/// Starts a run of `0/` that waits for its answer.
fn start_waiting(workspace: &Workspace, server: &ModelServer) -> Running {
    let mut command = workspace.run_command(server, Format::Chat, ["--json", "wait"]);
    let run = Running::start(&mut command);
    server.wait_for_requests(1);
    run
}

#[test]
fn going_on_beside_another_process_takes_the_next_free_agent_or_a_new_one() {
    let gate = Gate::new();
    let server = waiting(&gate);
    let workspace = Workspace::new();
    let busy = start_waiting(&workspace, &server);
    let beside = |prompt: &str, told: &str| {
        let arguments = ["-c", prompt];
        let (code, events) = workspace.run_json_telling(&server, Format::Chat, arguments, told);
        assert_eq!(code, 0);
        (session_of(&events), events[0]["agent"].as_str().unwrap().to_owned())
    };
    let told = "ikigai: agent 0/ is run by another process, so you talk to agent 1/\n";
    let (session, agent) = beside("two", told);
    assert_eq!(agent, "1/");
    // It was given back by the run before.
    assert_eq!(beside("three", told), (session.clone(), "1/".to_owned()));
    gate.open();
    let (code, events, _) = busy.finish();
    assert_eq!((code, session_of(&events)), (0, session.clone()));
    assert_eq!(beside("four", ""), (session.clone(), "0/".to_owned()));
    assert_eq!(said_in(&workspace, &session, "0/"), ["wait", "four"]);
    assert_eq!(said_in(&workspace, &session, "1/"), ["two", "three"]);
}

#[test]
fn an_agent_that_another_process_runs_is_refused_with_who_runs_it() {
    let gate = Gate::new();
    let server = waiting(&gate);
    let workspace = Workspace::new();
    let busy = start_waiting(&workspace, &server);
    let (pid, system) = (pid(&busy.child), rustix::system::uname());
    let host = system.nodename().to_str().unwrap();
    let told = format!("Agent 0/ is run by another process (pid {pid} on {host})");
    let arguments = ["-c", "--agent", "0/", "mine"];
    let (code, stdout, stderr) = workspace.run_model(&server, Format::Chat, arguments);
    assert_eq!((code, &*stdout), (1, ""));
    assert!(stderr.starts_with(&format!("ikigai: {told}")), "{stderr} is not {told}");
    gate.open();
    assert_eq!(busy.finish().0, 0);
    assert_eq!(workspace.run_model(&server, Format::Chat, arguments).0, 0);
}

#[test]
fn a_new_session_does_not_join_one_that_runs() {
    let gate = Gate::new();
    let server = waiting(&gate);
    let workspace = Workspace::new();
    let busy = start_waiting(&workspace, &server);
    for arguments in [["--new", "two"], ["--agent=0/", "three"]] {
        let (code, events) = workspace.run_json(&server, Format::Chat, arguments);
        assert_eq!((code, &events[0]["agent"]), (0, &json!("0/")));
    }
    gate.open();
    assert_eq!(busy.finish().0, 0);
    let sessions = workspace.json(["sessions", "--json"]);
    assert_eq!(sessions.as_array().unwrap().len(), 3);
}

/// A command of an agent may start a run of its own; it must not get into the agent's session.
#[test]
fn a_run_inside_a_command_of_an_agent_is_a_session_of_its_own() {
    let server = ModelServer::choosing(|request| {
        let said = request.last_user_text().unwrap();
        let is_outer = said.ends_with("outer");
        match (is_outer, request.results_since_user()) {
            (true, 0) => {
                let command = "\"$IKIGAI\" run --model openai/inner inner";
                Reply::call("c1", "bash", json!({ "command": command }))
            }
            (true, _) => Reply::text("outer done"),
            (false, _) => Reply::text("inner done"),
        }
    });
    let workspace = Workspace::unconfined();
    let mut command = workspace.run_command(&server, Format::Chat, ["outer"]);
    command.env("IKIGAI", env!("CARGO_BIN_EXE_ikigai"));
    let (code, stdout, stderr) = ended(&mut command);
    assert_eq!((code, &*stdout), (0, "outer done\n"), "{stderr}");
    let sessions = workspace.json(["sessions", "--json"]);
    let both = match kind() {
        Kind::Sqlite => 2,
        // The address of a server is in a variable here, which commands do not get: the other one is in a file.
        Kind::Postgres => 1,
    };
    assert_eq!(sessions.as_array().unwrap().len(), both);
    let output = server.requests().last().unwrap().tool_output("c1");
    assert_eq!(output["data"], json!({"output": "inner done\n", "exit_code": 0}));
}

/// The line was printed before the session was made, and named one that nobody would ever find.
#[test]
fn the_session_event_names_a_session_that_exists() {
    let gate = Gate::default();
    let (server, workspace) = (waiting(&gate), Workspace::new());
    workspace.make_session();
    let sessions = || -> Vec<Value> {
        let listed = workspace.json(["sessions", "--json"]);
        listed.as_array().unwrap().iter().map(|session| session["id"].clone()).collect()
    };
    workspace.raw().refuse("INSERT ON sessions", "true");
    let (code, stdout, stderr) =
        workspace.run_model(&server, Format::Chat, ["--json", "not in the log"]);
    let told = events(&stdout);
    assert_eq!((code, told.len(), &told[0]["type"]), (1, 1, &json!("done")), "{told:?}");
    assert_eq!(stderr, format!("ikigai: {}\n", told[0]["error"].as_str().unwrap()));
    assert_eq!(sessions().len(), 1);
    workspace.raw().allow("sessions");
    let mut run =
        Running::start(&mut workspace.run_command(&server, Format::Chat, ["--json", "wait"]));
    let session = run.next().unwrap();
    run.child.kill().unwrap();
    run.child.wait().unwrap();
    assert_eq!(session["type"], "session");
    assert!(sessions().contains(&session["session"]), "{session}");
    gate.open();
}
