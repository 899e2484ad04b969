//! The ikigai program: arguments, configuration and wiring. The functionality is in the other
//! crates.
//!
//! `main` calls `run`, and `run` is one `match` over the command. All inputs (variables, the
//! working directory) are read once, in `environment.rs`, and passed down.

#![forbid(unsafe_code)]

mod cli;
mod command;
mod environment;
mod exit;
mod line;
mod print;
mod prompt;
mod screen;
mod session;
mod signals;
mod talk;
mod trace;

use std::process::ExitCode;

use ikigai_config::ConfigError;

use crate::cli::{Cli, Command};
use crate::exit::Exit;
use crate::talk::Interface;

fn main() -> ExitCode {
    environment::hide_memory();
    let exit = run().unwrap_or_else(|error| {
        print::error(&error);
        match error.downcast_ref::<ConfigError>() {
            Some(wrong) if wrong.is_in_flag() => Exit::WrongUsage,
            _ => Exit::Failed,
        }
    });
    exit.into()
}

fn run() -> anyhow::Result<Exit> {
    if environment::is_watchdog() {
        return command::watchdog::run();
    }
    let cli = Cli::read();
    let load = || {
        let environment = environment::read(&cli.options)?;
        trace::start(&environment, cli.options.log)?;
        Ok::<_, anyhow::Error>(environment)
    };
    let Some(command) = cli.command else { return talk::run(load()?, Interface::of(&cli.options)) };
    match command {
        Command::Run(arguments) => command::run::run(load()?, &arguments),
        Command::Tour => {
            command::tour::run(cli.options.mode.as_deref(), Interface::of(&cli.options))
        }
        Command::Tools(arguments) => command::tools::run(&load()?, &arguments),
        Command::Tool(arguments) => command::tool::run(&load()?, &arguments),
        Command::Mail(arguments) => command::mail::run(&load()?, &arguments),
        Command::Agents(arguments) => command::agents::run(&load()?, &arguments),
        Command::Sessions(arguments) => command::sessions::run(&load()?, &arguments),
        Command::Undo(arguments) => command::undo::run(&load()?, &arguments),
        Command::Quarantine(arguments) => command::quarantine::run(&load()?, &arguments),
        Command::Usage(arguments) => command::usage::run(&load()?, &arguments),
        Command::Log(arguments) => command::log::run(&load()?, &arguments),
        Command::Auth(arguments) => command::auth::run(&load()?, &arguments),
        Command::Models(arguments) => command::models::run(&load()?, &arguments),
        Command::Doctor => match load() {
            Ok(environment) => command::doctor::run(&environment),
            Err(error) => command::doctor::run_without_configuration(&error),
        },
        Command::Config => command::config::run(&load()?),
        Command::Completions { shell } => command::completions::run(shell),
        Command::Man => command::man::run(),
    }
}
