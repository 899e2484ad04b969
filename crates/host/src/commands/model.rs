//! `/model`: shows or changes the model of an agent. The list of models to choose from.

use ikigai_agents::Model;
use ikigai_config::ModelSettings;
use ikigai_conversation::AgentId;
use ikigai_protocol::{CommandError, ModelChoice, Reply};
use ikigai_providers::KnownFacts;

use crate::model::{connect_chosen, with_client};
use crate::model_lists::{ListFile, check_name, find, is_configured};
use crate::models::list_models;
use crate::open::OpenSession;

impl OpenSession {
    /// Shows the model of an agent, or changes it to `name`.
    pub(super) async fn model(
        &self,
        agent: AgentId,
        name: Option<&str>,
    ) -> Result<Reply, CommandError> {
        if let Some(name) = name {
            let model = self.find_model(&self.models.of(&agent), name).await;
            let model = model.map_err(CommandError::Refused)?;
            self.models.choose(agent.clone(), model);
        }
        Ok(Reply::Model(self.model_of(agent, name.is_some()).await))
    }

    async fn model_of(&self, agent: AgentId, changed: bool) -> ModelChoice {
        let Model { label, facts, .. } = self.models.of(&agent);
        let facts = if changed { facts.looked_up().await } else { facts.now() };
        ModelChoice { agent, label, context_tokens: facts.context_window, changed }
    }

    /// A name without a provider belongs to the current one, unless it is clear whose it is. What is
    /// only known in memory, a key or a server, is kept with the connection.
    async fn find_model(&self, current: &Model, named: &str) -> Result<Model, String> {
        let (environment, settings) = (self.environment(), &self.environment().settings);
        let provider = current.label.split('/').next().unwrap_or_default();
        let label = match settings.model_named(named) {
            Err(_) if !named.contains('/') => format!("{provider}/{named}"),
            Ok(_) | Err(_) => named.to_owned(),
        };
        let chosen = match settings.model_named(&label) {
            Ok(chosen) => chosen,
            Err(why) => {
                let is_known = settings.provider_address(provider).is_some();
                let name = label.strip_prefix(provider).filter(|_| !is_known);
                let name = name.and_then(|rest| rest.strip_prefix('/')).ok_or(why)?;
                return of_unknown_provider(current, name).await;
            }
        };
        let model = match chosen.provider == provider {
            true => with_client(environment, &chosen, current.client.clone()),
            false => connect_chosen(environment, &chosen),
        };
        self.check_model(&chosen, &model).await.map(|()| model)
    }

    /// Refuses a name that its server does not list.
    async fn check_model(&self, chosen: &ModelSettings, model: &Model) -> Result<(), String> {
        let settings = &self.environment().settings;
        let file = ListFile::of(settings, chosen);
        let kept = file.fresh().map(|models| check_name(&chosen.provider, &chosen.name, &models));
        if is_configured(settings, chosen) || matches!(kept, Some(Ok(()))) {
            return Ok(());
        }
        // The model may be newer than the list.
        match file.ask(&model.client).await {
            Ok(models) => check_name(&chosen.provider, &chosen.name, &models)
                .map_err(|error| error.to_string()),
            Err(_) => Ok(()),
        }
    }

    /// The models of all connected providers, those of the agent's own first.
    pub(super) async fn list_models(&self, agent: &AgentId) -> Reply {
        let current = self.models.of(agent);
        let own = current.label.split('/').next().unwrap_or_default();
        let mut lists = list_models(self.environment()).await;
        lists.sort_by_key(|list| list.provider != own);
        Reply::Models(lists.into_iter().flat_map(|list| list.models.unwrap_or_default()).collect())
    }
}

/// Another model of a server that the settings do not know: the user chose it at the start.
async fn of_unknown_provider(current: &Model, name: &str) -> Result<Model, String> {
    let provider = current.label.split('/').next().unwrap_or_default();
    let models = current.client.models().await.unwrap_or_default();
    check_name(provider, name, &models).map_err(|error| error.to_string())?;
    let facts = find(&models, name).map(|listed| listed.facts.clone()).unwrap_or_default();
    let (client, label) = (current.client.clone(), format!("{provider}/{name}"));
    Ok(Model { client, name: name.to_owned(), label, facts: KnownFacts::new(facts) })
}
