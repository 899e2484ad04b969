//! The command line: one declaration for the parser, the help, the completions and the manual page.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use ikigai_protocol::UsageBy;

/// A terminal coding agent in which agents are like processes and talk by mail.
#[derive(Parser)]
#[command(
    name = "ikigai",
    version,
    max_term_width = 100,
    after_help = EXAMPLES
)]
pub(crate) struct Cli {
    /// Without one, ikigai opens on the terminal.
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
                "--new cannot be used with this command: a new session would have nothing for it";
            Cli::command().error(ErrorKind::ArgumentConflict, wrong).exit();
        }
        cli
    }
}

const EXAMPLES: &str = "\
Examples:
  ikigai                                         talk to an agent here
  ikigai run 'fix the failing test'              one turn, the answer on stdout
  ikigai run -c 'now commit it'                  go on with the newest session
  ikigai tour                                    a walk through ikigai; needs no key
  ikigai tools                                   what a model can do here
  ikigai tool grep '{\"pattern\":\"TODO\"}'          one call, its result as JSON
  ikigai mail send 1/ 'please review main.rs'    mail to an agent
  ikigai config                                  all settings, their sources

A directory has its session, made when it is first needed. You act as its agent
0/ unless --agent names another.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.";

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
    /// Go on with the newest session of the directory
    #[arg(short = 'c', long = "continue", global = true)]
    pub(crate) continues: bool,
    /// Use the session ID (or its beginning) instead of the newest one of the directory
    #[arg(long, value_name = "ID", global = true, conflicts_with = "continues")]
    pub(crate) session: Option<String>,
    /// Start a new session even if one is running
    #[arg(long, global = true, conflicts_with_all = ["continues", "session"])]
    pub(crate) new: bool,
    /// Act as the agent ID, 0/ by default
    #[arg(long, value_name = "ID", global = true)]
    pub(crate) agent: Option<String>,
    /// Use the model NAME, as provider/name
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) model: Option<String>,
    /// What agents may touch: read, work or full
    #[arg(long, value_name = "MODE", global = true)]
    pub(crate) mode: Option<String>,
    /// Let models think: off, low, medium or high
    #[arg(long, value_name = "EFFORT", global = true)]
    pub(crate) effort: Option<String>,
    /// Count DIR to the working tree, too; may be repeated
    #[arg(long, value_name = "DIR", global = true, value_hint = ValueHint::DirPath)]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Trace what happens into a file: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", global = true)]
    pub(crate) log: Option<tracing::Level>,
    /// Talk line by line instead of on the full screen
    #[arg(long, global = true)]
    pub(crate) plain: bool,
    /// Capture the mouse: the wheel scrolls, and selecting needs Shift
    #[arg(long, global = true)]
    pub(crate) mouse: bool,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Give an agent one task and print its answer
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArguments),
    /// Walk through ikigai with a scripted model; needs no key
    Tour,
    /// List the tools that a model is offered
    Tools(ToolsArguments),
    /// Run one tool call and print its result as JSON
    #[command(after_help = TOOL_EXAMPLES)]
    Tool(ToolArguments),
    /// Look into an agent's mailbox, read and send
    Mail(MailArguments),
    /// List the agents of the session, or add one
    Agents(AgentsArguments),
    /// List the sessions, delete one, or copy one to another database
    Sessions(SessionsArguments),
    /// Take back what your newest message set going, in files; commands are not undone
    #[command(after_help = UNDO_EXAMPLES)]
    Undo(UndoArguments),
    /// List what commands put where other programs would run or believe it, or put one back
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
    /// Check what ikigai needs, and say what to do about it
    Doctor,
    /// Show every setting, its value and where it came from
    Config,
    /// Print a completion script for a shell
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completions {
        /// The shell that will read it
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

A new session is begun, unless -c or --session says otherwise. The answer goes to standard output,
everything else to standard error.";

const TOOL_EXAMPLES: &str = "\
Examples:
  ikigai tool file_read '{\"path\":\"README.md\",\"limit\":5}'
  ikigai tool bash '{\"command\":\"cargo test\",\"timeout\":600}'
  echo '{\"pattern\":\"**/*.rs\"}' | ikigai tool glob -

The exit code is 0 whenever a result was printed, also one that tells of a failure.";

const UNDO_EXAMPLES: &str = "\
Examples:
  ikigai undo --list      what can be taken back, the newest first
  ikigai undo             take the newest back; again, and the one before it
  ikigai undo --redo      take the last undo back

Every change by the tools file_write and file_edit is taken back, by all agents that worked for the
message. A file that somebody has changed since is left alone and named. What was larger than 10 MB
was not kept.";

const USAGE_EXAMPLES: &str = "\
Examples:
  ikigai usage                    what each of your messages used and cost, over all agents
  ikigai usage --by day           what was spent on each day, in all sessions
  ikigai usage --by model --json  for scripts

Costs are known for models with a price: from the configuration, or from a built-in table. Requests
that were lost before their report, by an interrupt or a crash, are counted as unreported.";

const AUTH_EXAMPLES: &str = "\
Examples:
  ikigai auth add anthropic            asks for the key, tries it, and stores it
  ikigai auth add openai < key.txt     the same without a terminal
  ikigai auth list                     which providers have a key, and where
  ikigai auth rm anthropic             removes the stored key

Keys are stored in credentials.toml beside your configuration file. Only you can read it, and
commands in the sandbox cannot see it. A key in a variable wins over the stored one.";

const MODELS_EXAMPLES: &str = "\
Examples:
  ikigai models                 the models of every provider with a key or an address of yours
  ikigai models sonnet          those with 'sonnet' in the name
  ikigai models --json openai   for scripts

Limits and prices (dollars per million tokens) come from your configuration, from the server's list
and from a built-in table. A dash means that none of them knows.";

const QUARANTINE_EXAMPLES: &str = "\
Examples:
  ikigai quarantine                                  what was moved there, and why
  ikigai quarantine --put-back 1763467200-000000001  put it back where it was

A command in the sandbox may not put anything into git's settings, AGENTS.md, editor settings and the
like. What it puts there is moved to the quarantine when it ends, and what was there is restored.";

const COMPLETION_EXAMPLES: &str = "\
Examples:
  ikigai completions bash > ~/.local/share/bash-completion/completions/ikigai
  ikigai completions zsh > ~/.zfunc/_ikigai
  ikigai completions fish > ~/.config/fish/completions/ikigai.fish";

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// What is to be done; - reads it from stdin
    pub(crate) prompt: String,
    /// Print one JSON event per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Interrupt the run after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub(crate) timeout: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsArguments {
    /// Print the array of schemas exactly as a model gets it
    #[arg(long)]
    pub(crate) json: bool,
    /// Only this set of tools
    #[arg(long, value_name = "SET")]
    pub(crate) set: Option<Set>,
}

/// A named set of tools.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Set {
    /// The six that every session has
    Core,
}

#[derive(Debug, Args)]
pub(crate) struct MailArguments {
    #[command(subcommand)]
    pub(crate) action: MailAction,
    /// Print the result of the mail tool instead
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MailAction {
    /// List the messages, unread ones first
    Inbox,
    /// Read a message, and mark it read
    Read {
        /// The number of the message
        id: String,
    },
    /// Look at a message without marking it read
    Peek {
        /// The number of the message
        id: String,
    },
    /// Send a message to an agent
    Send {
        /// An agent: 1/, 0/2/, parent, or a name
        to: String,
        /// The text; - reads it from stdin
        body: String,
    },
    /// Make a message unread again, so that the agent is told of it once more
    Unread {
        /// The number of the message
        id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AgentsArguments {
    #[command(subcommand)]
    pub(crate) action: Option<AgentsAction>,
    /// Print an array of all agents, the dead ones too
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsAction {
    /// Add a top-level agent, idle, and print its id
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
    /// Delete a session with its agents, logs and mail, for good
    Rm {
        /// Its id, or the beginning of it
        id: String,
    },
    /// Bring a session with its agents, logs and mail to another database
    Copy {
        /// Its id, or the beginning of it
        id: String,
        /// The other database: sqlite://PATH or postgres://...
        #[arg(long, value_name = "URL")]
        to: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct UndoArguments {
    /// Only show what can be taken back
    #[arg(long, conflicts_with = "redo")]
    pub(crate) list: bool,
    /// Take the last undo back
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
    /// Put this one back; what is in its place now is kept in the quarantine
    #[arg(long, value_name = "ID")]
    pub(crate) put_back: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    /// Print one canonical message per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Go on with what is appended, until interrupted
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only messages after this one
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct UsageArguments {
    /// What each row is about
    #[arg(long, value_name = "KIND", default_value = "message")]
    pub(crate) by: UsageKind,
    /// Print an array with one object per row
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a row of `ikigai usage` is about.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum UsageKind {
    /// Your message, with all agents that worked for it
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
    /// The tool's name, as `ikigai tools` lists it
    pub(crate) name: String,
    /// A JSON object with the tool's parameters, or - to read it from stdin
    pub(crate) arguments: Option<OsString>,
}
