//! Several agents at work in one process: what they do, and what holds whenever they have done it.

use std::process::Command;

use ikigai_testkit::{CapturedRequest, ModelServer, RawRow, Reply};
use serde_json::{Value, json};

use super::model::{Format, Running, assert_stable, errors_of, results_in};
use super::story::{assert_whole, contents, of_type};
use super::{Workspace, wait_for};

/// A call of `fork` for a fresh child.
pub(crate) fn fork(id: &str, prompt: &str) -> Reply {
    Reply::call(id, "fork", json!({ "prompt": prompt }))
}

/// Forks so many children in one response; the calls are `f0`, `f1` …
pub(crate) fn forks(count: usize) -> Reply {
    let ids: Vec<String> = (0..count).map(|number| format!("f{number}")).collect();
    Reply::calls(ids.iter().map(|id| (id.as_str(), "fork", json!({"prompt": format!("do {id}")}))))
}

pub(crate) fn wait(id: &str, arguments: Value) -> Reply {
    Reply::call(id, "wait", arguments)
}

pub(crate) fn kill(id: &str, agent: &str) -> Reply {
    Reply::call(id, "kill", json!({ "agent": agent }))
}

pub(crate) fn send(id: &str, to: &str, body: &str) -> Reply {
    Reply::call(id, "mail", json!({"action": "send", "to": to, "body": body}))
}

pub(crate) fn read(id: &str, mail: i64) -> Reply {
    Reply::call(id, "mail", json!({"action": "read", "id": mail}))
}

/// The result of a call, letter by letter, as the model got it.
#[track_caller]
pub(crate) fn result_of(request: &CapturedRequest, call: &str) -> String {
    let results = results_in(request);
    let found = results.iter().find(|(id, _)| id == call);
    found.unwrap_or_else(|| panic!("no result of {call} in {}", request.text())).1.clone()
}

/// The events of one agent.
pub(crate) fn of_agent(events: &[Value], agent: &str) -> Vec<Value> {
    events.iter().filter(|event| event["agent"] == agent).cloned().collect()
}

/// The types of one agent's events, a text in many pieces as one, without costs.
pub(crate) fn types_of(events: &[Value], agent: &str) -> Vec<String> {
    let mut types: Vec<String> = of_agent(events, agent)
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .filter(|kind| kind != "usage")
        .collect();
    types.dedup_by(|next, last| next == "text" && last == "text");
    types
}

/// How an agent's turns ended: the stop, the text, and the error or null.
pub(crate) fn endings(events: &[Value], agent: &str) -> Vec<(String, String, Value)> {
    let text = |event: &Value, field: &str| event[field].as_str().unwrap().to_owned();
    of_type(&of_agent(events, agent), "done")
        .iter()
        .map(|done| (text(done, "stop"), text(done, "text"), done["error"].clone()))
        .collect()
}

/// A turn that was answered with this text.
pub(crate) fn stop(text: &str) -> (String, String, Value) {
    ("stop".to_owned(), text.to_owned(), Value::Null)
}

/// The turn of somebody who was killed in it.
pub(crate) fn killed() -> (String, String, Value) {
    ("interrupted".to_owned(), String::new(), json!("the agent was killed"))
}

/// A scene that was played to its end.
pub(crate) struct Scene {
    pub(crate) workspace: Workspace,
    pub(crate) server: ModelServer,
    pub(crate) code: i32,
    pub(crate) events: Vec<Value>,
    pub(crate) stderr: String,
}

impl Scene {
    /// Plays `ikigai run --json go`.
    #[track_caller]
    pub(crate) fn play(workspace: Workspace, server: ModelServer, format: Format) -> Scene {
        Scene::play_with(workspace, server, format, |_| {}, |_, _, _| {})
    }

    /// The same with a changed command, and somebody who takes part while it goes on.
    #[track_caller]
    pub(crate) fn play_with(
        workspace: Workspace,
        server: ModelServer,
        format: Format,
        change: impl FnOnce(&mut Command),
        take_part: impl FnOnce(&Workspace, &ModelServer, &Running),
    ) -> Scene {
        let mut command = workspace.run_command(&server, format, ["--json", "go"]);
        change(&mut command);
        let running = Running::start(&mut command);
        take_part(&workspace, &server, &running);
        let mut events = running.seen.take();
        let (code, rest, stderr) = running.finish();
        events.extend(rest);
        Scene { workspace, server, code, events, stderr }
    }

    /// Fails unless what holds after every scene holds: the exit code, nothing on standard error, events that are
    /// whole, logs that are whole, requests that the strictest server takes, and nobody at work.
    #[track_caller]
    pub(crate) fn check(&self) -> &Scene {
        assert_eq!((self.code, &self.stderr), (0, &errors_of(&self.events)), "{:?}", self.events);
        self.check_events();
        self.check_agents();
        self
    }

    #[track_caller]
    fn check_events(&self) {
        let has_both = |event: &Value| event["type"].is_string() && event["agent"].is_string();
        assert!(self.events.iter().all(has_both), "{:?}", self.events);
        let first = self.events.first().unwrap();
        assert_eq!((&first["type"], &first["agent"]), (&json!("session"), &json!("0/")));
        let last = self.events.last().unwrap();
        assert_eq!((&last["type"], &last["agent"]), (&json!("done"), &json!("0/")));
    }

    #[track_caller]
    fn check_agents(&self) {
        for agent in self.registry() {
            let id = agent["id"].as_str().unwrap();
            assert!(["idle", "dead"].map(Value::from).contains(&agent["state"]), "{agent}");
            assert_stable(&self.server.requests_of(id));
            let log = self.log(id);
            // One that was only added has none, and one that was killed may have left a call open.
            if agent["state"] == "idle" && !log.is_empty() {
                assert_whole(&log);
            }
            let events = of_agent(&self.events, id);
            let is_whole = events.last().is_none_or(|event| event["type"] == "done");
            assert!(is_whole, "{id}: {events:?}");
        }
    }

    pub(crate) fn registry(&self) -> Vec<Value> {
        let Value::Array(agents) = self.workspace.json(["agents", "--json"]) else {
            panic!("no list")
        };
        agents
    }

    /// What the registry says of one agent.
    #[track_caller]
    pub(crate) fn agent(&self, id: &str) -> Value {
        let found = self.registry().into_iter().find(|agent| agent["id"] == id);
        found.unwrap_or_else(|| panic!("there is no agent {id}"))
    }

    pub(crate) fn log(&self, agent: &str) -> Vec<Value> {
        self.workspace.log(agent)
    }

    pub(crate) fn endings(&self, agent: &str) -> Vec<(String, String, Value)> {
        endings(&self.events, agent)
    }

    /// All that an agent was told of mail.
    pub(crate) fn notifications(&self, agent: &str) -> Vec<String> {
        contents(&self.log(agent), "notification").into_iter().map(str::to_owned).collect()
    }

    /// The result of a call, letter by letter, as the last request of its agent has it.
    #[track_caller]
    pub(crate) fn result_of(&self, agent: &str, call: &str) -> String {
        let requests = self.server.requests_of(agent);
        result_of(requests.last().unwrap_or_else(|| panic!("{agent} has asked nothing")), call)
    }

    /// All mail: recipient, sender, body, in the order of the ids.
    pub(crate) fn mail(&self) -> Vec<(String, String, String)> {
        let sql = "SELECT r.id, s.id, m.body FROM mail m JOIN agents r ON r.key = m.recipient
            JOIN agents s ON s.key = m.sender ORDER BY m.id";
        let read = |row: &RawRow<'_>| [0, 1, 2].map(|column| row.text(column).unwrap()).into();
        self.workspace.raw().rows(sql, read)
    }

    /// Fails unless every mail was announced by exactly one notification, in its recipient's log (M4).
    #[track_caller]
    pub(crate) fn check_announced_once(&self) {
        let mut announced: Vec<(String, i64)> = Vec::new();
        for agent in self.registry() {
            let id = agent["id"].as_str().unwrap();
            let log = self.log(id);
            let told = log.iter().filter(|message| message["kind"] == "notification");
            let ids = told.flat_map(|message| message["data"]["mail"].as_array().unwrap().clone());
            announced.extend(ids.map(|mail| (id.to_owned(), mail.as_i64().unwrap())));
        }
        announced.sort_by_key(|(_, mail)| *mail);
        let recipients = self.mail().into_iter().map(|(recipient, _, _)| recipient);
        assert_eq!(announced, recipients.zip(1..).collect::<Vec<_>>());
    }
}

impl Workspace {
    /// Waits until so many agents are waited for.
    #[track_caller]
    pub(crate) fn wait_for_waits(&self, count: i64) {
        self.wait_for_number("SELECT count(*) FROM waits", count);
    }

    /// Waits until mail is held for want of wakes.
    #[track_caller]
    pub(crate) fn wait_for_held_mail(&self) {
        self.wait_for_number("SELECT held_told FROM sessions", 1);
    }

    #[track_caller]
    fn wait_for_number(&self, sql: &str, number: i64) {
        let raw = self.raw();
        wait_for(sql, || {
            let found = raw.try_rows(sql, |row| row.integer(0)).unwrap_or_default();
            (found.first() == Some(&Some(number))).then_some(())
        });
    }
}
