//! The program as the helper that becomes a command in a sandbox; never started by a person.

use std::io;
use std::os::fd::AsFd;

use crate::exit::Exit;

/// Takes its request from the socket on standard input.
pub(crate) fn run() -> anyhow::Result<Exit> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    // The watchdog knows the reason by now, and standard error belongs to the command.
    match ikigai_tools::enter_sandbox(socket) {
        Ok(never) => match never {},
        Err(_) => Ok(Exit::Failed),
    }
}
