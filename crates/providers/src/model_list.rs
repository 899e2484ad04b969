//! The models that a server lists, with what it says about them.
//!
//! There is no standard for more than the names. The fields are those of Anthropic, Google,
//! OpenRouter, Groq, Mistral, Together, vLLM, llama.cpp and LM Studio.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::scrub;
use crate::model_facts::ModelFacts;
use crate::prices::{Prices, Rates};

/// The longest lists have some hundred models.
const MOST_MODELS: usize = 2_000;
const NAME_LIMIT: usize = 200;

/// A model in a server's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedModel {
    /// The name to use in requests.
    pub name: String,
    /// What the server says about it.
    #[serde(flatten)]
    pub facts: ModelFacts,
}

/// The models in a response, without those that cannot hold a conversation; `None` if it is not a
/// list.
pub(crate) fn parse(body: &Value) -> Option<Vec<ListedModel>> {
    // An array without a name around it is a list if something is in it.
    let bare = body.as_array().filter(|list| !list.is_empty());
    let named = body.get("data").or_else(|| body.get("models"));
    let list = named.and_then(Value::as_array).or(bare)?;
    let models = list.iter().filter(|model| can_talk(model)).filter_map(listed);
    Some(models.take(MOST_MODELS).collect())
}

fn listed(model: &Value) -> Option<ListedModel> {
    let name = model["id"].as_str().or_else(|| model["name"].as_str())?;
    let name = scrub(name.strip_prefix("models/").unwrap_or(name), NAME_LIMIT);
    (!name.is_empty()).then(|| ListedModel { name, facts: facts(model) })
}

/// Whether it is a model for conversations. Most servers do not say.
fn can_talk(model: &Value) -> bool {
    let methods = model["supportedGenerationMethods"].as_array();
    let generates = methods.is_none_or(|methods| methods.iter().any(|it| it == "generateContent"));
    generates
        && model["capabilities"]["completion_chat"] != false
        && model["type"] != "embeddings"
        && model["type"] != "embedding"
}

/// What an entry of a list says about its model.
pub(crate) fn facts(model: &Value) -> ModelFacts {
    ModelFacts {
        context_window: number(model, &WINDOW),
        max_output: number(model, &OUTPUT),
        prices: prices(&model["pricing"]),
        images: images(model),
        effort: effort(model),
        tools: tools(model),
    }
}

/// The fields with the context window, the most exact first.
const WINDOW: [&str; 10] = [
    "/loaded_context_length",
    "/top_provider/context_length",
    "/max_input_tokens",
    "/inputTokenLimit",
    "/max_model_len",
    "/meta/n_ctx",
    "/context_window",
    "/context_length",
    "/max_context_length",
    "/default_generation_settings/n_ctx",
];

/// The fields with the longest response.
const OUTPUT: [&str; 4] = [
    "/max_tokens",
    "/outputTokenLimit",
    "/top_provider/max_completion_tokens",
    "/max_completion_tokens",
];

fn number(model: &Value, fields: &[&str]) -> Option<u64> {
    let numbers = fields.iter().filter_map(|field| model.pointer(field)?.as_u64());
    numbers.into_iter().find(|number| *number > 0)
}

/// Prices are dollars per token, as texts.
fn prices(pricing: &Value) -> Option<Prices> {
    let rate = |field: &str| {
        let price: f64 = pricing[field].as_str()?.parse().ok()?;
        // A negative price means that it varies.
        (0.0..1.0).contains(&price).then(|| (price * 1e12).round() as u64)
    };
    let (input, output) = (rate("prompt")?, rate("completion")?);
    Some(Prices::flat(Rates {
        input,
        cached: rate("input_cache_read").unwrap_or(input),
        cache_write: rate("input_cache_write").unwrap_or(input),
        output,
    }))
}

fn images(model: &Value) -> Option<bool> {
    let capabilities = &model["capabilities"];
    let by_inputs = || holds(&model["architecture"]["input_modalities"], &["image"]);
    let by_list = || holds(capabilities, &["vision"]);
    let by_type = || (model["type"] == "vlm").then_some(true);
    let by_flag = || {
        let flags =
            ["/capabilities/image_input/supported", "/capabilities/vision", "/modalities/vision"];
        flag(model, &flags)
    };
    by_flag().or_else(by_inputs).or_else(by_type).or_else(by_list)
}

fn effort(model: &Value) -> Option<bool> {
    let flags = ["/capabilities/effort/supported", "/capabilities/thinking/supported", "/thinking"];
    let by_parameters = || holds(&model["supported_parameters"], &["reasoning"]);
    flag(model, &flags).or_else(by_parameters)
}

fn tools(model: &Value) -> Option<bool> {
    let by_parameters = || holds(&model["supported_parameters"], &["tools"]);
    let by_list = || holds(&model["capabilities"], &["tools", "tool_use"]);
    flag(model, &["/capabilities/function_calling"]).or_else(by_parameters).or_else(by_list)
}

/// Whether one of the flags is set, if there is one.
fn flag(model: &Value, fields: &[&str]) -> Option<bool> {
    let flags = fields.iter().filter_map(|field| model.pointer(field)?.as_bool());
    flags.reduce(|one, other| one || other)
}

/// Whether a list holds one of the words, if there is a list.
fn holds(list: &Value, words: &[&str]) -> Option<bool> {
    let list = list.as_array()?;
    Some(list.iter().any(|entry| entry.as_str().is_some_and(|entry| words.contains(&entry))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(model: &Value, name: &str, expected: ModelFacts) {
        let models = parse(&json!({"data": [model]})).unwrap();
        assert_eq!(models, [ListedModel { name: name.to_owned(), facts: expected }]);
    }

    #[test]
    fn each_kind_of_server_names_its_limits_in_its_own_way() {
        let window = |tokens| ModelFacts { context_window: Some(tokens), ..ModelFacts::default() };
        let limits = |tokens, most| ModelFacts { max_output: Some(most), ..window(tokens) };
        // Anthropic.
        let capabilities = json!({"image_input": {"supported": true}, "thinking": {"supported": true},
            "effort": {"supported": false}});
        let model = json!({"type": "model", "id": "claude-x", "max_input_tokens": 200_000,
            "max_tokens": 64_000, "capabilities": capabilities});
        let facts =
            ModelFacts { images: Some(true), effort: Some(true), ..limits(200_000, 64_000) };
        check(&model, "claude-x", facts);
        // vLLM, Groq, Mistral.
        check(&json!({"id": "a", "max_model_len": 32_768}), "a", window(32_768));
        let groq = json!({"id": "b", "context_window": 131_072, "max_completion_tokens": 40_960});
        check(&groq, "b", limits(131_072, 40_960));
        let capabilities =
            json!({"completion_chat": true, "function_calling": true, "vision": false});
        let mistral =
            json!({"id": "c", "max_context_length": 131_072, "capabilities": capabilities});
        let facts = ModelFacts { tools: Some(true), images: Some(false), ..window(131_072) };
        check(&mistral, "c", facts);
        // llama.cpp and LM Studio: what is loaded, not what the model could have.
        check(
            &json!({"id": "d", "meta": {"n_ctx": 4_096, "n_ctx_train": 8_192}}),
            "d",
            window(4_096),
        );
        let studio = json!({"id": "e", "type": "vlm", "max_context_length": 32_768,
            "loaded_context_length": 4_096, "capabilities": ["tool_use"]});
        let facts = ModelFacts { images: Some(true), tools: Some(true), ..window(4_096) };
        check(&studio, "e", facts);
        // OpenAI says nothing.
        check(&json!({"id": "gpt", "owned_by": "openai"}), "gpt", ModelFacts::default());
    }

    #[test]
    fn google_lists_what_does_not_generate_too() {
        let model = |name: &str, method: &str| {
            json!({"name": format!("models/{name}"), "inputTokenLimit": 1_048_576,
                "outputTokenLimit": 65_536, "thinking": true, "supportedGenerationMethods": [method]})
        };
        let list =
            json!({"models": [model("gemini", "generateContent"), model("e", "embedContent")]});
        let models = parse(&list).unwrap();
        let facts = ModelFacts {
            context_window: Some(1_048_576),
            max_output: Some(65_536),
            effort: Some(true),
            ..ModelFacts::default()
        };
        assert_eq!(models, [ListedModel { name: "gemini".to_owned(), facts }]);
    }

    #[test]
    fn open_router_lists_prices_in_dollars_per_token() {
        let pricing = json!({"prompt": "0.00000125", "completion": "0.00001",
            "input_cache_read": "0.000000125"});
        let model = json!({"id": "openai/gpt-5", "context_length": 400_000, "pricing": pricing,
            "architecture": {"input_modalities": ["text", "image"]},
            "top_provider": {"context_length": 390_000, "max_completion_tokens": null},
            "supported_parameters": ["reasoning", "tools"]});
        let rates =
            Rates { input: 1_250_000, cached: 125_000, cache_write: 1_250_000, output: 10_000_000 };
        let facts = ModelFacts {
            context_window: Some(390_000),
            max_output: None,
            prices: Some(Prices::flat(rates)),
            images: Some(true),
            effort: Some(true),
            tools: Some(true),
        };
        check(&model, "openai/gpt-5", facts);
        let varies = json!({"id": "auto", "pricing": {"prompt": "-1", "completion": "-1"}});
        check(&varies, "auto", ModelFacts::default());
    }

    #[test]
    fn what_is_no_list_has_no_models() {
        for other in [json!({"error": "no"}), json!([]), json!({"data": {}}), json!(null)] {
            assert_eq!(parse(&other), None);
        }
        assert_eq!(parse(&json!({"data": [{"id": ""}, {}, 1]})), Some(vec![]));
        assert_eq!(parse(&json!([{"id": "x"}])).unwrap()[0].name, "x");
        assert_eq!(parse(&json!({"data": [{"id": "a\u{1b}b"}]})).unwrap()[0].name, "ab");
        let long = json!({"data": vec![json!({"id": "x".repeat(999)}); 3_000]});
        let models = parse(&long).unwrap();
        assert_eq!((models.len(), models[0].name.chars().count()), (MOST_MODELS, NAME_LIMIT));
    }
}
