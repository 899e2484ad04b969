//! A background command: its output, how far it is, and how it is followed to its end.

use std::ffi::OsString;
use std::io;
use std::sync::Mutex;
use std::time::Duration;

use ikigai_conversation::CommandId;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Listed;
use super::listeners::{Lines, Listeners};
use super::spool::Spool;
use crate::commands::RunningCommand;
use crate::lock::lock;
use crate::output::{Capture, Output, OutputSize};
use crate::watchdog::Status;

/// Read at a time: as much as a pipe holds by default.
const CHUNK: usize = 64 * 1024;
/// How many lines of output a notification shows, and how long each may be.
const TAIL_LINES: usize = 5;
pub(super) const TAIL_LINE: usize = 300;

/// A background command.
#[derive(Debug)]
pub(crate) struct BackgroundCommand {
    pub(super) agent: OsString,
    pub(super) line: String,
    pub(super) started: Instant,
    pub(super) spool: Mutex<Spool>,
    /// How many bytes it has printed, and whether it has ended.
    pub(super) progress: watch::Sender<Progress>,
    /// How many bytes its agent has seen.
    pub(super) seen: Mutex<u64>,
    pub(super) stop: CancellationToken,
}

/// How far a command is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) printed: u64,
    /// Its exit code and how long it ran, once its end is in the database.
    pub(crate) end: Option<(i32, Duration)>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code.
    pub exit_code: i32,
    /// The last lines of its output.
    pub tail: String,
}

/// Whether a line of output is wanted.
pub(crate) type Wanted<'a> = &'a (dyn Fn(&[u8]) -> bool + Sync);

impl BackgroundCommand {
    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    pub(super) fn is_running(&self) -> bool {
        self.progress.borrow().end.is_none()
    }

    pub(crate) fn seen(&self) -> u64 {
        *lock(&self.seen)
    }

    /// What it has printed from `offset` on, and where that ends. Only the lines that `wanted`
    /// takes, if it is given.
    pub(crate) fn output(
        &self,
        offset: u64,
        size: OutputSize,
        wanted: Option<Wanted<'_>>,
    ) -> io::Result<(Output, u64)> {
        let mut capture = Capture::both_ends(size);
        let spool = lock(&self.spool);
        let end = match wanted {
            None => spool.read_from(offset, |bytes| capture.push(bytes))?,
            Some(wanted) => {
                let mut lines = Lines::default();
                let mut take = |line: &[u8]| {
                    if wanted(line) {
                        capture.push(line);
                    }
                };
                let end = spool.read_from(offset, |bytes| lines.push(bytes, &mut take))?;
                lines.finish(take);
                end
            }
        };
        drop(spool);
        *lock(&self.seen) = end;
        Ok((capture.finish(), end))
    }

    /// The last lines of its output, each bounded.
    fn tail(&self, lines: usize) -> String {
        let text = lock(&self.spool).last_bytes(2 * lines * TAIL_LINE).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).replace('\0', "\u{FFFD}");
        let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = all.iter().skip(all.len().saturating_sub(lines));
        let cut = |line: &&str| line.chars().take(TAIL_LINE).collect::<String>();
        last.map(cut).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn listed(&self, id: CommandId) -> Listed {
        let end = self.progress.borrow().end;
        Listed {
            id,
            agent: self.agent.clone(),
            line: self.line.clone(),
            elapsed: end.map_or_else(|| self.started.elapsed(), |(_, elapsed)| elapsed),
            exit_code: end.map(|(code, _)| code),
            last_line: self.tail(1),
        }
    }

    /// Follows the command to its end.
    pub(super) async fn follow(
        &self,
        mut running: RunningCommand,
        status: Option<Status>,
        deadline: Option<Instant>,
        mut listeners: Listeners,
    ) -> Ended {
        let mut remark = None;
        let ended = match status {
            Some(status) => Ok(status),
            None => self.until_end(&mut running, deadline, &mut listeners, &mut remark).await,
        };
        self.drain(&mut running, &mut listeners).await;
        listeners.finish();
        let exit_code = match ended {
            Ok(Status::Exited(code)) => code,
            Ok(Status::Killed(signal)) => 128 + signal,
            Ok(Status::NotStarted(reason)) => {
                remark = Some(format!("[Cannot start bash: {reason}]"));
                NOT_STARTED
            }
            Err(error) => {
                remark = Some(format!("[Cannot follow the command: {error}]"));
                NOT_STARTED
            }
        };
        let exit_code = if remark.as_deref() == Some(TIMED_OUT) { TIME_LIMIT } else { exit_code };
        for line in remark.into_iter().chain(running.control.take_notes()) {
            self.print(format!("{line}\n").as_bytes());
        }
        running.leave();
        Ended { exit_code, tail: self.tail(TAIL_LINES) }
    }

    async fn until_end(
        &self,
        running: &mut RunningCommand,
        deadline: Option<Instant>,
        listeners: &mut Listeners,
        remark: &mut Option<String>,
    ) -> io::Result<Status> {
        let mut chunk = Vec::with_capacity(CHUNK);
        let mut deadline = deadline;
        let mut is_stopping = false;
        loop {
            let at_deadline = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                status = running.control.status() => return status,
                () = self.stop.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    running.control.end().await?;
                }
                () = at_deadline => {
                    deadline = None;
                    *remark = Some(TIMED_OUT.to_owned());
                    running.control.end().await?;
                }
                () = listeners.live.due() => listeners.live.send(),
                read = running.output.read(&mut chunk) => {
                    read?;
                    self.print(&chunk);
                    listeners.live.push(&chunk);
                    listeners.watch(&chunk);
                    chunk.clear();
                    // Other commands and agents have to get their turn.
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Takes what is left in the pipe.
    async fn drain(&self, running: &mut RunningCommand, listeners: &mut Listeners) {
        const DRAIN: Duration = Duration::from_millis(100);
        let mut chunk = Vec::with_capacity(16 * CHUNK);
        let _ = running.output.read_ready(&mut chunk);
        self.print(&chunk);
        listeners.watch(&chunk);
        chunk.clear();
        let deadline = Instant::now() + DRAIN;
        while !running.output.is_drained() {
            tokio::select! {
                biased;
                () = sleep_until(deadline) => return,
                read = running.output.read(&mut chunk) => {
                    if read.is_err() {
                        return;
                    }
                    self.print(&chunk);
                    listeners.watch(&chunk);
                    chunk.clear();
                }
            }
        }
    }

    /// Adds to its output. If the disk is full, the output is counted and lost.
    fn print(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let printed = {
            let mut spool = lock(&self.spool);
            let _ = spool.push(bytes);
            spool.printed()
        };
        self.progress.send_modify(|progress| progress.printed = printed);
    }
}

/// The exit code of a command that could not be run, as shells have it.
const NOT_STARTED: i32 = 126;
/// The exit code of a command at its time limit, as of timeout(1).
const TIME_LIMIT: i32 = 124;
const TIMED_OUT: &str = "[Time limit reached: the command was ended]";
