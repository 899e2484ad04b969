//! The helper: a process that becomes bubblewrap, which puts up walls and becomes the command.
//!
//! It speaks with the watchdog over its standard input: the request comes down, with the pipe for the
//! command's output, and what goes up is a [`Report`] on whether the command was ever started. A command's
//! own exit code says nothing about that. The request may be a long time coming (see `watchdog/helpers.rs`).

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::wire::is_loaders;
use super::{Enclosure, Inherited};
use crate::watchdog::Request;

/// What the helper's own report begins with.
const FAILED: &str = "failed ";

/// A command is at most 128 KiB; what is longer than this is no request.
const LONGEST_REQUEST: u64 = 16 * 1024 * 1024;

/// Reads a request from `socket`, encloses this process, and becomes the command. Returns only when that
/// fails, having said so to the watchdog.
///
/// # Errors
/// When the request cannot be read, or the sandbox not be set up.
pub fn enter(socket: OwnedFd) -> io::Result<Infallible> {
    let mut socket = UnixStream::from(socket);
    let error = match become_command(&mut socket) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    socket.write_all(format!("{FAILED}{error}").as_bytes())?;
    Err(error)
}

fn become_command(socket: &mut UnixStream) -> io::Result<Infallible> {
    let inherited = Inherited::find()?;
    let output = receive_output(socket)?;
    let mut bytes = Vec::new();
    socket.take(LONGEST_REQUEST).read_to_end(&mut bytes)?;
    let request = Request::decode(&bytes).ok_or(io::ErrorKind::InvalidData)?;
    let enclosure = request.enclosure.as_ref().ok_or(io::ErrorKind::InvalidData)?;
    std::env::set_current_dir(&request.directory)?;
    // What is in the second half is to be open in the process that this one becomes.
    let (mut command, _fds) = enclose(enclosure, &request, socket)?;
    command.args(inherited.shell_arguments(&request.command));
    let output_twice = (output.try_clone()?, output);
    command.stdin(Stdio::null()).stdout(output_twice.0).stderr(output_twice.1);
    Err(command.exec())
}

/// Waits for a command. Whoever closes the socket before it has sent one needs no helper any more.
fn receive_output(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let received = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    received.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// What the command has in its environment beyond that of the helper. The loader's variables are not for
/// a process that is still outside.
fn own_variables(request: &Request) -> impl Iterator<Item = (&OsString, &OsString)> {
    let harmless = request.variables.iter().filter(|(name, _)| !is_loaders(name));
    harmless.map(|(name, value)| (name, value))
}

#[cfg(target_os = "linux")]
fn enclose(
    enclosure: &Enclosure,
    request: &Request,
    socket: &UnixStream,
) -> io::Result<(Command, Vec<OwnedFd>)> {
    let report = socket.try_clone()?.into();
    let call = super::bubblewrap::enclose(enclosure, &request.directory, report)?;
    #[expect(clippy::disallowed_methods, reason = "this process becomes the command")]
    let mut command = Command::new(call.program);
    command.args(&call.arguments).arg("bash").envs(own_variables(request));
    Ok((command, call.fds))
}

#[cfg(not(target_os = "linux"))]
fn enclose(
    _enclosure: &Enclosure,
    _request: &Request,
    _socket: &UnixStream,
) -> io::Result<(Command, Vec<OwnedFd>)> {
    Err(io::Error::other("there is no sandbox for this system"))
}

/// What has come up from the helper when it, or what it became, has ended.
#[derive(Debug)]
pub(crate) struct Report<'a>(pub(crate) &'a [u8]);

impl Report<'_> {
    /// Why the command was not even started, although a process ran and ended by itself.
    pub(crate) fn failure(&self) -> Option<String> {
        let text = String::from_utf8_lossy(self.0);
        if let Some(reason) = text.strip_prefix(FAILED) {
            return Some(reason.to_owned());
        }
        // Bubblewrap tells of an exit code only when there was a command that could have one.
        let began = text.contains("\"exit-code\"");
        (!began).then(|| "bubblewrap could not set up the sandbox".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::Report;

    #[track_caller]
    fn check(bytes: &str, expected: Option<&str>) {
        let failure = Report(bytes.as_bytes()).failure();
        assert_eq!(failure.as_deref(), expected, "{bytes:?}");
    }

    #[test]
    fn a_command_that_failed_is_told_from_one_that_never_began() {
        let no_exit_code = Some("bubblewrap could not set up the sandbox");
        check("{ \"child-pid\": 7 }\n{ \"exit-code\": 1 }\n", None);
        check("{ \"child-pid\": 7 }\n", no_exit_code);
        check("", no_exit_code);
        check("failed not installed", Some("not installed"));
    }
}
