//! Reads a file's text as a layer: every setting with its line, or all faults.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{ConfigError, Fault, Problem, no_faults};
use crate::escape::{escape_path, excerpt, quote};
use crate::file::{ConfigFile, Document};
use crate::layers::Entry;
use crate::lines::Lines;
use crate::origin::Origin;
use crate::providers;
use crate::suggestion;
use crate::table::{self, ProjectMay, Setting};
use crate::tools::KnownTools;
use crate::value::WrongLine;

/// The author of a file.
#[derive(Clone, Copy)]
pub(crate) enum Author<'a> {
    User,
    /// Not trusted. Errors name `user_file` as the right place for what it may not set.
    Project {
        user_file: &'a ConfigFile,
    },
}

pub(crate) fn entries(
    document: &Document,
    author: Author<'_>,
    tools: &KnownTools,
) -> Result<Vec<Entry>, ConfigError> {
    let lines = Lines::of(&document.text);
    // Only the parser's message is used: its `Display` and `Debug` repeat the text of the file.
    let table = DeTable::parse(&document.text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let before = document.text.get(lines.start(at)..at).unwrap_or_default();
        Problem::Syntax {
            path: document.path.to_path_buf(),
            line: lines.line(at),
            column: before.chars().count() + 1,
            message: error.message().to_owned(),
        }
    })?;
    let (entries, faults) = (Vec::new(), Vec::new());
    let mut reader = Reader { document, author, tools, lines, entries, faults };
    reader.walk("", table.get_ref());
    reader.finish()
}

struct Reader<'a> {
    document: &'a Document,
    author: Author<'a>,
    tools: &'a KnownTools,
    lines: Lines,
    entries: Vec<Entry>,
    /// In the order of lines, because the parser sorts tables alphabetically.
    faults: Vec<(usize, Fault)>,
}

impl Reader<'_> {
    fn walk(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let key = join(prefix, name.get_ref());
            let line = self.lines.line(name.span().start);
            match (table::find(&key), value.get_ref()) {
                (Some(setting), _) => self.read(setting, &key, line, value),
                (None, DeValue::Table(inner)) if !inner.is_empty() => self.walk(&key, inner),
                (None, DeValue::Table(_)) if table::is_group(&key) => {}
                (None, _) => self.refuse(key, line),
            }
        }
    }

    fn read(
        &mut self,
        setting: &'static Setting,
        key: &str,
        line: usize,
        value: &Spanned<DeValue<'_>>,
    ) {
        if let Some(fault) = self.untrusted(setting, key, line) {
            self.faults.push((line, fault));
            return;
        }
        let checked = providers::check_key(key)
            .map_err(|wrong| WrongLine { line, wrong })
            .and_then(|()| setting.kind.read(value, line, &self.lines, self.tools));
        match checked {
            Ok(value) => {
                let origin = self.origin(line);
                self.entries.push(Entry { key: key.to_owned(), setting, value, origin });
            }
            Err(WrongLine { line, wrong }) => {
                let fault = Fault::value(self.origin(line), key, wrong);
                self.faults.push((line, fault));
            }
        }
    }

    /// The fault for a key that is not a setting.
    fn refuse(&mut self, key: String, line: usize) {
        let origin = self.origin(line);
        let fault = if table::is_group(&key) {
            Fault::NotATable { origin, key }
        } else {
            let suggestion = suggestion::for_key(&key);
            Fault::UnknownSetting { origin, key: excerpt(&key), suggestion }
        };
        self.faults.push((line, fault));
    }

    /// The fault for a setting that the author may not set.
    fn untrusted(&self, setting: &Setting, key: &str, line: usize) -> Option<Fault> {
        match (self.author, setting.project) {
            (Author::User, _) => None,
            (
                Author::Project { .. },
                ProjectMay::Choose | ProjectMay::Narrow | ProjectMay::Lower,
            ) => None,
            (Author::Project { user_file }, ProjectMay::Nothing) => Some(Fault::Untrusted {
                origin: self.origin(line),
                key: excerpt(key),
                user_file: named(user_file),
            }),
        }
    }

    fn origin(&self, line: usize) -> Origin {
        Origin::File { path: self.document.path.clone(), line }
    }

    fn finish(mut self) -> Result<Vec<Entry>, ConfigError> {
        self.faults.sort_by_key(|(line, _)| *line);
        no_faults(self.faults.into_iter().map(|(_, fault)| fault).collect())?;
        Ok(self.entries)
    }
}

/// A quoted name stays quoted: `"mail.notify" = …` does not set `mail.notify`.
pub(crate) fn join(prefix: &str, name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name =
        if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { quote(name) };
    if prefix.is_empty() { name } else { format!("{prefix}.{name}") }
}

/// The user's file, as errors name it.
pub(crate) fn named(user_file: &ConfigFile) -> String {
    match user_file {
        ConfigFile::Found(document) => escape_path(&document.path),
        ConfigFile::Missing(path) => escape_path(path),
        ConfigFile::Nowhere => "$XDG_CONFIG_HOME/ikigai/config.toml".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::world;

    #[track_caller]
    fn check(user: &str, expected: &str) {
        world().user(user).refused(expected);
    }

    #[test]
    fn an_unknown_setting_is_named_with_a_suggestion() {
        check(
            "# settings\n\nmax_output_sise = 2048",
            "USER:3: unknown setting 'max_output_sise'; did you mean 'max_output_size'? ('ikigai config' lists all settings)",
        );
        check("zebra = 1", "USER:1: unknown setting 'zebra' ('ikigai config' lists all settings)");
        check(
            "[providers.openai]\napi_key = 'hunter2'",
            "USER:2: unknown setting 'providers.openai.api_key'; did you mean 'providers.openai.api_key_env'? \
             ('ikigai config' lists all settings)",
        );
        check(
            "[sandbx]\nnetwork = true",
            "USER:2: unknown setting 'sandbx.network'; did you mean 'sandbox.network'? ('ikigai config' lists all settings)",
        );
        check(
            "\n[zebras]",
            "USER:2: unknown setting 'zebras' ('ikigai config' lists all settings)",
        );
        check(
            "[[zebras]]",
            "USER:1: unknown setting 'zebras' ('ikigai config' lists all settings)",
        );
        check(
            "\"mail.notify\" = 'idle'",
            "USER:1: unknown setting '\"mail.notify\"'; did you mean 'mail.notify'? ('ikigai config' lists all settings)",
        );
        check(
            "\"\\u001b[2J\" = 1",
            "USER:1: unknown setting '\"\\u001B[2J\"' ('ikigai config' lists all settings)",
        );
    }

    #[test]
    fn a_wrong_value_is_named_with_the_allowed_ones() {
        check(
            "max_output_size = 12",
            "USER:1: max_output_size: 12 is out of range (1024 to 104857600)",
        );
        check("max_agents = -1", "USER:1: max_agents: -1 is out of range (1 to 10000)");
        check("max_agents = 0xffff", "USER:1: max_agents: 0xffff is out of range (1 to 10000)");
        check(
            "max_agents = 99999999999999999999999",
            "USER:1: max_agents: 99999999999999999999999 is out of range (1 to 10000)",
        );
        check(
            "max_agents = '5'",
            "USER:1: max_agents: expected a whole number from 1 to 10000, found a string",
        );
        check(
            "max_agents = 5.5",
            "USER:1: max_agents: expected a whole number from 1 to 10000, found a number with a fraction",
        );
        check(
            "max_agents.x = 5",
            "USER:1: max_agents: expected a whole number from 1 to 10000, found a table",
        );
        check("mode = 'wrok'", "USER:1: mode: 'wrok' is not allowed: use one of read, work, full");
        check("mode = true", "USER:1: mode: expected one of read, work, full, found true or false");
        check(
            "mail.notify = 'never'",
            "USER:1: mail.notify: 'never' is not allowed: use one of idle, boundary",
        );
        check(
            "sandbox.network = 'yes'",
            "USER:1: sandbox.network: expected true or false, found a string",
        );
        check(
            "sandbox.read = '/a'",
            "USER:1: sandbox.read: expected a list of strings, found a string",
        );
        check(
            "sandbox.write = ['a/b']",
            "USER:1: sandbox.write: 'a/b' is not an absolute path: it must start with / or ~/",
        );
        check("model = 5", "USER:1: model: expected a string, found a whole number");
        check("model = 1979-05-27", "USER:1: model: expected a string, found a date or time");
        check(
            "mail = 5",
            "USER:1: mail is a table of settings, not a value ('ikigai config' lists all settings)",
        );
        check(
            "tools.enabled = ['core', 'bsh']",
            "USER:1: tools.enabled: 'bsh' is not a tool; did you mean 'bash'? \
             (known: core, glob, file_read, grep, file_write, bash, mail, file_edit, fork, wait, kill, agents)",
        );
    }

    #[test]
    fn every_number_may_reach_its_limits_and_not_exceed_them() {
        let ranges = [
            ("max_tool_turns", 1, 1_000),
            ("max_output_size", 1_024, 104_857_600),
            ("max_requests", 1, 1_000_000),
            ("mail.max_wakes", 0, 100_000),
            ("max_agents", 1, 10_000),
            ("max_depth", 1, 64),
            ("history_size", 0, 1_000_000),
        ];
        for (key, least, most) in ranges {
            for good in [least, most] {
                let line = format!("{key} = {good} # ~/.config/ikigai/config.toml:1");
                world().user(&format!("{key} = {good}")).shows(&[&line]);
            }
            for bad in [least - 1, most + 1] {
                let expected = format!("USER:1: {key}: {bad} is out of range ({least} to {most})");
                check(&format!("{key} = {bad}"), &expected);
            }
        }
    }

    #[test]
    fn the_line_is_that_of_the_fault() {
        check(
            "\n\nmail.max_wakes = -1",
            "USER:3: mail.max_wakes: -1 is out of range (0 to 100000)",
        );
        check(
            "[mail]\nnotify = 'idle'\nmax_wakes = -1",
            "USER:3: mail.max_wakes: -1 is out of range (0 to 100000)",
        );
        check(
            "\nmail = { notify = 'idle', max_wakes = -1 }",
            "USER:2: mail.max_wakes: -1 is out of range (0 to 100000)",
        );
        check(
            "tools.enabled = [\n  'core',\n  # more\n  5,\n]",
            "USER:4: tools.enabled: expected a list of strings, found a whole number",
        );
        check(
            "model = 'gpt-5'\r\n\r\nmax_depth = 0\r\n",
            "USER:3: max_depth: 0 is out of range (1 to 64)",
        );
    }

    #[test]
    fn all_faults_are_listed_in_the_order_of_the_file() {
        check(
            "zebra = 1\nmode = 'wrok'\nmax_depth = 0\n[aardvark]\nx = 1",
            "USER:1: unknown setting 'zebra' ('ikigai config' lists all settings)\n\
             USER:2: mode: 'wrok' is not allowed: use one of read, work, full\n\
             USER:3: max_depth: 0 is out of range (1 to 64)\n\
             USER:5: unknown setting 'aardvark.x' ('ikigai config' lists all settings)",
        );
        let many: String = (0..1_000).map(|n| format!("zebra{n} = 1\n")).collect();
        let error = world().user(&many).load().unwrap_err().to_string();
        assert_eq!(error.lines().count(), 11);
        assert!(error.ends_with("\nand 990 more"), "{error}");
    }

    #[test]
    fn a_syntax_error_has_line_and_column_and_shows_no_text() {
        check(
            "mode = 'read'\nmodel = \n",
            "USER:2:9: string values must be quoted, expected literal string",
        );
        check("# ä\nmode = 'ä' x", "USER:2:12: unexpected key or value, expected newline, `#`");
        check("mode = 'read'\nmode = 'work'", "USER:2:1: duplicate key");
        check(
            "database_url = 'postgres://me:hunter2@h",
            "USER:1:40: invalid literal string, expected `'`",
        );
        let deep = "a.".repeat(10_000);
        assert!(world().user(&format!("{deep}b = 1")).load().is_err());
    }

    #[test]
    fn empty_tables_set_nothing() {
        world()
            .user("[mail]\n[providers]\n[providers.openai]\n[sandbox]")
            .shows(&["mail.max_wakes = 32 # default"]);
        world().user("").shows(&["mail.max_wakes = 32 # default"]);
        world()
            .user("\u{feff}max_agents = 5")
            .shows(&["max_agents = 5 # ~/.config/ikigai/config.toml:1"]);
    }
}
