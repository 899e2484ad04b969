//! The agents of a session as a front end lists them.

use ikigai_conversation::{AgentId, Time};
use serde::Serialize;

use crate::reply::TokenCount;

/// An agent in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentSummary {
    /// Its ID.
    pub id: AgentId,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What it is doing.
    pub state: AgentState,
    /// The first line of its task.
    pub task: String,
    /// How much unread mail it has.
    pub unread: u32,
    /// The tokens that it used.
    pub tokens: TokenCount,
    /// Which process runs it.
    pub runner: Runner,
    /// When it was made, if it is in the database.
    pub created_at: Option<Time>,
}

/// What an agent is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// Nothing: it waits for messages.
    Idle,
    /// It waits for the model.
    Waiting,
    /// It runs a tool.
    Tool,
    /// It waits for approval.
    Asking,
}

impl AgentState {
    /// The name that lists use.
    pub fn name(self) -> &'static str {
        match self {
            AgentState::Idle => "idle",
            AgentState::Waiting => "waiting",
            AgentState::Tool => "tool",
            AgentState::Asking => "asking",
        }
    }
}

/// Which process runs an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Runner {
    /// This process.
    ThisProcess,
    /// Another process: the agent can be mailed, but not talked to.
    OtherProcess,
    /// None.
    None,
}
