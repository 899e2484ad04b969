//! The watchdog: a small process that starts commands for the program, and ends them when the
//! program is gone, even after kill -9.
//!
//! It has the environment of the commands and no secrets in its memory. It leads a separate session
//! without a terminal: Ctrl-C does not reach it, and a command that asks for a password fails at
//! once instead of waiting. Each command leads a process group. Groups that its children create are
//! found and ended as well.
//!
//! A command's lifetime is tied to its control socket: when the program's end closes, the command
//! is ended. So no registration is needed, and a command is supervised from its first moment.
#[cfg(target_os = "linux")]
mod covers;
mod ending;
mod groups;
#[cfg(target_os = "linux")]
mod networks;
mod protection;
#[cfg(target_os = "linux")]
mod sandboxed;
mod spawner;
mod start;
mod wire;

use std::cell::Cell;
use std::ffi::OsStr;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::setsid;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use ending::{end, end_rest, end_strays};
use protection::{CommandProtection, Protection};
use start::{StartedCommand, Starter};
use wire::encode_note;

use crate::notes::Note;
pub use wire::Approved;
pub(crate) use wire::{Request, STATUS_LIMIT, Status, decode_note};

/// Sent through a control socket: end the command.
pub(crate) const END: u8 = b'.';
/// The same: check protected paths while the command runs.
pub(crate) const CHECK_MEANWHILE: u8 = b'c';
/// Sent through the watchdog's own socket: it is ready.
pub(crate) const READY: u8 = b'!';
/// How long a process group may take to end on SIGTERM before it is killed.
pub(crate) const GRACE: Duration = Duration::from_secs(1);
/// How often a group that is ending is polled.
const LOOK: Duration = Duration::from_millis(5);
/// How often a background group is polled. Only within one such interval could its number be reused
/// by another process.
const BACKGROUND_LOOK: Duration = Duration::from_secs(1);

/// The interval between checks of protected paths while a command is in the background.
const BETWEEN_CHECKS: Duration = Duration::from_secs(2);

/// Which commands a watchdog serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// All commands.
    All,
    /// Commands in bubblewrap. The watchdog enters its own user namespace to create networks, and
    /// reports with a byte that this worked.
    Namespaces,
}

impl Watch {
    const NAMESPACES: &str = "namespaces";

    /// The argument that requests this watchdog.
    pub(crate) fn argument(self) -> Option<&'static str> {
        match self {
            Watch::All => None,
            Watch::Namespaces => Some(Watch::NAMESPACES),
        }
    }

    /// Parses the argument after the one that turns a process into a watchdog.
    pub fn parse(argument: Option<&OsStr>) -> Watch {
        match argument {
            Some(argument) if argument == Watch::NAMESPACES => Watch::Namespaces,
            _ => Watch::All,
        }
    }
}

/// Serves commands until the program closes the other end of `socket`, then ends what is left.
///
/// # Errors
/// If the runtime or the socket cannot be set up.
pub fn serve(socket: OwnedFd, watch: Watch) -> io::Result<()> {
    keep_to_ourselves();
    #[cfg(target_os = "linux")]
    if watch == Watch::Namespaces {
        networks::enter_user_namespace()?;
        rustix::io::write(&socket, &[READY])?;
    }
    let starter = Rc::new(Starter::new(watch));
    let protection = Rc::new(Protection::default());
    // Fails if this process is a session leader already, which is fine.
    let _ = setsid();
    adopt_orphans();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let reaping = Rc::clone(&starter);
        let mut ends = signal(SignalKind::child())?;
        let _reaping = tokio::task::spawn_local(async move {
            while ends.recv().await.is_some() {
                reaping.reap_orphans();
            }
        });
        let socket = StdUnixStream::from(socket);
        socket.set_nonblocking(true)?;
        let socket = UnixStream::from_std(socket)?;
        let _ignored = ignore_signals()?;
        let mut commands = JoinSet::new();
        // An error means that the program is gone: no more requests can arrive.
        while let Ok(Some((output, control))) = receive_fds(&socket).await {
            commands.spawn_local(follow(
                Rc::clone(&starter),
                Rc::clone(&protection),
                output,
                control,
            ));
            while commands.try_join_next().is_some() {}
        }
        while commands.join_next().await.is_some() {}
        starter.close();
        end_rest().await;
        Ok(())
    })
}

/// Marks inherited file descriptors as close-on-exec. A command must not get them: an open folder
/// bypasses all rules about paths.
fn keep_to_ourselves() {
    /// After stdin, stdout and stderr.
    const FIRST: i32 = 3;
    close_fds::set_fds_cloexec(FIRST, &[]);
}

/// Survives a `pkill ikigai` and a command that signals its parent: the end of the program ends the
/// watchdog. The signals are caught rather than ignored, since commands would inherit that.
fn ignore_signals() -> io::Result<Vec<tokio::signal::unix::Signal>> {
    [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()]
        .into_iter()
        .map(signal)
        .collect()
}

/// Makes background processes our children when their command ends, so that their end is noticed
/// here and not by a slow init.
fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
}

/// The two file descriptors of the next command; `None` when the program is gone.
async fn receive_fds(socket: &UnixStream) -> io::Result<Option<(OwnedFd, OwnedFd)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    loop {
        let mut fds: Vec<OwnedFd> = Vec::new();
        let received = socket
            .async_io(Interest::READABLE, || {
                let mut ancillary = RecvAncillaryBuffer::new(&mut space);
                let mut byte = [0];
                let flags = RecvFlags::CMSG_CLOEXEC;
                let bytes =
                    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags)?
                        .bytes;
                for message in ancillary.drain() {
                    if let RecvAncillaryMessage::ScmRights(received) = message {
                        fds.extend(received);
                    }
                }
                Ok(bytes)
            })
            .await?;
        if received == 0 {
            return Ok(None);
        }
        if let Ok([output, control]) = <[OwnedFd; 2]>::try_from(fds) {
            return Ok(Some((output, control)));
        }
    }
}

/// Supervises one command, from its request until all its processes have ended.
async fn follow(
    starter: Rc<Starter>,
    protection: Rc<Protection>,
    output: OwnedFd,
    control: OwnedFd,
) -> io::Result<()> {
    let control = StdUnixStream::from(control);
    control.set_nonblocking(true)?;
    let mut control = UnixStream::from_std(control)?;
    let request = Request::read(&mut control).await?;
    if !request.expected.is_empty() {
        control.write_all(&[READY]).await?;
        let writing = Approved::read(&mut control);
        protection.expect(request.expected.into(), writing).await;
        return Ok(());
    }
    let checks_meanwhile = Cell::new(false);
    let start = async {
        let _starting = protection.starting().await;
        // The sandbox is set up while the protected paths are recorded. The command starts only
        // after both.
        let (recorded, cleared) = mpsc::channel();
        let record = async {
            let guarded = protection.guard_command(&request).await?;
            let _ = recorded.send(());
            Ok(guarded)
        };
        let (guarded, command) =
            tokio::try_join!(record, starter.start(&request, output, cleared))?;
        Ok((command, guarded))
    };
    let started = tokio::select! {
        started = start => started,
        () = end_requested(&mut control, &checks_meanwhile) => {
            Err(io::Error::other("it was ended before it started"))
        }
    };
    match started {
        Ok((command, guarded)) => {
            let mut supervised =
                SupervisedCommand { control, protection, command, guarded, checks_meanwhile };
            supervised.until_group_is_gone().await?;
            supervised.until_strays_are_gone(&starter).await;
            Ok(())
        }
        Err(error) => control.write_all(&Status::NotStarted(error.to_string()).encode()).await,
    }
}

/// A command under supervision.
struct SupervisedCommand {
    control: UnixStream,
    protection: Rc<Protection>,
    command: StartedCommand,
    guarded: Option<CommandProtection>,
    /// Whether protected paths are checked while it runs.
    checks_meanwhile: Cell<bool>,
}

impl SupervisedCommand {
    /// Waits for the command and reports its status, then waits for the rest of its group.
    async fn until_group_is_gone(&mut self) -> io::Result<()> {
        let _running = self.protection.note_running(self.command.group);
        let status = loop {
            tokio::select! {
                status = self.command.child.wait() => break status?,
                () = end_requested(&mut self.control, &self.checks_meanwhile) => {
                    break end(&mut self.command).await?;
                }
                () = tokio::time::sleep(BETWEEN_CHECKS) => {}
            }
            if self.checks_meanwhile.get() {
                self.report_protected().await;
            }
        };
        let is_deserted = self.command.is_deserted();
        self.report_protected().await;
        // Fails when the program is gone; the rest of the group is ended anyway.
        let _ = self.control.write_all(&self.command.status(status).encode()).await;
        // Most groups end right after their leader.
        let (mut pause, mut checked) = (LOOK, Instant::now());
        while self.command.group.is_alive() {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = end_requested(&mut self.control, &self.checks_meanwhile) => {
                    end(&mut self.command).await?;
                }
            }
            pause = BACKGROUND_LOOK.min(2 * pause);
            // If the command left no processes, later changes are the user's.
            let is_last = !is_deserted && !self.command.group.is_alive();
            if checked.elapsed() >= BETWEEN_CHECKS || is_last {
                self.report_protected().await;
                checked = Instant::now();
            }
        }
        Ok(())
    }

    /// Waits for processes that have left the groups of landlock commands.
    async fn until_strays_are_gone(&mut self, starter: &Starter) {
        let can_be_left = self.guarded.as_ref().is_some_and(CommandProtection::can_be_left);
        let Some(strays_watch) = can_be_left.then(|| self.protection.keep()).flatten() else {
            return;
        };
        while !strays_watch.has_none() {
            tokio::select! {
                () = tokio::time::sleep(BETWEEN_CHECKS) => {}
                () = end_requested(&mut self.control, &self.checks_meanwhile) => {
                    end_strays(starter, &strays_watch).await;
                }
            }
            self.report_protected().await;
        }
        // Checks what the last of them did.
        self.report_protected().await;
    }

    /// Checks protected paths and reports what was done about them.
    async fn report_protected(&mut self) {
        let Some(guarded) = &self.guarded else { return };
        let checking = self.protection.checking().await;
        let mut notes = guarded.check(self.command.read_only()).await;
        drop(checking);
        notes.extend(self.command.take_reason().map(|text| Note { id: None, text }));
        for note in notes {
            // The check has run even if the program is gone.
            let _ = self.control.write_all(&encode_note(&note)).await;
        }
    }
}

/// Returns when the program asks to end the command, or is gone. Notes whether it wants checks
/// meanwhile.
async fn end_requested(control: &mut UnixStream, checks_meanwhile: &Cell<bool>) {
    while let Ok(CHECK_MEANWHILE) = control.read_u8().await {
        checks_meanwhile.set(true);
    }
}
