//! The table of all settings. A new setting is a new row: files, variables, checks, the rules for
//! projects and `ikigai config` all derive from it.

use crate::value::Kind;
use crate::{model_name, providers, secret_url, toml_layer, value};

/// One setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The dotted key. [`NAME`] in it stands for any provider's name.
    pub(crate) key: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: Preset,
    pub(crate) project: ProjectMay,
}

/// The value of a setting that is not set anywhere.
#[derive(Debug)]
pub(crate) enum Preset {
    /// This value, written as in a variable.
    Is(&'static str),
    /// No value, or one that depends on the environment. The text says what that means.
    Absent(&'static str),
}

/// What a project's file may do with a setting. The file comes with a clone and is not trusted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ProjectMay {
    Nothing,
    /// Set it: the value is checked against what the user has configured.
    Choose,
    /// Remove entries that the lower layers have.
    Narrow,
    /// Set it to the value of the lower layers or less.
    Lower,
}

/// A group of settings in the listing.
pub(crate) struct Group {
    pub(crate) heading: &'static str,
    pub(crate) settings: &'static [Setting],
}

/// The segment of a key that stands for a provider's name.
pub(crate) const NAME: &str = "NAME";

const PROVIDERS: &str = "providers.";
const MODELS: &str = "models.";

pub(crate) const GROUPS: &[Group] = &[
    Group {
        heading: "Model and providers",
        settings: &[
            Setting {
                key: "model",
                kind: Kind::Text(model_name::parse),
                default: Preset::Absent("the first provider with a key is used"),
                project: ProjectMay::Choose,
            },
            Setting {
                key: "effort",
                kind: Kind::Choice(&["off", "low", "medium", "high"]),
                default: Preset::Absent("the provider decides how long a model thinks"),
                project: ProjectMay::Nothing,
            },
            Setting {
                key: "providers.NAME.kind",
                kind: Kind::Choice(providers::KINDS),
                default: Preset::Is(providers::KINDS[0]),
                project: ProjectMay::Nothing,
            },
            Setting {
                key: "providers.NAME.base_url",
                kind: Kind::Text(secret_url::parse_base_url),
                default: Preset::Absent("a new provider must have one"),
                project: ProjectMay::Nothing,
            },
            Setting {
                key: "providers.NAME.api_key_env",
                kind: Kind::Text(providers::parse_variable_name),
                default: Preset::Absent("no key is sent"),
                project: ProjectMay::Nothing,
            },
            Setting {
                key: "providers.NAME.allow_http",
                kind: Kind::Switch,
                default: Preset::Absent("a key is sent to another machine over https only"),
                project: ProjectMay::Nothing,
            },
        ],
    },
    Group {
        heading: "Model facts",
        settings: &[
            fact("models.NAME.context_window", TOKENS),
            fact("models.NAME.max_output", TOKENS),
            fact("models.NAME.input", PRICE),
            fact("models.NAME.output", PRICE),
            fact("models.NAME.cached", PRICE),
            fact("models.NAME.cache_write", PRICE),
            fact("models.NAME.images", Kind::Switch),
            fact("models.NAME.effort", Kind::Switch),
        ],
    },
    Group {
        heading: "Permissions",
        settings: &[
            Setting {
                key: "mode",
                kind: Kind::Choice(&["read", "work", "full"]),
                default: Preset::Is("work"),
                project: ProjectMay::Nothing,
            },
            Setting {
                key: "sandbox.network",
                kind: Kind::Switch,
                default: Preset::Is("false"),
                project: ProjectMay::Nothing,
            },
            Setting {
                key: "sandbox.unix_sockets",
                kind: Kind::Switch,
                default: Preset::Is("false"),
                project: ProjectMay::Nothing,
            },
            Setting {
                key: "sandbox.env",
                kind: Kind::List(value::check_variable_name),
                default: Preset::Is(""),
                project: ProjectMay::Nothing,
            },
            Setting {
                key: "sandbox.read",
                kind: Kind::List(value::check_full_path),
                default: Preset::Is(""),
                project: ProjectMay::Nothing,
            },
            Setting {
                key: "sandbox.hide",
                kind: Kind::List(value::check_full_path),
                default: Preset::Is(""),
                project: ProjectMay::Nothing,
            },
            Setting {
                key: "sandbox.write",
                kind: Kind::List(value::check_full_path),
                default: Preset::Is(""),
                project: ProjectMay::Nothing,
            },
            Setting {
                key: "rules",
                kind: Kind::Rules,
                default: Preset::Absent("only the mode decides"),
                project: ProjectMay::Nothing,
            },
        ],
    },
    Group {
        heading: "Tools",
        settings: &[
            Setting {
                key: "tools.enabled",
                kind: Kind::Tools,
                default: Preset::Absent("all tools are offered"),
                project: ProjectMay::Narrow,
            },
            limit("max_tool_turns", "300", 1, 1_000),
            limit("max_output_size", "51200", 1_024, 104_857_600),
            limit("max_requests", "300", 1, 1_000_000),
        ],
    },
    Group {
        heading: "Money",
        settings: &[
            cost_limit("max_cost", "a message may cost any amount"),
            cost_limit("max_session_cost", "a session may cost any amount"),
        ],
    },
    Group {
        heading: "Context",
        settings: &[
            Setting {
                key: "context.auto",
                kind: Kind::Switch,
                default: Preset::Is("true"),
                project: ProjectMay::Nothing,
            },
            Setting {
                key: "context.compact_at",
                kind: Kind::Share,
                default: Preset::Is("0.85"),
                project: ProjectMay::Nothing,
            },
            Setting {
                key: "context.model",
                kind: Kind::Text(model_name::parse),
                default: Preset::Absent("the agent's own model writes summaries"),
                project: ProjectMay::Nothing,
            },
        ],
    },
    Group {
        heading: "Agents and mail",
        settings: &[
            limit("max_agents", "20", 1, 10_000),
            limit("max_depth", "4", 1, 64),
            Setting {
                key: "questions.remote",
                kind: Kind::Switch,
                default: Preset::Is("false"),
                project: ProjectMay::Nothing,
            },
            limit("mail.max_wakes", "32", 0, 100_000),
            Setting {
                key: "mail.notify",
                kind: Kind::Choice(&["idle", "boundary"]),
                default: Preset::Is("idle"),
                project: ProjectMay::Nothing,
            },
        ],
    },
    Group {
        heading: "Storage",
        settings: &[
            Setting {
                key: "database_url",
                kind: Kind::Text(secret_url::parse_database_url),
                default: Preset::Absent("neither XDG_DATA_HOME nor HOME names a folder for it"),
                project: ProjectMay::Nothing,
            },
            Setting {
                key: "history_size",
                kind: Kind::Number { least: 0, most: 1_000_000 },
                default: Preset::Is("10000"),
                project: ProjectMay::Nothing,
            },
        ],
    },
];

/// A `max_…` limit, which a project may lower.
const fn limit(key: &'static str, default: &'static str, least: u64, most: u64) -> Setting {
    Setting {
        key,
        kind: Kind::Number { least, most },
        default: Preset::Is(default),
        project: ProjectMay::Lower,
    }
}

/// Tokens of a model: more than any model has.
const TOKENS: Kind = Kind::Number { least: 1, most: 1_000_000_000 };

/// Dollars per million tokens: more than any model costs.
const PRICE: Kind = Kind::Dollars { least: 0, most: 1_000_000_000_000 };

/// A fact about a model, which counts more than what servers say. A project could hide what its
/// agents cost.
const fn fact(key: &'static str, kind: Kind) -> Setting {
    let default = Preset::Absent("servers and a built-in table know most models");
    Setting { key, kind, default, project: ProjectMay::Nothing }
}

/// A limit in dollars, which a project may lower.
const fn cost_limit(key: &'static str, meaning: &'static str) -> Setting {
    let kind = Kind::Dollars { least: 1, most: 1_000_000_000_000 };
    Setting { key, kind, default: Preset::Absent(meaning), project: ProjectMay::Lower }
}

impl Setting {
    /// Whether this setting exists for each model.
    pub(crate) fn is_per_model(&self) -> bool {
        self.key.starts_with(MODELS)
    }

    /// Whether this setting exists for each provider.
    pub(crate) fn is_per_provider(&self) -> bool {
        self.key.starts_with(PROVIDERS)
    }
}

pub(crate) fn all() -> impl Iterator<Item = &'static Setting> {
    GROUPS.iter().flat_map(|group| group.settings)
}

/// The setting with this key.
pub(crate) fn find(key: &str) -> Option<&'static Setting> {
    all().find(|setting| match setting.key.split_once(NAME) {
        None => setting.key == key,
        Some((before, after)) => key.strip_prefix(before).is_some_and(|rest| rest.ends_with(after)),
    })
}

/// Whether this is a group of settings: `mail`, `providers`, `providers.openai`.
pub(crate) fn is_group(key: &str) -> bool {
    let beneath =
        |setting: &Setting| setting.key.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
    let is_of = |kind: &str| key.strip_prefix(kind).is_some_and(|name| !name.is_empty());
    let is_provider = is_of(PROVIDERS) && key.matches('.').count() == 1;
    is_provider || (is_of(MODELS) && is_model(&key[MODELS.len()..])) || all().any(beneath)
}

/// Whether this is one segment of a key: bare, or quoted because it contains other characters.
fn is_model(segment: &str) -> bool {
    match segment.strip_prefix('"') {
        Some(rest) => rest.ends_with('"'),
        None => !segment.contains('.'),
    }
}

/// The model's name, as it is written in a key such as `models."openai/gpt-5".input`.
pub(crate) fn model_of(key: &str) -> Option<&str> {
    Some(key.strip_prefix(MODELS)?.rsplit_once('.')?.0)
}

/// The key of a fact about a model.
pub(crate) fn model_key(label: &str, field: &str) -> String {
    toml_layer::join(&toml_layer::join("models", label), field)
}

/// The provider's name in a key such as `providers.openai.kind`.
pub(crate) fn provider_of(key: &str) -> Option<&str> {
    Some(key.strip_prefix(PROVIDERS)?.rsplit_once('.')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::known_tools;

    #[test]
    fn every_default_is_valid() {
        for setting in all() {
            match setting.default {
                Preset::Is(text) => {
                    let parsed = setting.kind.parse(text, &known_tools());
                    parsed.unwrap_or_else(|wrong| panic!("{}: {wrong}", setting.key));
                }
                Preset::Absent(meaning) => assert!(!meaning.is_empty(), "{}", setting.key),
            }
        }
    }

    #[test]
    fn keys_are_unique_and_each_is_found() {
        for setting in all() {
            assert_eq!(find(setting.key).map(|found| found.key), Some(setting.key));
            assert_eq!(
                all().filter(|other| other.key == setting.key).count(),
                1,
                "{}",
                setting.key
            );
        }
    }

    /// The rule of the contract: a project may choose `model`, narrow
    /// `tools.enabled` and lower `max_…`.
    #[test]
    fn a_project_may_do_what_the_contract_says() {
        for setting in all().filter(|setting| !setting.is_per_model()) {
            let last = setting.key.rsplit('.').next().unwrap();
            let allowed = match setting.project {
                ProjectMay::Choose => setting.key == "model",
                ProjectMay::Narrow => setting.key == "tools.enabled",
                ProjectMay::Lower => last.starts_with("max_"),
                ProjectMay::Nothing => {
                    !last.starts_with("max_") && !["model", "tools.enabled"].contains(&setting.key)
                }
            };
            assert!(allowed, "{}", setting.key);
        }
    }

    #[test]
    fn groups_are_not_settings() {
        for group in ["mail", "context", "sandbox", "tools", "providers", "providers.x"] {
            assert!(is_group(group), "{group}");
        }
        for other in ["mode", "mai", "mail.notify", "providers.x.y", "nothing", "rules"] {
            assert!(!is_group(other), "{other}");
        }
    }
}
