//! Which model each agent uses. The user may change it while agents work.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ikigai_conversation::AgentId;

use crate::agent::Model;

/// The models that the agents of a process use, shared by all of them.
#[derive(Debug)]
pub struct Models {
    /// The model of agents for which none was chosen.
    usual: Model,
    /// The models that the user chose. A choice applies to an agent and its descendants.
    chosen: Mutex<BTreeMap<AgentId, Model>>,
}

impl Models {
    /// One model for all agents.
    pub fn new(usual: Model) -> Models {
        Models { usual, chosen: Mutex::default() }
    }

    /// The model of an agent.
    pub fn of(&self, agent: &AgentId) -> Model {
        let chosen = lock(&self.chosen);
        let mut line = std::iter::successors(Some(agent.clone()), AgentId::parent);
        line.find_map(|agent| chosen.get(&agent)).unwrap_or(&self.usual).clone()
    }

    /// Chooses the model of an agent and its descendants, from their next requests on.
    pub fn choose(&self, agent: AgentId, model: Model) {
        lock(&self.chosen).insert(agent, model);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
