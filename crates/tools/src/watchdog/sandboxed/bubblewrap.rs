//! Starts commands in bubblewrap.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};
use std::thread;

use super::{STACK, split_start};
use crate::sandbox::Sandbox;
use crate::sandbox::bubblewrap::{NetworkNamespace, SandboxedCommand, bwrap_call, program};
use crate::watchdog::Watch;
use crate::watchdog::covers::CoverWatcher;
use crate::watchdog::networks::Networks;
use crate::watchdog::spawner::Spawner;
use crate::watchdog::start::{StartedCommand, command, shell_arguments, shell_program};
use crate::watchdog::wire::Request;
use crate::words::{Variables, is_loaders};

/// Starts commands through `bwrap`.
#[derive(Debug)]
pub(super) struct BubblewrapStarter {
    spawner: Spawner,
    /// `None` if this process may not create them.
    networks: Option<Arc<Networks>>,
    covers: CoverWatcher,
}

impl BubblewrapStarter {
    pub(super) fn new(spawner: Spawner, watch: Watch) -> BubblewrapStarter {
        let networks = (watch == Watch::Namespaces).then(Arc::default);
        BubblewrapStarter { spawner, networks, covers: CoverWatcher::default() }
    }

    /// Starts the requested command in this sandbox.
    pub(super) async fn start(
        &self,
        request: &Request,
        sandbox: Sandbox,
        output: OwnedFd,
        cleared: Receiver<()>,
    ) -> io::Result<StartedCommand> {
        let program = program().ok_or_else(|| io::Error::other("bubblewrap is not installed"))?;
        let variables = request.variables.iter().cloned();
        let (loader, harmless): (Variables, Variables) =
            variables.partition(|(name, _)| is_loaders(name));
        let mut bwrap = command(program, &request.directory, &harmless, output)?;
        let networks = self.networks.clone().filter(|_| !sandbox.network);
        let namespace =
            networks.as_ref().map_or(NetworkNamespace::New, |_| NetworkNamespace::Joined);
        let (directory, agent) = (request.directory.clone(), request.agent.clone());
        let (report, bwraps_end) = UnixStream::pair()?;
        report.set_nonblocking(true)?;
        let (spawner, command) = (self.spawner.clone(), request.command.clone());
        let (covers, looked_at) = (self.covers.clone(), report.try_clone()?);
        let (work, spawned) = split_start(cleared, move |is_wanted| {
            require_binds_by_descriptor(program, &spawner)?;
            let network = networks.map(|networks| networks.enter(&agent)).transpose()?;
            let sandboxed = SandboxedCommand { sandbox, directory, loader, namespace };
            let call = bwrap_call(&sandboxed, bwraps_end.into())?;
            let covered = covers.watch(call.covers, looked_at)?;
            if !is_wanted() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            bwrap.args(call.arguments).arg(shell_program()?).args(shell_arguments(&command));
            Ok((spawner.spawn_with(&mut bwrap, call.fds)?, network, covered))
        });
        thread::Builder::new().stack_size(STACK).spawn(|| work(Ok(())))?;
        let (spawned, network, covered) = spawned.await?;
        Ok(StartedCommand::of(spawned, Some(report)).within(network, covered))
    }
}

/// Fails if this `bwrap` can only mount by path. Between its look at a path and the mount, another
/// command could replace a folder of the tree with a link, and would get access to the link's
/// target. Checked once: a newer version installed meanwhile also has the option.
fn require_binds_by_descriptor(program: &str, spawner: &Spawner) -> io::Result<()> {
    static HAS_OPTION: OnceLock<bool> = OnceLock::new();
    let has_option = match HAS_OPTION.get() {
        Some(known) => *known,
        None => names_option(program) || tells_of_option(program, spawner)?,
    };
    match *HAS_OPTION.get_or_init(|| has_option) {
        true => Ok(()),
        false => Err(io::Error::other(
            "this version is too old to be safe: it lacks the option --bind-fd (in 0.10, and in security updates of earlier versions)",
        )),
    }
}

/// The option that mounts an open folder.
const OPTION: &[u8] = b"--ro-bind-fd";

/// Whether the binary contains the option. Checking that takes less than a tenth of the time of
/// running it.
fn names_option(program: &str) -> bool {
    /// Far larger than any `bwrap`.
    const LARGEST: u64 = 4 * 1024 * 1024;
    let mut bytes = Vec::new();
    let file = File::open(program).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
    file.is_ok() && memchr::memmem::find(&bytes, OPTION).is_some()
}

/// Whether its help lists the option: `bwrap` may be a script that starts the real one.
fn tells_of_option(program: &str, spawner: &Spawner) -> io::Result<bool> {
    /// Far more than it prints.
    const LONGEST: u64 = 256 * 1024;
    let (reader, writer) = io::pipe()?;
    let mut asking = command(program, OsStr::new("/"), &[], writer.into())?;
    let _running = spawner.spawn(asking.arg("--help"))?;
    // Its ends of the pipe.
    drop(asking);
    let mut help = Vec::new();
    reader.take(LONGEST).read_to_end(&mut help)?;
    Ok(memchr::memmem::find(&help, OPTION).is_some())
}
