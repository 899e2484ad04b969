//! The configured model.

use std::path::PathBuf;
use std::sync::Arc;

use ikigai_agents::{CompactionTrigger, ContextSettings, Model};
use ikigai_config::{ModelError, ModelSettings, WireFormat};
use ikigai_providers::{
    Anthropic, ChatCompletions, Client, Endpoint, Google, Limits, Provider, Responses, Secret,
};

use crate::environment::Environment;
use crate::model_facts::known_facts;
use crate::model_lists::{ListFile, check_name, is_configured};
use crate::selection::last_model;

/// The configured model. No connection is made yet.
///
/// # Errors
/// When no model is configured, or its server is known not to have it.
pub fn connect(environment: &Environment) -> Result<Model, ModelError> {
    let settings = &environment.settings;
    let chosen = settings.model()?;
    if settings.is_model_a_flag()
        && !is_configured(settings, &chosen)
        && let Some(models) = ListFile::of(settings, &chosen).fresh()
    {
        check_name(&chosen.provider, &chosen.name, &models)?;
    }
    Ok(connect_chosen(environment, &chosen))
}

/// Like [`connect`], but without a configured model a continued session keeps its own.
///
/// # Errors
/// When the session has none either.
pub async fn connect_again(environment: &Environment) -> Result<Model, ModelError> {
    let why = match connect(environment) {
        Err(why @ (ModelError::NotConnected | ModelError::NoModelName { .. })) => why,
        connected => return connected,
    };
    let last = last_model(environment).await;
    let chosen = last.and_then(|label| environment.settings.model_named(&label).ok());
    chosen.map(|chosen| connect_chosen(environment, &chosen)).ok_or(why)
}

/// A given model, with its key: from a variable, or else the stored one.
pub(crate) fn connect_chosen(environment: &Environment, chosen: &ModelSettings) -> Model {
    let key = chosen.key_variable.as_deref().and_then(|name| environment.variable(name));
    let stored = || environment.settings.credentials().key(&chosen.provider).map(str::to_owned);
    connect_with(environment, chosen, key.or_else(stored).map(Secret::new))
}

/// When agents make room in their contexts, and which model writes summaries.
///
/// # Errors
/// When `context.model` cannot be used.
pub(crate) fn context_settings(environment: &Environment) -> anyhow::Result<ContextSettings> {
    let settings = &environment.settings;
    let summarizer = match settings.optional_text("context.model") {
        Some(name) => {
            let chosen = settings.model_named(name);
            let chosen = chosen.map_err(|why| anyhow::anyhow!("context.model: {why}"))?;
            Some(connect_chosen(environment, &chosen))
        }
        None => None,
    };
    let trigger = match settings.is_on("context.auto") {
        true => CompactionTrigger::Automatic,
        false => CompactionTrigger::User,
    };
    let compact_at = settings.percent("context.compact_at").into();
    Ok(ContextSettings { trigger, compact_at, summarizer })
}

/// A given model with a given key.
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
    with_client(environment, chosen, Arc::new(Client::new(endpoint, Limits::default())))
}

/// A given model of the server that a client is for.
pub(crate) fn with_client(
    environment: &Environment,
    chosen: &ModelSettings,
    client: Arc<Client>,
) -> Model {
    let facts = known_facts(&environment.settings, chosen, &client);
    Model { client, name: chosen.name.clone(), label: chosen.label(), facts }
}

fn provider(format: WireFormat) -> Arc<dyn Provider> {
    match format {
        WireFormat::ChatCompletions => Arc::new(ChatCompletions),
        WireFormat::Responses => Arc::new(Responses),
        WireFormat::Anthropic => Arc::new(Anthropic),
        WireFormat::Google => Arc::new(Google),
    }
}

/// Explains why there is no model, and how to connect one from the command line.
pub fn explain(error: ModelError) -> anyhow::Error {
    match error {
        ModelError::NotConnected => {
            anyhow::anyhow!(
                "{error}. Connect one:\n{HOW_TO_CONNECT}\n  the tour        ikigai tour"
            )
        }
        ModelError::MissingKey { .. }
        | ModelError::Unencrypted { .. }
        | ModelError::NoModelName { .. }
        | ModelError::UnknownName { .. } => error.into(),
    }
}

/// How to connect a model.
pub const HOW_TO_CONNECT: &str = "  a key           ikigai auth add anthropic (or openai, google),
                  or export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY, GEMINI_API_KEY)
  a local server  export OPENAI_BASE_URL=http://127.0.0.1:11434/v1
                  and add --model openai/NAME";
