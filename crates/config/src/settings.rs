//! The merged settings: loading and reading them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::credentials::Credentials;
use crate::error::{ConfigError, NoDatabase, Problem, all_or_faults};
use crate::file::{ConfigFile, Document};
use crate::folders::Folders;
use crate::keys::Keys;
use crate::layers::{Entry, Layers};
use crate::model_facts::{self, ConfiguredFacts};
use crate::model_settings::{self, ModelError, ModelSettings};
use crate::origin::Origin;
use crate::rules::RuleEntry;
use crate::secret_url::SecretUrl;
use crate::sources::{Flag, Sources};
use crate::toml_layer::Author;
use crate::tools::KnownTools;
use crate::value::Value;
use crate::{defaults, environment, model_name, project, providers, show, toml_layer};

/// All settings, checked and merged. Values are read by key. `text`, `number`, `list` and `paths`
/// panic for a key of another kind or without a default, and `is_on` is false.
#[derive(Debug)]
pub struct Settings {
    pub(crate) layers: Layers,
    pub(crate) user_file: ConfigFile,
    pub(crate) project_file: ConfigFile,
    enabled_tools: Option<Vec<String>>,
    pub(crate) keys: Keys,
    pub(crate) folders: Folders,
}

impl Settings {
    /// Reads, checks and merges all layers.
    ///
    /// # Errors
    /// A file cannot be read, or a layer has faults. The error names the origin, the setting and
    /// the allowed values.
    pub fn load(sources: &Sources) -> Result<Settings, ConfigError> {
        let Sources { variables, project_files, flags, tools, .. } = sources;
        let folders = Folders::find(variables);
        let user_file = user_file(sources, &folders)?;
        let project_file = project::find_file(project_files, &user_file)?;

        let mut layers = Layers::default();
        layers.add(defaults::entries(&folders, tools)?);
        if let ConfigFile::Found(document) = &user_file {
            layers.add(toml_layer::entries(document, Author::User, tools)?);
        }
        if let ConfigFile::Found(document) = &project_file {
            let author = Author::Project { user_file: &user_file };
            let entries = toml_layer::entries(document, author, tools)?;
            project::check(&entries, &layers, &user_file, tools)?;
            layers.add(entries);
        }
        layers.add(environment::provider_addresses(variables, tools)?);
        layers.add(environment::entries(variables, &providers::names(&layers), tools)?);
        layers.add(flag_entries(flags, tools)?);
        providers::complete(&mut layers, tools)?;
        model_name::resolve(&mut layers)?;
        model_facts::check(&layers)?;

        let enabled_tools = tools.enabled(&layers);
        let stored = Credentials::read(folders.credentials_file())?;
        let keys = Keys::find(&layers, variables, stored);
        Ok(Settings { layers, user_file, project_file, enabled_tools, keys, folders })
    }

    /// A text with a default, such as `mode`.
    pub fn text(&self, key: &str) -> &str {
        match self.layers.value(key) {
            Some(Value::Text(text)) => text,
            other => unreachable!("{key} is a text and has a default: {other:?}"),
        }
    }

    /// A text that may be absent, such as `effort`.
    pub fn optional_text(&self, key: &str) -> Option<&str> {
        match self.layers.value(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A number, such as `max_agents`.
    pub fn number(&self, key: &str) -> u32 {
        match self.layers.value(key) {
            Some(Value::Number(number)) => u32::try_from(*number).unwrap_or(u32::MAX),
            other => unreachable!("{key} is a number and has a default: {other:?}"),
        }
    }

    /// A share in percent, such as `context.compact_at`.
    pub fn percent(&self, key: &str) -> u32 {
        match self.layers.value(key) {
            Some(Value::Percent(percent)) => *percent,
            other => unreachable!("{key} is a share and has a default: {other:?}"),
        }
    }

    /// Whether a switch is on, such as `sandbox.network`.
    pub fn is_on(&self, key: &str) -> bool {
        matches!(self.layers.value(key), Some(Value::Switch(true)))
    }

    /// The entries of a list, such as `sandbox.env`.
    pub fn list(&self, key: &str) -> &[String] {
        match self.layers.value(key) {
            Some(Value::List(entries)) => entries,
            other => unreachable!("{key} is a list and has a default: {other:?}"),
        }
    }

    /// The paths of a list, such as `sandbox.read`, with `~` expanded.
    pub fn paths(&self, key: &str) -> Vec<PathBuf> {
        let full = |path: &String| match (path.strip_prefix('~'), &self.folders.home) {
            (None, _) => Some(PathBuf::from(path)),
            (Some(rest), Some(home)) => Some(home.join(rest.trim_start_matches('/'))),
            // Without a home directory the list is empty.
            (Some(_), None) => None,
        };
        self.list(key).iter().filter_map(full).collect()
    }

    /// The user's rules, in their order.
    pub fn rules(&self) -> &[RuleEntry] {
        match self.layers.value("rules") {
            Some(Value::Rules(rules)) => rules,
            _ => &[],
        }
    }

    /// The tools that the model is offered, with `core` expanded. `None` means all.
    pub fn enabled_tools(&self) -> Option<&[String]> {
        self.enabled_tools.as_deref()
    }

    /// The model that is set, or the default model of the first provider with a key.
    ///
    /// # Errors
    /// There is none, or it cannot be reached safely.
    pub fn model(&self) -> Result<ModelSettings, ModelError> {
        model_settings::choose(&self.layers, &self.keys)
    }

    /// An amount that may be spent, in micro-dollars, such as `max_cost`. `None` means any.
    pub fn dollars(&self, key: &str) -> Option<u64> {
        match self.layers.value(key) {
            Some(Value::Dollars(amount)) => Some(*amount),
            None => None,
            other => unreachable!("{key} is an amount: {other:?}"),
        }
    }

    /// The address of a provider's server, if there is such a provider.
    pub fn provider_address(&self, provider: &str) -> Option<&SecretUrl> {
        match self.layers.value(&providers::key(provider, "base_url")) {
            Some(Value::Url(address)) => Some(address),
            _ => None,
        }
    }

    /// What the user has configured about a model, `provider/name`.
    pub fn model_facts(&self, label: &str) -> ConfiguredFacts {
        model_facts::of(&self.layers, label)
    }

    /// A model by its name, as in the setting `model`.
    ///
    /// # Errors
    /// The name is not a model's, or the model cannot be reached safely. The text says what to do.
    pub fn model_named(&self, name: &str) -> Result<ModelSettings, String> {
        let label = model_name::named(&self.layers, name)?;
        model_settings::named(&self.layers, &self.keys, &label).map_err(|error| error.to_string())
    }

    /// Whether the model was chosen by a flag.
    pub fn is_model_a_flag(&self) -> bool {
        let model = self.layers.holding("model");
        model.is_some_and(|entry| matches!(entry.origin, Origin::Flag(_)))
    }

    /// The servers that can be asked for their models: those with a key, and those whose address the
    /// user has set. Their models have no names.
    pub fn connected_providers(&self) -> Vec<ModelSettings> {
        model_settings::connected(&self.layers, &self.keys)
    }

    /// The variable for the key of a provider, if there is one, and whether it is set.
    pub fn key_variable(&self, provider: &str) -> Option<(String, bool)> {
        let variable =
            providers::text(self.layers.value(&providers::key(provider, "api_key_env")))?;
        Some((variable.to_owned(), self.keys.is_set(OsStr::new(variable))))
    }

    /// The names of all providers.
    pub fn providers(&self) -> Vec<String> {
        providers::names(&self.layers)
    }

    /// The stored keys.
    pub fn credentials(&self) -> &Credentials {
        &self.keys.stored
    }

    /// The model of a provider for a user who has its key: the configured one if it
    /// belongs to this provider, or the provider's default model.
    ///
    /// # Errors
    /// The key would be sent unencrypted.
    pub fn model_for_provider(&self, provider: &str) -> Result<ModelSettings, ModelError> {
        model_settings::for_provider(&self.layers, provider)
    }

    /// The address of the database.
    ///
    /// # Errors
    /// No address is set, and there is no folder for a database.
    pub fn database_url(&self) -> Result<&SecretUrl, NoDatabase> {
        match self.layers.value("database_url") {
            Some(Value::Url(address)) => Ok(address),
            None => Err(NoDatabase),
            other => unreachable!("an address by its kind: {other:?}"),
        }
    }

    /// The folders of the user and of ikigai.
    pub fn folders(&self) -> &Folders {
        &self.folders
    }

    /// Where the user's file is, or would be. `None` if no folder is known for it.
    pub fn user_file(&self) -> Option<&Path> {
        self.user_file.path()
    }

    /// The variables that commands must never see: every provider's key, including overridden ones,
    /// the address of the database, and addresses of servers with a password.
    pub fn secret_variables(&self) -> Vec<OsString> {
        let mut names = providers::key_variables(&self.layers);
        names.extend(providers::secret_addresses(&self.layers));
        names.insert(OsString::from(environment::variable_name("database_url")));
        names.into_iter().collect()
    }

    /// The key variables, and whether each is set.
    pub fn key_variables(&self) -> impl Iterator<Item = (String, bool)> {
        providers::key_variables(&self.layers).into_iter().map(|name| {
            let is_set = self.keys.is_set(&name);
            (name.to_string_lossy().into_owned(), is_set)
        })
    }

    /// The output of `ikigai config`.
    pub fn render(&self) -> String {
        show::render(self)
    }
}

fn user_file(sources: &Sources, folders: &Folders) -> Result<ConfigFile, ConfigError> {
    if let Some(path) = &sources.config_flag {
        return match Document::read(path)? {
            Some(document) => Ok(ConfigFile::Found(document)),
            None => Err(Problem::NoSuchFile { path: path.clone() }.into()),
        };
    }
    let Some(path) = folders.user_file() else { return Ok(ConfigFile::Nowhere) };
    Ok(match Document::read(&path)? {
        Some(document) => ConfigFile::Found(document),
        None => ConfigFile::Missing(path),
    })
}

fn flag_entries(flags: &[Flag], tools: &KnownTools) -> Result<Vec<Entry>, ConfigError> {
    let entry = |flag: &Flag| Entry::parse(flag.key, &flag.value, Origin::Flag(flag.name), tools);
    all_or_faults(flags.iter().map(entry))
}

#[cfg(test)]
mod tests {
    use crate::testing::world;

    #[test]
    fn each_layer_overrides_the_one_below() {
        let world = world();
        world.shows(&["max_agents = 20 # default"]);
        let world = world.user("max_agents = 10");
        world.shows(&["max_agents = 10 # ~/.config/ikigai/config.toml:1"]);
        let world = world.project("\nmax_agents = 9");
        world.shows(&["max_agents = 9 # PROJECT:2"]);
        let world = world.variable("IKIGAI_MAX_AGENTS", "30");
        world.shows(&["max_agents = 30 # IKIGAI_MAX_AGENTS"]);
        let world = world.flag("--max-agents", "max_agents", "40");
        world.shows(&["max_agents = 40 # --max-agents"]);
    }

    #[test]
    fn layers_are_merged_by_setting() {
        world()
            .user("max_depth = 3\nmail.max_wakes = 5\nmode = 'read'")
            .project("max_depth = 2")
            .variable("IKIGAI_MAIL__MAX_WAKES", "6")
            .flag("--mode", "mode", "full")
            .shows(&[
                "max_depth = 2 # PROJECT:1",
                "mail.max_wakes = 6 # IKIGAI_MAIL__MAX_WAKES",
                "mode = \"full\" # --mode",
                "mail.notify = \"idle\" # default",
            ]);
    }

    #[test]
    fn the_config_flag_replaces_the_users_file() {
        let world = world()
            .user("max_agents = 10\nmax_depth = 3")
            .file("repo/src/other.toml", "max_agents = 11");
        let world = world.config_flag("other.toml");
        world.shows(&["max_agents = 11 # ROOT/repo/src/other.toml:1", "max_depth = 4 # default"]);
        let world = world.project("mode = 'full'");
        world.refused(
            "PROJECT:1: mode cannot be set in a project's file, which is not trusted; set it in ROOT/repo/src/other.toml",
        );
        world
            .config_flag("none.toml")
            .refused("ROOT/repo/src/none.toml: file not found (from --config)");
    }

    #[test]
    fn the_users_file_is_where_xdg_says() {
        let world =
            world().file("home/xdg/ikigai/config.toml", "max_agents = 7").user("max_agents = 8");
        let world = world.variable("XDG_CONFIG_HOME", "HOME/xdg");
        world.shows(&["max_agents = 7 # ~/xdg/ikigai/config.toml:1"]);
        for unset in ["", "relative/xdg"] {
            let world =
                crate::testing::world().user("max_agents = 8").variable("XDG_CONFIG_HOME", unset);
            world.shows(&["max_agents = 8 # ~/.config/ikigai/config.toml:1"]);
        }
        let world = crate::testing::world().user("max_agents = 8").without_variable("HOME");
        world.shows(&["max_agents = 20 # default"]);
    }

    #[test]
    fn flags_are_checked_like_other_layers() {
        world()
            .flag("--mode", "mode", "wrok")
            .refused("--mode: 'wrok' is not allowed: use one of read, work, full");
        world().flag("--db", "database_url", "mysql://me:hunter2@h/db").refused(
            "--db: 'mysql://me:***@h/db' is not allowed: it must start with sqlite: or postgres://",
        );
    }

    #[test]
    fn settings_of_the_tools_have_values() {
        let settings = world().load().unwrap();
        assert_eq!(settings.number("max_output_size"), 51_200);
        assert_eq!(settings.enabled_tools(), None);

        let settings = world()
            .user("max_output_size = 0x800\ntools.enabled = ['bash', 'core', 'file_edit']")
            .load()
            .unwrap();
        assert_eq!(settings.number("max_output_size"), 2_048);
        let tools = ["bash", "glob", "file_read", "grep", "file_write", "mail", "file_edit"];
        assert_eq!(settings.enabled_tools().unwrap(), tools);

        let settings = world().user("tools.enabled = []").load().unwrap();
        assert_eq!(settings.enabled_tools(), Some(&[][..]));
    }

    #[test]
    fn commands_see_neither_keys_nor_the_database() {
        let always =
            ["ANTHROPIC_API_KEY", "GEMINI_API_KEY", "IKIGAI_DATABASE_URL", "OPENAI_API_KEY"];
        assert_eq!(world().load().unwrap().secret_variables(), always);

        // A variable that a higher layer overrides still holds a key.
        let settings = world()
            .user("providers.openai.api_key_env = 'MY_KEY'\n[providers.local]\nbase_url = 'http://h'\napi_key_env = 'LOCAL_KEY'")
            .variable("IKIGAI_PROVIDERS__OPENAI__API_KEY_ENV", "OTHER_KEY")
            .load()
            .unwrap();
        let mut all = [&always[..], &["LOCAL_KEY", "MY_KEY", "OTHER_KEY"]].concat();
        all.sort_unstable();
        assert_eq!(settings.secret_variables(), all);

        let settings = world()
            .user("providers.local.base_url = 'http://h'")
            .variable("OPENAI_BASE_URL", "http://me:hunter2@h/v1")
            .variable("ANTHROPIC_BASE_URL", "http://h")
            .variable("IKIGAI_PROVIDERS__LOCAL__BASE_URL", "http://hunter2@h")
            .load()
            .unwrap();
        let more = ["IKIGAI_PROVIDERS__LOCAL__BASE_URL", "OPENAI_BASE_URL"];
        let mut all = [&always[..], &more].concat();
        all.sort_unstable();
        assert_eq!(settings.secret_variables(), all);
    }

    #[test]
    fn no_password_is_in_debug_listing_or_errors() {
        let user = "database_url = 'postgres://me:hunter2@h/db?sslpassword=hunter2'\n\
                    [providers.local]\nbase_url = 'https://me:hunter2@h/v1'\napi_key_env = 'LOCAL_KEY'";
        let world = world()
            .user(user)
            .variable("LOCAL_KEY", "hunter2")
            .variable("OPENAI_BASE_URL", "https://hunter2@h/v1");
        let settings = world.load().unwrap();
        let printed = format!("{settings:?}\n{}", settings.render());
        assert!(!printed.contains("hunter2"), "{printed}");
        world.shows(&[
            "database_url = \"postgres://me:***@h/db?sslpassword=***\" # ~/.config/ikigai/config.toml:1",
            "providers.local.base_url = \"https://me:***@h/v1\" # ~/.config/ikigai/config.toml:3",
            "providers.openai.base_url = \"https://***@h/v1\" # OPENAI_BASE_URL",
        ]);

        for broken in [
            "database_url = 'postgres://me:hunter2@h/db",
            "database_url = hunter2",
            "database_url = 'postgres://me:hunt/hunter2@h'",
            "database_url = ['hunter2']",
        ] {
            let error = crate::testing::world().user(broken).load().unwrap_err();
            let printed = format!("{error} {error:?}");
            assert!(!printed.contains("hunter2"), "{printed}");
        }
    }
}
