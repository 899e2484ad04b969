//! Commands, seen from the program: started through the watchdog, followed to their end.
//!
//! The program does not start a command itself. It has a small process of its own, the watchdog (see
//! `watchdog.rs`), which starts all commands and ends them when the program is gone. For every command
//! the two share a control socket: the request goes down, the status comes back, and whatever closes the
//! program's end (an interrupt, a dropped future, kill -9) ends the command and all that it started.

mod running;
mod watchdogs;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::caches::writable_caches;
use crate::file_error::without_number;
use crate::notes::{Note, Notes};
use crate::protected::{put_back, quarantined};
use crate::sandbox;
use crate::sandbox::{Enclosure, Kind, NoSandbox, Root, Sandbox};
use crate::search_paths::avoiding;
use crate::watchdog::{Approved, Request, STATUS_LIMIT, Status, Watch};
use crate::words::{Variables, is_loaders};
pub(crate) use running::Running;
use running::{CommandOutput, Control};
use watchdogs::Watchdogs;
pub use watchdogs::{Expecting, Loopback};

/// Starts commands. The watchdog comes with the first one, since many runs need none.
#[derive(Debug)]
pub struct Commands {
    watchdogs: Watchdogs,
    /// The environment of every command, secrets left out.
    environment: Variables,
    /// What only commands outside the sandbox have beside it.
    held_back: Variables,
    /// Where to what a command puts into protected paths is moved; empty if nothing is checked.
    quarantine: PathBuf,
    /// What was done about protected paths.
    notes: Notes,
    /// The kind of sandbox that works, once that was tried.
    sandbox: OnceCell<Kind>,
    /// Why a better kind that is installed does not work.
    failed: OnceLock<String>,
    /// Whether what the first command needs was made ready.
    ready: OnceCell<()>,
    /// Cancelled when the program ends: nothing goes on in the background after that.
    closing: CancellationToken,
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
        Commands {
            watchdogs: Watchdogs::new(program, argument, &environment),
            environment,
            held_back: Variables::new(),
            quarantine: PathBuf::new(),
            notes: Notes::default(),
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
        let expecting = self.expecting(&record.finding.path).await;
        let path = put_back(&self.quarantine, id)?;
        expecting.wrote(&Approved::Anything).await;
        Ok(path)
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
        self.watchdogs.hand_over(watch, &fds).await?;
        drop(fds);
        socket.write_all(&self.request(order).encode()).await?;
        Ok(Running {
            output: CommandOutput::new(output),
            control: Control::new(socket, order.agent.to_owned(), self.notes.clone()),
            closing: self.closing.clone(),
        })
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

    /// Says that a path is written with approval until what this returns is dropped: commands that run meanwhile have not
    /// put there what is found.
    pub async fn expecting(&self, path: &Path) -> Expecting {
        self.watchdogs.expecting(path).await
    }

    /// Which commands in bubblewrap reach each other, as far as one was started.
    pub async fn loopback(&self) -> Loopback {
        self.watchdogs.loopback().await
    }

    /// Ends all that commands left running in the background, and the watchdogs.
    pub async fn close(&self) {
        self.closing.cancel();
        self.watchdogs.close().await;
    }
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
