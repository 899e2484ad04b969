//! The configuration, converted to the types of the other crates.

use std::path::{Path, PathBuf};

use anyhow::Error;
use ikigai_agents::{CostLimits, Notify, catalogue};
use ikigai_config::{KnownTools, ProjectFile, RuleEntry, Settings};
use ikigai_conversation::{EffectKind, Effort};
use ikigai_store::{AgentLimits, AnswersFrom, Budget, Step, database_files};
use ikigai_tools::{
    CORE, Decision, Dispatcher, Mode, OutputSize, Owners, Rule, Tool, path_pattern, project_folders,
};

/// The tools that can be named in settings.
pub fn known_tools() -> KnownTools {
    let tools = catalogue();
    let names = tools.declarations().map(|tool| tool.name.clone()).collect();
    let runs_commands = |tool: &&dyn Tool<Step>| tool.effects().contains(&EffectKind::Command);
    let commands = tools.tools().filter(runs_commands);
    let commands = commands.map(|tool| tool.declaration().name.clone()).collect();
    let check_pattern = |tool: &str, pattern: &str| {
        Rule::new(tool, catalogue().effects_of(tool), pattern, Decision::Ask).map(drop)
    };
    KnownTools { names, core: CORE.map(str::to_owned).to_vec(), commands, check_pattern }
}

/// The possible project files for `directory`.
pub fn project_files(directory: &Path) -> Vec<ProjectFile> {
    let owners = Owners::of(directory);
    let file = |folder| ProjectFile::in_folder(folder, |path| owners.check(path).is_err());
    project_folders(directory, owners).into_iter().map(file).collect()
}

/// The enabled tools.
pub fn tools(settings: &Settings) -> Dispatcher<Step> {
    match settings.enabled_tools() {
        Some(enabled) => catalogue().only(|tool| enabled.contains(&tool.declaration().name)),
        None => catalogue().only(|tool| tool.is_on_by_default()),
    }
}

/// The limit on outputs that a model gets.
pub fn output_size(settings: &Settings) -> OutputSize {
    OutputSize::clamped(settings.number("max_output_size") as usize)
}

/// The configured mode.
pub fn mode(settings: &Settings) -> Mode {
    Mode::parse(settings.text("mode")).unwrap_or(Mode::Work)
}

/// The configured effort; `None` if the provider decides.
pub fn effort(settings: &Settings) -> Option<Effort> {
    settings.optional_text("effort").and_then(Effort::parse)
}

/// The user's rules, in order.
pub fn rules(settings: &Settings) -> anyhow::Result<Vec<Rule>> {
    let tools = catalogue();
    let rules = settings.rules().iter().flat_map(|rule| {
        let decision = Decision::parse(&rule.decision).unwrap_or(Decision::Ask);
        let effects = tools.effects_of(&rule.tool);
        let patterns = patterns(rule, effects, settings.folders().home()).into_iter();
        patterns.map(move |pattern| {
            Rule::new(&rule.tool, effects, &pattern, decision).map_err(Error::msg)
        })
    });
    rules.collect()
}

/// The patterns of a rule, with `~` expanded in paths but not in commands.
fn patterns(rule: &RuleEntry, effects: &[EffectKind], home: Option<&Path>) -> Vec<String> {
    let is_path = !effects.contains(&EffectKind::Command);
    let in_home = rule.pattern.strip_prefix("~/").filter(|_| is_path);
    let (Some(rest), Some(home)) = (in_home, home) else {
        return vec![rule.pattern.clone()];
    };
    // Files are checked by real path, and may also be denied by the path used.
    let real = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    let full = |home: &Path| format!("{}{rest}", path_pattern(&home.join("")));
    let mut patterns = vec![full(&real), full(home)];
    patterns.dedup();
    patterns
}

/// The limits on notifications and requests per user message.
pub fn budget(settings: &Settings) -> Budget {
    Budget { wakes: settings.number("mail.max_wakes"), requests: settings.number("max_requests") }
}

/// The limits on what may be spent.
pub fn cost_limits(settings: &Settings) -> CostLimits {
    let (message, session) = (settings.dollars("max_cost"), settings.dollars("max_session_cost"));
    CostLimits { message, session }
}

/// The limits on the agents of a session.
pub fn agent_limits(settings: &Settings) -> AgentLimits {
    AgentLimits { agents: settings.number("max_agents"), depth: settings.number("max_depth") }
}

/// Who may answer approval requests.
pub fn answers_from(settings: &Settings) -> AnswersFrom {
    match settings.is_on("questions.remote") {
        true => AnswersFrom::Everywhere,
        false => AnswersFrom::SameUser,
    }
}

/// When agents are notified about mail.
pub fn notify(settings: &Settings) -> Notify {
    match settings.text("mail.notify") {
        "boundary" => Notify::Boundary,
        _ => Notify::Idle,
    }
}

/// The paths of ikigai's own files: its folders, the user's configuration and keys, and the files of
/// an embedded database.
pub fn own_places(settings: &Settings) -> anyhow::Result<Vec<PathBuf>> {
    let mut places = settings.folders().own();
    // They may be elsewhere, or links in our folder.
    places.extend(settings.user_file().map(Path::to_owned));
    places.extend(settings.credentials().path().map(Path::to_owned));
    if let Ok(url) = settings.database_url() {
        places.extend(database_files(url.expose())?);
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use ikigai_config::Sources;

    use super::*;

    #[test]
    fn the_range_of_max_output_size_is_that_of_the_tools() {
        let load = |bytes: usize| {
            let variables = [("IKIGAI_MAX_OUTPUT_SIZE".into(), bytes.to_string().into())].into();
            let (project_files, flags) = (Vec::new(), Vec::new());
            let tools = known_tools();
            Settings::load(&Sources { variables, config_flag: None, project_files, flags, tools })
        };
        for bytes in [OutputSize::MIN, OutputSize::MAX] {
            assert_eq!(output_size(&load(bytes).unwrap()).bytes(), bytes);
        }
        for bytes in [OutputSize::MIN - 1, OutputSize::MAX + 1] {
            assert!(load(bytes).is_err(), "{bytes}");
        }
    }
}
