//! `ikigai man`: prints the manual page, generated from the command line's declaration.

use clap::CommandFactory;
use clap_mangen::Man;

use crate::cli::Cli;
use crate::exit::Exit;
use crate::print;

pub(crate) fn run() -> anyhow::Result<Exit> {
    let mut page = Vec::new();
    Man::new(Cli::command()).render(&mut page)?;
    print::out(page)?;
    Ok(Exit::Done)
}
