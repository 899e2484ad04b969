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

use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{
    Pid, Signal, WaitOptions, getpgid, getpid, getsid, kill_process_group, setsid,
    test_kill_process_group, wait, waitpgid,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

/// Sent down a control socket: end the command.
pub(crate) const END: u8 = b'.';
/// How long a group that was told to end may take before it is killed.
pub(crate) const END_OF_GRACE: Duration = Duration::from_secs(1);
/// Between two looks at a group that is ending.
const LOOK: Duration = Duration::from_millis(5);
/// Between two looks at a group that goes on in the background. A process number could only be used
/// again, by a stranger, within one such pause.
const BACKGROUND_LOOK: Duration = Duration::from_secs(1);

/// Serves commands until the program at the other end of `socket` closes it, then ends what is left.
///
/// # Errors
/// When the runtime or the socket cannot be set up.
pub fn serve(socket: OwnedFd) -> io::Result<()> {
    // Fails when this already leads a session, which is as good.
    let _ = setsid();
    adopt_orphans();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let socket = StdUnixStream::from(socket);
        socket.set_nonblocking(true)?;
        let socket = UnixStream::from_std(socket)?;
        let mut commands = JoinSet::new();
        while let Some((output, control)) = receive_fds(&socket).await? {
            commands.spawn(watch(output, control));
            while commands.try_join_next().is_some() {}
        }
        while commands.join_next().await.is_some() {}
        end_rest().await;
        Ok(())
    })
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

/// The life of one command, from its request to the end of its group.
async fn watch(output: OwnedFd, control: OwnedFd) -> io::Result<()> {
    let control = StdUnixStream::from(control);
    control.set_nonblocking(true)?;
    let mut control = UnixStream::from_std(control)?;
    let request = Request::read(&mut control).await?;
    let (mut child, group) = match start(request, output) {
        Ok(started) => started,
        Err(error) => {
            return control.write_all(&Status::NotStarted(error.to_string()).encode()).await;
        }
    };
    let status = tokio::select! {
        status = child.wait() => status?,
        () = told_to_end(&mut control) => end(group, &mut child).await?,
    };
    // Fails when the program is gone; what is left of the group is ended all the same.
    let _ = control.write_all(&Status::from(status).encode()).await;
    while group.is_alive() {
        tokio::select! {
            () = tokio::time::sleep(BACKGROUND_LOOK) => {}
            () = told_to_end(&mut control) => {
                end(group, &mut child).await?;
            }
        }
    }
    Ok(())
}

fn start(request: Request, output: OwnedFd) -> io::Result<(Child, Group)> {
    #[expect(clippy::disallowed_methods, reason = "this is the place where commands are started")]
    let child = Command::new("bash")
        .arg("-c")
        .arg(request.command)
        .current_dir(request.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::from(output.try_clone()?))
        .stderr(Stdio::from(output))
        .process_group(0)
        .spawn()?;
    let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let id = id.ok_or_else(|| io::Error::other("the command has no process number"))?;
    Ok((child, Group(id)))
}

/// Returns when the program asks for the end, or is gone.
async fn told_to_end(control: &mut UnixStream) {
    let _ = control.read_u8().await;
}

/// Ends all of a command: politely, then for good. The leader's status is that of its end.
async fn end(group: Group, child: &mut Child) -> io::Result<ExitStatus> {
    let mut groups = Group::below(group.0);
    groups.push(group);
    tell_to_end(&groups);
    let all_gone = async {
        let status = child.wait().await;
        until_gone(&groups).await;
        status
    };
    if let Ok(status) = tokio::time::timeout(END_OF_GRACE, all_gone).await {
        return status;
    }
    groups.extend(Group::below(group.0));
    groups.iter().for_each(|group| group.signal(Signal::KILL));
    child.wait().await
}

/// Ends what left the group of a command that has ended before, when the program is gone.
async fn end_rest() {
    if has_no_children() {
        return;
    }
    let groups = Group::below(getpid());
    tell_to_end(&groups);
    let _ = tokio::time::timeout(END_OF_GRACE, until_gone(&groups)).await;
    Group::below(getpid()).iter().for_each(|group| group.signal(Signal::KILL));
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

/// The process group of a command.
#[derive(Debug, Clone, Copy)]
struct Group(Pid);

impl Group {
    /// The groups of all processes below `ancestor`, its own left out: timeout(1) and shells with job
    /// control make groups of their own. A daemon that made itself a session is not among them.
    fn below(ancestor: Pid) -> Vec<Group> {
        let (Ok(session), own) = (getsid(None), getpgid(Some(ancestor)).ok()) else {
            return Vec::new();
        };
        let processes = processes();
        let mut below = vec![ancestor];
        let mut groups: Vec<Group> = Vec::new();
        let mut next = 0;
        while let Some(&parent) = below.get(next) {
            for process in processes.iter().filter(|process| process.parent == Some(parent)) {
                below.push(process.id);
                let is_new = !groups.iter().any(|group| group.0 == process.group);
                if process.session == session && Some(process.group) != own && is_new {
                    groups.push(Group(process.group));
                }
            }
            next += 1;
        }
        groups
    }

    /// Whether anything of it is left. A stranger's group that got the same number does not count: it is
    /// in another session.
    ///
    /// Only to be asked after the leader's own end was noticed: it takes in all other ends.
    fn is_alive(self) -> bool {
        while let Ok(Some(_)) = waitpgid(self.0, WaitOptions::NOHANG) {}
        let is_strange = getsid(Some(self.0)).is_ok_and(|session| Ok(session) != getsid(None));
        !is_strange && test_kill_process_group(self.0).is_ok()
    }

    fn signal(self, signal: Signal) {
        // It may be gone by now.
        let _ = kill_process_group(self.0, signal);
    }
}

/// A process as the system lists it.
#[derive(Debug, PartialEq)]
struct Process {
    id: Pid,
    parent: Option<Pid>,
    group: Pid,
    session: Pid,
}

/// All processes; none where there is no /proc.
fn processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let stats = entries.filter_map(|entry| std::fs::read(entry.ok()?.path().join("stat")).ok());
    stats.filter_map(|stat| Process::parse_stat(&String::from_utf8_lossy(&stat))).collect()
}

impl Process {
    /// Reads `number (name) state parent group session …`; the name may hold anything.
    fn parse_stat(stat: &str) -> Option<Process> {
        let (id, _) = stat.split_once(" (")?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ').skip(1);
        let mut number = || Pid::from_raw(fields.next()?.parse().ok()?);
        let id = Pid::from_raw(id.parse().ok()?)?;
        let parent = number();
        Some(Process { id, parent, group: number()?, session: number()? })
    }
}

/// What the program asks for, sent down the control socket of the command.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) command: OsString,
    pub(crate) directory: OsString,
}

impl Request {
    /// Each field with its length before it.
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for field in [self.command.into_vec(), self.directory.into_vec()] {
            bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
            bytes.extend_from_slice(&field);
        }
        bytes
    }

    async fn read(control: &mut UnixStream) -> io::Result<Request> {
        Ok(Request { command: read_field(control).await?, directory: read_field(control).await? })
    }
}

async fn read_field(control: &mut UnixStream) -> io::Result<OsString> {
    let length = control.read_u64_le().await?;
    let mut field = Vec::new();
    control.take(length).read_to_end(&mut field).await?;
    if field.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(OsString::from_vec(field))
}

/// How a command ended, sent up its control socket as a line.
#[derive(Debug, PartialEq)]
pub(crate) enum Status {
    Exited(i32),
    Killed(i32),
    NotStarted(String),
}

/// No status line is longer.
pub(crate) const STATUS_LIMIT: usize = 1_024;

impl Status {
    fn encode(&self) -> Vec<u8> {
        let mut line = match self {
            Status::Exited(code) => format!("exited {code}"),
            Status::Killed(signal) => format!("killed {signal}"),
            Status::NotStarted(reason) => format!("failed {}", reason.replace('\n', " ")),
        };
        line.truncate(line.floor_char_boundary(STATUS_LIMIT - 1));
        line.push('\n');
        line.into_bytes()
    }

    /// `None` while the line is not complete.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Status> {
        let line = String::from_utf8_lossy(bytes.strip_suffix(b"\n")?);
        let (word, rest) = line.split_once(' ')?;
        match word {
            "exited" => rest.parse().ok().map(Status::Exited),
            "killed" => rest.parse().ok().map(Status::Killed),
            "failed" => Some(Status::NotStarted(rest.to_owned())),
            _ => None,
        }
    }
}

impl From<ExitStatus> for Status {
    fn from(status: ExitStatus) -> Status {
        match (status.code(), status.signal()) {
            (Some(code), _) => Status::Exited(code),
            (None, signal) => Status::Killed(signal.unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use rustix::process::Pid;
    use tokio::io::AsyncWriteExt;
    use tokio::net::UnixStream;

    use super::{Process, Request, STATUS_LIMIT, Status};

    /// What the watchdog makes of the bytes that come down a control socket.
    fn received(bytes: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut program, mut watchdog) = UnixStream::pair().unwrap();
            let send = async {
                program.write_all(bytes).await.unwrap();
                drop(program);
            };
            let ((), request) = tokio::join!(send, Request::read(&mut watchdog));
            request.ok().map(|request| (request.command.into_vec(), request.directory.into_vec()))
        })
    }

    fn request(command: &[u8], directory: &[u8]) -> Vec<u8> {
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Request { command: text(command), directory: text(directory) }.encode()
    }

    #[test]
    fn a_request_arrives_as_it_was_sent() {
        #[track_caller]
        fn check(command: &[u8], directory: &[u8]) {
            let expected = Some((command.to_vec(), directory.to_vec()));
            assert!(received(&request(command, directory)) == expected);
        }
        check(b"", b"");
        check(b"echo 'a\nb' \"$x\"", b"/tmp");
        check(b"\xff\xfe", b"/caf\xe9");
        check(&[b'x'; 500_000], &[b'/'; 5_000]);
    }

    #[test]
    fn a_request_that_breaks_off_is_none() {
        let whole = request(b"echo", b"/tmp");
        for length in 0..whole.len() {
            assert!(received(&whole[..length]).is_none(), "{length} bytes");
        }
        assert!(received(&u64::MAX.to_le_bytes()).is_none());
    }

    #[test]
    fn a_status_arrives_as_it_was_sent() {
        for status in [
            Status::Exited(0),
            Status::Exited(255),
            Status::Killed(9),
            Status::NotStarted(String::new()),
            Status::NotStarted("No such file or directory (os error 2)".to_owned()),
        ] {
            let line = status.encode();
            assert_eq!(Status::decode(&line), Some(status));
            for length in 0..line.len() {
                assert_eq!(Status::decode(&line[..length]), None);
            }
        }
    }

    #[test]
    fn a_status_is_one_line_within_its_limit() {
        for reason in ["two\nlines".to_owned(), "ä".repeat(5_000), "\n".repeat(5_000)] {
            let line = Status::NotStarted(reason).encode();
            assert!(line.len() <= STATUS_LIMIT, "{} bytes", line.len());
            assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
            assert!(matches!(Status::decode(&line), Some(Status::NotStarted(_))));
        }
    }

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let pid = |number| Pid::from_raw(number).unwrap();
        let process = |parent| Process { id: pid(7), parent, group: pid(5), session: pid(4) };
        for (stat, expected) in [
            ("7 (sleep) S 6 5 4 0 -1", Some(process(Some(pid(6))))),
            ("7 (a) S 1 2 3) b (c) S 6 5 4 0 -1", Some(process(Some(pid(6))))),
            // The first process of a container has no parent.
            ("7 (init) S 0 5 4 0 -1", Some(process(None))),
            // Threads of the kernel have no group.
            ("2 (kthreadd) S 0 0 0 0 -1", None),
            ("7 (sleep", None),
            ("", None),
        ] {
            assert_eq!(Process::parse_stat(stat), expected, "{stat}");
        }
    }

    #[test]
    fn an_end_is_an_exit_or_a_signal() {
        assert_eq!(Status::from(ExitStatus::from_raw(3 << 8)), Status::Exited(3));
        assert_eq!(Status::from(ExitStatus::from_raw(9)), Status::Killed(9));
        assert_eq!(Status::from(ExitStatus::from_raw(11 | 0x80)), Status::Killed(11));
    }
}
