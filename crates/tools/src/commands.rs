//! Commands, seen from the program: started through the watchdog, followed to their end.
//!
//! The program does not start a command itself. It has a small process of its own, the watchdog (see
//! `watchdog.rs`), which starts all commands and ends them when the program is gone. For every command
//! the two share a control socket: the request goes down, the status comes back, and whatever closes the
//! program's end (an interrupt, a dropped future, kill -9) ends the command and all that it started.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, OnceCell};
use tokio_util::sync::CancellationToken;

use crate::file_error::without_number;
use crate::sandbox;
use crate::sandbox::{Enclosure, Kind, NoSandbox, Sandbox};
use crate::watchdog::{END, GRACE, Request, STATUS_LIMIT, Status};
use crate::words::{Variables, is_loaders};

/// Starts commands. The watchdog comes with the first one, since many runs need none.
#[derive(Debug)]
pub struct Commands {
    /// The program and arguments that start the watchdog: this same program, told to be one.
    watchdog: (PathBuf, OsString),
    /// The environment of every command, secrets left out.
    environment: Variables,
    link: Mutex<Option<Link>>,
    /// The kind of sandbox that works, once that was tried.
    sandbox: OnceCell<Kind>,
    /// Whether what the first command needs was made ready.
    ready: OnceCell<()>,
    /// Cancelled when the program ends: nothing goes on in the background after that.
    closing: CancellationToken,
}

/// The watchdog, and the socket on which it takes commands.
#[derive(Debug)]
struct Link {
    socket: StdUnixStream,
    process: Child,
}

/// A command that is to be started.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub(crate) command: &'a str,
    pub(crate) directory: &'a Path,
    /// What it has in its environment beyond, or instead of, what all commands have.
    pub(crate) variables: &'a [(OsString, OsString)],
    /// The walls around it, and what they are made of; none if there are none.
    pub(crate) walls: Option<(&'a Sandbox, Kind)>,
}

impl Commands {
    /// Commands get exactly `environment`. `program` called with `argument` must call
    /// [`serve_watchdog`](crate::serve_watchdog).
    pub fn new(
        program: &Path,
        argument: &OsStr,
        environment: Vec<(OsString, OsString)>,
    ) -> Commands {
        let watchdog = (program.to_owned(), argument.to_owned());
        Commands {
            watchdog,
            environment,
            link: Mutex::new(None),
            sandbox: OnceCell::new(),
            ready: OnceCell::new(),
            closing: CancellationToken::new(),
        }
    }

    /// Whether commands can be kept in a sandbox here. A trial is only made where that is not certain.
    pub async fn has_sandbox(&self) -> bool {
        sandbox::is_certain() || self.sandbox_kind().await.is_ok()
    }

    /// Which kind of sandbox works here, found out by running a command in it.
    ///
    /// # Errors
    /// When none does.
    pub async fn sandbox_kind(&self) -> Result<Kind, NoSandbox> {
        let works = async {
            let mut reasons = Vec::new();
            for kind in Kind::ALL {
                match self.try_out(&Sandbox::default(), kind).await {
                    Ok(()) => return Ok(kind),
                    Err(error) => {
                        reasons.push(format!("{kind}: {}", without_number(&error.to_string())));
                    }
                }
            }
            Err(NoSandbox { why: reasons.join("; ") })
        };
        // A failure is not kept: the person may install what is missing.
        self.sandbox.get_or_try_init(|| works).await.copied()
    }

    /// Whether a command can be run in this sandbox of a kind that works.
    ///
    /// # Errors
    /// Why not.
    pub async fn try_out(&self, sandbox: &Sandbox, kind: Kind) -> io::Result<()> {
        /// Far more than it takes.
        const PATIENCE: Duration = Duration::from_secs(10);
        if !kind.is_installed() {
            return Err(io::Error::other("it is not installed"));
        }
        let (directory, walls) = (Path::new("/"), Some((sandbox, kind)));
        // Nothing at all: not even what the user has bash do at its start.
        let variables = &[("BASH_ENV".into(), OsString::new())];
        let trial = Order { command: ":", directory, variables, walls };
        let mut running = self.start(&trial).await?;
        let trial = tokio::time::timeout(PATIENCE, running.control.status()).await;
        let mut said = Vec::with_capacity(STATUS_LIMIT);
        running.output.read_ready(&mut said)?;
        let said = String::from_utf8_lossy(&said);
        match trial?? {
            Status::Exited(0) => Ok(()),
            Status::NotStarted(reason) if said.is_empty() => Err(io::Error::other(reason)),
            Status::NotStarted(reason) => {
                Err(io::Error::other(format!("{reason}: {}", said.trim_end())))
            }
            other => Err(io::Error::other(format!("a trial ended with {other:?}"))),
        }
    }

    /// The kind that a sandbox is to have: the one it asks for, the one that works, or the best one as long
    /// as nobody has tried. A trial of its own before the first command would take as long as that command.
    pub(crate) fn likely_kind(&self, sandbox: &Sandbox) -> Kind {
        let best = || Kind::ALL.into_iter().find(|kind| kind.is_installed());
        let known = sandbox.kind.or_else(|| self.sandbox.get().copied());
        known.or_else(best).unwrap_or(Kind::Landlock)
    }

    /// Takes notice that a command ran in a sandbox of its likely kind.
    pub(crate) fn note_that_it_works(&self, sandbox: &Sandbox, kind: Kind) {
        if sandbox.kind.is_none() {
            // It fails when a kind is known already; that one was the likely one then.
            let _ = self.sandbox.set(kind);
        }
    }

    /// The kind to take instead of one that could not be set up; `None` when that is not to be blamed on
    /// the kind.
    pub(crate) async fn other_kind(
        &self,
        sandbox: &Sandbox,
        failed: Kind,
    ) -> Result<Option<Kind>, NoSandbox> {
        if sandbox.kind.is_some() || self.sandbox.initialized() {
            return Ok(None);
        }
        Ok(Some(self.sandbox_kind().await?).filter(|works| *works != failed))
    }

    /// Makes ready for commands in this sandbox, once: the first one of a process has to wait for the watchdog, and for
    /// landlock's rules, which take as long as bash. A trial waits for them instead.
    pub(crate) async fn get_ready(&self, sandbox: &Sandbox) {
        let kind = self.likely_kind(sandbox);
        if kind != Kind::Landlock {
            return;
        }
        // What is wrong is for the first command to tell.
        let ready = async || drop(self.try_out(sandbox, kind).await);
        self.ready.get_or_init(ready).await;
    }

    /// Starts a command with `bash -c`.
    pub(crate) async fn start(&self, order: &Order<'_>) -> io::Result<Running> {
        let (sender, output) = pipe::pipe()?;
        widen(&output);
        let (mut socket, watchdogs_end) = UnixStream::pair()?;
        let fds = [sender.into_blocking_fd()?, watchdogs_end.into_std()?.into()];
        self.hand_over(&fds).await?;
        drop(fds);
        socket.write_all(&self.request(order).encode()).await?;
        Ok(Running {
            output: CommandOutput(Some(output)),
            control: Control { socket, status: Vec::new() },
            closing: self.closing.clone(),
        })
    }

    fn request(&self, order: &Order<'_>) -> Request {
        let enclosure =
            order.walls.map(|(sandbox, kind)| Enclosure { kind, sandbox: sandbox.clone() });
        let loaders = self.environment.iter().filter(|(name, _)| is_loaders(name));
        Request {
            command: order.command.into(),
            directory: order.directory.into(),
            variables: loaders.chain(order.variables).cloned().collect(),
            enclosure,
        }
    }

    /// Ends all that commands left running in the background, and the watchdog.
    pub async fn close(&self) {
        self.closing.cancel();
        if let Some(Link { socket, mut process }) = self.link.lock().await.take() {
            drop(socket);
            // It gives its grace twice: to the commands, then to what had left their groups.
            let patience = 2 * GRACE + Duration::from_secs(1);
            let _ = tokio::time::timeout(patience, process.wait()).await;
        }
    }

    /// Gives the watchdog a command's ends of its pipe and its control socket.
    async fn hand_over(&self, fds: &[OwnedFd; 2]) -> io::Result<()> {
        let mut link = self.link.lock().await;
        if let Some(running) = &*link
            && send_fds(&running.socket, fds).is_ok()
        {
            return Ok(());
        }
        // There is none yet, or somebody killed it.
        let started = link.insert(self.start_watchdog()?);
        send_fds(&started.socket, fds)
    }

    fn start_watchdog(&self) -> io::Result<Link> {
        let (socket, watchdogs_end) = StdUnixStream::pair()?;
        let (program, argument) = &self.watchdog;
        // A library of the working tree would be run in it, outside of all walls.
        let harmless = self.environment.iter().filter(|(name, _)| !is_loaders(name));
        #[expect(clippy::disallowed_methods, reason = "this is the one place")]
        let process = Command::new(program)
            .arg(argument)
            .env_clear()
            .envs(harmless.map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(watchdogs_end)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Link { socket, process })
    }
}

/// One byte that carries the two file descriptors.
fn send_fds(socket: &StdUnixStream, fds: &[OwnedFd; 2]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds = [fds[0].as_fd(), fds[1].as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    let flags = SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(&[0])], &mut ancillary, flags)?;
    Ok(())
}

/// A command that prints much is slowed down by a narrow pipe: each filling costs two context switches.
fn widen(_pipe: &pipe::Receiver) {
    #[cfg(target_os = "linux")]
    {
        // What the system allows everybody; where it does not, the pipe stays as it is.
        const WIDE: usize = 1024 * 1024;
        let _ = rustix::pipe::fcntl_setpipe_size(_pipe, WIDE);
    }
}

/// A command at work. Dropping it ends the command.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) output: CommandOutput,
    pub(crate) control: Control,
    closing: CancellationToken,
}

impl Running {
    /// Lets what the command left in the background go on until the program ends. Its output goes
    /// nowhere, but it is taken, so that the background process is not ended by a broken pipe.
    pub(crate) fn leave(mut self) {
        let closing = self.closing.clone();
        tokio::spawn(closing.run_until_cancelled_owned(async move {
            let mut sink = Vec::with_capacity(16 * 1024);
            while !self.output.is_drained() && self.output.read(&mut sink).await.is_ok() {
                sink.clear();
            }
            self.control.closed().await;
        }));
    }
}

/// What a command prints, both streams in one.
#[derive(Debug)]
pub(crate) struct CommandOutput(Option<pipe::Receiver>);

impl CommandOutput {
    /// The next piece, appended to `buffer`; 0 at the end, and never again after that.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let Some(pipe) = &mut self.0 else {
            return std::future::pending().await;
        };
        let count = pipe.read_buf(buffer).await?;
        if count == 0 {
            self.0 = None;
        }
        Ok(count)
    }

    /// What lies in the pipe at this moment, appended to `buffer` as far as that has room.
    pub(crate) fn read_ready(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        // Not by way of the runtime, which only knows what it saw when it last looked.
        while let Some(pipe) = &self.0
            && buffer.len() < buffer.capacity()
        {
            match rustix::io::read(pipe, spare_capacity(buffer)) {
                Ok(0) => self.0 = None,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Whether all has been read: nobody holds the other end any more.
    pub(crate) fn is_drained(&self) -> bool {
        self.0.is_none()
    }
}

/// A command's life line to the watchdog.
#[derive(Debug)]
pub(crate) struct Control {
    socket: UnixStream,
    /// What has come of the status line.
    status: Vec<u8>,
}

impl Control {
    /// Waits for the command's own end.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn status(&mut self) -> io::Result<Status> {
        loop {
            if let Some(status) = Status::decode(&self.status) {
                return Ok(status);
            }
            let room = STATUS_LIMIT - self.status.len();
            let mut socket = (&mut self.socket).take(room as u64);
            if socket.read_buf(&mut self.status).await? == 0 {
                return Err(io::Error::other("its watchdog was killed"));
            }
        }
    }

    /// Asks the watchdog to end the command and all that it started. The status follows.
    pub(crate) async fn end(&mut self) -> io::Result<()> {
        match self.socket.write_all(&[END]).await {
            // It is gone already, and its status lies in the socket.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            told => told,
        }
    }

    /// Waits until the watchdog closes its end: nothing is left of the command's group.
    async fn closed(&mut self) {
        let mut byte = [0];
        while self.socket.read(&mut byte).await.is_ok_and(|count| count > 0) {}
    }
}
