//! A model server with a separate script for each agent.
//!
//! ```
//! use ikigai_testkit::{AgentScripts, Reply};
//! use serde_json::json;
//!
//! let server = AgentScripts::new()
//!     .role("0/", [Reply::call("c1", "fork", json!({"prompt": "count"})), Reply::text("forked")])
//!     .role("0/0/", [Reply::text("three")])
//!     .start();
//! assert!(server.requests_of("0/0/").is_empty());
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use super::captured::CapturedRequest;
use super::reply::Reply;
use super::{ModelServer, Script};

/// The scripts of agents. An agent that has no script, or has used all its replies, gets an error
/// that says so.
#[derive(Default)]
pub struct AgentScripts {
    roles: BTreeMap<String, Role>,
}

enum Role {
    Script(Mutex<VecDeque<Reply>>),
    Choice(Box<dyn Fn(&CapturedRequest) -> Reply + Send + Sync>),
}

impl AgentScripts {
    /// Without scripts.
    pub fn new() -> AgentScripts {
        AgentScripts::default()
    }

    /// This agent gets these replies, one per request.
    #[must_use]
    pub fn role(self, agent: &str, script: impl IntoIterator<Item = Reply>) -> AgentScripts {
        self.with(agent, Role::Script(Mutex::new(script.into_iter().collect())))
    }

    /// This agent's replies depend on its requests.
    #[must_use]
    pub fn choosing(
        self,
        agent: &str,
        choose: impl Fn(&CapturedRequest) -> Reply + Send + Sync + 'static,
    ) -> AgentScripts {
        self.with(agent, Role::Choice(Box::new(choose)))
    }

    fn with(mut self, agent: &str, role: Role) -> AgentScripts {
        let earlier = self.roles.insert(agent.to_owned(), role);
        assert!(earlier.is_none(), "agent {agent} has a role already");
        self
    }

    /// Starts the server.
    pub fn start(self) -> ModelServer {
        ModelServer::on_port(0, Script::Choice(Box::new(move |captured| self.reply(captured))))
    }

    fn reply(&self, captured: &CapturedRequest) -> Reply {
        // A status that clients do not retry.
        let missing = |what: &str| Reply::error(400, what);
        let Some(agent) = captured.agent() else { return missing("the request has no identity") };
        let next = match self.roles.get(&agent) {
            None => return missing(&format!("agent {agent} has no role")),
            Some(Role::Script(replies)) => replies.lock().unwrap().pop_front(),
            Some(Role::Choice(choose)) => Some(choose(captured)),
        };
        next.unwrap_or_else(|| missing(&format!("agent {agent} has no line left")))
    }
}
