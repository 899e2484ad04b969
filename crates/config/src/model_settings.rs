//! The model to use, and how to reach it.

use crate::keys::Keys;
use crate::layers::Layers;
use crate::origin::Origin;
use crate::providers::{self, key, text};
use crate::secret_url::SecretUrl;
use crate::value::Value;

/// A model and how to reach it.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// The provider's name.
    pub provider: String,
    /// The model's name, as its server knows it.
    pub name: String,
    /// The wire format of requests to the server.
    pub format: WireFormat,
    /// The server's address.
    pub base_url: SecretUrl,
    /// The variable that holds the key. It may be unset if the server is not the provider's own.
    pub key_variable: Option<String>,
}

impl ModelSettings {
    /// `provider/name`.
    pub fn label(&self) -> String {
        format!("{}/{}", self.provider, self.name)
    }
}

/// The wire formats, by their names in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    /// `openai`
    ChatCompletions,
    /// `openai-responses`
    Responses,
    /// `anthropic`
    Anthropic,
    /// `google`
    Google,
}

impl WireFormat {
    fn parse(kind: &str) -> WireFormat {
        match kind {
            "openai" => WireFormat::ChatCompletions,
            "openai-responses" => WireFormat::Responses,
            "anthropic" => WireFormat::Anthropic,
            "google" => WireFormat::Google,
            other => unreachable!("the kinds are checked: {other}"),
        }
    }
}

/// Why there is no model to use.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// No model is set, and no provider has a key.
    #[error("no model is connected")]
    NotConnected,
    /// The provider's own server needs a key.
    #[error(
        "{label} needs a key: store one with 'ikigai auth add {provider}', set {variable}, or choose another model with --model"
    )]
    MissingKey {
        /// The model as `provider/name`.
        label: String,
        /// The provider's name.
        provider: String,
        /// The variable that can hold the key.
        variable: String,
    },
    /// A key or password would be sent to another machine without TLS.
    #[error(
        "the key for {label} would be sent unencrypted to {address}: use https://, or set \
         providers.{provider}.allow_http = true in your own configuration ('ikigai config' names the file)"
    )]
    Unencrypted {
        /// The model as `provider/name`.
        label: String,
        /// The server's address, masked.
        address: String,
        /// The provider's name.
        provider: String,
    },
    /// The server's list does not have the model.
    #[error("{provider} has no model '{name}'.{hint} 'ikigai models {provider}' lists all")]
    UnknownName {
        /// The provider's name.
        provider: String,
        /// The model's name.
        name: String,
        /// A question about similar names, after a blank; empty if there are none.
        hint: String,
    },
    /// A provider can be reached, but no model of it is set.
    #[error(
        "no model is selected for provider {provider}: use --model {provider}/NAME, or set \
            IKIGAI_MODEL={provider}/NAME"
    )]
    NoModelName {
        /// The provider's name.
        provider: String,
    },
}

/// The model that is set, or the default model of the first provider with a key.
pub(crate) fn choose(layers: &Layers, keys: &Keys) -> Result<ModelSettings, ModelError> {
    let (provider, name) = match text(layers.value("model")) {
        Some(model) => {
            let (provider, name) = model.split_once('/').unwrap_or((model, ""));
            (provider.to_owned(), name.to_owned())
        }
        None => {
            let provider = keys
                .first_provider(layers)
                .or_else(|| providers::first_with_own_address(layers))
                .ok_or(ModelError::NotConnected)?;
            let usual = providers::usual_model(&provider);
            match usual.filter(|_| keys.has(layers, &provider)) {
                Some(model) => (provider, model.to_owned()),
                None => return Err(ModelError::NoModelName { provider }),
            }
        }
    };
    require(layers, reach(layers, provider, name), keys)
}

/// A model as `provider/name`.
pub(crate) fn named(
    layers: &Layers,
    keys: &Keys,
    label: &str,
) -> Result<ModelSettings, ModelError> {
    let (provider, name) = label.split_once('/').unwrap_or((label, ""));
    require(layers, reach(layers, provider.to_owned(), name.to_owned()), keys)
}

/// The model that is set, if it belongs to this provider, or the provider's default model. For a
/// key that is not in a variable.
pub(crate) fn for_provider(layers: &Layers, provider: &str) -> Result<ModelSettings, ModelError> {
    let set = text(layers.value("model")).and_then(|model| model.split_once('/'));
    let name = set.filter(|(of, _)| *of == provider).map(|(_, name)| name);
    let name = name.or_else(|| providers::usual_model(provider)).unwrap_or_default();
    let model = reach(layers, provider.to_owned(), name.to_owned());
    require_encryption(layers, &model).map(|()| model)
}

/// The servers that can be asked for their models: those with a key, and those whose address the user
/// has set. They have no model's name.
pub(crate) fn connected(layers: &Layers, keys: &Keys) -> Vec<ModelSettings> {
    let servers = providers::names(layers).into_iter().filter(|provider| {
        keys.has(layers, provider) || providers::has_own_address(layers, provider)
    });
    let servers = servers.map(|provider| reach(layers, provider, String::new()));
    servers.filter_map(|server| require(layers, server, keys).ok()).collect()
}

fn reach(layers: &Layers, provider: String, name: String) -> ModelSettings {
    let base_url = address(layers, &provider).clone();
    let kind = text(layers.value(&key(&provider, "kind"))).unwrap_or(providers::KINDS[0]);
    let key_variable = text(layers.value(&key(&provider, "api_key_env"))).map(str::to_owned);
    ModelSettings { format: WireFormat::parse(kind), provider, name, base_url, key_variable }
}

fn require(
    layers: &Layers,
    model: ModelSettings,
    keys: &Keys,
) -> Result<ModelSettings, ModelError> {
    require_key(layers, &model, keys)?;
    if keys.has(layers, &model.provider) || address(layers, &model.provider).is_secret() {
        require_encryption(layers, &model)?;
    }
    Ok(model)
}

/// A key, or a password in the address, is only sent unencrypted if the user has configured that
/// explicitly.
fn require_encryption(layers: &Layers, model: &ModelSettings) -> Result<(), ModelError> {
    let provider = &model.provider;
    let is_allowed = layers.value(&key(provider, "allow_http")) == Some(&Value::Switch(true));
    match address(layers, provider) {
        address if address.is_in_clear() && !is_allowed => Err(ModelError::Unencrypted {
            label: model.label(),
            address: address.to_string(),
            provider: provider.clone(),
        }),
        _ => Ok(()),
    }
}

fn address<'a>(layers: &'a Layers, provider: &str) -> &'a SecretUrl {
    match layers.value(&key(provider, "base_url")) {
        Some(Value::Url(address)) => address,
        other => unreachable!("every provider has an address: {other:?}"),
    }
}

/// A provider's own server requires a key. A server at another address may not.
fn require_key(layers: &Layers, model: &ModelSettings, keys: &Keys) -> Result<(), ModelError> {
    let address = layers.holding(&key(&model.provider, "base_url"));
    let is_own_server = address.is_some_and(|entry| entry.origin == Origin::Default);
    match &model.key_variable {
        Some(variable) if is_own_server && !keys.has(layers, &model.provider) => {
            let (label, provider) = (model.label(), model.provider.clone());
            Err(ModelError::MissingKey { label, provider, variable: variable.clone() })
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, world};

    #[track_caller]
    fn check(world: &World, expected: Result<(&str, WireFormat, &str, Option<&str>), &str>) {
        let chosen = world.load().unwrap().model();
        let chosen = chosen.map_err(|error| error.to_string()).map(|model| {
            (
                model.label(),
                model.format,
                model.base_url.expose().to_owned(),
                model.key_variable.clone(),
            )
        });
        let expected = expected.map_err(str::to_owned).map(|(label, format, url, variable)| {
            (label.to_owned(), format, url.to_owned(), variable.map(str::to_owned))
        });
        assert_eq!(chosen, expected);
    }

    #[test]
    fn the_first_provider_with_a_key_is_used_with_its_default_model() {
        check(&world(), Err("no model is connected"));
        let world = world().variable("ANTHROPIC_API_KEY", "k");
        let anthropic = (
            "anthropic/claude-sonnet-4-5",
            WireFormat::Anthropic,
            "https://api.anthropic.com",
            Some("ANTHROPIC_API_KEY"),
        );
        check(&world, Ok(anthropic));
        let world =
            world.variable("OPENAI_API_KEY", "k").variable("OPENAI_BASE_URL", "https://h/v1/");
        let openai =
            ("openai/gpt-5", WireFormat::ChatCompletions, "https://h/v1", Some("OPENAI_API_KEY"));
        check(&world, Ok(openai));
    }

    #[test]
    fn only_the_providers_own_server_requires_a_key() {
        let world = world().flag("--model", "model", "openai/gpt-5");
        check(
            &world,
            Err(
                "openai/gpt-5 needs a key: store one with 'ikigai auth add openai', set OPENAI_API_KEY, or choose another model with --model",
            ),
        );
        let world = world.variable("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1");
        let openai = (
            "openai/gpt-5",
            WireFormat::ChatCompletions,
            "http://127.0.0.1:8080/v1",
            Some("OPENAI_API_KEY"),
        );
        check(&world, Ok(openai));
    }

    #[test]
    fn pasting_a_key_keeps_the_configured_model() {
        let world = world().flag("--model", "model", "openai/gpt-4o");
        let settings = world.load().unwrap();
        let label = |provider| settings.model_for_provider(provider).map(|model| model.label());
        assert_eq!(label("openai").unwrap(), "openai/gpt-4o");
        assert_eq!(label("google").unwrap(), "google/gemini-2.5-pro");
    }

    fn at(address: &str) -> World {
        let world = world().flag("--model", "model", "openai/x");
        world.variable("OPENAI_API_KEY", "k").variable("OPENAI_BASE_URL", address)
    }

    fn label(world: &World) -> Result<String, String> {
        let chosen = world.load().unwrap().model();
        chosen.map(|model| model.label()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_key_is_not_sent_unencrypted_to_another_machine() {
        let refused = |address: &str| {
            Err(format!(
                "the key for openai/x would be sent unencrypted to {address}: use https://, or set \
                 providers.openai.allow_http = true in your own configuration ('ikigai config' names the file)"
            ))
        };
        for address in ["http://h/v1", "http://10.0.0.1:8080", "http://localhost.evil.org"] {
            assert_eq!(label(&at(address)), refused(address));
            let pasted = at(address).load().unwrap().model_for_provider("openai").map(|_| ());
            assert_eq!(pasted.map_err(|error| error.to_string()), refused(address).map(drop));
        }
        assert_eq!(label(&at("http://localhost@h")), refused("http://***@h"));
        let password = at("http://me:pw@h").variable("OPENAI_API_KEY", "");
        assert_eq!(label(&password), refused("http://me:***@h"));
    }

    #[test]
    fn a_key_is_sent_over_https_to_this_machine_and_where_configured() {
        let ok = Ok("openai/x".to_owned());
        for address in ["https://h", "http://localhost:1", "http://127.0.0.2", "http://[::1]:8080"]
        {
            assert_eq!(label(&at(address)), ok, "{address}");
        }
        let user = |allowed: bool| {
            at("http://h").user(&format!("providers.openai.allow_http = {allowed}"))
        };
        assert_eq!(label(&user(true)), ok);
        assert!(label(&user(false)).is_err());
        // Without a key there is nothing to protect.
        assert_eq!(label(&at("http://h").variable("OPENAI_API_KEY", "")), ok);
        let project = at("http://h").project("providers.openai.allow_http = true");
        assert!(project.load().is_err());
    }

    #[test]
    fn an_address_without_a_key_needs_a_model() {
        let world = world().variable("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1");
        check(
            &world,
            Err(
                "no model is selected for provider openai: use --model openai/NAME, or set IKIGAI_MODEL=openai/NAME",
            ),
        );
    }

    #[test]
    fn a_users_provider_needs_a_model() {
        let local = "[providers.local]\nbase_url = 'https://h/v1'\napi_key_env = 'K'\nkind = 'openai-responses'";
        let world = world().user(local).variable("K", "k");
        check(
            &world,
            Err(
                "no model is selected for provider local: use --model local/NAME, or set IKIGAI_MODEL=local/NAME",
            ),
        );
        let world = world.flag("--model", "model", "local/meta/llama-3");
        check(&world, Ok(("local/meta/llama-3", WireFormat::Responses, "https://h/v1", Some("K"))));
    }
}
