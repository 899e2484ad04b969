//! The output of `ikigai config`: every setting, its value and its source. The lines are TOML with
//! the source as a comment, so that they can be copied into a file and changed there.

use std::ffi::OsStr;
use std::path::Path;

use crate::escape::{escape_path, quote};
use crate::file::ConfigFile;
use crate::layers::Entry;
use crate::origin::Origin;
use crate::providers;
use crate::rules::RuleEntry;
use crate::settings::Settings;
use crate::table::{self, GROUPS, Group, NAME, Preset, Setting};
use crate::value::{Value, render_dollars};

/// The sources of a group are aligned in a column. Lines longer than this do not move it.
const VALUE_COLUMNS: usize = 58;

pub(crate) fn render(settings: &Settings) -> String {
    let mut text = format!(
        "# User's file:    {}\n# Project's file: {}\n",
        user_file(settings),
        project_file(settings)
    );
    for group in GROUPS {
        text.push_str(&format!("\n# {}\n", group.heading));
        text.push_str(&align(&group_rows(settings, group)));
    }
    text
}

/// A line: TOML with its source, or a comment.
struct Row {
    left: String,
    source: Option<String>,
}

impl Row {
    fn note(text: &str) -> Row {
        Row { left: format!("# {text}"), source: None }
    }
}

fn align(rows: &[Row]) -> String {
    let width = |row: &Row| row.left.chars().count();
    let with_source = rows.iter().filter(|row| row.source.is_some());
    let column = with_source.map(width).filter(|width| *width <= VALUE_COLUMNS).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        match &row.source {
            None => text.push_str(&row.left),
            Some(source) => text.push_str(&format!("{:column$}  # {source}", row.left)),
        }
        text.push('\n');
    }
    text
}

fn group_rows(settings: &Settings, group: &Group) -> Vec<Row> {
    if group.settings.iter().all(Setting::is_per_model) {
        return model_rows(settings);
    }
    let (per_provider, single): (Vec<&Setting>, Vec<&Setting>) =
        group.settings.iter().partition(|setting| setting.is_per_provider());
    let mut rows = Vec::new();
    for setting in single {
        rows.extend(setting_rows(settings, setting, setting.key));
    }
    if per_provider.is_empty() {
        return rows;
    }
    for provider in providers::names(&settings.layers) {
        for setting in &per_provider {
            let key = setting.key.replace(NAME, &provider);
            rows.extend(setting_rows(settings, setting, &key));
        }
    }
    rows
}

/// The facts that are set for models.
fn model_rows(settings: &Settings) -> Vec<Row> {
    let mut keys: Vec<&str> = Vec::new();
    for entry in settings.layers.iter().filter(|entry| entry.setting.is_per_model()) {
        if keys.last() != Some(&entry.key.as_str()) {
            keys.push(&entry.key);
        }
    }
    if keys.is_empty() {
        return vec![Row::note(
            "[models.\"provider/name\"] is not set: servers and a built-in table know most models",
        )];
    }
    let holding = keys.iter().filter_map(|key| settings.layers.holding(key));
    holding.flat_map(|entry| setting_rows(settings, entry.setting, &entry.key)).collect()
}

fn setting_rows(settings: &Settings, setting: &Setting, key: &str) -> Vec<Row> {
    let Some(entry) = settings.layers.holding(key) else {
        return vec![Row::note(&format!("{key} is not set: {}", absent(settings, setting)))];
    };
    let source = || source(settings, &entry.origin);
    match &entry.value {
        Value::Rules(rules) if !rules.is_empty() => rule_rows(settings, entry, rules),
        Value::Text(variable) if key.ends_with(".api_key_env") => {
            let stored = table::provider_of(key).and_then(|name| settings.keys.stored.key(name));
            let state = match (settings.keys.is_set(OsStr::new(variable)), stored) {
                (true, _) => "set",
                (false, Some(_)) => "not set, but a key is stored",
                (false, None) => "not set",
            };
            vec![row(key, &quote(variable), format!("{}; {state}", source()))]
        }
        value => vec![row(key, &render_value(value), source())],
    }
}

fn row(key: &str, value: &str, source: String) -> Row {
    Row { left: format!("{key} = {value}"), source: Some(source) }
}

fn rule_rows(settings: &Settings, entry: &Entry, rules: &[RuleEntry]) -> Vec<Row> {
    let mut rows = vec![Row { left: "rules = [".to_owned(), source: None }];
    for rule in rules {
        let RuleEntry { tool, pattern, decision, line } = rule;
        let (tool, pattern, decision) = (quote(tool), quote(pattern), quote(decision));
        let origin = match &entry.origin {
            Origin::File { path, .. } => Origin::File { path: path.clone(), line: *line },
            other @ (Origin::Default | Origin::Variable(_) | Origin::Flag(_)) => other.clone(),
        };
        rows.push(Row {
            left: format!("  {{ tool = {tool}, match = {pattern}, decision = {decision} }},"),
            source: Some(source(settings, &origin)),
        });
    }
    rows.push(Row { left: "]".to_owned(), source: None });
    rows
}

/// A value as it is written in a file.
pub(crate) fn render_value(value: &Value) -> String {
    match value {
        Value::Text(text) => quote(text),
        Value::Url(address) => quote(&address.to_string()),
        Value::Number(number) => number.to_string(),
        Value::Dollars(amount) => render_dollars(*amount),
        Value::Switch(switch) => switch.to_string(),
        Value::Percent(percent) => format!("{}.{:02}", percent / 100, percent % 100),
        Value::List(items) => {
            format!("[{}]", items.iter().map(|item| quote(item)).collect::<Vec<_>>().join(", "))
        }
        Value::Rules(_) => "[]".to_owned(),
    }
}

/// What it means that a setting is not set.
fn absent(settings: &Settings, setting: &Setting) -> String {
    let meaning = match setting.default {
        Preset::Absent(meaning) => meaning,
        Preset::Is(text) => text,
    };
    if setting.key != "model" {
        return meaning.to_owned();
    }
    match settings.keys.first_provider(&settings.layers) {
        Some(provider) => format!("{meaning}, now {provider}"),
        None => format!("{meaning}, and none has one"),
    }
}

fn source(settings: &Settings, origin: &Origin) -> String {
    match origin {
        Origin::File { path, line } => format!("{}:{line}", short(settings, path)),
        Origin::Default | Origin::Variable(_) | Origin::Flag(_) => origin.to_string(),
    }
}

fn user_file(settings: &Settings) -> String {
    match &settings.user_file {
        ConfigFile::Found(document) => short(settings, &document.path),
        ConfigFile::Missing(path) => format!("{} (not there)", short(settings, path)),
        ConfigFile::Nowhere => "none (neither XDG_CONFIG_HOME nor HOME names a folder)".to_owned(),
    }
}

fn project_file(settings: &Settings) -> String {
    match &settings.project_file {
        ConfigFile::Found(document) => short(settings, &document.path),
        ConfigFile::Missing(path) => format!("{} (not there)", short(settings, path)),
        ConfigFile::Nowhere => "none (the user's file is in its place)".to_owned(),
    }
}

/// The path, with `~` for the home folder.
fn short(settings: &Settings, path: &Path) -> String {
    match settings.folders.home().and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => format!("~/{}", escape_path(rest)),
        None => escape_path(path),
    }
}

#[cfg(test)]
mod tests {
    use crate::table;
    use crate::testing::world;

    #[test]
    fn the_listing_shows_every_source() {
        let user = "model = 'gpt-5'\nsandbox.read = ['~/notes']\n\
                    [providers.local]\nbase_url = 'http://me:pw@localhost:11434/v1'\n\
                    [[rules]]\ntool = 'bash'\nmatch = 'gh pr view'\ndecision = 'trust'\n";
        let world = world()
            .user(user)
            .project("max_agents = 5")
            .variable("XDG_DATA_HOME", "/data")
            .variable("ANTHROPIC_API_KEY", "secret")
            .variable("IKIGAI_MAIL__MAX_WAKES", "3")
            .flag("--mode", "mode", "read");
        assert_eq!(world.listing(), LISTING);
    }

    const LISTING: &str = r#"# User's file:    ~/.config/ikigai/config.toml
# Project's file: PROJECT

# Model and providers
model = "openai/gpt-5"                                      # ~/.config/ikigai/config.toml:1
# effort is not set: the provider decides how long a model thinks
providers.openai.kind = "openai"                            # default
providers.openai.base_url = "https://api.openai.com/v1"     # default
providers.openai.api_key_env = "OPENAI_API_KEY"             # default; not set
# providers.openai.allow_http is not set: a key is sent to another machine over https only
providers.anthropic.kind = "anthropic"                      # default
providers.anthropic.base_url = "https://api.anthropic.com"  # default
providers.anthropic.api_key_env = "ANTHROPIC_API_KEY"       # default; set
# providers.anthropic.allow_http is not set: a key is sent to another machine over https only
providers.google.kind = "google"                            # default
providers.google.base_url = "https://generativelanguage.googleapis.com"  # default
providers.google.api_key_env = "GEMINI_API_KEY"             # default; not set
# providers.google.allow_http is not set: a key is sent to another machine over https only
providers.local.kind = "openai"                             # default
providers.local.base_url = "http://me:***@localhost:11434/v1"  # ~/.config/ikigai/config.toml:4
# providers.local.api_key_env is not set: no key is sent
# providers.local.allow_http is not set: a key is sent to another machine over https only

# Model facts
# [models."provider/name"] is not set: servers and a built-in table know most models

# Permissions
mode = "read"                 # --mode
sandbox.network = false       # default
sandbox.unix_sockets = false  # default
sandbox.env = []              # default
sandbox.read = ["~/notes"]    # ~/.config/ikigai/config.toml:2
sandbox.hide = []             # default
sandbox.write = []            # default
rules = [
  { tool = "bash", match = "gh pr view", decision = "trust" },  # ~/.config/ikigai/config.toml:5
]

# Tools
# tools.enabled is not set: all tools are offered
max_tool_turns = 300     # default
max_output_size = 51200  # default
max_requests = 300       # default

# Money
# max_cost is not set: a message may cost any amount
# max_session_cost is not set: a session may cost any amount

# Context
context.auto = true        # default
context.compact_at = 0.85  # default
# context.model is not set: the agent's own model writes summaries

# Agents and mail
max_agents = 5            # PROJECT:1
max_depth = 4             # default
questions.remote = false  # default
mail.max_wakes = 3        # IKIGAI_MAIL__MAX_WAKES
mail.notify = "idle"      # default

# Storage
database_url = "sqlite:///data/ikigai/ikigai.db"  # default
history_size = 10000                              # default
"#;

    #[test]
    fn without_sources_every_setting_is_listed_or_marked_unset() {
        let listing = world().without_variable("HOME").listing();
        for setting in table::all().filter(|setting| !setting.is_per_model()) {
            let key = setting.key.replace("NAME", "openai");
            let is_listed = |line: &str| {
                line.starts_with(&format!("{key} = "))
                    || line.starts_with(&format!("# {key} is not set: "))
            };
            assert_eq!(
                listing.lines().filter(|line| is_listed(line)).count(),
                1,
                "{key}:\n{listing}"
            );
        }
        world().without_variable("HOME").shows(&[
            "# User's file: none (neither XDG_CONFIG_HOME nor HOME names a folder)",
            "# database_url is not set: neither XDG_DATA_HOME nor HOME names a folder for it",
        ]);
    }

    /// The listing is valid TOML, and reading it gives the same settings.
    #[test]
    fn the_listing_can_be_read_back() {
        let first =
            world().user("tools.enabled = ['core']\nmax_depth = 2\nmodel = 'claude-x'").listing();
        let second = world().user(&first).listing();
        let without_sources = |listing: &str| {
            let lines = listing.lines().map(|line| line.split(" # ").next().unwrap().trim_end());
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(without_sources(&first)[2..], without_sources(&second)[2..]);
    }
}
