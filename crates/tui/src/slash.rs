//! What can be typed with a slash before it.

/// A command as it was typed. What the screen cannot do alone is done by whoever owns the agents.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "COMMANDS says what each does")]
pub enum Slash {
    Help,
    Clear,
    Model(Option<String>),
    /// The rest of the line, as the mail command reads it.
    Mail(String),
    Fork(Option<String>),
    Agents,
    Agent(String),
    Kill(Option<String>),
    Mark(Option<String>),
    Rewind(Option<String>),
    Sessions,
    Export(String),
    Tools,
    Mode(Option<String>),
    Undo,
    Redo,
    Usage,
    Copy,
    Config,
    Exit,
}

/// Every command with its line of help, in the order of the help.
pub const COMMANDS: &[(&str, &str)] = &[
    ("help", "this list"),
    ("clear", "a fresh context; the log keeps all"),
    ("model", "which model answers, or another one: /model NAME"),
    ("mail", "the mailbox: /mail read 5, /mail send 1/ text, /mail unread 5"),
    ("fork", "a child that knows the conversation: /fork, /fork TASK"),
    ("agents", "the agents of the session, as a tree"),
    ("agent", "talk to another agent: /agent 0/1/"),
    ("kill", "end an agent and its children: /kill 0/1/"),
    ("mark", "a point to return to: /mark, /mark NAME"),
    ("rewind", "return to a mark: /rewind, /rewind NAME"),
    ("sessions", "earlier sessions"),
    ("export", "write the conversation to a file: FILE.md or FILE.jsonl"),
    ("tools", "the tools that agents have"),
    ("mode", "what agents may touch: /mode read, /mode work, /mode full"),
    ("undo", "take back what your newest message did to files"),
    ("redo", "take the last /undo back"),
    ("usage", "tokens used, by agent"),
    ("copy", "put the last answer on the clipboard"),
    ("config", "the settings in force"),
    ("exit", "leave; 'ikigai -c' goes on with the session"),
];

const KEYS: &str = "\
Enter sends, Ctrl+J or Alt+Enter begins a new line; while the agent works, what you send waits for the next step
Esc interrupts, Ctrl+C clears or interrupts, twice it leaves; Ctrl+D leaves
Up and Down: history, Ctrl+R searches it; Tab completes, also files after @; Ctrl+G edits in $EDITOR
PgUp, PgDn, Ctrl+Home, Ctrl+End scroll; Ctrl+O unfolds results
Alt+arrows: parent, child, siblings; Ctrl+T: the team";

impl Slash {
    /// Reads a line that begins with a slash.
    ///
    /// # Errors
    /// What to tell the person.
    pub(crate) fn parse(line: &str) -> Result<Slash, String> {
        let line = line.trim().trim_start_matches('/');
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let maybe = || Some(rest.to_owned()).filter(|rest| !rest.is_empty());
        let needed = |usage: &str| maybe().ok_or_else(|| format!("Error: usage: {usage}"));
        Ok(match name {
            "help" => Slash::Help,
            "clear" => Slash::Clear,
            "model" => Slash::Model(maybe()),
            "mail" => Slash::Mail(rest.to_owned()),
            "fork" => Slash::Fork(maybe()),
            "agents" => Slash::Agents,
            "agent" => Slash::Agent(needed("/agent ID; /agents lists all")?),
            "kill" => Slash::Kill(maybe()),
            "mark" => Slash::Mark(maybe()),
            "rewind" => Slash::Rewind(maybe()),
            "sessions" => Slash::Sessions,
            "export" => Slash::Export(needed("/export FILE")?),
            "tools" => Slash::Tools,
            "mode" => Slash::Mode(maybe()),
            "undo" => Slash::Undo,
            "redo" => Slash::Redo,
            "usage" => Slash::Usage,
            "copy" => Slash::Copy,
            "config" => Slash::Config,
            "exit" | "quit" => Slash::Exit,
            _ => return Err(unknown_command(name)),
        })
    }
}

/// Whether a line is a command. A path is none.
pub(crate) fn is_command(line: &str) -> bool {
    let first = line.strip_prefix('/').map(|rest| rest.split_whitespace().next().unwrap_or(""));
    first.is_some_and(|word| !word.contains('/'))
}

pub(crate) fn help() -> String {
    let lines: String =
        COMMANDS.iter().map(|(name, help)| format!("  /{name:<9} {help}\n")).collect();
    format!("{lines}{KEYS}")
}

/// How other programs call what is meant.
const ELSEWHERE: [(&str, &str); 6] = [
    ("new", "clear"),
    ("compact", "clear"),
    ("resume", "sessions"),
    ("permissions", "mode"),
    ("cost", "usage"),
    ("status", "usage"),
];

/// The answer to a command that there is not: the one that may be meant.
pub fn unknown_command(name: &str) -> String {
    /// Names that are less alike are not meant.
    const ALIKE: f64 = 0.5;
    let shown: String = name.chars().take(64).collect();
    let likeness = |known: &str| strsim::normalized_damerau_levenshtein(&shown, known);
    let nearest = COMMANDS.iter().map(|(known, _)| (likeness(known), *known));
    let nearest = nearest.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(alike, _)| *alike >= ALIKE);
    let elsewhere = ELSEWHERE.iter().find(|(theirs, _)| *theirs == shown);
    let meant = elsewhere.map(|(_, ours)| *ours).or(nearest.map(|(_, nearest)| nearest));
    match meant {
        Some(nearest) => {
            format!("Error: Unknown command '/{shown}'; did you mean /{nearest}? /help lists all")
        }
        None => format!("Error: Unknown command '/{shown}'; /help lists all"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Result<Slash, &str>) {
        assert_eq!(Slash::parse(line), expected.map_err(str::to_owned));
    }

    #[test]
    fn a_command_is_read_with_its_arguments() {
        check("/mail send 1/ hello  there", Ok(Slash::Mail("send 1/ hello  there".to_owned())));
        check("/model", Ok(Slash::Model(None)));
        check("/fork  fix it ", Ok(Slash::Fork(Some("fix it".to_owned()))));
        check("/agent", Err("Error: usage: /agent ID; /agents lists all"));
    }

    #[test]
    fn an_unknown_command_is_answered_with_the_nearest() {
        check("/mial", Err("Error: Unknown command '/mial'; did you mean /mail? /help lists all"));
        check("/new", Err("Error: Unknown command '/new'; did you mean /clear? /help lists all"));
        check("/xyzzy", Err("Error: Unknown command '/xyzzy'; /help lists all"));
        check("/", Err("Error: Unknown command '/'; /help lists all"));
    }

    #[test]
    fn every_command_of_the_help_is_one() {
        for (name, _) in COMMANDS {
            assert!(Slash::parse(&format!("/{name} x")).is_ok(), "{name}");
            assert!(help().contains(&format!("  /{name} ")), "{name}");
        }
    }

    #[test]
    fn a_path_is_no_command() {
        assert_eq!(
            [
                is_command("/help"),
                is_command("/etc/hosts is"),
                is_command("no /x"),
                is_command("/")
            ],
            [true, false, false, true]
        );
    }
}
