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
use std::sync::OnceLock;
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

use crate::caches::writable_caches;
use crate::file_error::without_number;
use crate::notes::{Note, Notes};
use crate::protected::{put_back, quarantined};
use crate::sandbox;
use crate::sandbox::{Enclosure, Kind, NoSandbox, Root, Sandbox};
use crate::search_paths::avoiding;
use crate::watchdog::{END, GRACE, READY, Request, STATUS_LIMIT, Status, Watch, decode_note};
use crate::words::{Variables, is_loaders};

/// Starts commands. The watchdog comes with the first one, since many runs need none.
#[derive(Debug)]
pub struct Commands {
    /// The program and arguments that start the watchdog: this same program, told to be one.
    watchdog: (PathBuf, OsString),
    /// The environment of every command, secrets left out.
    environment: Variables,
    /// What only commands outside the sandbox have beside it.
    held_back: Variables,
    /// Where to what a command puts into protected paths is moved; empty if nothing is checked.
    quarantine: PathBuf,
    /// What was done about protected paths.
    notes: Notes,
    links: Mutex<Links>,
    /// The kind of sandbox that works, once that was tried.
    sandbox: OnceCell<Kind>,
    /// Why a better kind that is installed does not work.
    failed: OnceLock<String>,
    /// Whether what the first command needs was made ready.
    ready: OnceCell<()>,
    /// Cancelled when the program ends: nothing goes on in the background after that.
    closing: CancellationToken,
}

/// Which commands without a network share a loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loopback {
    /// Those of one agent.
    PerAgent,
    /// None: the system does not let the watchdog make networks.
    PerCommand,
}

/// The watchdogs that were started.
#[derive(Debug, Default)]
struct Links {
    plain: Option<Link>,
    /// The one that makes private networks, for commands in bubblewrap.
    namespaces: Option<Link>,
    /// Whether it cannot: then they have the plain one, and each command a network of its own.
    has_no_namespaces: bool,
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
    /// Whose it is: commands of one agent share a loopback.
    pub(crate) agent: &'a OsStr,
    /// The walls around it, and what they are made of; none if there are none.
    pub(crate) walls: Option<(&'a Sandbox, Kind)>,
    /// Folders that agents can write: a command without walls finds no program and no library there.
    pub(crate) avoided: &'a [Root],
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
            held_back: Variables::new(),
            quarantine: PathBuf::new(),
            notes: Notes::default(),
            links: Mutex::default(),
            sandbox: OnceCell::new(),
            failed: OnceLock::new(),
            ready: OnceCell::new(),
            closing: CancellationToken::new(),
        }
    }

    /// The same, where commands outside the sandbox have these variables, too.
    #[must_use]
    pub fn holding_back(self, variables: Vec<(OsString, OsString)>) -> Commands {
        Commands { held_back: variables, ..self }
    }

    /// The same, where protected paths are looked after: what a command in the sandbox puts there is moved to this
    /// folder, outside of what agents can write. It is made when it is needed.
    #[must_use]
    pub fn with_quarantine(self, folder: PathBuf) -> Commands {
        Commands { quarantine: folder, ..self }
    }

    /// What was done about protected paths beside the commands of an agent, and was not told yet, in sentences.
    pub(crate) fn take_notes(&self, agent: &OsStr) -> Vec<String> {
        self.notes.tell(agent)
    }

    /// What the agent was told is in the quarantine, and the user was not asked about yet.
    pub fn take_quarantined(&self, agent: &OsStr) -> Vec<Note> {
        self.notes.ask(agent)
    }

    /// Puts a thing back from the quarantine, after the user has approved it.
    ///
    /// # Errors
    /// When it is not there any more, or cannot be moved.
    pub async fn put_back(&self, id: &str) -> io::Result<PathBuf> {
        let known = quarantined(&self.quarantine)?;
        let record = known.into_iter().find(|record| record.id == id);
        let record = record.ok_or(io::ErrorKind::NotFound)?;
        let _expecting = self.expecting(&record.finding.path).await;
        put_back(&self.quarantine, id)
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
                        let reason = format!("{kind}: {}", without_number(&error.to_string()));
                        if kind.is_installed() {
                            let _ = self.failed.set(reason.clone());
                        }
                        reasons.push(reason);
                    }
                }
            }
            Err(NoSandbox { why: reasons.join("; ") })
        };
        // A failure is not kept: the person may install what is missing.
        self.sandbox.get_or_try_init(|| works).await.copied()
    }

    /// Why a better kind of sandbox that is installed does not work, as far as that was tried.
    pub fn failed_sandbox(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Which commands in bubblewrap reach each other, as far as one was started.
    pub async fn loopback(&self) -> Loopback {
        match self.links.lock().await.namespaces {
            Some(_) => Loopback::PerAgent,
            None => Loopback::PerCommand,
        }
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
        let (agent, avoided) = (OsStr::new(""), &[][..]);
        let trial = Order { command: ":", directory, variables, agent, walls, avoided };
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
    /// as nobody has tried.
    pub(crate) fn likely_kind(&self, sandbox: &Sandbox) -> Kind {
        let best = || Kind::ALL.into_iter().find(|kind| kind.is_installed());
        let known = sandbox.kind.or_else(|| self.sandbox.get().copied());
        known.or_else(best).unwrap_or(Kind::Landlock)
    }

    /// The kind that commands in a sandbox have until the program ends, if that is settled: the one it asks for, or the
    /// one in which the first command ran.
    pub(crate) fn kind_in_force(&self, sandbox: &Sandbox) -> Option<Kind> {
        sandbox.kind.or_else(|| self.sandbox.get().copied())
    }

    /// Settles on a kind, unless that was done before: a command ran in it.
    pub(crate) fn settle(&self, kind: Kind) {
        let _ = self.sandbox.set(kind);
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
        let watch = match order.walls {
            Some((_, Kind::Bubblewrap)) => Watch::Namespaces,
            Some((_, Kind::Landlock)) | None => Watch::All,
        };
        self.hand_over(watch, &fds).await?;
        drop(fds);
        socket.write_all(&self.request(order).encode()).await?;
        Ok(Running {
            output: CommandOutput(Some(output)),
            control: Control {
                socket,
                received: Vec::new(),
                agent: order.agent.to_owned(),
                notes: self.notes.clone(),
            },
            closing: self.closing.clone(),
        })
    }

    /// Says that a path is written with approval until what this returns is dropped: commands that run meanwhile have not
    /// put there what is found.
    pub async fn expecting(&self, path: &Path) -> Expecting {
        let mut sockets = Vec::new();
        let links = self.links.lock().await;
        for link in [&links.plain, &links.namespaces].into_iter().flatten() {
            // A watchdog that cannot be told is gone, and so are its commands.
            sockets.extend(expect(link, path).await.ok());
        }
        Expecting { _sockets: sockets }
    }

    fn request(&self, order: &Order<'_>) -> Request {
        let loaders = self.environment.iter().filter(|(name, _)| is_loaders(name));
        let writable = order.walls.map(|(sandbox, _)| sandbox.write.as_slice());
        let caches = writable.map(|roots| writable_caches(&self.environment, roots));
        let caches = caches.unwrap_or_default();
        let mut variables: Variables =
            loaders.chain(&caches).chain(order.variables).cloned().collect();
        let enclosure =
            order.walls.map(|(sandbox, kind)| Enclosure { kind, sandbox: sandbox.clone() });
        let held_back: &[_] = if enclosure.is_none() { &self.held_back } else { &[] };
        let all = self.environment.iter().chain(order.variables).chain(held_back);
        variables.extend(held_back.iter().cloned());
        variables.extend(avoiding(order.avoided, all));
        Request {
            command: order.command.into(),
            directory: order.directory.into(),
            variables,
            agent: order.agent.to_owned(),
            expected: OsString::new(),
            quarantine: self.quarantine.clone().into(),
            enclosure,
        }
    }

    /// Ends all that commands left running in the background, and the watchdogs.
    pub async fn close(&self) {
        self.closing.cancel();
        let Links { plain, namespaces, .. } = std::mem::take(&mut *self.links.lock().await);
        let ending = [plain, namespaces].map(async |link| {
            let Some(Link { socket, mut process }) = link else { return };
            drop(socket);
            // It gives its grace twice: to the commands, then to what had left their groups.
            let patience = 2 * GRACE + Duration::from_secs(1);
            let _ = tokio::time::timeout(patience, process.wait()).await;
        });
        let [plain, namespaces] = ending;
        tokio::join!(plain, namespaces);
    }

    /// Gives the watchdog a command's ends of its pipe and its control socket.
    async fn hand_over(&self, watch: Watch, fds: &[OwnedFd; 2]) -> io::Result<()> {
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
        // There is none yet, or somebody killed it.
        let started = links.plain.insert(self.start_watchdog(Watch::All)?);
        send_fds(&started.socket, fds)
    }

    /// The watchdog that makes private networks, once it has said that it can; `None` when it cannot.
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
        // Both share what was set: commands are handed over by a call that waits.
        link.socket.set_nonblocking(false)?;
        Ok(Some(link))
    }

    fn start_watchdog(&self, watch: Watch) -> io::Result<Link> {
        let (socket, watchdogs_end) = StdUnixStream::pair()?;
        let (program, argument) = &self.watchdog;
        // A library of the working tree would be run in it, outside of all walls.
        let harmless = self.environment.iter().filter(|(name, _)| !is_loaders(name));
        #[expect(clippy::disallowed_methods, reason = "this is the one place")]
        let process = Command::new(program)
            .arg(argument)
            .args(watch.argument())
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

/// A path that is written with approval, as long as this is there.
#[derive(Debug)]
pub struct Expecting {
    _sockets: Vec<UnixStream>,
}

/// Tells a watchdog of a path, and waits until it has taken notice.
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
        enclosure: None,
    };
    socket.write_all(&request.encode()).await?;
    socket.read_u8().await?;
    Ok(socket)
}

/// Whether there is such a watchdog, and it took them.
fn send_to(link: Option<&Link>, fds: &[OwnedFd; 2]) -> bool {
    link.is_some_and(|link| send_fds(&link.socket, fds).is_ok())
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
    /// What has come of the next line.
    received: Vec<u8>,
    agent: OsString,
    notes: Notes,
}

impl Control {
    /// Waits for the command's own end.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn status(&mut self) -> io::Result<Status> {
        loop {
            while let Some(line) = self.take_line() {
                match decode_note(&line) {
                    Some(note) => self.notes.add(&self.agent, note),
                    // A line that is neither comes from no watchdog of ours.
                    None => match Status::decode(&line) {
                        Some(status) => return Ok(status),
                        None => return Err(io::ErrorKind::InvalidData.into()),
                    },
                }
            }
            if self.receive().await? == 0 {
                return Err(io::Error::other("its watchdog was killed"));
            }
        }
    }

    /// Reads on, within the longest line that there is.
    async fn receive(&mut self) -> io::Result<usize> {
        let room = STATUS_LIMIT - self.received.len();
        let mut socket = (&mut self.socket).take(room as u64);
        socket.read_buf(&mut self.received).await
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let end = self.received.iter().position(|&byte| byte == b'\n')?;
        Some(self.received.drain(..=end).collect())
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
        loop {
            while let Some(line) = self.take_line() {
                if let Some(note) = decode_note(&line) {
                    self.notes.add(&self.agent, note);
                }
            }
            if !self.receive().await.is_ok_and(|count| count > 0) {
                return;
            }
        }
    }
}
