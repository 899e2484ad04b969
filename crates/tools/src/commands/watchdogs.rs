//! The watchdog processes of a program: started on demand, and given each command's file
//! descriptors.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::watchdog::{Approved, GRACE, READY, Request, Watch};
use crate::words::{Variables, is_loaders};

/// The watchdogs of a program.
#[derive(Debug)]
pub(super) struct Watchdogs {
    /// The program and argument that start one: this same executable.
    program: PathBuf,
    argument: OsString,
    /// The environment of the watchdogs.
    environment: Variables,
    links: Mutex<Links>,
}

/// Which commands without network share a loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loopback {
    /// Those of one agent.
    PerAgent,
    /// None: the system does not permit the watchdog to create networks.
    PerCommand,
}

/// The running watchdogs.
#[derive(Debug, Default)]
struct Links {
    plain: Option<Link>,
    /// The one that creates private networks, for commands in bubblewrap.
    namespaces: Option<Link>,
    /// Whether that does not work: then those commands use the plain one, each with its own
    /// network.
    has_no_namespaces: bool,
}

/// A watchdog, and the socket that it takes commands from.
#[derive(Debug)]
struct Link {
    socket: StdUnixStream,
    process: Child,
}

impl Watchdogs {
    pub(super) fn new(program: &Path, argument: &OsStr, environment: &Variables) -> Watchdogs {
        // It would load a library from the working tree outside the sandbox.
        let harmless = environment.iter().filter(|(name, _)| !is_loaders(name));
        Watchdogs {
            program: program.to_owned(),
            argument: argument.to_owned(),
            environment: harmless.cloned().collect(),
            links: Mutex::default(),
        }
    }

    /// Sends a command's output pipe and control socket to the watchdog.
    pub(super) async fn hand_over(&self, watch: Watch, fds: &[OwnedFd; 2]) -> io::Result<()> {
        let mut links = self.links.lock().await;
        if watch == Watch::Namespaces && !links.has_no_namespaces {
            if send_to(links.namespaces.as_ref(), fds) {
                return Ok(());
            }
            links.namespaces = self.start_with_namespaces().await?;
            if send_to(links.namespaces.as_ref(), fds) {
                return Ok(());
            }
            links.has_no_namespaces = true;
        }
        if send_to(links.plain.as_ref(), fds) {
            return Ok(());
        }
        // It is not running yet, or was killed.
        let started = links.plain.insert(self.start_watchdog(Watch::All)?);
        send_fds(&started.socket, fds)
    }

    /// The watchdog that creates private networks, once it has reported ready; `None` if that does
    /// not work.
    async fn start_with_namespaces(&self) -> io::Result<Option<Link>> {
        /// Far more than it takes.
        const PATIENCE: Duration = Duration::from_secs(10);
        let link = self.start_watchdog(Watch::Namespaces)?;
        let socket = link.socket.try_clone()?;
        socket.set_nonblocking(true)?;
        let mut socket = UnixStream::from_std(socket)?;
        match tokio::time::timeout(PATIENCE, socket.read_u8()).await {
            Ok(Ok(READY)) => {}
            Ok(_) | Err(_) => return Ok(None),
        }
        // Both handles share this flag, and commands are sent with a blocking call.
        link.socket.set_nonblocking(false)?;
        Ok(Some(link))
    }

    fn start_watchdog(&self, watch: Watch) -> io::Result<Link> {
        let (socket, watchdogs_end) = StdUnixStream::pair()?;
        #[expect(clippy::disallowed_methods, reason = "this is the one place")]
        let process = Command::new(&self.program)
            .arg(&self.argument)
            .args(watch.argument())
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(watchdogs_end)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Link { socket, process })
    }

    pub(super) async fn loopback(&self) -> Loopback {
        match self.links.lock().await.namespaces {
            Some(_) => Loopback::PerAgent,
            None => Loopback::PerCommand,
        }
    }

    pub(super) async fn approve_write(&self, path: &Path) -> ApprovedWrite {
        let mut sockets = Vec::new();
        let links = self.links.lock().await;
        for link in [&links.plain, &links.namespaces].into_iter().flatten() {
            // If the watchdog cannot be reached, it is gone with its commands.
            sockets.extend(expect(link, path).await.ok());
        }
        ApprovedWrite { sockets }
    }

    pub(super) async fn close(&self) {
        let Links { plain, namespaces, .. } = std::mem::take(&mut *self.links.lock().await);
        let ending = [plain, namespaces].map(async |link| {
            let Some(Link { socket, mut process }) = link else { return };
            drop(socket);
            // It waits up to two grace periods: for the commands, then for processes that left
            // their groups.
            let patience = 2 * GRACE + Duration::from_secs(1);
            let _ = tokio::time::timeout(patience, process.wait()).await;
        });
        let [plain, namespaces] = ending;
        tokio::join!(plain, namespaces);
    }
}

/// A path being written with approval, until this is dropped.
#[derive(Debug)]
pub struct ApprovedWrite {
    sockets: Vec<UnixStream>,
}

impl ApprovedWrite {
    /// Says what was written. Without this nothing was: what is found there then is not approved.
    pub async fn wrote(mut self, approved: &Approved) {
        for socket in &mut self.sockets {
            // If the watchdog cannot be reached, it is gone with its commands.
            let _ = socket.write_all(approved.encode().as_bytes()).await;
        }
    }
}

/// Announces a path to a watchdog and waits for the acknowledgement.
async fn expect(link: &Link, path: &Path) -> io::Result<UnixStream> {
    let (mut socket, watchdogs_end) = UnixStream::pair()?;
    let (_, unused) = std::io::pipe()?;
    send_fds(&link.socket, &[unused.into(), watchdogs_end.into_std()?.into()])?;
    let request = Request {
        command: OsString::new(),
        directory: OsString::new(),
        variables: Variables::new(),
        agent: OsString::new(),
        expected: path.into(),
        quarantine: OsString::new(),
        sandbox: None,
    };
    socket.write_all(&request.encode()).await?;
    socket.read_u8().await?;
    Ok(socket)
}

/// Whether there is such a watchdog and it received them.
fn send_to(link: Option<&Link>, fds: &[OwnedFd; 2]) -> bool {
    link.is_some_and(|link| send_fds(&link.socket, fds).is_ok())
}

/// Sends one byte that carries the two file descriptors.
fn send_fds(socket: &StdUnixStream, fds: &[OwnedFd; 2]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds = [fds[0].as_fd(), fds[1].as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    let flags = SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(&[0])], &mut ancillary, flags)?;
    Ok(())
}
