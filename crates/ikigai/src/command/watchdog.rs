//! The program as its own watchdog; never started by the user.

use std::os::fd::AsFd;

use crate::environment;
use crate::exit::Exit;

/// Serves the socket on standard input.
pub(crate) fn run() -> anyhow::Result<Exit> {
    #[cfg(target_os = "linux")]
    {
        // Shown in lists of processes; Linux cuts it at 15 characters.
        let _ = rustix::thread::set_name(c"ikigai-watchdog");
    }
    let socket = std::io::stdin().as_fd().try_clone_to_owned()?;
    ikigai_tools::serve_watchdog(socket, environment::watch())?;
    Ok(Exit::Done)
}
