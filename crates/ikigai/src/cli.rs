//! The command line: one declaration for the parser, the help, the completions and the manual page.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use ikigai_protocol::UsageBy;

/// A terminal coding agent whose agents work in parallel and talk by mail that is never lost.
#[derive(Parser)]
#[command(
    name = "ikigai",
    version,
    max_term_width = 100,
    after_help = EXAMPLES
)]
pub(crate) struct Cli {
    /// Without one, ikigai opens the full screen.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) options: Options,
}

impl Cli {
    /// Parses the arguments of the process. Exits with a message if they are wrong.
    pub(crate) fn read() -> Cli {
        let cli = Cli::parse();
        if cli.options.new && cli.command.as_ref().is_some_and(Command::needs_existing_session) {
            let wrong =
                "--new cannot be used with this command, which works on an existing session";
            Cli::command().error(ErrorKind::ArgumentConflict, wrong).exit();
        }
        cli
    }
}

const EXAMPLES: &str = "\
Examples:
  ikigai                                         Start in the current directory
  ikigai -c                                      Continue the latest session
  ikigai run 'fix the failing test'              Run one task and print the answer
  ikigai run -c 'now commit it'                  Continue the latest session with a task
  ikigai tour                                    Take a tour; needs no key
  ikigai tool grep '{\"pattern\":\"TODO\"}'          Run one tool call and print its JSON
  ikigai mail send 1/ 'please review main.rs'    Send mail to an agent
  ikigai config                                  Show all settings and their sources

Each directory has its own sessions. Commands act on the latest one, as its agent 0/
unless --agent selects another.

Exit codes: 0 success, 1 failure, 2 wrong usage, 130 interrupted.";

/// Options before or after the command. A URL may contain a password, hence no `Debug`.
#[derive(Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Options {
    /// Work in DIR instead of the current directory
    #[arg(short = 'C', value_name = "DIR", global = true, value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
    /// Read FILE instead of the user's configuration file
    #[arg(long, value_name = "FILE", global = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Use the database at URL (sqlite://PATH or postgres://…)
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) db: Option<String>,
    /// Continue the latest session of the directory
    #[arg(short = 'c', long = "continue", global = true)]
    pub(crate) continues: bool,
    /// Use the session ID, or a prefix of one, instead of the latest of the directory
    #[arg(long, value_name = "ID", global = true, conflicts_with = "continues")]
    pub(crate) session: Option<String>,
    /// Start a new session even if one is running
    #[arg(long, global = true, conflicts_with_all = ["continues", "session"])]
    pub(crate) new: bool,
    /// Act as agent ID [default: 0/]
    #[arg(long, value_name = "ID", global = true)]
    pub(crate) agent: Option<String>,
    /// Use the model NAME (provider/name)
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) model: Option<String>,
    /// Set what agents may touch: read, work or full
    #[arg(long, value_name = "MODE", global = true)]
    pub(crate) mode: Option<String>,
    /// Set how long models think: off, low, medium or high
    #[arg(long, value_name = "EFFORT", global = true)]
    pub(crate) effort: Option<String>,
    /// Add DIR to the working tree; can be repeated
    #[arg(long, value_name = "DIR", global = true, value_hint = ValueHint::DirPath)]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Write a trace file at LEVEL: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", global = true)]
    pub(crate) log: Option<tracing::Level>,
    /// Use line mode instead of the full screen
    #[arg(long, global = true)]
    pub(crate) plain: bool,
    /// Capture the mouse; selecting text then needs Shift
    #[arg(long, global = true)]
    pub(crate) mouse: bool,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run one task and print the answer
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArguments),
    /// Take a tour with a scripted model; needs no key
    Tour,
    /// List the tools that models are offered
    Tools(ToolsArguments),
    /// Run one tool call and print its result as JSON
    #[command(after_help = TOOL_EXAMPLES)]
    Tool(ToolArguments),
    /// Read and send mail
    Mail(MailArguments),
    /// List the agents of a session, or add one
    Agents(AgentsArguments),
    /// List, delete or copy sessions
    Sessions(SessionsArguments),
    /// Undo file changes from your last message
    #[command(after_help = UNDO_EXAMPLES)]
    Undo(UndoArguments),
    /// List files that were moved out of protected paths, or put one back
    #[command(after_help = QUARANTINE_EXAMPLES)]
    Quarantine(QuarantineArguments),
    /// Print an agent's log
    Log(LogArguments),
    /// Show what requests to models used and cost
    #[command(after_help = USAGE_EXAMPLES)]
    Usage(UsageArguments),
    /// Store, list or remove keys of providers
    #[command(after_help = AUTH_EXAMPLES)]
    Auth(AuthArguments),
    /// List the models of your providers, with their limits and prices
    #[command(after_help = MODELS_EXAMPLES)]
    Models(ModelsArguments),
    /// Check the setup and suggest fixes
    Doctor,
    /// Show every setting with its value and source
    Config,
    /// Print a completion script for a shell
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completions {
        /// The shell to complete for
        shell: Shell,
    },
    /// Print the manual page (try: ikigai man | man -l -)
    Man,
}

impl Command {
    /// Whether the command works on an existing session, so that it has nothing to do in a new one.
    fn needs_existing_session(&self) -> bool {
        match self {
            Command::Mail(arguments) => !matches!(arguments.action, MailAction::Send { .. }),
            Command::Agents(arguments) => arguments.action.is_none(),
            Command::Sessions(_) | Command::Undo(_) | Command::Log(_) => true,
            Command::Usage(_) => true,
            Command::Run(_) | Command::Tour | Command::Tools(_) | Command::Tool(_) => false,
            Command::Quarantine(_) | Command::Models(_) | Command::Auth(_) => false,
            Command::Doctor | Command::Config => false,
            Command::Completions { .. } | Command::Man => false,
        }
    }
}

const RUN_EXAMPLES: &str = "\
Examples:
  ikigai run 'what does this project do?'
  git diff | ikigai run - > review.md
  ikigai run --json --timeout 600 'fix the failing test'

Each run starts a new session unless you pass -c or --session. The answer goes to stdout, everything
else to stderr.";

const TOOL_EXAMPLES: &str = "\
Examples:
  ikigai tool file_read '{\"path\":\"README.md\",\"limit\":5}'
  ikigai tool bash '{\"command\":\"cargo test\",\"timeout\":600}'
  echo '{\"pattern\":\"**/*.rs\"}' | ikigai tool glob -

The exit code is 0 whenever a result was printed, even if it reports a failure.";

const UNDO_EXAMPLES: &str = "\
Examples:
  ikigai undo --list      List what can be undone, latest first
  ikigai undo             Undo the latest; run it again for the one before
  ikigai undo --redo      Redo the last undo

Undoes the changes that file_write and file_edit made because of your message, by all agents that
worked on it. Files that have changed since are left alone and listed. Commands are not undone, and
files over 10 MB are not kept.";

const USAGE_EXAMPLES: &str = "\
Examples:
  ikigai usage                    Show what each of your messages cost, over all agents
  ikigai usage --by day           Show what was spent on each day, in all sessions
  ikigai usage --by model --json  Print an array for scripts

Prices come from your configuration or a built-in table. Requests that ended before their usage was
reported, by an interrupt or a crash, count as unreported.";

const AUTH_EXAMPLES: &str = "\
Examples:
  ikigai auth add anthropic            Ask for a key, try it, and store it
  ikigai auth add openai < key.txt     Read the key from a file
  ikigai auth list                     Show which providers have a key, and where it is
  ikigai auth rm anthropic             Remove the stored key

Keys are stored in credentials.toml beside your configuration file. Only you can read it, and
commands in the sandbox cannot see it. A key in a variable wins over the stored one.";

const MODELS_EXAMPLES: &str = "\
Examples:
  ikigai models                 List the models of every provider with a key or an address of yours
  ikigai models sonnet          List those with 'sonnet' in the name
  ikigai models --json openai   Print an array for scripts

Limits and prices (dollars per million tokens) come from your configuration, from the server's list
and from a built-in table. A dash means that none of them knows.";

const QUARANTINE_EXAMPLES: &str = "\
Examples:
  ikigai quarantine                                  List the files and the reasons
  ikigai quarantine --put-back 1763467200-000000001  Put a file back in its place

Sandboxed commands may not change git's settings, AGENTS.md, editor settings and the like. When a
command ends, such changes are moved to the quarantine and the original files are restored.";

const COMPLETION_EXAMPLES: &str = "\
Examples:
  ikigai completions bash > ~/.local/share/bash-completion/completions/ikigai
  ikigai completions zsh > ~/.zfunc/_ikigai
  ikigai completions fish > ~/.config/fish/completions/ikigai.fish";

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The task; - reads it from stdin
    pub(crate) prompt: String,
    /// Print one JSON event per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Interrupt the run after SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub(crate) timeout: Option<u64>,
    /// Wait for background commands instead of ending them
    #[arg(long)]
    pub(crate) wait_commands: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsArguments {
    /// Print the array of schemas exactly as a model gets it
    #[arg(long)]
    pub(crate) json: bool,
    /// List only this set of tools
    #[arg(long, value_name = "SET")]
    pub(crate) set: Option<Set>,
}

/// A named set of tools.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Set {
    /// The six core tools
    Core,
}

#[derive(Debug, Args)]
pub(crate) struct MailArguments {
    #[command(subcommand)]
    pub(crate) action: MailAction,
    /// Print the result of the mail tool as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MailAction {
    /// List messages, unread first
    Inbox,
    /// Print a message and mark it read
    Read {
        /// The number of the message
        id: String,
    },
    /// Print a message without marking it read
    Peek {
        /// The number of the message
        id: String,
    },
    /// Send a message to an agent
    Send {
        /// The recipient: 1/, 0/2/, parent, or a name
        to: String,
        /// The text; - reads it from stdin
        body: String,
    },
    /// Mark a message unread, so that the agent is notified again
    Unread {
        /// The number of the message
        id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AgentsArguments {
    #[command(subcommand)]
    pub(crate) action: Option<AgentsAction>,
    /// Print an array of all agents, including dead ones
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsAction {
    /// Add an idle top-level agent and print its ID
    Add {
        /// Its name
        name: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SessionsArguments {
    #[command(subcommand)]
    pub(crate) action: Option<SessionsAction>,
    /// Print an array of all sessions
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsAction {
    /// Delete a session with its agents, logs and mail
    Rm {
        /// Its ID, or a prefix of it
        id: String,
    },
    /// Copy a session with its agents, logs and mail to another database
    Copy {
        /// Its ID, or a prefix of it
        id: String,
        /// The target database: sqlite://PATH or postgres://…
        #[arg(long, value_name = "URL")]
        to: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct UndoArguments {
    /// List what can be undone
    #[arg(long, conflicts_with = "redo")]
    pub(crate) list: bool,
    /// Redo the last undo
    #[arg(long)]
    pub(crate) redo: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AuthArguments {
    #[command(subcommand)]
    pub(crate) action: AuthAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuthAction {
    /// Store the key of a provider, after trying it
    Add {
        /// anthropic, openai, google, or a provider of your configuration
        provider: String,
    },
    /// List the providers that have a key, and where it is
    List,
    /// Remove the stored key of a provider
    Rm {
        /// The provider
        provider: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArguments {
    /// Only models with this in their names
    pub(crate) filter: Option<String>,
    /// Print an array of all facts
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct QuarantineArguments {
    /// Put this file back; the one in its place moves to the quarantine
    #[arg(long, value_name = "ID")]
    pub(crate) put_back: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    /// Print one canonical message per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Print new messages as they come, until interrupted
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print only messages after ID
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct UsageArguments {
    /// Set what each row is about
    #[arg(long, value_name = "KIND", default_value = "message")]
    pub(crate) by: UsageKind,
    /// Print an array with one object per row
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a row of `ikigai usage` is about.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum UsageKind {
    /// A message of yours, with all agents that worked on it
    Message,
    /// An agent
    Agent,
    /// A model
    Model,
    /// A session
    Session,
    /// A day, in UTC
    Day,
}

impl From<UsageKind> for UsageBy {
    fn from(kind: UsageKind) -> UsageBy {
        match kind {
            UsageKind::Message => UsageBy::Message,
            UsageKind::Agent => UsageBy::Agent,
            UsageKind::Model => UsageBy::Model,
            UsageKind::Session => UsageBy::Session,
            UsageKind::Day => UsageBy::Day,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ToolArguments {
    /// The name of the tool
    pub(crate) name: String,
    /// A JSON object with the tool's parameters, or - to read it from stdin
    pub(crate) arguments: Option<OsString>,
}
