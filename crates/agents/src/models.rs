//! Which model each agent uses, and how long it thinks. The user may change it while agents work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ikigai_conversation::{AgentId, Effort};

use crate::agent::Model;

/// The models that the agents of a process use, shared by all of them.
#[derive(Debug)]
pub struct Models {
    /// The model of agents for which none was chosen.
    usual: Model,
    /// The models that the user chose. A choice applies to an agent and its descendants.
    chosen: Mutex<BTreeMap<AgentId, Model>>,
    /// The effort of agents for which none was chosen. `None`: the provider decides.
    usual_effort: Option<Effort>,
    /// The efforts that the user chose, as with models.
    chosen_efforts: Mutex<BTreeMap<AgentId, Option<Effort>>>,
    /// The labels of models that refused an effort.
    without_effort: Mutex<BTreeSet<String>>,
}

impl Models {
    /// One model and one effort for all agents.
    pub fn new(usual: Model, usual_effort: Option<Effort>) -> Models {
        Models {
            usual,
            chosen: Mutex::default(),
            usual_effort,
            chosen_efforts: Mutex::default(),
            without_effort: Mutex::default(),
        }
    }

    /// The model of an agent.
    pub fn of(&self, agent: &AgentId) -> Model {
        let chosen = lock(&self.chosen);
        line(agent).find_map(|agent| chosen.get(&agent)).unwrap_or(&self.usual).clone()
    }

    /// The effort of an agent.
    pub fn effort_of(&self, agent: &AgentId) -> Option<Effort> {
        let chosen = lock(&self.chosen_efforts);
        line(agent).find_map(|agent| chosen.get(&agent).copied()).unwrap_or(self.usual_effort)
    }

    /// Chooses the effort of an agent and its descendants, from their next requests on.
    pub fn choose_effort(&self, agent: AgentId, effort: Option<Effort>) {
        lock(&self.chosen_efforts).insert(agent, effort);
        // What the model refused was another effort.
        lock(&self.without_effort).clear();
    }

    /// Whether a model has refused an effort.
    pub(crate) fn refuses_effort(&self, label: &str) -> bool {
        lock(&self.without_effort).contains(label)
    }

    /// Notes that a model refused the effort. Returns whether that is new.
    pub(crate) fn refuse_effort(&self, label: &str) -> bool {
        lock(&self.without_effort).insert(label.to_owned())
    }

    /// Chooses the model of an agent and its descendants, from their next requests on.
    pub fn choose(&self, agent: AgentId, model: Model) {
        lock(&self.chosen).insert(agent, model);
    }
}

/// An agent, its parent, and so on.
fn line(agent: &AgentId) -> impl Iterator<Item = AgentId> {
    std::iter::successors(Some(agent.clone()), AgentId::parent)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
