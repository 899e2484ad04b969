//! Facts about models that the user has configured.

use std::collections::BTreeSet;

use crate::error::{ConfigError, Fault, ValueError, no_faults};
use crate::escape::excerpt;
use crate::layers::Layers;
use crate::providers;
use crate::suggestion;
use crate::table::{model_key, model_of};
use crate::value::Value;

/// Facts about a model in the user's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfiguredFacts {
    /// How many tokens fit into its context.
    pub context_window: Option<u64>,
    /// How many tokens one response has at most.
    pub max_output: Option<u64>,
    /// Its prices, if they are set.
    pub prices: Option<ConfiguredPrices>,
    /// Whether it takes images.
    pub images: Option<bool>,
    /// Whether its reasoning effort can be chosen.
    pub effort: Option<bool>,
}

/// Prices in micro-dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfiguredPrices {
    /// Of tokens sent.
    pub input: u64,
    /// Of tokens received.
    pub output: u64,
    /// Of tokens sent that came from a cache.
    pub cached: u64,
    /// Of tokens sent that were written to a cache.
    pub cache_write: u64,
}

/// The facts that are set for a model, `provider/name`.
pub(crate) fn of(layers: &Layers, label: &str) -> ConfiguredFacts {
    let value = |field: &str| layers.value(&model_key(label, field));
    let number = |field: &str| match value(field) {
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    };
    let price = |field: &str| match value(field) {
        Some(Value::Dollars(amount)) => Some(*amount),
        _ => None,
    };
    let switch = |field: &str| match value(field) {
        Some(Value::Switch(switch)) => Some(*switch),
        _ => None,
    };
    // Without prices of their own, cached tokens cost as much as others.
    let prices = price("input").zip(price("output")).map(|(input, output)| ConfiguredPrices {
        input,
        output,
        cached: price("cached").unwrap_or(input),
        cache_write: price("cache_write").unwrap_or(input),
    });
    ConfiguredFacts {
        context_window: number("context_window"),
        max_output: number("max_output"),
        prices,
        images: switch("images"),
        effort: switch("effort"),
    }
}

/// Checks the models that facts are set for, now that all providers are known.
pub(crate) fn check(layers: &Layers) -> Result<(), ConfigError> {
    let known = providers::names(layers);
    let mut checked = BTreeSet::new();
    let entries = layers.iter().filter(|entry| entry.setting.is_per_model());
    let faults = entries.filter_map(|entry| {
        let model = model_of(&entry.key)?;
        let is_first = checked.insert(model.to_owned());
        let wrong = check_model(layers, model, &known).err().filter(|_| is_first)?;
        Some(Fault::value(entry.origin.clone(), &format!("models.{model}"), wrong))
    });
    no_faults(faults.collect())
}

/// `model` is written as in a key.
fn check_model(layers: &Layers, model: &str, known: &[String]) -> Result<(), ValueError> {
    let label = model.trim_matches('"');
    let Some((provider, name)) = label.split_once('/').filter(|(_, name)| !name.is_empty()) else {
        return Err(ValueError::NoModel { shown: excerpt(label) });
    };
    if !known.iter().any(|known| known == provider) {
        let suggestion = suggestion::for_name(provider, known.iter().map(String::as_str));
        let (shown, known) = (excerpt(provider), known.join(", "));
        return Err(ValueError::UnknownProvider { shown, suggestion, known });
    }
    let is_set =
        |field: &&str| layers.value(&model_key(&format!("{provider}/{name}"), field)).is_some();
    let prices = ["input", "output", "cached", "cache_write"].iter().filter(|field| is_set(field));
    match prices.copied().collect::<Vec<_>>()[..] {
        [] | ["input", "output", ..] => Ok(()),
        _ => Err(ValueError::IncompletePrice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::world;

    #[track_caller]
    fn check(user: &str, label: &str, expected: &ConfiguredFacts) {
        assert_eq!(world().user(user).load().unwrap().model_facts(label), *expected);
    }

    #[test]
    fn facts_are_set_for_one_model() {
        let user = "[models.'openai/gpt-5.5']\ncontext_window = 8000\nimages = false\n\
                    input = 1.25\noutput = 10\n\n[models.'openai/other']\nmax_output = 5\neffort = true";
        let prices = ConfiguredPrices {
            input: 1_250_000,
            output: 10_000_000,
            cached: 1_250_000,
            cache_write: 1_250_000,
        };
        let facts = ConfiguredFacts {
            context_window: Some(8_000),
            images: Some(false),
            prices: Some(prices),
            ..ConfiguredFacts::default()
        };
        check(user, "openai/gpt-5.5", &facts);
        let other = ConfiguredFacts {
            max_output: Some(5),
            effort: Some(true),
            ..ConfiguredFacts::default()
        };
        check(user, "openai/other", &other);
        check(user, "openai/gpt-5", &ConfiguredFacts::default());
        let prices = ConfiguredPrices { cached: 125_000, cache_write: 0, ..prices };
        let facts = ConfiguredFacts { prices: Some(prices), ..facts };
        check(
            &user.replace("input", "cached = 0.125\ncache_write = 0\ninput"),
            "openai/gpt-5.5",
            &facts,
        );
    }

    #[test]
    fn facts_are_listed_where_they_were_set() {
        world()
            .user("models.'openai/gpt-5.5'.input = 0.5\nmodels.'openai/gpt-5.5'.output = 2")
            .shows(&[
                "models.\"openai/gpt-5.5\".input = 0.50 # ~/.config/ikigai/config.toml:1",
                "models.\"openai/gpt-5.5\".output = 2.00 # ~/.config/ikigai/config.toml:2",
            ]);
        world().shows(&[
            "# [models.\"provider/name\"] is not set: servers and a built-in table know most models",
        ]);
    }

    #[test]
    fn wrong_facts_are_refused_with_the_line() {
        for (user, expected) in [
            (
                "\nmodels.gpt-5.input = 1",
                "USER:2: models.gpt-5: 'gpt-5' is not a model: write provider/name",
            ),
            (
                "models.'opnai/x'.context_window = 1",
                "USER:1: models.\"opnai/x\": 'opnai' is not a provider; did you mean 'openai'? (known: openai, anthropic, google)",
            ),
            (
                "models.'openai/x'.cached = 1",
                "USER:1: models.\"openai/x\": set both input and output, the prices of the model",
            ),
            (
                "models.'openai/x'.input = -1",
                "USER:1: models.\"openai/x\".input: -1 is not an amount in dollars from 0.00 to 1000000.00 with at most six decimals",
            ),
            (
                "models.'openai/x'.inptu = 1",
                "USER:1: unknown setting 'models.\"openai/x\".inptu'; did you mean 'models.\"openai/x\".input'? ('ikigai config' lists all settings)",
            ),
            (
                "models.'openai/x' = 1",
                "USER:1: models.\"openai/x\" is a table of settings, not a value ('ikigai config' lists all settings)",
            ),
        ] {
            world().user(user).refused(expected);
        }
        world().project("models.'openai/x'.input = 0").refused(
            "PROJECT:1: models.\"openai/x\".input cannot be set in a project's file, which is not trusted; set it in USER",
        );
    }

    #[test]
    fn a_project_may_only_lower_what_may_be_spent() {
        let raised = "PROJECT:1: max_cost: a project can only lower this limit (2.00, set by USER:1), not raise it to 2.01; set it in USER";
        world().user("max_cost = 2").project("max_cost = 2.01").refused(raised);
        world()
            .user("max_cost = 2")
            .project("max_cost = 1.99")
            .shows(&["max_cost = 1.99 # PROJECT:1"]);
        world().project("max_session_cost = 5").shows(&["max_session_cost = 5.00 # PROJECT:1"]);
        world().user("max_cost = 0").refused(
            "USER:1: max_cost: 0 is not an amount in dollars from 0.000001 to 1000000.00 with at most six decimals",
        );
    }
}
