//! What is known about a configured model, and where it is looked up.

use ikigai_config::{ConfiguredPrices, ModelSettings, Settings};
use ikigai_protocol::{ModelPrices, ModelSummary};
use ikigai_providers::{Client, KnownFacts, ListedModel, ModelFacts, Prices, Rates, Service};

use crate::model_lists::{ListFile, find, similar};

/// The facts about a model: those that the user has configured, and what else is found once it is
/// needed: in the list of its server, and in the bundled table.
pub(crate) fn known_facts(
    settings: &Settings,
    model: &ModelSettings,
    client: &Client,
) -> KnownFacts {
    let configured = configured(settings, &model.label());
    let (file, model, client) = (ListFile::of(settings, model), model.clone(), client.apart());
    let lookup = move |known: &KnownFacts| {
        let kept = file.fresh();
        if let Some(models) = &kept {
            add_listed(known, models, &model.name);
        }
        known.add_bundled(bundled(&model));
        if kept.is_none() {
            // The end of a turn waits for a price. The list can only have one if nothing else does.
            if model.base_url.is_loopback() || known.now().prices.is_some() {
                known.settle();
            }
            if let Some(models) = ask(&file, &client) {
                add_listed(known, &models, &model.name);
            }
        }
    };
    KnownFacts::with_lookup(configured, Box::new(lookup))
}

fn add_listed(known: &KnownFacts, models: &[ListedModel], name: &str) {
    match find(models, name) {
        Some(listed) => known.add_listed(listed.facts.clone()),
        None => known.add_similar(similar(models, name)),
    }
}

/// Asks the server on this thread.
fn ask(file: &ListFile, client: &Client) -> Option<Vec<ListedModel>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let models = runtime.block_on(file.ask(client)).ok();
    runtime.shutdown_background();
    models
}

/// The facts in the bundled table. A provider's name counts if its address is not listed: it may be
/// behind a gateway. A server on this machine is none of the services in the table, whatever its
/// models are called.
fn bundled(model: &ModelSettings) -> ModelFacts {
    if model.base_url.is_loopback() {
        return ModelFacts::default();
    }
    let by_address = ModelFacts::bundled(Service::Address(model.base_url.expose()), &model.name);
    match by_address == ModelFacts::default() {
        true => ModelFacts::bundled(Service::Name(&model.provider), &model.name),
        false => by_address,
    }
}

/// A model of a server's list, with everything that is known about it. The bundled table takes 20 ms
/// of processor time for the first one.
pub(crate) fn summary(
    settings: &Settings,
    server: &ModelSettings,
    listed: ListedModel,
) -> ModelSummary {
    let model = ModelSettings { name: listed.name, ..server.clone() };
    let label = model.label();
    let facts = configured(settings, &label).or(listed.facts).or(bundled(&model));
    let prices = facts.prices.map(|prices| {
        let Rates { input, cached, cache_write, output } = prices.rates();
        ModelPrices { input, cached, cache_write, output }
    });
    ModelSummary {
        label,
        context_tokens: facts.context_window,
        max_output: facts.max_output,
        prices,
        images: facts.images,
        effort: facts.effort,
        tools: facts.tools,
    }
}

/// What the user has configured about a model.
pub(crate) fn configured(settings: &Settings, label: &str) -> ModelFacts {
    let facts = settings.model_facts(label);
    let prices = facts.prices.map(|prices| {
        let ConfiguredPrices { input, output, cached, cache_write } = prices;
        Prices::flat(Rates { input, cached, cache_write, output })
    });
    ModelFacts {
        context_window: facts.context_window,
        max_output: facts.max_output,
        prices,
        images: facts.images,
        effort: facts.effort,
        tools: None,
    }
}
