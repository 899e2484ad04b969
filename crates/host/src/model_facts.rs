//! What is known about a configured model, and where it is looked up.

use ikigai_config::{ConfiguredPrices, SecretUrl, Settings};
use ikigai_providers::{KnownFacts, ModelFacts, Prices, Rates, Service};

/// The facts about a model: those that the user has configured, and what else is found once it is
/// needed.
pub(crate) fn known_facts(
    settings: &Settings,
    provider: &str,
    name: &str,
    address: Option<&SecretUrl>,
) -> KnownFacts {
    let configured = configured(settings, &format!("{provider}/{name}"));
    // A server on this machine is none of the services in the table, whatever its models are
    // called.
    let Some(address) = address.filter(|address| !address.is_loopback()).cloned() else {
        return KnownFacts::new(configured);
    };
    let (provider, name) = (provider.to_owned(), name.to_owned());
    let lookup = move || bundled(&provider, address.expose(), &name);
    KnownFacts::with_lookup(configured, Box::new(lookup))
}

/// The facts in the bundled table. A provider's name counts if its address is not listed: it may be
/// behind a gateway.
fn bundled(provider: &str, address: &str, name: &str) -> ModelFacts {
    let by_address = ModelFacts::bundled(Service::Address(address), name);
    match by_address == ModelFacts::default() {
        true => ModelFacts::bundled(Service::Name(provider), name),
        false => by_address,
    }
}

fn configured(settings: &Settings, label: &str) -> ModelFacts {
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
