//! The command line: one declaration for the parser, the help, the completions and the manual page.

mod examples;

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
    after_help = examples::PROGRAM
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
    #[command(after_help = examples::RUN)]
    Run(RunArguments),
    /// Take a tour with a scripted model; needs no key
    Tour,
    /// List the tools that models are offered
    Tools(ToolsArguments),
    /// Run one tool call and print its result as JSON
    #[command(after_help = examples::TOOL)]
    Tool(ToolArguments),
    /// Read and send mail
    Mail(MailArguments),
    /// List the agents of a session, or add one
    Agents(AgentsArguments),
    /// List, delete or copy sessions
    Sessions(SessionsArguments),
    /// Undo file changes from your last message
    #[command(after_help = examples::UNDO)]
    Undo(UndoArguments),
    /// List files that were moved out of protected paths, or put one back
    #[command(after_help = examples::QUARANTINE)]
    Quarantine(QuarantineArguments),
    /// Print an agent's log
    Log(LogArguments),
    /// Show what requests to models used and cost
    #[command(after_help = examples::USAGE)]
    Usage(UsageArguments),
    /// Store, list or remove keys of providers
    #[command(after_help = examples::AUTH)]
    Auth(AuthArguments),
    /// List the models of your providers, with their limits and prices
    #[command(after_help = examples::MODELS)]
    Models(ModelsArguments),
    /// Check the setup and suggest fixes
    Doctor,
    /// Show every setting with its value and source
    Config,
    /// Print a completion script for a shell
    #[command(after_help = examples::COMPLETION)]
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
    /// Send a message as the user, or with --agent as that agent
    Send {
        /// The recipient: 1/, 0/2/, parent, a name, or user
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
    /// Print every message, also the system prompt and the usage
    #[arg(long, conflicts_with = "json")]
    pub(crate) all: bool,
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
