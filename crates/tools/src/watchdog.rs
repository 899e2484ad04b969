//! The watchdog: a small process that starts commands for the program, and ends them when the program is
//! gone, also by kill -9.
//!
//! It has the environment of the commands and no secret in its memory. It is the leader of a session of
//! its own without a terminal: Ctrl-C does not reach it, and a command that wants to ask for a password
//! fails at once instead of waiting. Each command is the leader of a process group; groups that its own
//! children make for themselves are found and ended too.
//!
//! A command's control socket is its life line: when the other end closes, its group is ended. So
//! nothing has to be registered, and there is no moment in which a command runs unwatched.
#[cfg(target_os = "linux")]
mod covers;
#[cfg(target_os = "linux")]
mod enclosed;
mod groups;
#[cfg(target_os = "linux")]
mod networks;
mod protecting;
mod spawning;
mod start;
mod wire;

use std::ffi::OsStr;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::ExitStatus;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Signal, WaitOptions, getpid, kill_process, setsid, wait};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use groups::{Group, Sessions};
use protecting::{Beside, Keeper, Protecting};
use start::{Started, Starter};
use wire::encode_note;

use crate::notes::Note;
pub use wire::Approved;
pub(crate) use wire::{Request, STATUS_LIMIT, Status, decode_note};

/// Sent down a control socket: end the command.
pub(crate) const END: u8 = b'.';
/// Sent up the watchdog's own socket: it is ready, and has what it was to have.
pub(crate) const READY: u8 = b'!';
/// How long a group that was told to end may take before it is killed.
pub(crate) const GRACE: Duration = Duration::from_secs(1);
/// Between two looks at a group that is ending.
const LOOK: Duration = Duration::from_millis(5);
/// Between two looks at a group that goes on in the background. A process number could only be used
/// again, by a stranger, within one such pause.
const BACKGROUND_LOOK: Duration = Duration::from_secs(1);

/// Between two checks of protected paths beside a command in the background.
const BETWEEN_CHECKS: Duration = Duration::from_secs(2);

/// How long what does not want to end is hunted. Nobody waits for longer at the end of the program.
const LONGEST_HUNT: Duration = Duration::from_secs(5);

/// Which commands a watchdog is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// All of them.
    All,
    /// Those in bubblewrap: it has a user namespace of its own, in which it makes their networks. It says by a byte
    /// that it could.
    Namespaces,
}

impl Watch {
    const NAMESPACES: &str = "namespaces";

    /// How the program says it to the watchdog.
    pub(crate) fn argument(self) -> Option<&'static str> {
        match self {
            Watch::All => None,
            Watch::Namespaces => Some(Watch::NAMESPACES),
        }
    }

    /// Reads the argument behind the one that makes a process a watchdog.
    pub fn parse(argument: Option<&OsStr>) -> Watch {
        match argument {
            Some(argument) if argument == Watch::NAMESPACES => Watch::Namespaces,
            _ => Watch::All,
        }
    }
}

/// Serves commands until the program at the other end of `socket` closes it, then ends what is left.
///
/// # Errors
/// When the runtime or the socket cannot be set up.
pub fn serve(socket: OwnedFd, watch: Watch) -> io::Result<()> {
    keep_to_ourselves();
    #[cfg(target_os = "linux")]
    if watch == Watch::Namespaces {
        networks::enter_user_namespace()?;
        rustix::io::write(&socket, &[READY])?;
    }
    let starter = Rc::new(Starter::new(watch));
    let protecting = Rc::new(Protecting::default());
    // Fails when this already leads a session, which is as good.
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
        // An error is as good as the program's end: nobody will ever ask for anything again.
        while let Ok(Some((output, control))) = receive_fds(&socket).await {
            commands.spawn_local(follow(
                Rc::clone(&starter),
                Rc::clone(&protecting),
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

/// Whoever started the program may have left something open for it. No command gets it: an open folder leads around
/// every wall that is about paths.
fn keep_to_ourselves() {
    /// Behind the three that a command has of its own.
    const FIRST: i32 = 3;
    close_fds::set_fds_cloexec(FIRST, &[]);
}

/// Lives on when somebody ends "all of ikigai", or a command tries to end its parent: whoever ends the
/// program ends us by that. The signals are caught, not ignored, since a command would inherit that.
fn ignore_signals() -> io::Result<Vec<tokio::signal::unix::Signal>> {
    [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()]
        .into_iter()
        .map(signal)
        .collect()
}

/// What a command leaves in the background becomes our child when the command ends, so that we and not
/// some slow init take notice of its end.
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

/// The life of one command, from its request to the end of all that it started.
async fn follow(
    starter: Rc<Starter>,
    protecting: Rc<Protecting>,
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
        protecting.expect(request.expected.into(), writing).await;
        return Ok(());
    }
    let start = async {
        let _starting = protecting.starting().await;
        // The sandbox is set up while protected paths are recorded. The command itself starts only after that.
        let (recorded, cleared) = mpsc::channel();
        let record = async {
            let beside = protecting.begin(&request).await?;
            let _ = recorded.send(());
            Ok(beside)
        };
        let (beside, command) = tokio::try_join!(record, starter.start(&request, output, cleared))?;
        Ok((command, beside))
    };
    let started = tokio::select! {
        started = start => started,
        () = told_to_end(&mut control) => Err(io::Error::other("it was ended before it began")),
    };
    match started {
        Ok((command, beside)) => {
            let mut followed = Followed { control, protecting, command, beside };
            followed.until_group_is_gone().await?;
            followed.until_strays_are_gone(&starter).await;
            Ok(())
        }
        Err(error) => control.write_all(&Status::NotStarted(error.to_string()).encode()).await,
    }
}

/// A command that was started.
struct Followed {
    control: UnixStream,
    protecting: Rc<Protecting>,
    command: Started,
    beside: Option<Beside>,
}

impl Followed {
    /// Waits for the command's own end and reports it, then for the end of its group.
    async fn until_group_is_gone(&mut self) -> io::Result<()> {
        let _running = self.protecting.note_running(self.command.group);
        let status = tokio::select! {
            status = self.command.child.wait() => status?,
            () = told_to_end(&mut self.control) => end(&mut self.command).await?,
        };
        let is_deserted = self.command.is_deserted();
        self.tell_of_protected().await;
        // Fails when the program is gone; what is left of the group is ended all the same.
        let _ = self.control.write_all(&self.command.status(status).encode()).await;
        // Most groups are gone a moment after their leader.
        let (mut pause, mut checked) = (LOOK, Instant::now());
        while self.command.group.is_alive() {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = told_to_end(&mut self.control) => {
                    end(&mut self.command).await?;
                }
            }
            pause = BACKGROUND_LOOK.min(2 * pause);
            // What the user does after the end of a command that left nothing is none of its changes.
            let is_last = !is_deserted && !self.command.group.is_alive();
            if checked.elapsed() >= BETWEEN_CHECKS || is_last {
                self.tell_of_protected().await;
                checked = Instant::now();
            }
        }
        Ok(())
    }

    /// Waits for processes that have left the groups of commands in landlock.
    async fn until_strays_are_gone(&mut self, starter: &Starter) {
        let can_be_left = self.beside.as_ref().is_some_and(Beside::can_be_left);
        let Some(keeper) = can_be_left.then(|| self.protecting.keep()).flatten() else { return };
        while !keeper.has_none() {
            tokio::select! {
                () = tokio::time::sleep(BETWEEN_CHECKS) => {}
                () = told_to_end(&mut self.control) => end_strays(starter, &keeper).await,
            }
            self.tell_of_protected().await;
        }
        // What the last one did before it ended.
        self.tell_of_protected().await;
    }

    /// Checks protected paths, and says what was done about them.
    async fn tell_of_protected(&mut self) {
        let Some(beside) = &self.beside else { return };
        let checking = self.protecting.checking().await;
        let mut notes = beside.check(self.command.read_only()).await;
        drop(checking);
        notes.extend(self.command.take_reason().map(|text| Note { id: None, text }));
        for note in notes {
            // Also when the program is gone, all is checked.
            let _ = self.control.write_all(&encode_note(&note)).await;
        }
    }
}

/// Ends what has left the groups of commands in landlock: politely, then for good. A chain of processes, each of which
/// only starts the next one, has to be hit between two of them.
async fn end_strays(starter: &Starter, keeper: &Keeper) {
    for stray in keeper.strays() {
        let _ = kill_process(stray, Signal::TERM);
        let _ = kill_process(stray, Signal::CONT);
    }
    let all_gone = async {
        while !keeper.has_none() {
            tokio::time::sleep(LOOK).await;
        }
    };
    let _ = tokio::time::timeout(GRACE, all_gone).await;
    let begun = Instant::now();
    while !keeper.has_none() && begun.elapsed() < LONGEST_HUNT {
        for stray in keeper.strays() {
            let _ = kill_process(stray, Signal::KILL);
        }
        starter.reap_orphans();
        tokio::task::yield_now().await;
    }
}

/// Returns when the program asks for the end, or is gone.
async fn told_to_end(control: &mut UnixStream) {
    let _ = control.read_u8().await;
}

/// Ends all of a command: politely, then for good. The leader's status is that of its end.
async fn end(command: &mut Started) -> io::Result<ExitStatus> {
    let mut groups = command.groups_below();
    groups.push(command.group);
    tell_to_end(&groups);
    let all_gone = async {
        let status = command.child.wait().await;
        until_gone(&groups).await;
        status
    };
    if let Ok(status) = tokio::time::timeout(GRACE, all_gone).await {
        return status;
    }
    groups.extend(command.groups_below());
    groups.iter().for_each(|group| group.signal(Signal::KILL));
    command.child.wait().await
}

/// Ends what left the group of a command that has ended before, when the program is gone.
async fn end_rest() {
    if has_no_children() {
        return;
    }
    let groups = Group::below(getpid(), Sessions::Own);
    tell_to_end(&groups);
    let _ = tokio::time::timeout(GRACE, until_gone(&groups)).await;
    Group::below(getpid(), Sessions::Own).iter().for_each(|group| group.signal(Signal::KILL));
}

/// The usual case, seen without looking at every process of the machine.
fn has_no_children() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

fn tell_to_end(groups: &[Group]) {
    for group in groups {
        group.signal(Signal::TERM);
        // A stopped process would not notice.
        group.signal(Signal::CONT);
    }
}

async fn until_gone(groups: &[Group]) {
    while groups.iter().any(|group| group.is_alive()) {
        tokio::time::sleep(LOOK).await;
    }
}
