//! Trying a provider's key before it is stored.

use ikigai_agents::Model;
use ikigai_config::ModelSettings;
use ikigai_providers::{Category, Secret};

use crate::environment::Environment;
use crate::model::connect_with;

/// A model whose provider was asked with a new key.
#[derive(Debug)]
pub struct TriedKey {
    /// The model, with its key.
    pub model: Model,
    /// How to reach it.
    pub settings: ModelSettings,
    /// Whether the provider accepted the key. One without a list of models cannot say.
    pub is_accepted: bool,
}

/// Tries a key with the list of models of its provider.
///
/// # Errors
/// When the provider refuses the key or cannot be asked, or the key would be sent unencrypted.
pub async fn try_key(
    environment: &Environment,
    provider: &str,
    key: &str,
) -> anyhow::Result<TriedKey> {
    let settings = environment.settings.model_for_provider(provider)?;
    let model = connect_with(environment, &settings, Some(Secret::new(key)));
    let is_accepted = match model.client.models().await {
        Ok(_) => true,
        Err(fault) => match fault.category {
            Category::Unreadable => false,
            Category::Refused if fault.message.starts_with("HTTP 404") => false,
            _ => anyhow::bail!("{provider}: {fault}"),
        },
    };
    Ok(TriedKey { model, settings, is_accepted })
}
