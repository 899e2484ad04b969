//! `ikigai man`: the manual page, made from the same declaration as the help.

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
