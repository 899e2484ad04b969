//! `/model`: shows or changes the model of an agent.

use ikigai_agents::Model;
use ikigai_config::Settings;
use ikigai_conversation::AgentId;
use ikigai_protocol::{CommandError, ModelChoice, Reply};

use crate::model::connect_chosen;
use crate::model_facts::known_facts;
use crate::open::OpenSession;

impl OpenSession {
    /// Shows the model of an agent, or changes it to `name`.
    pub(super) fn model(&self, agent: AgentId, name: Option<&str>) -> Result<Reply, CommandError> {
        if let Some(name) = name {
            let model = self.find_model(&self.models.of(&agent), name);
            self.models.choose(agent.clone(), model.map_err(CommandError::Refused)?);
        }
        Ok(Reply::Model(self.model_of(agent, name.is_some())))
    }

    fn model_of(&self, agent: AgentId, changed: bool) -> ModelChoice {
        let Model { label, facts, .. } = self.models.of(&agent);
        ModelChoice { agent, label, context_tokens: facts.now().context_window, changed }
    }

    /// A bare name, or a name with the current provider, keeps the connection.
    fn find_model(&self, current: &Model, named: &str) -> Result<Model, String> {
        let environment = self.environment();
        let of_current = current.label.split('/').next().unwrap_or_default();
        match named.split_once('/') {
            Some((provider, name)) if provider == of_current => {
                Ok(renamed(&environment.settings, current, name))
            }
            Some(_) => Ok(connect_chosen(environment, &environment.settings.model_named(named)?)),
            None => match environment.settings.model_named(named) {
                Ok(chosen) if chosen.provider != of_current => {
                    self.find_model(current, &chosen.label())
                }
                Ok(_) | Err(_) => Ok(renamed(&environment.settings, current, named)),
            },
        }
    }
}

fn renamed(settings: &Settings, current: &Model, name: &str) -> Model {
    let provider = current.label.split('/').next().unwrap_or_default();
    let (client, label) = (current.client.clone(), format!("{provider}/{name}"));
    let facts = known_facts(settings, provider, name, settings.provider_address(provider));
    Model { client, name: name.to_owned(), label, facts }
}
