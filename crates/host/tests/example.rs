//! `examples/json.rs`: a front end that uses only the protocol.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikigai_testkit::{AgentScripts, Reply as ModelReply};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::support::Home;

#[allow(dead_code, reason = "its main is for the program")]
#[path = "../examples/json.rs"]
mod json;

/// The lines printed so far.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<Value>>>);

impl Printed {
    fn print(&self) -> json::Print {
        let lines = Arc::clone(&self.0);
        Arc::new(move |line| lines.lock().unwrap().push(line))
    }

    /// Waits for a line.
    async fn wait_for(&self, found: impl Fn(&Value) -> bool) -> Value {
        let waiting = async {
            loop {
                if let Some(line) = self.0.lock().unwrap().iter().find(|line| found(line)) {
                    return line.clone();
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        let line = timeout(Duration::from_secs(60), waiting).await;
        line.unwrap_or_else(|_| panic!("it never came: {:#?}", self.0.lock().unwrap()))
    }

    async fn answer(&self, request: usize) -> Value {
        let mut line = self.wait_for(|line| line["request"] == request).await;
        line.as_object_mut().unwrap().remove("request");
        line
    }

    async fn answered_turn(&self, agent: &str, text: &str) {
        let ended = |line: &Value| {
            line["event"] == "turn_ended" && line["agent"] == agent && line["data"]["text"] == text
        };
        self.wait_for(ended).await;
    }
}

#[tokio::test]
async fn a_front_end_of_json_lines_talks_approves_switches_mails_and_undoes() {
    let write = json!({"path": "AGENTS.md", "content": "be kind"});
    let server = AgentScripts::new()
        .role("0/", [ModelReply::call("c", "file_write", write), ModelReply::text("written")])
        .role("0/0/", [ModelReply::text("I read it"), ModelReply::text("hello from below")])
        .start();
    let home = Home::new(server);
    let (input, lines) = mpsc::channel(8);
    let printed = Printed::default();
    let talking = tokio::spawn(json::talk(Arc::new(home.environment()), lines, printed.print()));
    let send = |line: Value| input.send(line.to_string());

    send(json!({"agent": "0/", "command": "say", "text": "write it"})).await.unwrap();
    assert_eq!(printed.answer(1).await, json!({"reply": "done"}));
    let asked = printed.wait_for(|line| line["event"] == "approval_requested").await;
    assert_eq!(asked["data"]["call"]["name"], "file_write");
    let call = &asked["data"]["call"]["tool_call_id"];
    // An answer counts for the request with this hash only.
    let hash = &asked["data"]["hash"];
    send(json!({
        "agent": "0/", "command": "answer", "call": call, "hash": hash, "decision": "once",
    }))
    .await
    .unwrap();
    assert_eq!(printed.answer(2).await, json!({"reply": "done"}));
    printed.answered_turn("0/", "written").await;
    let file = home.project().join("AGENTS.md");
    assert!(file.exists());

    send(json!({"agent": "0/", "command": "fork"})).await.unwrap();
    assert_eq!(printed.answer(3).await, json!({"reply": "forked", "data": "0/0/"}));
    send(json!({"agent": "0/", "command": "open", "target": "0/0/"})).await.unwrap();
    assert_eq!(printed.answer(4).await["data"]["agent"], "0/0/");
    send(json!({"agent": "0/", "command": "mail", "line": "send 0/0/ look"})).await.unwrap();
    assert_eq!(printed.answer(5).await, json!({"reply": "mail_sent", "data": {"to": "0/0/"}}));
    printed.answered_turn("0/0/", "I read it").await;
    send(json!({"agent": "0/0/", "command": "say", "text": "hello"})).await.unwrap();
    printed.answered_turn("0/0/", "hello from below").await;

    send(json!({"agent": "0/", "command": "undo"})).await.unwrap();
    let undone = printed.answer(7).await;
    assert_eq!(undone["data"]["files"], json!([["AGENTS.md", {"outcome": "removed"}]]));
    assert!(!file.exists());
    send(json!({"agent": "0/", "command": "dance"})).await.unwrap();
    assert_eq!(printed.answer(8).await["error"], "usage");
    drop(input);
    timeout(Duration::from_secs(60), talking).await.unwrap().unwrap().unwrap();
}
