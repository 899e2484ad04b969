//! The setting `model`: which provider a model name belongs to.

use crate::error::{ConfigError, Fault, ValueError, no_faults};
use crate::escape::excerpt;
use crate::layers::{Entry, Layers};
use crate::providers;
use crate::suggestion;
use crate::value::Value;

/// How the names of a provider's models start.
const BEGINNINGS: &[(&str, &str)] = &[
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("claude-", "anthropic"),
    ("gemini-", "google"),
];

/// Checks the form: `provider/name` or `name`. The name may contain more slashes.
pub(crate) fn parse(text: &str) -> Result<Value, ValueError> {
    let has_gap = text.chars().any(|c| c.is_whitespace() || c.is_control());
    if text.is_empty() || has_gap || text.starts_with('/') || text.ends_with('/') {
        return Err(ValueError::NoModel { shown: excerpt(text) });
    }
    Ok(Value::Text(text.to_owned()))
}

/// Resolves the model of every layer to `provider/name`, now that all
/// providers are known. A layer that is overridden is checked too:
/// otherwise its error would appear only once the override is removed.
pub(crate) fn resolve(layers: &mut Layers) -> Result<(), ConfigError> {
    let known = providers::names(layers);
    let configured: Vec<String> =
        providers::configured(layers).into_iter().map(str::to_owned).collect();
    let mut faults = Vec::new();
    for Entry { key, value, origin, .. } in layers.entries_mut("model") {
        let Value::Text(model) = value else { unreachable!("a text by its kind: {value:?}") };
        match with_provider(model, &known, &configured) {
            Ok(model) => *value = Value::Text(model),
            Err(wrong) => faults.push(Fault::value(origin.clone(), key, wrong)),
        }
    }
    no_faults(faults)
}

/// Resolves a name that the user typed to `provider/name`.
pub(crate) fn named(layers: &Layers, name: &str) -> Result<String, String> {
    let known = providers::names(layers);
    let configured: Vec<String> =
        providers::configured(layers).into_iter().map(str::to_owned).collect();
    let checked = parse(name).and_then(|_| with_provider(name, &known, &configured));
    checked.map_err(|wrong| wrong.to_string())
}

fn with_provider(
    model: &str,
    known: &[String],
    configured: &[String],
) -> Result<String, ValueError> {
    if let Some((provider, _)) = model.split_once('/') {
        if known.iter().any(|name| name == provider) {
            return Ok(model.to_owned());
        }
        let suggestion = suggestion::for_name(provider, known.iter().map(String::as_str));
        return Err(ValueError::UnknownProvider {
            shown: excerpt(provider),
            suggestion,
            known: known.join(", "),
        });
    }
    if let Some((_, provider)) = BEGINNINGS.iter().find(|(begin, _)| model.starts_with(begin)) {
        return Ok(format!("{provider}/{model}"));
    }
    match configured {
        [provider] => Ok(format!("{provider}/{model}")),
        [] | [_, ..] => {
            Err(ValueError::UnclearProvider { shown: excerpt(model), known: known.join(", ") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(model: &str, configured: &[&str], expected: Result<&str, &str>) {
        let mut known = vec!["openai".to_owned(), "anthropic".to_owned(), "google".to_owned()];
        let configured: Vec<String> = configured.iter().map(|name| (*name).to_owned()).collect();
        known.extend(
            configured.iter().filter(|name| !known.contains(name)).cloned().collect::<Vec<_>>(),
        );
        let found = parse(model).and_then(|_| with_provider(model, &known, &configured));
        assert_eq!(
            found.map_err(|wrong| wrong.to_string()),
            expected.map(str::to_owned).map_err(str::to_owned)
        );
    }

    #[test]
    fn a_prefix_selects_the_provider() {
        check("openai/gpt-5", &[], Ok("openai/gpt-5"));
        check("local/meta/llama-3", &["local"], Ok("local/meta/llama-3"));
        check("google/claude-x", &[], Ok("google/claude-x"));
        check(
            "opnai/gpt-5",
            &[],
            Err(
                "'opnai' is not a provider; did you mean 'openai'? (known: openai, anthropic, google)",
            ),
        );
        check(
            "meta-llama/llama-3",
            &["local"],
            Err("'meta-llama' is not a provider (known: openai, anthropic, google, local)"),
        );
    }

    #[test]
    fn the_start_of_a_bare_name_selects_the_provider() {
        for model in ["gpt-5", "o1", "o3-mini", "o4-mini", "chatgpt-4o-latest"] {
            check(model, &["local"], Ok(&format!("openai/{model}")));
        }
        check("claude-opus-4", &[], Ok("anthropic/claude-opus-4"));
        check("gemini-2.5-pro", &[], Ok("google/gemini-2.5-pro"));
    }

    #[test]
    fn a_bare_name_belongs_to_the_only_configured_provider() {
        check("llama3", &["local"], Ok("local/llama3"));
        check(
            "llama3",
            &[],
            Err(
                "the provider of 'llama3' is not clear: write provider/llama3 (known providers: openai, anthropic, google)",
            ),
        );
        check(
            "llama3",
            &["local", "openai"],
            Err(
                "the provider of 'llama3' is not clear: write provider/llama3 (known providers: openai, anthropic, google, local)",
            ),
        );
    }

    #[test]
    fn a_malformed_model_is_refused() {
        for model in ["", "/", "openai/", "/gpt-5", "gpt 5", "gpt-5\n"] {
            let shown = excerpt(model);
            check(model, &[], Err(&format!("'{shown}' is not a model: write provider/name")));
        }
    }
}
