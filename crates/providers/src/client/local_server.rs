//! Facts about local models that their servers report beside their lists.

use serde_json::{Value, json};

use crate::model_facts::ModelFacts;
use crate::model_list::{self, ListedModel};

use super::models::Lists;

/// Ollama is asked about each model. More are hardly on one machine.
const MOST_ASKED: usize = 50;

/// Adds what the list of a server on this machine did not say.
pub(super) async fn complete(lists: &Lists<'_>, models: &mut [ListedModel]) {
    if !lists.is_local() || models.iter().all(|model| model.facts.context_window.is_some()) {
        return;
    }
    if let Some(listed) = lists.beside("/api/v0/models", None).await {
        return add_of_lm_studio(&listed, models);
    }
    if let Some(settings) = lists.beside("/props", None).await {
        // llama.cpp has one model.
        let facts = model_list::facts(&settings);
        models.iter_mut().for_each(|model| add(model, facts.clone()));
        return;
    }
    for model in models.iter_mut().take(MOST_ASKED) {
        let question = json!({"model": model.name});
        let Some(shown) = lists.beside("/api/show", Some(question)).await else { return };
        add(model, of_ollama(&shown));
    }
}

fn add(model: &mut ListedModel, facts: ModelFacts) {
    model.facts = std::mem::take(&mut model.facts).or(facts);
}

fn add_of_lm_studio(listed: &Value, models: &mut [ListedModel]) {
    let listed = model_list::parse(listed).unwrap_or_default();
    for model in models {
        if let Some(same) = listed.iter().find(|listed| listed.name == model.name) {
            add(model, same.facts.clone());
        }
    }
}

/// The window that is set for the model, or else the one that it was made for.
fn of_ollama(shown: &Value) -> ModelFacts {
    let settings = shown["parameters"].as_str().unwrap_or_default();
    let set = settings.lines().find_map(|line| line.trim().strip_prefix("num_ctx"));
    let facts = shown["model_info"].as_object().into_iter().flatten();
    let made_for = || {
        let mut lengths = facts.filter(|(name, _)| name.ends_with(".context_length"));
        lengths.next().and_then(|(_, length)| length.as_u64())
    };
    let can = |word: &str| {
        let capabilities = shown["capabilities"].as_array()?;
        Some(capabilities.iter().any(|capability| capability == word))
    };
    ModelFacts {
        context_window: set.and_then(|set| set.trim().parse().ok()).or_else(made_for),
        images: can("vision"),
        effort: can("thinking"),
        tools: can("tools"),
        ..ModelFacts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollama_has_the_window_in_the_settings_or_the_facts_of_a_model() {
        let facts = json!({"general.architecture": "llama", "llama.context_length": 131_072});
        let shown = json!({"model_info": facts, "capabilities": ["completion", "tools"]});
        let expected = ModelFacts {
            context_window: Some(131_072),
            images: Some(false),
            effort: Some(false),
            tools: Some(true),
            ..ModelFacts::default()
        };
        assert_eq!(of_ollama(&shown), expected);
        let shown =
            json!({"model_info": facts, "parameters": "stop \"x\"\nnum_ctx                8192"});
        assert_eq!(of_ollama(&shown).context_window, Some(8_192));
        assert_eq!(of_ollama(&json!({})), ModelFacts::default());
    }
}
