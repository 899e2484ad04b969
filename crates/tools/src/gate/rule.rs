//! The rules of the person, and what they match.

use std::path::Path;

use globset::GlobSet;
use ikigai_conversation::EffectKind;

use super::facts::FileFacts;
use super::words::{Word, WordPattern};
use crate::pattern::shell_pattern;

/// What a rule says about the calls that it matches.
/// Each permits more than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Never.
    Deny,
    /// A person is asked each time.
    Ask,
    /// Yes, in the sandbox or the working tree.
    Allow,
    /// Yes, in the sandbox with the network; for commands only.
    Network,
    /// Yes, outside of it too.
    Trust,
}

impl Decision {
    /// Reads the word that stands in the configuration.
    pub fn parse(word: &str) -> Option<Decision> {
        match word {
            "deny" => Some(Decision::Deny),
            "ask" => Some(Decision::Ask),
            "allow" => Some(Decision::Allow),
            "network" => Some(Decision::Network),
            "trust" => Some(Decision::Trust),
            _ => None,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Decision::Deny => "deny",
            Decision::Ask => "ask",
            Decision::Allow => "allow",
            Decision::Network => "network",
            Decision::Trust => "trust",
        }
    }

    /// Whether it grants something. Such a rule has to match for certain, any other only perhaps.
    pub(super) fn grants(self) -> bool {
        match self {
            Decision::Deny | Decision::Ask => false,
            Decision::Allow | Decision::Network | Decision::Trust => true,
        }
    }
}

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    pub(super) tool: String,
    pub(super) pattern: String,
    pub(super) decision: Decision,
    pub(super) words: WordPattern,
    paths: Option<GlobSet>,
}

impl Rule {
    /// A rule about the calls of `tool`, which may have these effects. They say what the pattern is one of, so that no
    /// tool has to be known here: where commands are run it is one of words, else one of paths and of hosts. In a path `*`
    /// stays within a folder, `**` crosses folders, and a relative one begins at the working directory. About what has
    /// neither command, path nor host only `*` speaks.
    ///
    /// # Errors
    /// Why the pattern cannot be one of these, no command ever matches it, or the decision is not for this tool.
    pub fn new(
        tool: &str,
        effects: &[EffectKind],
        pattern: &str,
        decision: Decision,
    ) -> Result<Rule, String> {
        let runs_commands = effects.contains(&EffectKind::Command);
        if decision == Decision::Network && !runs_commands {
            return Err("only commands can be granted the network; use allow or trust".to_owned());
        }
        let paths = match (runs_commands, WordPattern::futility(pattern)) {
            (true, Some(why)) => return Err(why.to_owned()),
            (true, None) => None,
            (false, _) => Some(shell_pattern(pattern.trim_start_matches("./"))?),
        };
        let words = WordPattern::parse(pattern);
        Ok(Rule { tool: tool.to_owned(), pattern: pattern.to_owned(), decision, words, paths })
    }

    /// What it says, for the message of a refusal.
    pub(super) fn sentence(&self) -> String {
        let Rule { tool, pattern, decision, .. } = self;
        format!("the rule for {tool} '{pattern}' says {}", decision.word())
    }

    /// Whether it matches whatever a call is about.
    pub(super) fn matches_all(&self) -> bool {
        matches!(self.pattern.trim(), "*" | "**")
    }

    /// For the name of a host: itself, or with `*.` before it all names beneath it.
    pub(super) fn matches_host(&self, host: &str) -> bool {
        let (pattern, host) = (self.pattern.trim().to_ascii_lowercase(), host.to_ascii_lowercase());
        match pattern.strip_prefix("*.") {
            Some(domain) => {
                host.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            None => self.matches_all() || pattern == host,
        }
    }

    /// For a part of a command. A rule that grants is only asked about words that are known for certain.
    pub(super) fn matches_words(&self, words: &[Word]) -> bool {
        if self.decision.grants() {
            return self.words.matches(words);
        }
        let mut by_name = words.to_vec();
        if let Some(Word::Known(program)) = by_name.first_mut() {
            *program = program.rsplit('/').next().unwrap_or_default().to_owned();
        }
        self.words.could_match(words) || self.words.could_match(&by_name)
    }

    /// A rule that grants has to match where the path really leads. One that forbids is taken as wide as it
    /// may be meant: under the given name too, for all that lies beneath, and for a mere name in any folder.
    pub(super) fn matches_file(&self, file: &FileFacts) -> bool {
        if self.matches_all() {
            return !self.decision.grants() || file.real.is_some();
        }
        let Some(paths) = &self.paths else {
            return false;
        };
        let matches = |path: &Path| {
            let relative = path.strip_prefix(&file.directory).ok();
            paths.is_match(path) || relative.is_some_and(|relative| paths.is_match(relative))
        };
        if self.decision.grants() {
            return file.real.as_deref().is_some_and(matches);
        }
        let has_name = |path: &Path| {
            !self.pattern.contains('/') && path.file_name().is_some_and(|name| paths.is_match(name))
        };
        [Some(&file.path), file.real.as_ref()]
            .into_iter()
            .flatten()
            .any(|path| path.ancestors().any(|path| matches(path) || has_name(path)))
    }
}

/// Rules as TOML. A list on one line would be shorter, but a file can have only one of them, and none beside
/// rules of this form.
pub(super) fn render_rules(tool: &str, patterns: &[String], decision: Decision) -> String {
    let decision = decision.word();
    let tool = toml_string(tool);
    let rule = |pattern: &String| {
        let pattern = toml_string(pattern);
        format!("[[rules]]\ntool = {tool}\nmatch = {pattern}\ndecision = \"{decision}\"")
    };
    patterns.iter().map(rule).collect::<Vec<_>>().join("\n")
}

fn toml_string(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A path as a pattern that matches only it.
pub fn path_pattern(path: &Path) -> String {
    let mut pattern = String::new();
    for c in path.to_string_lossy().chars() {
        if "*?[]{}\\!".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}
