//! The layers that come from environment variables.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use crate::error::{ConfigError, Fault, ValueError, all_or_faults};
use crate::escape::excerpt;
use crate::layers::Entry;
use crate::origin::Origin;
use crate::providers;
use crate::suggestion;
use crate::table;
use crate::tools::KnownTools;

const PREFIX: &str = "IKIGAI_";

/// Set for the commands that an agent runs. These are not settings.
const NO_SETTINGS: [&str; 2] = ["IKIGAI_AGENT", "IKIGAI_SESSION"];

/// The `IKIGAI_…` variables. An empty one counts as unset, so `IKIGAI_MODEL= ikigai` ignores the
/// variable for one run.
///
/// `providers` are the providers that the lower layers define.
pub(crate) fn entries(
    variables: &BTreeMap<OsString, OsString>,
    providers: &[String],
    tools: &KnownTools,
) -> Result<Vec<Entry>, ConfigError> {
    let ours = variables.iter().filter_map(|(name, value)| {
        let name = name.to_string_lossy();
        let is_ours = name.starts_with(PREFIX) && !NO_SETTINGS.contains(&name.as_ref());
        is_ours.then(|| entry(&name, value, providers, tools)).and_then(Result::transpose)
    });
    all_or_faults(ours)
}

/// The address variables that the providers' own libraries read too.
pub(crate) fn provider_addresses(
    variables: &BTreeMap<OsString, OsString>,
    tools: &KnownTools,
) -> Result<Vec<Entry>, ConfigError> {
    let given = providers::BUILT_IN.iter().filter_map(|provider| {
        let name = provider.base_url_env;
        let value = variables.get(OsStr::new(name)).filter(|value| !value.is_empty())?;
        Some(text_entry(&providers::key(provider.name, "base_url"), name, value, tools))
    });
    all_or_faults(given)
}

/// The variable for a setting.
pub(crate) fn variable_name(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "__").replace('-', "_").to_uppercase())
}

fn entry(
    name: &str,
    value: &OsStr,
    providers: &[String],
    tools: &KnownTools,
) -> Result<Option<Entry>, Fault> {
    let key = key_of(name, providers);
    if table::find(&key).is_none() || name.chars().any(char::is_lowercase) {
        let suggestion = suggestion::for_key(&key).map(|key| variable_name(&key));
        return Err(Fault::UnknownVariable { name: excerpt(name), suggestion });
    }
    if value.is_empty() {
        return Ok(None);
    }
    text_entry(&key, name, value, tools).map(Some)
}

fn text_entry(key: &str, name: &str, value: &OsStr, tools: &KnownTools) -> Result<Entry, Fault> {
    let origin = Origin::Variable(name.to_owned());
    match value.to_str() {
        Some(text) => Entry::parse(key, text, origin, tools),
        None => Err(Fault::value(origin, key, ValueError::NotUtf8)),
    }
}

/// The key of the setting for a variable. A shell allows no `-` in a variable's name, so an
/// underscore also stands for the hyphen in the name of a known provider.
fn key_of(name: &str, providers: &[String]) -> String {
    let key = name.strip_prefix(PREFIX).unwrap_or(name).to_lowercase().replace("__", ".");
    let Some(provider) = table::provider_of(&key) else { return key };
    match providers.iter().find(|known| known.replace('-', "_") == provider) {
        Some(known) => key.replacen(provider, known, 1),
        None => key,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::testing::world;

    #[track_caller]
    fn check(name: &str, value: &str, expected: &str) {
        world().variable(name, value).refused(expected);
    }

    #[test]
    fn every_setting_but_rules_has_a_variable() {
        let values = [
            ("IKIGAI_MODEL", "gpt-5", "model = \"openai/gpt-5\""),
            (
                "IKIGAI_PROVIDERS__LOCAL__BASE_URL",
                "http://h/v1/",
                "providers.local.base_url = \"http://h/v1\"",
            ),
            (
                "IKIGAI_PROVIDERS__OPENAI__KIND",
                "openai-responses",
                "providers.openai.kind = \"openai-responses\"",
            ),
            ("IKIGAI_DATABASE_URL", "postgres://h/db", "database_url = \"postgres://h/db\""),
            ("IKIGAI_MODE", "read", "mode = \"read\""),
            ("IKIGAI_SANDBOX__NETWORK", "true", "sandbox.network = true"),
            ("IKIGAI_SANDBOX__READ", "/a, ~/b,", "sandbox.read = [\"/a\", \"~/b\"]"),
            ("IKIGAI_SANDBOX__WRITE", "~", "sandbox.write = [\"~\"]"),
            ("IKIGAI_MAX_TOOL_TURNS", "7", "max_tool_turns = 7"),
            ("IKIGAI_MAX_OUTPUT_SIZE", "2048", "max_output_size = 2048"),
            ("IKIGAI_MAX_REQUESTS", "7", "max_requests = 7"),
            (
                "IKIGAI_TOOLS__ENABLED",
                "core,file_edit",
                "tools.enabled = [\"core\", \"file_edit\"]",
            ),
            ("IKIGAI_MAIL__MAX_WAKES", "0", "mail.max_wakes = 0"),
            ("IKIGAI_MAIL__NOTIFY", "boundary", "mail.notify = \"boundary\""),
            ("IKIGAI_MAX_AGENTS", "7", "max_agents = 7"),
            ("IKIGAI_MAX_DEPTH", "7", "max_depth = 7"),
            ("IKIGAI_HISTORY_SIZE", "0", "history_size = 0"),
        ];
        for (name, value, shown) in values {
            world().variable(name, value).shows(&[&format!("{shown} # {name}")]);
        }
        world().variable("IKIGAI_PROVIDERS__OPENAI__API_KEY_ENV", "MY_KEY").shows(&[
            "providers.openai.api_key_env = \"MY_KEY\" # IKIGAI_PROVIDERS__OPENAI__API_KEY_ENV; not set",
        ]);
    }

    #[test]
    fn a_wrong_value_names_the_variable() {
        check(
            "IKIGAI_MAX_AGENTS",
            "many",
            "IKIGAI_MAX_AGENTS: 'many' is not a whole number from 1 to 10000",
        );
        check("IKIGAI_MAX_AGENTS", "0", "IKIGAI_MAX_AGENTS: 0 is out of range (1 to 10000)");
        check(
            "IKIGAI_SANDBOX__NETWORK",
            "1",
            "IKIGAI_SANDBOX__NETWORK: '1' is not allowed: use one of true, false",
        );
        check(
            "IKIGAI_SANDBOX__READ",
            "/a,b",
            "IKIGAI_SANDBOX__READ: 'b' is not an absolute path: it must start with / or ~/",
        );
        check(
            "OPENAI_BASE_URL",
            "me:hunter2@h",
            "OPENAI_BASE_URL: '***' is not allowed: it must start with http:// or https://",
        );
        check(
            "IKIGAI_PROVIDERS__OPENAI__API_KEY_ENV",
            "sk-hunter2",
            "IKIGAI_PROVIDERS__OPENAI__API_KEY_ENV: not a variable name; name the variable that \
                holds the key, never the key itself",
        );
    }

    #[test]
    fn an_unknown_variable_is_an_error_with_a_suggestion() {
        let list = "('ikigai config' lists all settings)";
        for (name, suggestion) in [
            ("IKIGAI_MAX_AGENT", "IKIGAI_MAX_AGENTS"),
            ("IKIGAI_MAIL_MAX_WAKES", "IKIGAI_MAIL__MAX_WAKES"),
            ("IKIGAI_max_agents", "IKIGAI_MAX_AGENTS"),
            ("IKIGAI_PROVIDERS__LOCAL__URL", "IKIGAI_PROVIDERS__LOCAL__BASE_URL"),
        ] {
            let expected = format!("unknown variable {name}; did you mean '{suggestion}'? {list}");
            check(name, "hunter2", &expected);
        }
        check("IKIGAI_ZEBRA", "", &format!("unknown variable IKIGAI_ZEBRA {list}"));
        check("IKIGAI_", "", &format!("unknown variable IKIGAI_ {list}"));
    }

    #[test]
    fn variables_for_an_agents_commands_are_not_settings() {
        let world = world().variable("IKIGAI_AGENT", "0/").variable("IKIGAI_SESSION", "5");
        world.variable("IKIGAIX", "1").shows(&["max_agents = 20 # default"]);
    }

    #[test]
    fn a_value_that_is_not_utf8_is_refused() {
        let bytes = OsStr::from_bytes(b"gpt\xff");
        world().variable("IKIGAI_MODEL", bytes).refused("IKIGAI_MODEL: the value is not UTF-8");
        world()
            .variable("OPENAI_BASE_URL", bytes)
            .refused("OPENAI_BASE_URL: the value is not UTF-8");
        world().variable("OTHER", bytes).shows(&["max_agents = 20 # default"]);
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        world()
            .user("max_agents = 7")
            .variable("IKIGAI_MAX_AGENTS", "")
            .variable("OPENAI_BASE_URL", "")
            .shows(&[
                "max_agents = 7 # ~/.config/ikigai/config.toml:1",
                "providers.openai.base_url = \"https://api.openai.com/v1\" # default",
            ]);
    }

    #[test]
    fn the_providers_own_variables_lie_between_file_and_ours() {
        let world = world().user("providers.openai.base_url = 'http://file/v1'");
        let world = world
            .variable("OPENAI_BASE_URL", "http://own/v1/")
            .variable("ANTHROPIC_BASE_URL", "http://own")
            .variable("GEMINI_BASE_URL", "http://own");
        world.shows(&[
            "providers.openai.base_url = \"http://own/v1\" # OPENAI_BASE_URL",
            "providers.anthropic.base_url = \"http://own\" # ANTHROPIC_BASE_URL",
            "providers.google.base_url = \"http://own\" # GEMINI_BASE_URL",
        ]);
        let world = world.variable("IKIGAI_PROVIDERS__OPENAI__BASE_URL", "http://ours/v1");
        world.shows(&[
            "providers.openai.base_url = \"http://ours/v1\" # IKIGAI_PROVIDERS__OPENAI__BASE_URL",
        ]);
    }

    #[test]
    fn an_underscore_stands_for_the_hyphen_of_a_known_provider() {
        world()
            .user("providers.my-box.base_url = 'http://file'")
            .variable("IKIGAI_PROVIDERS__MY_BOX__BASE_URL", "http://ours")
            .shows(&[
                "providers.my-box.base_url = \"http://ours\" # IKIGAI_PROVIDERS__MY_BOX__BASE_URL",
            ]);
        assert_eq!(
            variable_name("providers.my-box.base_url"),
            "IKIGAI_PROVIDERS__MY_BOX__BASE_URL"
        );
    }
}
