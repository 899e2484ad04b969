//! `ikigai config`: shows every setting with its value and source.

use ikigai_host::Environment;

use crate::exit::Exit;
use crate::print;

pub(crate) fn run(environment: &Environment) -> anyhow::Result<Exit> {
    print::out(environment.settings.render())?;
    Ok(Exit::Done)
}
