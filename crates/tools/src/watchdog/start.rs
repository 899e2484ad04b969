//! Starting a command, as it is or behind walls.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use rustix::process::Pid;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::groups::{Group, Sessions};
use super::wire::{Request, Status};
use crate::sandbox::{Enclosure, Kind, Report};

/// What comes before a command. Without the dashes, one that begins with a dash would be taken for an option.
pub(crate) const SHELL_OPTIONS: [&str; 2] = ["-c", "--"];

/// The program and its argument that [`enter_sandbox`](crate::enter_sandbox): this same program, told to.
#[derive(Debug, Clone)]
pub struct Helper {
    /// Its file.
    pub program: PathBuf,
    /// What it is told.
    pub argument: OsString,
}

/// A command that runs.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) group: Group,
    /// What its helper says comes out of here.
    helper: Option<(Kind, UnixStream)>,
}

impl Started {
    /// Starts what is asked for; its output goes to `output`.
    pub(super) async fn new(
        request: &Request,
        helper: &Helper,
        output: OwnedFd,
    ) -> io::Result<Started> {
        let (mut command, link) = match &request.enclosure {
            None => (shell(request), None),
            Some(enclosure) => {
                let (command, socket) = enclosed(enclosure, helper)?;
                (command, Some((enclosure.kind, socket)))
            }
        };
        let child = command
            .current_dir(&request.directory)
            .stdout(Stdio::from(output.try_clone()?))
            .stderr(Stdio::from(output))
            .process_group(0)
            .spawn()?;
        // It holds the helper's end of the socket.
        drop(command);
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let id = id.ok_or_else(|| io::Error::other("the command has no process number"))?;
        let mut started = Started { child, group: Group(id), helper: link };
        started.tell_helper(request).await;
        Ok(started)
    }

    async fn tell_helper(&mut self, request: &Request) {
        if let Some((_, socket)) = &mut self.helper {
            // A helper that is gone already says more by its end than an error here could.
            let _ = socket.write_all(&request.encode()).await;
            let _ = socket.shutdown().await;
        }
    }

    /// The groups of what the command has begun, its own left out.
    pub(super) fn groups_below(&self) -> Vec<Group> {
        let sessions = match self.helper {
            Some((Kind::Bubblewrap, _)) => Sessions::Any,
            Some((Kind::Landlock, _)) | None => Sessions::Own,
        };
        Group::below(self.group.0, sessions)
    }

    /// What the end of the process says about the command.
    pub(super) fn status(&self, ended: ExitStatus) -> Status {
        /// Longer than any report.
        const LIMIT: usize = 4_096;
        let Some((kind, socket)) = &self.helper else { return ended.into() };
        let mut bytes = [0; LIMIT];
        let length = rustix::io::read(socket, &mut bytes).unwrap_or(0);
        let report = Report { kind: *kind, bytes: &bytes[..length] };
        match report.failure() {
            // A signal came from outside, or from us: there is nothing to be told apart.
            Some(reason) if ended.code().is_some() => Status::NotStarted(reason),
            _ => ended.into(),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the place where commands are started")]
fn shell(request: &Request) -> Command {
    let mut command = Command::new("bash");
    command.args(SHELL_OPTIONS).arg(&request.command).stdin(Stdio::null());
    command
}

/// The helper, with our end of the socket that is its standard input.
#[expect(clippy::disallowed_methods, reason = "this is the place where commands are started")]
fn enclosed(enclosure: &Enclosure, helper: &Helper) -> io::Result<(Command, UnixStream)> {
    let (socket, helpers_end) = StdUnixStream::pair()?;
    socket.set_nonblocking(true)?;
    let mut command = Command::new(&helper.program);
    command.arg(&helper.argument).stdin(Stdio::from(OwnedFd::from(helpers_end)));
    for (name, _) in &enclosure.loader {
        command.env_remove(name);
    }
    Ok((command, UnixStream::from_std(socket)?))
}
