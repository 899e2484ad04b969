//! Starting a command, as it is or behind walls.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};

use rustix::process::Pid;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

#[cfg(target_os = "linux")]
use super::enclosed::Enclosed;
use super::groups::{Group, Sessions};
use super::helpers::{Helper, Helpers};
use super::wire::{Request, Status};
use crate::sandbox::{Kind, Report, Sandbox};

/// What comes before a command. Without the dashes, one that begins with a dash would be taken for an option.
pub(crate) const SHELL_OPTIONS: [&str; 2] = ["-c", "--"];

/// Starts commands.
#[derive(Debug)]
pub(super) struct Starter {
    /// For walls of bubblewrap.
    pub(super) helpers: Helpers,
    /// For walls of landlock; comes with the first command that has them.
    #[cfg(target_os = "linux")]
    enclosed: tokio::sync::OnceCell<Enclosed>,
}

impl Starter {
    pub(super) fn new(helper: Helper) -> Starter {
        Starter {
            helpers: Helpers::new(helper),
            #[cfg(target_os = "linux")]
            enclosed: tokio::sync::OnceCell::new(),
        }
    }

    /// Starts what is asked for; its output goes to `output`.
    ///
    /// # Cancel safety
    /// What was started is ended when the future is dropped.
    pub(super) async fn start(&self, request: &Request, output: OwnedFd) -> io::Result<Started> {
        let Some(walls) = &request.enclosure else {
            let shell = shell(request, SHELL_OPTIONS, output)?.arg(&request.command).spawn()?;
            return Started::of(shell, None);
        };
        match walls.kind {
            Kind::Bubblewrap => {
                let mut helper = self.helpers.take()?;
                // A helper that is gone already says more by its end than an error here could.
                let _ = helper.hand_over(request, &output).await;
                Started::of(helper.child, Some(helper.socket))
            }
            Kind::Landlock => {
                Started::of(self.start_enclosed(request, &walls.sandbox, output).await?, None)
            }
        }
    }

    #[cfg(target_os = "linux")]
    async fn start_enclosed(
        &self,
        request: &Request,
        sandbox: &Sandbox,
        output: OwnedFd,
    ) -> io::Result<Child> {
        let enclosed = self.enclosed.get_or_try_init(async || Enclosed::new()).await?;
        let arguments = enclosed.inherited.shell_arguments(&request.command);
        enclosed.spawn(shell(request, arguments, output)?, sandbox.clone()).await
    }

    #[cfg(not(target_os = "linux"))]
    async fn start_enclosed(&self, _: &Request, _: &Sandbox, _: OwnedFd) -> io::Result<Child> {
        Err(io::Error::other("there is no sandbox for this system"))
    }

    /// Has helpers wait for the commands after this one, if it needs one.
    pub(super) fn get_ready(&self, request: &Request) {
        let walls = request.enclosure.as_ref();
        if walls.is_some_and(|walls| walls.kind == Kind::Bubblewrap) {
            self.helpers.get_ready();
        }
    }
}

/// A command that runs.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) group: Group,
    /// What its helper says, if it has one, comes out of here.
    helper: Option<UnixStream>,
}

impl Started {
    fn of(child: Child, helper: Option<UnixStream>) -> io::Result<Started> {
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let id = id.ok_or_else(|| io::Error::other("the command has no process number"))?;
        Ok(Started { child, group: Group(id), helper })
    }

    /// The groups of what the command has begun, its own left out.
    pub(super) fn groups_below(&self) -> Vec<Group> {
        let sessions = if self.helper.is_some() { Sessions::Any } else { Sessions::Own };
        Group::below(self.group.0, sessions)
    }

    /// What the end of the process says about the command.
    pub(super) fn status(&self, ended: ExitStatus) -> Status {
        /// Longer than any report.
        const LIMIT: usize = 4_096;
        let Some(socket) = &self.helper else { return ended.into() };
        let mut bytes = [0; LIMIT];
        let length = rustix::io::read(socket, &mut bytes).unwrap_or(0);
        match Report(&bytes[..length]).failure() {
            // A signal came from outside, or from us: there is nothing to be told apart.
            Some(reason) if ended.code().is_some() => Status::NotStarted(reason),
            _ => ended.into(),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the place where commands are started")]
fn shell(
    request: &Request,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    output: OwnedFd,
) -> io::Result<Command> {
    let mut command = Command::new("bash");
    command
        .args(arguments)
        .envs(request.variables.iter().map(|(name, value)| (name, value)))
        .current_dir(&request.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::from(output.try_clone()?))
        .stderr(Stdio::from(output))
        .process_group(0);
    Ok(command)
}
