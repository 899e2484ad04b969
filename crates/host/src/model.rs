//! The model that the configuration chooses.

use std::path::PathBuf;
use std::sync::Arc;

use ikigai_agents::Model;
use ikigai_config::{ModelError, ModelSettings, WireFormat};
use ikigai_providers::{
    Anthropic, ChatCompletions, Client, Endpoint, Google, Limits, ModelFacts, Provider, Responses,
    Secret,
};

use crate::environment::Environment;
use crate::selection::last_model;

/// The model to talk to. Nothing is connected yet.
///
/// # Errors
/// When the settings choose none.
pub fn connect(environment: &Environment) -> Result<Model, ModelError> {
    Ok(connect_chosen(environment, &environment.settings.model()?))
}

/// The same for a session that may be continued: where no model is chosen, it keeps its own.
///
/// # Errors
/// When there is none either.
pub async fn connect_again(environment: &Environment) -> Result<Model, ModelError> {
    let why = match connect(environment) {
        Err(why @ (ModelError::NotConnected | ModelError::NoModelName { .. })) => why,
        connected => return connected,
    };
    let last = last_model(environment).await;
    let chosen = last.and_then(|label| environment.settings.model_named(&label).ok());
    chosen.map(|chosen| connect_chosen(environment, &chosen)).ok_or(why)
}

/// The same for a model that was chosen; its key is in a variable.
pub(crate) fn connect_chosen(environment: &Environment, chosen: &ModelSettings) -> Model {
    let key = chosen.key_variable.as_deref().and_then(|name| environment.variable(name));
    connect_with(environment, chosen, key.map(Secret::new))
}

/// The model to talk to, with this key.
pub fn connect_with(
    environment: &Environment,
    chosen: &ModelSettings,
    key: Option<Secret>,
) -> Model {
    let endpoint = Endpoint {
        provider: provider(chosen.format),
        base_url: chosen.base_url.expose().to_owned(),
        key,
        certificates: environment.variable("SSL_CERT_FILE").map(PathBuf::from),
    };
    let client = Arc::new(Client::new(endpoint, Limits::default()));
    Model { client, name: chosen.name.clone(), label: chosen.label() }
}

/// How many tokens fit into the context of a model, where that is known.
pub fn context_tokens(name: &str) -> Option<u64> {
    ModelFacts::of(name).context_tokens
}

fn provider(format: WireFormat) -> Arc<dyn Provider> {
    match format {
        WireFormat::ChatCompletions => Arc::new(ChatCompletions),
        WireFormat::Responses => Arc::new(Responses),
        WireFormat::Anthropic => Arc::new(Anthropic),
        WireFormat::Google => Arc::new(Google),
    }
}

/// Why there is no model, and what to do about it at a command line.
pub fn explain(error: ModelError) -> anyhow::Error {
    match error {
        ModelError::NotConnected => {
            anyhow::anyhow!(
                "{error}; connect one:\n{HOW_TO_CONNECT}\n  or look first   ikigai tour"
            )
        }
        ModelError::MissingKey { .. }
        | ModelError::Unencrypted { .. }
        | ModelError::NoModelName { .. } => error.into(),
    }
}

/// The ways to a model.
pub const HOW_TO_CONNECT: &str =
    "  a key           export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY, GEMINI_API_KEY)
  a local server  export OPENAI_BASE_URL=http://127.0.0.1:11434/v1
                  and add --model openai/NAME";
