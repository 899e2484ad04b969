//! Slash commands: what the user types after a `/`, in every front end.

use ikigai_conversation::{CommandId, MessageId, Mode};

use crate::command::{Command, EffortChoice};
use crate::error::CommandError;
use crate::rewind::RewindPart;
use crate::usage::UsageBy;

/// A slash command as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlashCommand {
    /// A command for the session.
    Session(Command),
    /// Show the help. The front end handles this command and the following ones.
    Help,
    /// Start a new session.
    New,
    /// Copy something to the clipboard.
    Copy(Copied),
    /// Show the conversation as plain text.
    Raw,
    /// Exit.
    Exit,
}

/// What is copied to the clipboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// The last answer.
    Answer,
    /// The last code block of it.
    Code,
}

/// Every slash command and its line of help, in the order of the help.
pub const SLASH_COMMANDS: &[(&str, &str)] = &[
    ("help", "Show this list"),
    ("new", "Start a new session; /sessions returns to this one"),
    ("clear", "Start a fresh context; the log keeps everything"),
    ("compact", "Make room in the context: /compact, /compact FOCUS"),
    ("context", "Show what fills the context"),
    ("model", "Show the model, or choose another one: /model NAME"),
    (
        "mail",
        "Show the mailbox; also /mail read 5, /mail peek 5, /mail send 1/ TEXT, /mail unread 5",
    ),
    ("fork", "Fork a child that knows the conversation: /fork, /fork TASK"),
    ("agents", "Show the agents of the session as a tree"),
    ("agent", "Talk to another agent: /agent 0/1/"),
    ("kill", "End an agent and its children: /kill 0/1/"),
    ("mark", "Set a mark to return to: /mark, /mark NAME"),
    ("rewind", "Return to an earlier message, or to a mark: /rewind, /rewind NAME"),
    ("sessions", "List earlier sessions"),
    ("export", "Write the conversation to FILE.md or FILE.jsonl"),
    ("ps", "List background commands"),
    ("stop", "End a background command: /stop 3"),
    ("tools", "List the tools that the agent has"),
    ("mode", "Show the mode, or change it: /mode read, /mode work, /mode full"),
    (
        "effort",
        "Show how long the model thinks, or change it: /effort off, low, medium, high, default",
    ),
    ("undo", "Undo file changes from your last message"),
    ("redo", "Redo what the last /undo undid"),
    ("usage", "Show the tokens used and their cost; also /usage agent, /usage day"),
    ("copy", "Copy the last answer to the clipboard; /copy code copies its last code block"),
    ("raw", "Show the conversation as plain text, to select and search"),
    ("config", "Show the settings in force"),
    ("exit", "Leave; 'ikigai -c' continues the session"),
];

impl SlashCommand {
    /// Parses a line that starts with a slash.
    ///
    /// # Errors
    /// [`CommandError::Usage`] with the usage of the command, or a suggestion if it is unknown.
    pub fn parse(line: &str) -> Result<SlashCommand, CommandError> {
        let line = line.trim().trim_start_matches('/');
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let optional = || Some(rest.to_owned()).filter(|rest| !rest.is_empty());
        let required = |usage: &str| optional().ok_or_else(|| usage_error(usage));
        let alone = |command: Command, usage: &str| match rest.is_empty() {
            true => Ok(command),
            false => Err(usage_error(usage)),
        };
        Ok(SlashCommand::Session(match full_name(name)? {
            "help" => return Ok(SlashCommand::Help),
            "new" => return Ok(SlashCommand::New),
            "copy" => return parse_copy(rest).map(SlashCommand::Copy),
            "raw" => return Ok(SlashCommand::Raw),
            "exit" | "quit" => return Ok(SlashCommand::Exit),
            "clear" => Command::Clear,
            "compact" => Command::Compact { focus: optional(), before: None },
            "context" => alone(Command::Context, "/context, without arguments")?,
            "model" => Command::Model { name: optional() },
            "effort" => {
                let parse = |word: String| parse_effort(&word);
                Command::Effort { effort: optional().map(parse).transpose()? }
            }
            "mail" => Command::Mail { line: rest.to_owned() },
            "fork" => Command::Fork { prompt: optional() },
            "agents" => Command::Agents,
            "agent" => {
                Command::Open { target: Some(required("/agent ID. /agents lists all agents")?) }
            }
            "kill" => Command::Kill { target: optional() },
            "mark" => Command::Mark { label: optional() },
            "rewind" => parse_rewind(rest)?,
            "sessions" => Command::Sessions,
            "export" => Command::Export { file: required("/export FILE")? },
            "ps" => alone(Command::ListCommands, "/ps, without arguments")?,
            "stop" => Command::StopCommand { id: parse_command_id(rest)? },
            "tools" => Command::Tools,
            "mode" => Command::Mode { mode: optional().map(|word| parse_mode(&word)).transpose()? },
            "undo" => alone(
                Command::Undo,
                "/undo, without arguments. 'ikigai undo --list' shows what can be undone",
            )?,
            "redo" => alone(Command::Redo, "/redo, without arguments")?,
            "usage" => Command::Usage {
                by: optional().map_or(Ok(UsageBy::default()), |word| parse_by(&word))?,
            },
            "config" => Command::Config,
            name => return Err(CommandError::Usage(unknown_command(name))),
        }))
    }
}

/// Whether a line is a slash command. A path is not.
pub fn is_slash_command(line: &str) -> bool {
    let first = line.strip_prefix('/').map(|rest| rest.split_whitespace().next().unwrap_or(""));
    first.is_some_and(|word| !word.contains('/'))
}

fn parse_copy(rest: &str) -> Result<Copied, CommandError> {
    match rest {
        "" => Ok(Copied::Answer),
        "code" => Ok(Copied::Code),
        _ => Err(usage_error("/copy, or /copy code")),
    }
}

fn parse_mode(word: &str) -> Result<Mode, CommandError> {
    Mode::parse(word).ok_or_else(|| {
        CommandError::Usage(format!(
            "There is no mode '{word}'. The modes are read, work and full: /mode work"
        ))
    })
}

fn parse_command_id(word: &str) -> Result<CommandId, CommandError> {
    let number = word.trim_start_matches('#').parse().ok();
    let usage = || usage_error("/stop NUMBER. /ps lists background commands");
    number.and_then(CommandId::new).ok_or_else(usage)
}

/// Nothing for the list; the number of a message, and what returns to it; or the name of a mark.
fn parse_rewind(rest: &str) -> Result<Command, CommandError> {
    if rest.is_empty() {
        return Ok(Command::ListRewindPoints);
    }
    let (first, part) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let number = first.trim_start_matches('#').parse().ok();
    let Some(point) = number.and_then(MessageId::new) else {
        return Ok(Command::Rewind { label: Some(rest.to_owned()) });
    };
    let to = |part| Ok(Command::RewindTo { point, part });
    match part.trim() {
        "" | "all" => to(RewindPart::Everything),
        "conversation" => to(RewindPart::Conversation),
        "files" => to(RewindPart::Files),
        "summary" => Ok(Command::Compact { focus: None, before: Some(point) }),
        _ => Err(usage_error("/rewind NUMBER [all|conversation|files|summary]")),
    }
}

fn parse_by(word: &str) -> Result<UsageBy, CommandError> {
    UsageBy::parse(word).ok_or_else(|| usage_error("/usage [message|agent|model|session|day]"))
}

fn parse_effort(word: &str) -> Result<EffortChoice, CommandError> {
    EffortChoice::parse(word).ok_or_else(|| {
        let shown: String = word.chars().take(64).collect();
        CommandError::Usage(format!(
            "There is no effort '{shown}'. It is off, low, medium, high or default: /effort high"
        ))
    })
}

fn usage_error(usage: &str) -> CommandError {
    CommandError::Usage(format!("Usage: {usage}"))
}

/// The command that was typed: its name, or a prefix that no other command has. A name without a
/// command is returned as it is.
fn full_name(typed: &str) -> Result<&str, CommandError> {
    let names = SLASH_COMMANDS.iter().map(|(name, _)| *name);
    let is_foreign = FOREIGN_NAMES.iter().any(|(theirs, _)| *theirs == typed);
    if typed.is_empty() || is_foreign || names.clone().any(|name| name == typed) {
        return Ok(typed);
    }
    let meant: Vec<&str> = names.filter(|name| name.starts_with(typed)).collect();
    match &*meant {
        [] => Ok(typed),
        [name] => Ok(name),
        several => {
            let names: Vec<String> = several.iter().map(|name| format!("/{name}")).collect();
            Err(CommandError::Usage(format!("'/{typed}' could be {}", names.join(", "))))
        }
    }
}

/// The names that other programs use for our commands.
const FOREIGN_NAMES: [(&str, &str); 4] =
    [("resume", "sessions"), ("permissions", "mode"), ("cost", "usage"), ("status", "usage")];

/// The message for an unknown command, with a suggestion.
fn unknown_command(name: &str) -> String {
    /// The minimum similarity of a suggestion.
    const SIMILAR: f64 = 0.5;
    let shown: String = name.chars().take(64).collect();
    let similarity = |known: &str| strsim::normalized_damerau_levenshtein(&shown, known);
    let nearest = SLASH_COMMANDS.iter().map(|(known, _)| (similarity(known), *known));
    let nearest = nearest.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score >= SIMILAR);
    let foreign = FOREIGN_NAMES.iter().find(|(theirs, _)| *theirs == shown);
    match foreign.map(|(_, ours)| *ours).or(nearest.map(|(_, nearest)| nearest)) {
        Some(nearest) => {
            format!("Unknown command '/{shown}'. Did you mean /{nearest}? /help lists all commands")
        }
        None => format!("Unknown command '/{shown}'. /help lists all commands"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Result<Command, &str>) {
        let expected = expected
            .map(SlashCommand::Session)
            .map_err(|text| CommandError::Usage(text.to_owned()));
        assert_eq!(SlashCommand::parse(line), expected);
    }

    #[test]
    fn a_command_is_parsed_with_its_arguments() {
        let line = "send 1/ hello  there".to_owned();
        check("/mail send 1/ hello  there", Ok(Command::Mail { line }));
        check("/model", Ok(Command::Model { name: None }));
        check("/fork  fix it ", Ok(Command::Fork { prompt: Some("fix it".to_owned()) }));
        check("/mode full", Ok(Command::Mode { mode: Some(Mode::Full) }));
        let high = EffortChoice::Effort(ikigai_conversation::Effort::High);
        check("/effort", Ok(Command::Effort { effort: None }));
        check("/effort high", Ok(Command::Effort { effort: Some(high) }));
        check("/effort default", Ok(Command::Effort { effort: Some(EffortChoice::Default) }));
        let efforts =
            "There is no effort 'max'. It is off, low, medium, high or default: /effort high";
        check("/effort max", Err(efforts));
        check("/agent", Err("Usage: /agent ID. /agents lists all agents"));
        check("/usage", Ok(Command::Usage { by: UsageBy::Message }));
        check("/usage day", Ok(Command::Usage { by: UsageBy::Day }));
        check("/usage x", Err("Usage: /usage [message|agent|model|session|day]"));
        check("/redo 3", Err("Usage: /redo, without arguments"));
        let point = MessageId::new(12).unwrap();
        check("/rewind", Ok(Command::ListRewindPoints));
        check("/rewind here", Ok(Command::Rewind { label: Some("here".to_owned()) }));
        check("/rewind 12", Ok(Command::RewindTo { point, part: RewindPart::Everything }));
        check("/rewind #12 files", Ok(Command::RewindTo { point, part: RewindPart::Files }));
        check("/rewind 12 summary", Ok(Command::Compact { focus: None, before: Some(point) }));
        check("/rewind 12 x", Err("Usage: /rewind NUMBER [all|conversation|files|summary]"));
        let modes = "There is no mode 'x'. The modes are read, work and full: /mode work";
        check("/mode x", Err(modes));
    }

    #[test]
    fn an_unknown_command_suggests_the_nearest() {
        let error = "Unknown command '/mial'. Did you mean /mail? /help lists all commands";
        check("/mial", Err(error));
        let error = "Unknown command '/cost'. Did you mean /usage? /help lists all commands";
        check("/cost", Err(error));
        check("/exp", Err("Usage: /export FILE"));
        check("/exp a.md", Ok(Command::Export { file: "a.md".to_owned() }));
        check("/us", Ok(Command::Usage { by: UsageBy::Message }));
        check("/ex", Err("'/ex' could be /export, /exit"));
        check("/mode", Ok(Command::Mode { mode: None }));
        check("/xyzzy", Err("Unknown command '/xyzzy'. /help lists all commands"));
        check("/", Err("Unknown command '/'. /help lists all commands"));
    }

    #[test]
    fn every_command_in_the_help_is_parsed() {
        for (name, _) in SLASH_COMMANDS {
            let is_known = |rest: &str| SlashCommand::parse(&format!("/{name}{rest}")).is_ok();
            assert!(["", " x", " 1"].into_iter().any(is_known), "{name}");
        }
    }

    #[test]
    fn a_path_is_not_a_command() {
        let lines = ["/help", "/etc/hosts is", "no /x", "/"];
        assert_eq!(lines.map(is_slash_command), [true, false, false, true]);
    }
}
