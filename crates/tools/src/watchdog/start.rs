//! Starting a command, as it is or behind walls.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};

use rustix::process::Pid;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::groups::{Group, Sessions};
use super::helpers::Helpers;
use super::wire::{Request, Status};
use crate::sandbox::{Kind, Report};

/// What comes before a command. Without the dashes, one that begins with a dash would be taken for an option.
pub(crate) const SHELL_OPTIONS: [&str; 2] = ["-c", "--"];

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
        helpers: &Helpers,
        output: OwnedFd,
    ) -> io::Result<Started> {
        match &request.enclosure {
            None => Started::of(shell(request, output)?.spawn()?, None),
            Some(enclosure) => {
                let mut helper = helpers.take(enclosure)?;
                // A helper that is gone already says more by its end than an error here could.
                let _ = helper.hand_over(request, &output).await;
                Started::of(helper.child, Some((enclosure.kind, helper.socket)))
            }
        }
    }

    fn of(child: Child, helper: Option<(Kind, UnixStream)>) -> io::Result<Started> {
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let id = id.ok_or_else(|| io::Error::other("the command has no process number"))?;
        Ok(Started { child, group: Group(id), helper })
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
fn shell(request: &Request, output: OwnedFd) -> io::Result<Command> {
    let mut command = Command::new("bash");
    command
        .args(SHELL_OPTIONS)
        .arg(&request.command)
        .envs(request.variables.iter().map(|(name, value)| (name, value)))
        .current_dir(&request.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::from(output.try_clone()?))
        .stderr(Stdio::from(output))
        .process_group(0);
    Ok(command)
}
