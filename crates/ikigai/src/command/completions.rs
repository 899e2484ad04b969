//! `ikigai completions`: prints a shell completion script.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Exit;
use crate::print;

pub(crate) fn run(shell: Shell) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ikigai", &mut script);
    print::out(script)?;
    Ok(Exit::Done)
}
