//! The settings of one process: what was asked for, by whom, and whether it was allowed.
//!
//! Every setting is a line of the table in [`settings`]; nothing else in here knows a setting by
//! name except where a rule speaks of it. Layers are read one after the other, the lowest first:
//! built-in defaults, the user's file, the project's file, addresses from the providers' own
//! variables, `IKIGAI_…` variables, flags. Each value keeps the [place](place::Place) it came from,
//! so that `ikigai config` can name it and an error can name file and line.
//!
//! Two invariants. A project's file comes with a clone: what it may do is decided in [`project`]
//! before its values join the others. An address may hold a password: it lives in an
//! [`Address`], which prints itself masked, also in `Debug`.

mod address;
mod chosen;
mod defaults;
mod environment;
mod error;
mod escape;
mod file;
mod folders;
mod layers;
mod lines;
mod mask;
mod model;
mod nearest;
mod place;
mod project;
mod providers;
mod rules;
mod settings;
mod show;
#[cfg(test)]
mod testing;
mod toml_layer;
mod tools;
mod url;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) use chosen::{ChosenModel, Format, NoModel};
pub(crate) use error::{ConfigError, NoDatabase};
pub(crate) use project::ProjectFile;
pub(crate) use rules::Rule as RuleEntry;
pub(crate) use tools::KnownTools;

use address::Address;
use file::{Document, Lookup};
use folders::Folders;
use layers::{Entry, Layers};
use place::Place;
use toml_layer::Author;
use value::Value;

/// What the process was given from outside. It holds keys and passwords, hence no `Debug`.
pub(crate) struct Sources {
    /// The whole environment.
    pub(crate) variables: BTreeMap<OsString, OsString>,
    /// `--config FILE`: read instead of the user's file, and must exist; absolute.
    pub(crate) config_flag: Option<PathBuf>,
    /// Where the project's file may be, from the working directory outwards. The first one that is there is read.
    pub(crate) project_files: Vec<ProjectFile>,
    /// The flags that stand for a setting.
    pub(crate) flags: Vec<Flag>,
    /// The tools that settings can name.
    pub(crate) tools: KnownTools,
}

/// A flag that stands for a setting, such as `--model NAME`.
pub(crate) struct Flag {
    /// The setting's key.
    pub(crate) key: &'static str,
    pub(crate) value: String,
    /// The flag as it is typed, for messages: `--model`.
    pub(crate) typed: &'static str,
}

/// All settings, checked and merged.
#[derive(Debug)]
pub(crate) struct Settings {
    layers: Layers,
    user_file: Lookup,
    project_file: Lookup,
    enabled_tools: Option<Vec<String>>,
    /// The key variables that are there and not empty; never their values.
    keys_present: BTreeSet<OsString>,
    folders: Folders,
}

impl Settings {
    /// Reads, checks and merges all layers. The error names the place, the setting and what is
    /// allowed.
    pub(crate) fn load(sources: &Sources) -> Result<Settings, ConfigError> {
        let Sources { variables, project_files, flags, tools, .. } = sources;
        let folders = Folders::find(variables);
        let user_file = user_file(sources, &folders)?;
        let project_file = project::find_file(project_files, &user_file)?;

        let mut layers = Layers::default();
        layers.add(defaults::entries(&folders, tools)?);
        if let Lookup::Found(document) = &user_file {
            layers.add(toml_layer::entries(document, Author::User, tools)?);
        }
        if let Lookup::Found(document) = &project_file {
            let author = Author::Project { user_file: &user_file };
            let entries = toml_layer::entries(document, author, tools)?;
            project::check(&entries, &layers, &user_file, tools)?;
            layers.add(entries);
        }
        layers.add(environment::provider_addresses(variables, tools)?);
        layers.add(environment::entries(variables, &providers::names(&layers), tools)?);
        layers.add(flag_entries(flags, tools)?);
        providers::complete(&mut layers, tools)?;
        model::resolve(&mut layers)?;

        let enabled_tools = tools.enabled(&layers);
        let keys_present = providers::keys_present(&layers, variables);
        Ok(Settings { layers, user_file, project_file, enabled_tools, keys_present, folders })
    }

    /// A text that has a default, such as `mode`.
    pub(crate) fn text(&self, key: &str) -> &str {
        match self.layers.value(key) {
            Some(Value::Text(text)) => text,
            other => unreachable!("{key} is a text and has a default: {other:?}"),
        }
    }

    /// A number, such as `max_agents`.
    pub(crate) fn number(&self, key: &str) -> u32 {
        match self.layers.value(key) {
            Some(Value::Number(number)) => u32::try_from(*number).unwrap_or(u32::MAX),
            other => unreachable!("{key} is a number and has a default: {other:?}"),
        }
    }

    /// Whether a switch is on, such as `sandbox.network`.
    pub(crate) fn is_on(&self, key: &str) -> bool {
        matches!(self.layers.value(key), Some(Value::Switch(true)))
    }

    /// The entries of a list, such as `sandbox.env`.
    pub(crate) fn list(&self, key: &str) -> &[String] {
        match self.layers.value(key) {
            Some(Value::List(entries)) => entries,
            other => unreachable!("{key} is a list and has a default: {other:?}"),
        }
    }

    /// The paths of a list, such as `sandbox.read`, `~` replaced.
    pub(crate) fn paths(&self, key: &str) -> Vec<PathBuf> {
        let full = |path: &String| match (path.strip_prefix('~'), &self.folders.home) {
            (None, _) => Some(PathBuf::from(path)),
            (Some(rest), Some(home)) => Some(home.join(rest.trim_start_matches('/'))),
            // Without a home directory there is nothing in it.
            (Some(_), None) => None,
        };
        self.list(key).iter().filter_map(full).collect()
    }

    /// The user's rules, in their order.
    pub(crate) fn rules(&self) -> &[RuleEntry] {
        match self.layers.value("rules") {
            Some(Value::Rules(rules)) => rules,
            _ => &[],
        }
    }

    /// The tools that the model is offered, `core` expanded; `None` stands for all.
    pub(crate) fn enabled_tools(&self) -> Option<&[String]> {
        self.enabled_tools.as_deref()
    }

    /// The model to talk to, and how to reach it.
    pub(crate) fn chosen_model(&self) -> Result<ChosenModel, NoModel> {
        chosen::choose(&self.layers, &self.keys_present)
    }

    /// A model by its name, as `model` takes it, and how to reach it. The error says what to do.
    pub(crate) fn model_named(&self, name: &str) -> Result<ChosenModel, String> {
        let label = model::named(&self.layers, name)?;
        chosen::named(&self.layers, &self.keys_present, &label).map_err(|error| error.to_string())
    }

    /// The model of a built-in provider for somebody who has a key of it: the one that is set, if it is this
    /// provider's, else its usual one.
    pub(crate) fn model_with_key_of(&self, provider: &str) -> Result<ChosenModel, NoModel> {
        chosen::with_key_of(&self.layers, provider)
    }

    /// The address of the database.
    pub(crate) fn database_url(&self) -> Result<&Address, NoDatabase> {
        match self.layers.value("database_url") {
            Some(Value::Address(address)) => Ok(address),
            None => Err(NoDatabase),
            other => unreachable!("an address by its kind: {other:?}"),
        }
    }

    /// The folders of the user and of ikigai.
    pub(crate) fn folders(&self) -> &Folders {
        &self.folders
    }

    /// Where the user's file is, or would be; `None` where no folder is known for it.
    pub(crate) fn user_file(&self) -> Option<&Path> {
        self.user_file.path()
    }

    /// The variables that a command must never see: every provider's key, also a replaced one, the
    /// database's address, and a server's with a password in it.
    pub(crate) fn secret_variables(&self) -> Vec<OsString> {
        let mut names = providers::key_variables(&self.layers);
        names.extend(providers::secret_addresses(&self.layers));
        names.insert(OsString::from(environment::variable_name("database_url")));
        names.into_iter().collect()
    }

    /// The variables of keys, and whether each is set.
    pub(crate) fn key_variables(&self) -> impl Iterator<Item = (String, bool)> {
        providers::key_variables(&self.layers).into_iter().map(|name| {
            let is_set = self.keys_present.contains(&name);
            (name.to_string_lossy().into_owned(), is_set)
        })
    }

    /// What `ikigai config` prints.
    pub(crate) fn render(&self) -> String {
        show::render(self)
    }
}

fn user_file(sources: &Sources, folders: &Folders) -> Result<Lookup, ConfigError> {
    if let Some(path) = &sources.config_flag {
        return match Document::read(path)? {
            Some(document) => Ok(Lookup::Found(document)),
            None => Err(ConfigError::NoSuchFile { path: path.clone() }),
        };
    }
    let Some(path) = folders.user_file() else { return Ok(Lookup::Nowhere) };
    Ok(match Document::read(&path)? {
        Some(document) => Lookup::Found(document),
        None => Lookup::Missing(path),
    })
}

fn flag_entries(flags: &[Flag], tools: &KnownTools) -> Result<Vec<Entry>, ConfigError> {
    let entry = |flag: &Flag| Entry::parse(flag.key, &flag.value, Place::Flag(flag.typed), tools);
    error::all_or_faults(flags.iter().map(entry))
}

#[cfg(test)]
mod tests {
    use super::testing::world;

    #[test]
    fn each_layer_lies_over_the_one_before() {
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
    fn layers_mix_setting_by_setting() {
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
            "PROJECT:1: mode may not be set by a project, whose file comes with a clone and is not trusted; \
             set it in ROOT/repo/src/other.toml",
        );
        world
            .config_flag("none.toml")
            .refused("ROOT/repo/src/none.toml: there is no such file, but --config names it");
    }

    #[test]
    fn the_users_file_is_where_xdg_says() {
        let world =
            world().file("home/xdg/ikigai/config.toml", "max_agents = 7").user("max_agents = 8");
        let world = world.variable("XDG_CONFIG_HOME", "HOME/xdg");
        world.shows(&["max_agents = 7 # ~/xdg/ikigai/config.toml:1"]);
        for unset in ["", "relative/xdg"] {
            let world =
                super::testing::world().user("max_agents = 8").variable("XDG_CONFIG_HOME", unset);
            world.shows(&["max_agents = 8 # ~/.config/ikigai/config.toml:1"]);
        }
        let world = super::testing::world().user("max_agents = 8").without_variable("HOME");
        world.shows(&["max_agents = 20 # default"]);
    }

    #[test]
    fn flags_are_checked_like_everything_else() {
        world()
            .flag("--mode", "mode", "wrok")
            .refused("--mode: 'wrok' is not allowed, use one of read, work, full");
        world().flag("--db", "database_url", "mysql://me:hunter2@h/db").refused(
            "--db: 'mysql://me:***@h/db' is not allowed, it must begin with sqlite: or postgres://",
        );
    }

    #[test]
    fn what_the_tools_need_is_there() {
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
    fn commands_see_no_key_variable_and_no_database() {
        let always =
            ["ANTHROPIC_API_KEY", "GEMINI_API_KEY", "IKIGAI_DATABASE_URL", "OPENAI_API_KEY"];
        assert_eq!(world().load().unwrap().secret_variables(), always);

        // A variable that a higher layer replaced still holds a key.
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
            let error = super::testing::world().user(broken).load().unwrap_err();
            let printed = format!("{error} {error:?}");
            assert!(!printed.contains("hunter2"), "{printed}");
        }
    }
}
