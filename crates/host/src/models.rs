//! The models of all connected providers.

use ikigai_config::ModelSettings;
use ikigai_protocol::ModelSummary;
use ikigai_providers::ListedModel;
use tokio::task::JoinSet;

use crate::environment::Environment;
use crate::model::connect_chosen;
use crate::model_facts::summary;
use crate::model_lists::ListFile;

/// The models of a provider.
#[derive(Debug)]
pub struct ProviderModels {
    /// The provider's name.
    pub provider: String,
    /// Its models, or why there is no list.
    pub models: Result<Vec<ModelSummary>, String>,
}

/// Asks all providers that have a key, or an address that the user has set, for their models.
pub async fn list_models(environment: &Environment) -> Vec<ProviderModels> {
    let settings = &environment.settings;
    let servers = settings.connected_providers();
    // At the same time: each may take seconds.
    let mut asking = JoinSet::new();
    for (position, server) in servers.iter().enumerate() {
        let client = connect_chosen(environment, server).client;
        let file = ListFile::of(settings, server);
        asking.spawn(async move { (position, file.ask(&client).await) });
    }
    let mut lists = asking.join_all().await;
    lists.sort_by_key(|(position, _)| *position);
    let facts = |server: &ModelSettings, models: Vec<ListedModel>| {
        models.into_iter().map(|model| summary(settings, server, model)).collect()
    };
    let lists = servers.iter().zip(lists).map(|(server, (_, list))| ProviderModels {
        provider: server.provider.clone(),
        models: list.map(|models| facts(server, models)).map_err(|fault| fault.to_string()),
    });
    lists.collect()
}
