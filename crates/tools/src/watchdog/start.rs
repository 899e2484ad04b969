//! Starts a command, with or without a sandbox.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use rustix::net::{RecvFlags, recv};
use rustix::process::Signal;
use tokio::process::{Child, Command};

use super::Watch;
#[cfg(target_os = "linux")]
use super::covers::CommandCovers;
use super::groups::{Group, Sessions};
#[cfg(target_os = "linux")]
use super::sandboxed::SandboxStarter;
use super::spawner::{SpawnedProcess, Spawner};
use super::wire::{Request, Status};
use crate::sandbox::ResolvedSandbox;

/// The only paths searched: a `bash` found in `PATH` could have been planted by an agent.
const SHELLS: [&str; 4] =
    ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash"];

/// Arguments of the shell. The `--` keeps a command that starts with a dash from being parsed as an
/// option. The last one is the name that the shell shows in messages.
pub(super) fn shell_arguments(command: &OsStr) -> [&OsStr; 4] {
    ["-c".as_ref(), "--".as_ref(), command, "bash".as_ref()]
}

/// Starts commands.
#[derive(Debug)]
pub(super) struct Starter {
    spawner: Spawner,
    /// An error applies to all sandboxed commands.
    #[cfg(target_os = "linux")]
    sandboxed: io::Result<SandboxStarter>,
}

impl Starter {
    #[cfg_attr(not(target_os = "linux"), expect(unused_variables, reason = "only Linux has both"))]
    pub(super) fn new(watch: Watch) -> Starter {
        let spawner = Spawner::default();
        Starter {
            #[cfg(target_os = "linux")]
            sandboxed: SandboxStarter::new(spawner.clone(), watch),
            spawner,
        }
    }

    /// Starts the requested command, which writes its output to `output`. A sandboxed command waits
    /// for `cleared`, and is not started if that never comes.
    ///
    /// # Cancel safety
    /// If the future is dropped, the command is ended.
    pub(super) async fn start(
        &self,
        request: &Request,
        output: OwnedFd,
        cleared: Receiver<()>,
    ) -> io::Result<StartedCommand> {
        if let Some(resolved) = &request.sandbox {
            return self.start_sandboxed(request, resolved, output, cleared).await;
        }
        Ok(StartedCommand::of(self.spawner.spawn(&mut shell(request, output)?)?, None))
    }

    /// Reaps processes that no task waits for.
    pub(super) fn reap_orphans(&self) {
        self.spawner.reap_orphans();
    }

    /// Stops starting commands. All started ones are children of this process by now.
    pub(super) fn close(&self) {
        self.spawner.close();
    }

    #[cfg(target_os = "linux")]
    async fn start_sandboxed(
        &self,
        request: &Request,
        resolved: &ResolvedSandbox,
        output: OwnedFd,
        cleared: Receiver<()>,
    ) -> io::Result<StartedCommand> {
        match &self.sandboxed {
            Ok(sandboxed) => sandboxed.start(request, resolved, output, cleared).await,
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn start_sandboxed(
        &self,
        _request: &Request,
        _sandbox: &ResolvedSandbox,
        _output: OwnedFd,
        _cleared: Receiver<()>,
    ) -> io::Result<StartedCommand> {
        Err(io::Error::other("there is no sandbox for this system"))
    }
}

/// A running command. Dropping it kills the rest of its group, so neither an error nor a panic
/// leaves a command without supervision.
#[derive(Debug)]
pub(super) struct StartedCommand {
    pub(super) child: Child,
    pub(super) group: Group,
    /// The status output of `bwrap`.
    report: Option<UnixStream>,
    /// Its network namespace, kept for the next command as long as this one runs.
    _network: Option<Arc<OwnedFd>>,
    /// The mounts that enforce its access under bubblewrap.
    #[cfg(target_os = "linux")]
    pub(super) covered: Option<Arc<CommandCovers>>,
}

impl StartedCommand {
    /// `report` must be non-blocking.
    pub(super) fn of(spawned: SpawnedProcess, report: Option<UnixStream>) -> StartedCommand {
        let (child, group) = spawned.take_over();
        StartedCommand {
            child,
            group,
            report,
            _network: None,
            #[cfg(target_os = "linux")]
            covered: None,
        }
    }

    #[cfg(target_os = "linux")]
    pub(super) fn within(
        mut self,
        network: Option<Arc<OwnedFd>>,
        covered: Arc<CommandCovers>,
    ) -> StartedCommand {
        (self._network, self.covered) = (network, Some(covered));
        self
    }

    /// A predicate for paths that the command could only read.
    pub(super) fn read_only(&self) -> impl Fn(&Path) -> bool + Send + use<> {
        #[cfg(target_os = "linux")]
        let covered = self.covered.clone();
        move |_path| {
            #[cfg(target_os = "linux")]
            return covered.as_ref().is_some_and(|covered| covered.was_read_only(_path));
            #[cfg(not(target_os = "linux"))]
            false
        }
    }

    /// Whether no active process is left, though the group may take a moment to vanish.
    pub(super) fn is_deserted(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.covered.as_ref().is_some_and(|covered| covered.is_deserted());
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Why it was ended by the watchdog; returned once.
    pub(super) fn take_reason(&self) -> Option<String> {
        #[cfg(target_os = "linux")]
        return self.covered.as_ref()?.take_reason();
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// The groups of its descendants, without its own.
    pub(super) fn groups_below(&self) -> Vec<Group> {
        let sessions = if self.report.is_some() { Sessions::Any } else { Sessions::Own };
        Group::below(self.group.0, sessions)
    }

    /// The command's status, given the exit status of its process.
    pub(super) fn status(&self, ended: ExitStatus) -> Status {
        /// Longer than any report.
        const LIMIT: usize = 4_096;
        let Some(report) = &self.report else { return ended.into() };
        let mut bytes = [0; LIMIT];
        // Only peeked at: others read the init process from it.
        let length = recv(report, &mut bytes, RecvFlags::PEEK).map_or(0, |(_, length)| length);
        // A signal came from outside or from us, so the report does not matter.
        if ended.code().is_none() || has_started(&bytes[..length]) {
            return ended.into();
        }
        Status::NotStarted("bubblewrap could not set up the sandbox".to_owned())
    }
}

impl Drop for StartedCommand {
    fn drop(&mut self) {
        // This also reaps the leader, whose status no longer matters.
        if self.group.is_alive() {
            self.group.signal(Signal::KILL);
        }
        #[cfg(target_os = "linux")]
        if let Some(covered) = &self.covered {
            covered.release();
        }
    }
}

/// Bubblewrap reports an exit code only if the command was started. Its own exit code cannot tell
/// that.
fn has_started(report: &[u8]) -> bool {
    String::from_utf8_lossy(report).contains("\"exit-code\"")
}

/// The shell that runs the command.
pub(super) fn shell(request: &Request, output: OwnedFd) -> io::Result<Command> {
    let mut shell = command(shell_program()?, &request.directory, &request.variables, output)?;
    shell.args(shell_arguments(&request.command));
    Ok(shell)
}

/// The path of the shell.
pub(super) fn shell_program() -> io::Result<&'static str> {
    let found = SHELLS.into_iter().find(|program| Path::new(program).is_file());
    found.ok_or_else(|| io::Error::other(format!("bash is in none of {}", SHELLS.join(", "))))
}

#[expect(clippy::disallowed_methods, reason = "this is the place where commands are started")]
pub(super) fn command(
    program: &str,
    directory: &OsStr,
    variables: &[(OsString, OsString)],
    output: OwnedFd,
) -> io::Result<Command> {
    let mut command = Command::new(program);
    command
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::from(output.try_clone()?))
        .stderr(Stdio::from(output))
        .process_group(0);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;
    use std::time::Duration;

    use super::super::ending::until_gone;
    use super::super::spawner::Spawner;
    use super::{Command, StartedCommand, has_started};

    #[test]
    fn a_failed_command_is_told_from_one_that_never_started() {
        assert!(has_started(b"{ \"child-pid\": 7 }\n{ \"exit-code\": 1 }\n"));
        assert!(!has_started(b"{ \"child-pid\": 7 }\n"));
        assert!(!has_started(b""));
    }

    #[tokio::test]
    async fn an_unsupervised_command_is_ended() {
        #[expect(clippy::disallowed_methods, reason = "a process to be ended")]
        let mut command = Command::new("sleep");
        command.arg("1000").process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
        let spawned = Spawner::default().spawn(&mut command).unwrap();
        let started = StartedCommand::of(spawned, None);
        let group = started.group;
        assert!(group.is_alive());
        drop(started);
        tokio::time::timeout(Duration::from_secs(60), until_gone(&[group])).await.unwrap();
    }
}
