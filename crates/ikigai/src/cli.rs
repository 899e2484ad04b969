//! The command line: one declaration for the parser, the help, the completions and the manual page.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

/// A terminal coding agent in which agents are like processes and talk by mail.
#[derive(Parser)]
#[command(
    name = "ikigai",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = EXAMPLES
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) options: Options,
}

const EXAMPLES: &str = "\
Examples:
  ikigai tools                                        what a model can do here
  ikigai tool grep '{\"pattern\":\"TODO\",\"glob\":\"*.rs\"}'  one call, its result as JSON
  ikigai -C ~/project tool bash '{\"command\":\"make\"}'  the same, elsewhere
  ikigai config                                       every setting, and where it came from

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.";

/// Options that stand before or after the command. An address may hold a password, hence no `Debug`.
#[derive(Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Options {
    /// Work in DIR instead of the current directory
    #[arg(short = 'C', value_name = "DIR", global = true, value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
    /// Read FILE instead of the user's configuration file
    #[arg(long, value_name = "FILE", global = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Use the database at URL (sqlite://… or postgres://…)
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) db: Option<String>,
    /// Use the model NAME, as provider/name
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) model: Option<String>,
    /// What agents may touch: read, work or full (not in force yet)
    #[arg(long, value_name = "MODE", global = true)]
    pub(crate) mode: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the tools that a model is offered
    Tools(ToolsArguments),
    /// Run one tool call and print its result as JSON
    #[command(after_help = TOOL_EXAMPLES)]
    Tool(ToolArguments),
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

const TOOL_EXAMPLES: &str = "\
Examples:
  ikigai tool file_read '{\"path\":\"README.md\",\"limit\":5}'
  ikigai tool bash '{\"command\":\"cargo test\",\"timeout\":600}'
  echo '{\"pattern\":\"**/*.rs\"}' | ikigai tool glob -

The exit code is 0 whenever a result was printed, also one that tells of a failure.";

const COMPLETION_EXAMPLES: &str = "\
Examples:
  ikigai completions bash > ~/.local/share/bash-completion/completions/ikigai
  ikigai completions zsh > ~/.zfunc/_ikigai
  ikigai completions fish > ~/.config/fish/completions/ikigai.fish";

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
pub(crate) struct ToolArguments {
    /// The tool's name, as `ikigai tools` lists it
    pub(crate) name: String,
    /// A JSON object with the tool's parameters, or - to read it from stdin
    pub(crate) arguments: Option<OsString>,
}
