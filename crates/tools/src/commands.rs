//! Commands as the program sees them: started through the watchdog, and followed to their end.
//!
//! The program does not start commands itself. A small process, the watchdog (see `watchdog.rs`),
//! starts all commands and ends them when the program is gone. The two share a control socket for
//! every command: the program sends the request, the watchdog sends back the status. When the
//! program's end closes (an interrupt, a dropped future, kill -9), the command and all its
//! processes are ended.

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
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::background::Background;
use crate::caches::writable_caches;
use crate::file_error::without_number;
use crate::notes::{Note, Notes};
use crate::protected::{put_back, quarantined};
use crate::sandbox;
use crate::sandbox::{Kind, NoSandbox, ResolvedSandbox, Root, Sandbox};
use crate::search_paths::avoiding;
use crate::watchdog::{Approved, Request, STATUS_LIMIT, Status, Watch};
use crate::words::{Variables, is_loaders};
pub(crate) use running::RunningCommand;
use running::{CommandOutput, Control};
use watchdogs::Watchdogs;
pub use watchdogs::{ApprovedWrite, Loopback};

/// Starts commands. The watchdog is started with the first one, since many runs need none.
#[derive(Debug)]
pub struct Commands {
    watchdogs: Watchdogs,
    /// The environment of every command, without secrets.
    environment: Variables,
    /// Additional variables for commands outside the sandbox.
    held_back: Variables,
    /// Where changes of protected paths are moved to; empty if they are not checked.
    quarantine: PathBuf,
    /// What was done about protected paths.
    notes: Notes,
    /// The kind of sandbox that works, once known.
    sandbox: OnceCell<Kind>,
    /// Why a better kind that is installed does not work.
    failed: OnceLock<String>,
    /// Whether the prerequisites of the first command were prepared.
    ready: OnceCell<()>,
    background: Background,
    /// Cancelled when the program ends, which ends all background processes.
    closing: CancellationToken,
}

/// A command to start.
#[derive(Debug)]
pub(crate) struct CommandSpec<'a> {
    pub(crate) command: &'a str,
    pub(crate) directory: &'a Path,
    /// Variables added to, or overriding, those of all commands.
    pub(crate) variables: &'a [(OsString, OsString)],
    /// The agent that runs it: commands of one agent share a loopback.
    pub(crate) agent: &'a OsStr,
    /// Its sandbox and the kind of it, if any.
    pub(crate) sandbox: Option<(&'a Sandbox, Kind)>,
    /// Folders that agents can write: a command outside the sandbox must not load programs or
    /// libraries from them.
    pub(crate) avoided: &'a [Root],
}

impl Commands {
    /// Commands get exactly `environment`. Running `program` with `argument` must call
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
            background: Background::default(),
            closing: CancellationToken::new(),
        }
    }

    /// Adds variables for commands outside the sandbox.
    #[must_use]
    pub fn holding_back(self, variables: Vec<(OsString, OsString)>) -> Commands {
        Commands { held_back: variables, ..self }
    }

    /// Enables the check of protected paths: changes made in the sandbox are moved to this folder,
    /// which must not be writable for agents. It is created on demand.
    #[must_use]
    pub fn with_quarantine(self, folder: PathBuf) -> Commands {
        Commands { background: Background::new(&folder), quarantine: folder, ..self }
    }

    /// The commands that continue after the call that started them.
    pub fn background(&self) -> &Background {
        &self.background
    }

    /// What was done about protected paths during an agent's commands and was not reported yet.
    pub(crate) fn take_notes(&self, agent: &OsStr) -> Vec<String> {
        self.notes.tell(agent)
    }

    /// What was reported to the agent as quarantined, and the user has not been asked about yet.
    pub fn take_quarantined(&self, agent: &OsStr) -> Vec<Note> {
        self.notes.ask(agent)
    }

    /// Puts a file back from the quarantine after the user has approved it.
    ///
    /// # Errors
    /// If it no longer exists or cannot be moved.
    pub async fn put_back(&self, id: &str) -> io::Result<PathBuf> {
        let known = quarantined(&self.quarantine)?;
        let record = known.into_iter().find(|record| record.id == id);
        let record = record.ok_or(io::ErrorKind::NotFound)?;
        let approved = self.approve_write(&record.finding.path).await;
        let path = put_back(&self.quarantine, id)?;
        approved.wrote(&Approved::Anything).await;
        Ok(path)
    }

    /// Whether a sandbox works here. Makes a trial only if that is uncertain.
    pub async fn has_sandbox(&self) -> bool {
        sandbox::is_certain() || self.sandbox_kind().await.is_ok()
    }

    /// The kind of sandbox that works here, found out by running a command in it.
    ///
    /// # Errors
    /// If none works.
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
        // A failure is not cached: the user may install what is missing.
        self.sandbox.get_or_try_init(|| works).await.copied()
    }

    /// Why a better kind of sandbox that is installed does not work, as far as it was tried.
    pub fn failed_sandbox(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Runs a trial command in this sandbox.
    ///
    /// # Errors
    /// Why it does not work.
    pub async fn try_out(&self, sandbox: &Sandbox, kind: Kind) -> io::Result<()> {
        /// Far more than it takes.
        const PATIENCE: Duration = Duration::from_secs(10);
        if !kind.is_installed() {
            return Err(io::Error::other("it is not installed"));
        }
        let (directory, sandbox) = (Path::new("/"), Some((sandbox, kind)));
        // Do not run anything else, such as the user's startup files of bash.
        let variables = &[("BASH_ENV".into(), OsString::new())];
        let (agent, avoided) = (OsStr::new(""), &[][..]);
        let trial = CommandSpec { command: ":", directory, variables, agent, sandbox, avoided };
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

    /// The kind that a sandbox will get: the requested one, the one that works, or the best one if
    /// none was tried yet.
    pub(crate) fn likely_kind(&self, sandbox: &Sandbox) -> Kind {
        let best = || Kind::ALL.into_iter().find(|kind| kind.is_installed());
        self.kind_in_force(sandbox).or_else(best).unwrap_or(Kind::Landlock)
    }

    /// The kind of sandbox that is settled until the program ends, if any: the requested one, or
    /// that of the first command.
    pub(crate) fn kind_in_force(&self, sandbox: &Sandbox) -> Option<Kind> {
        sandbox.kind.or_else(|| self.sandbox.get().copied())
    }

    /// Settles on a kind after a command ran in it, unless one was settled before.
    pub(crate) fn settle(&self, kind: Kind) {
        let _ = self.sandbox.set(kind);
    }

    /// Prepares for commands in this sandbox, once: the first command of a process has to wait for
    /// the watchdog and for landlock rules, which take as long as bash. A trial takes that wait
    /// instead.
    pub(crate) async fn get_ready(&self, sandbox: &Sandbox) {
        let kind = self.likely_kind(sandbox);
        if kind != Kind::Landlock {
            return;
        }
        // Errors are reported by the first command.
        let ready = async || drop(self.try_out(sandbox, kind).await);
        self.ready.get_or_init(ready).await;
    }

    /// Starts a command with `bash -c`.
    pub(crate) async fn start(&self, spec: &CommandSpec<'_>) -> io::Result<RunningCommand> {
        let (sender, output) = pipe::pipe()?;
        widen(&output);
        let (mut socket, watchdogs_end) = UnixStream::pair()?;
        let fds = [sender.into_blocking_fd()?, watchdogs_end.into_std()?.into()];
        let watch = match spec.sandbox {
            Some((_, Kind::Bubblewrap)) => Watch::Namespaces,
            Some((_, Kind::Landlock)) | None => Watch::All,
        };
        self.watchdogs.hand_over(watch, &fds).await?;
        drop(fds);
        socket.write_all(&self.request(spec).encode()).await?;
        Ok(RunningCommand {
            output: CommandOutput::new(output),
            control: Control::new(socket, spec.agent.to_owned(), self.notes.clone()),
            started: Instant::now(),
            closing: self.closing.clone(),
        })
    }

    fn request(&self, spec: &CommandSpec<'_>) -> Request {
        let loaders = self.environment.iter().filter(|(name, _)| is_loaders(name));
        let writable = spec.sandbox.map(|(sandbox, _)| sandbox.write.as_slice());
        let caches = writable.map(|roots| writable_caches(&self.environment, roots));
        let caches = caches.unwrap_or_default();
        let mut variables: Variables =
            loaders.chain(&caches).chain(spec.variables).cloned().collect();
        let sandbox =
            spec.sandbox.map(|(sandbox, kind)| ResolvedSandbox { kind, sandbox: sandbox.clone() });
        let held_back: &[_] = if sandbox.is_none() { &self.held_back } else { &[] };
        let all = self.environment.iter().chain(spec.variables).chain(held_back);
        variables.extend(held_back.iter().cloned());
        variables.extend(avoiding(spec.avoided, all));
        Request {
            command: spec.command.into(),
            directory: spec.directory.into(),
            variables,
            agent: spec.agent.to_owned(),
            expected: OsString::new(),
            quarantine: self.quarantine.clone().into(),
            sandbox,
        }
    }

    /// Declares a path as written with approval until the result is dropped: changes of it are not
    /// blamed on running commands.
    pub async fn approve_write(&self, path: &Path) -> ApprovedWrite {
        self.watchdogs.approve_write(path).await
    }

    /// Which commands in bubblewrap can reach each other, as far as one was started.
    pub async fn loopback(&self) -> Loopback {
        self.watchdogs.loopback().await
    }

    /// Ends all background processes and the watchdogs.
    pub async fn close(&self) {
        self.closing.cancel();
        self.watchdogs.close().await;
    }
}

/// A small pipe slows down commands with much output: each refill costs two context switches.
fn widen(_pipe: &pipe::Receiver) {
    #[cfg(target_os = "linux")]
    {
        // The default limit for all users; if it fails, the pipe keeps its size.
        const WIDE: usize = 1024 * 1024;
        let _ = rustix::pipe::fcntl_setpipe_size(_pipe, WIDE);
    }
}
