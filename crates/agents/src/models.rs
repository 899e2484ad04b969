//! Which model answers which agent. A person may change it while agents work.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ikigai_conversation::AgentId;

use crate::agent::Model;

/// The models of the agents of a process. All of them share it.
#[derive(Debug)]
pub struct Models {
    /// Who answers where nothing else was chosen.
    usual: Model,
    /// What a person has chosen. A child has the model of its parent, so a choice holds for all below, too.
    chosen: Mutex<BTreeMap<AgentId, Model>>,
}

impl Models {
    /// One model for all.
    pub fn new(usual: Model) -> Models {
        Models { usual, chosen: Mutex::default() }
    }

    /// The model of an agent.
    pub fn of(&self, agent: &AgentId) -> Model {
        let chosen = lock(&self.chosen);
        let mut line = std::iter::successors(Some(agent.clone()), AgentId::parent);
        line.find_map(|agent| chosen.get(&agent)).unwrap_or(&self.usual).clone()
    }

    /// From its next request on an agent asks this one.
    pub fn choose(&self, agent: AgentId, model: Model) {
        lock(&self.chosen).insert(agent, model);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
