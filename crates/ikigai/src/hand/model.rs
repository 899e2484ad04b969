//! `/model`: which model answers an agent.

use ikigai_agents::Model;
use ikigai_conversation::AgentId;
use ikigai_providers::Secret;

use super::Hand;
use crate::model::connect_with;

impl Hand<'_> {
    /// Says which model answers, or chooses another one.
    pub(crate) fn model(&self, agent: &AgentId, named: Option<&str>) -> String {
        let current = self.models.of(agent);
        let Some(named) = named else {
            return format!("{}; /model NAME chooses another one, Tab lists them", current.label);
        };
        match self.find_model(&current, named) {
            Ok(model) => {
                let text =
                    format!("{} answers agent {agent} from the next request on", model.label);
                self.models.choose(agent.clone(), model);
                text
            }
            Err(why) => format!("Error: {why}"),
        }
    }

    /// A name alone, or one of the same provider, is asked for where the agent is connected already.
    fn find_model(&self, current: &Model, named: &str) -> Result<Model, String> {
        let of_current = current.label.split('/').next().unwrap_or_default();
        match named.split_once('/') {
            Some((provider, name)) if provider == of_current => Ok(renamed(current, name)),
            Some(_) => {
                let chosen = self.environment.settings.model_named(named)?;
                let variable = chosen.key_variable.as_deref();
                let key = variable.and_then(|name| self.environment.variable(name));
                Ok(connect_with(self.environment, &chosen, key.map(Secret::new)))
            }
            None => match self.environment.settings.model_named(named) {
                Ok(chosen) if chosen.provider != of_current => {
                    self.find_model(current, &chosen.label())
                }
                Ok(_) | Err(_) => Ok(renamed(current, named)),
            },
        }
    }
}

fn renamed(current: &Model, name: &str) -> Model {
    let provider = current.label.split('/').next().unwrap_or_default();
    let (client, label) = (current.client.clone(), format!("{provider}/{name}"));
    Model { client, name: name.to_owned(), label }
}

/// The models that the server of a model has; none when it does not say.
pub(crate) async fn offered_models(current: Model) -> Vec<String> {
    let provider = current.label.split('/').next().unwrap_or_default();
    let names = current.client.models().await.unwrap_or_default();
    names.iter().map(|name| format!("{provider}/{name}")).collect()
}
