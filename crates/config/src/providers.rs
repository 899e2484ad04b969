//! Providers: the built-in ones, and the rules for those that a user adds.

use std::collections::BTreeSet;
use std::ffi::OsString;

use crate::error::{ConfigError, Fault, ValueError, all_or_faults};
use crate::escape::excerpt;
use crate::layers::{Entry, Layers};
use crate::origin::Origin;
use crate::table;
use crate::tools::KnownTools;
use crate::value::Value;

/// The wire formats. The first is the default.
pub(crate) const KINDS: &[&str] = &["openai", "openai-responses", "anthropic", "google"];

pub(crate) struct BuiltIn {
    pub(crate) name: &'static str,
    kind: &'static str,
    base_url: &'static str,
    api_key_env: &'static str,
    /// The model to use if only a key is set.
    model: &'static str,
    /// The variable that overrides the address, as in the provider's own libraries.
    pub(crate) base_url_env: &'static str,
}

/// In the order in which keys are looked for if no model is set.
pub(crate) const BUILT_IN: &[BuiltIn] = &[
    BuiltIn {
        name: "openai",
        kind: "openai",
        base_url: "https://api.openai.com/v1",
        api_key_env: "OPENAI_API_KEY",
        model: "gpt-5",
        base_url_env: "OPENAI_BASE_URL",
    },
    BuiltIn {
        name: "anthropic",
        kind: "anthropic",
        base_url: "https://api.anthropic.com",
        api_key_env: "ANTHROPIC_API_KEY",
        model: "claude-sonnet-4-5",
        base_url_env: "ANTHROPIC_BASE_URL",
    },
    BuiltIn {
        name: "google",
        kind: "google",
        base_url: "https://generativelanguage.googleapis.com",
        api_key_env: "GEMINI_API_KEY",
        model: "gemini-2.5-pro",
        base_url_env: "GEMINI_BASE_URL",
    },
];

/// The built-in providers' settings, as key and text.
pub(crate) fn defaults() -> impl Iterator<Item = (String, String)> {
    BUILT_IN.iter().flat_map(|provider| {
        [
            ("kind", provider.kind),
            ("base_url", provider.base_url),
            ("api_key_env", provider.api_key_env),
        ]
        .map(|(field, text)| (key(provider.name, field), text.to_owned()))
    })
}

/// The key of a provider's setting.
pub(crate) fn key(provider: &str, field: &str) -> String {
    format!("providers.{provider}.{field}")
}

/// The default model of a built-in provider.
pub(crate) fn usual_model(provider: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|built_in| built_in.name == provider).map(|built_in| built_in.model)
}

/// All providers: first the built-in ones, then the user's by name.
pub(crate) fn names(layers: &Layers) -> Vec<String> {
    let mut names: Vec<String> = BUILT_IN.iter().map(|provider| provider.name.to_owned()).collect();
    for name in layers.iter().filter_map(|entry| table::provider_of(&entry.key)) {
        if !names.iter().any(|there| there == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The providers with at least one setting from the user.
pub(crate) fn configured(layers: &Layers) -> BTreeSet<&str> {
    let set = layers.iter().filter(|entry| entry.origin != Origin::Default);
    set.filter_map(|entry| table::provider_of(&entry.key)).collect()
}

/// Completes the user's own providers with defaults, and refuses those without an address.
pub(crate) fn complete(layers: &mut Layers, tools: &KnownTools) -> Result<(), ConfigError> {
    let completed = names(layers).into_iter().filter_map(|name| {
        if layers.holding(&key(&name, "base_url")).is_none() {
            return Some(Err(no_base_url(layers, &name)));
        }
        let kind = key(&name, "kind");
        let missing = layers.holding(&kind).is_none();
        missing.then(|| Entry::parse(&kind, KINDS[0], Origin::Default, tools))
    });
    let completed = all_or_faults(completed)?;
    layers.add(completed);
    Ok(())
}

/// The names of all key variables in any layer.
pub(crate) fn key_variables(layers: &Layers) -> BTreeSet<OsString> {
    let entries = layers.iter().filter(|entry| entry.key.ends_with(".api_key_env"));
    entries.filter_map(|entry| text(Some(&entry.value)).map(OsString::from)).collect()
}

/// The names of all variables that hold an address with a secret.
pub(crate) fn secret_addresses(layers: &Layers) -> impl Iterator<Item = OsString> {
    layers.iter().filter_map(|entry| match (&entry.value, &entry.origin) {
        (Value::Url(address), Origin::Variable(name)) if address.is_secret() => {
            Some(OsString::from(name))
        }
        _ => None,
    })
}

/// The first provider whose address the user has set: a private server may not need a key.
pub(crate) fn first_with_own_address(layers: &Layers) -> Option<String> {
    names(layers).into_iter().find(|name| has_own_address(layers, name))
}

/// Whether the user has set the address of a provider.
pub(crate) fn has_own_address(layers: &Layers, provider: &str) -> bool {
    let address = layers.holding(&key(provider, "base_url"));
    address.is_some_and(|entry| entry.origin != Origin::Default)
}

/// Checks the provider's name in a key, if there is one: it stands before a model and `/`, and with
/// single underscores in a variable.
pub(crate) fn check_key(key: &str) -> Result<(), ValueError> {
    let Some(name) = table::provider_of(key) else { return Ok(()) };
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    if name.split(['-', '_']).all(is_word) {
        Ok(())
    } else {
        Err(ValueError::NoProviderName { shown: excerpt(name) })
    }
}

/// Checks `api_key_env`. A wrong value is never shown, because it is probably the key itself.
pub(crate) fn parse_variable_name(text: &str) -> Result<Value, ValueError> {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let mut bytes = text.bytes();
    if !bytes.next().is_some_and(is_letter) || !bytes.all(|b| is_letter(b) || b.is_ascii_digit()) {
        return Err(ValueError::NoVariableName);
    }
    if text.starts_with("IKIGAI_") {
        return Err(ValueError::ReservedVariableName);
    }
    Ok(Value::Text(text.to_owned()))
}

fn no_base_url(layers: &Layers, name: &str) -> Fault {
    let of_provider = |entry: &&Entry| table::provider_of(&entry.key) == Some(name);
    let origin =
        layers.iter().find(of_provider).map_or(Origin::Default, |entry| entry.origin.clone());
    Fault::value(origin, &format!("providers.{name}"), ValueError::NoBaseUrl)
}

pub(crate) fn text(value: Option<&Value>) -> Option<&str> {
    match value {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::world;

    #[test]
    fn a_new_provider_needs_only_an_address() {
        world().user("[providers.local]\nbase_url = 'http://localhost:11434/v1/'").shows(&[
            "providers.local.kind = \"openai\" # default",
            "providers.local.base_url = \"http://localhost:11434/v1\" # ~/.config/ikigai/config.toml:2",
            "# providers.local.api_key_env is not set: no key is sent",
        ]);
        world()
            .user("\n[providers.local]\nkind = 'anthropic'")
            .refused("USER:3: providers.local: a provider that is not built in needs a base_url");
        world().variable("IKIGAI_PROVIDERS__LOCAL__KIND", "google").refused(
            "IKIGAI_PROVIDERS__LOCAL__KIND: a provider that is not built in needs a base_url",
        );
        world().user("providers.openai.kind = 'gemini'").refused(
            "USER:1: providers.openai.kind: 'gemini' is not allowed: use one of openai, openai-responses, anthropic, google",
        );
    }

    #[test]
    fn a_providers_name_has_plain_characters() {
        for good in ["a", "lm-studio", "lm_studio", "gpt4all", "3d"] {
            let user = format!("providers.{good}.base_url = 'http://h'");
            world().user(&user).shows(&[&format!(
                "providers.{good}.base_url = \"http://h\" # ~/.config/ikigai/config.toml:1"
            )]);
        }
        for (bad, shown) in [
            ("a__b", "a__b"),
            ("Local", "Local"),
            ("-a", "-a"),
            ("a--b", "a--b"),
            ("'a/b'", "\"a/b\""),
            ("'z.ai'", "\"z.ai\""),
            ("''", "\"\""),
        ] {
            let key = format!("providers.{shown}.base_url");
            world().user(&format!("providers.{bad}.base_url = 'http://h'")).refused(&format!(
                "USER:1: {key}: '{shown}' is not a valid provider name: use lower-case letters, digits and single '-' or '_'"
            ));
        }
    }

    #[test]
    fn a_key_in_place_of_its_variable_is_not_shown() {
        for key in ["sk-hunter2", "hunter 2", "2hunter", "", "hünter"] {
            world().user(&format!("providers.openai.api_key_env = '{key}'")).refused(
                "USER:1: providers.openai.api_key_env: not a variable name; name the variable \
                    that holds the key, never the key itself",
            );
        }
        world().user("providers.openai.api_key_env = 'IKIGAI_KEY'").refused(
            "USER:1: providers.openai.api_key_env: variables that start with IKIGAI_ are \
                settings; use another variable for the key",
        );
        world().user("providers.openai.api_key_env = '_my_Key2'").shows(&[
            "providers.openai.api_key_env = \"_my_Key2\" # ~/.config/ikigai/config.toml:1; not set",
        ]);
    }

    #[test]
    fn a_model_of_any_layer_must_have_a_known_provider() {
        world()
            .user("\nmodel = 'opnai/gpt-5'")
            .flag("--model", "model", "gpt-5")
            .refused("USER:2: model: 'opnai' is not a provider; did you mean 'openai'? (known: openai, anthropic, google)");
        world().flag("--model", "model", "llama3").refused(
            "--model: the provider of 'llama3' is not clear: write provider/llama3 (known providers: openai, anthropic, google)",
        );
        world()
            .user("providers.local.base_url = 'http://h'")
            .flag("--model", "model", "llama3")
            .shows(&["model = \"local/llama3\" # --model"]);
    }

    #[test]
    fn the_first_provider_with_a_key_is_found() {
        let unset = "# model is not set: the first provider with a key is used";
        let world = world().user("[providers.a]\nbase_url = 'http://h'\napi_key_env = 'A_KEY'");
        world.shows(&[&format!("{unset}, and none has one")]);
        let world = world.variable("A_KEY", "k").variable("OPENAI_API_KEY", "");
        world.shows(&[&format!("{unset}, now a")]);
        let world = world.variable("GEMINI_API_KEY", "k");
        world.shows(&[&format!("{unset}, now google")]);
    }
}
