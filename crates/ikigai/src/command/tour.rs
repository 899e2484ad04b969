//! `ikigai tour`.

use crate::exit::Exit;

pub(crate) fn run() -> anyhow::Result<Exit> {
    anyhow::bail!("the tour is not there yet")
}
