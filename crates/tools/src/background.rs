//! Background commands: they continue after the call that started them, until they end, are stopped, or
//! the program ends.
//!
//! A task without a thread of its own reads the output of each into a [`Spool`], so a command that
//! prints fast is never held up for long, and one that prints for days costs no memory. That a
//! command has ended is for its caller to [settle](Adopted::settle): until the end is in the
//! database, nothing here says that the command has ended.

mod spool;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikigai_conversation::CommandId;
use serde_json::{Map, Value};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::commands::RunningCommand;
use crate::live_output::{LiveSink, LiveStream};
use crate::lock::lock;
use crate::output::{Capture, Output, OutputSize};
use crate::result::ToolResult;
use crate::watchdog::Status;
use spool::Spool;

/// How many may run for one agent.
pub(crate) const MOST_OF_AGENT: usize = 16;
/// How many may run for all agents of a process.
const MOST_OF_PROCESS: usize = 64;
/// How many ended commands of an agent keep their output: what is read at all is read soon.
const KEPT_ENDED: usize = 16;
/// Read at a time: as much as a pipe holds by default.
const CHUNK: usize = 64 * 1024;
/// How many lines of output a notification shows, and how long each may be.
const TAIL_LINES: usize = 5;
const TAIL_LINE: usize = 300;

/// The background commands of a process.
#[derive(Debug, Default)]
pub struct Background {
    commands: Mutex<BTreeMap<CommandId, Arc<BackgroundCommand>>>,
    /// The folder for outputs. It is outside what commands can write.
    folder: PathBuf,
}

/// A command that is to continue in the background.
#[derive(Debug)]
pub struct Leaving {
    pub(crate) command: String,
    pub(crate) running: RunningCommand,
    /// How it ended, if it has.
    pub(crate) status: Option<Status>,
    /// What it printed so far.
    pub(crate) printed: Capture,
    /// When it is to be ended.
    pub(crate) deadline: Option<Instant>,
    pub(crate) shown: Shown,
}

/// What the result of the call that started a command shows of its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Nothing: it has just started.
    Nothing,
    /// All of it so far.
    SoFar,
}

/// A background command.
#[derive(Debug)]
pub(crate) struct BackgroundCommand {
    agent: OsString,
    line: String,
    started: Instant,
    spool: Mutex<Spool>,
    /// How many bytes it has printed, and whether it has ended.
    progress: watch::Sender<Progress>,
    /// How many bytes its agent has seen.
    seen: Mutex<u64>,
    stop: CancellationToken,
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

/// A command in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its number.
    pub id: CommandId,
    /// The agent that it belongs to.
    pub agent: OsString,
    /// Its first line.
    pub line: String,
    /// For how long it has been running, or ran.
    pub elapsed: Duration,
    /// Its exit code, if it has ended.
    pub exit_code: Option<i32>,
    /// The last line of its output.
    pub last_line: String,
}

impl Leaving {
    /// The first line of the command.
    pub fn line(&self) -> String {
        self.command.trim().lines().next().unwrap_or_default().to_owned()
    }

    /// The result of its call, once its number is known.
    pub fn result(&self) -> BackgroundResult {
        let output = match self.shown {
            Shown::Nothing => Output::from(String::new()),
            Shown::SoFar => self.printed.clone().finish(),
        };
        BackgroundResult { output: output.text, truncated: output.truncated }
    }
}

/// The result of a call whose command continues in the background.
#[derive(Debug, Clone)]
pub struct BackgroundResult {
    output: String,
    truncated: bool,
}

impl BackgroundResult {
    /// The result for a command with this number.
    pub fn of(self, id: CommandId) -> ToolResult {
        let mut data = Map::new();
        data.insert("command_id".to_owned(), Value::from(id.value()));
        data.insert("running".to_owned(), Value::from(true));
        data.insert("output".to_owned(), Value::from(self.output));
        if self.truncated {
            data.insert("truncated".to_owned(), Value::from(true));
        }
        ToolResult::success(data).summed_up(format!("in the background as #{id}"))
    }
}

impl Background {
    pub(crate) fn new(folder: &Path) -> Background {
        Background { commands: Mutex::default(), folder: folder.to_owned() }
    }

    /// Why an agent cannot have another one.
    pub(crate) fn refusal(&self, agent: &OsStr) -> Option<String> {
        let commands = lock(&self.commands);
        let running = || commands.values().filter(|command| command.is_running());
        let limit = match () {
            () if running().filter(|command| command.agent == agent).count() >= MOST_OF_AGENT => {
                format!("({MOST_OF_AGENT})")
            }
            () if running().count() >= MOST_OF_PROCESS => {
                format!("of the session ({MOST_OF_PROCESS})")
            }
            () => return None,
        };
        Some(format!("Maximum background commands {limit} reached"))
    }

    /// Takes a command over under its number.
    ///
    /// # Errors
    /// If there is no place for its output. The command is ended.
    pub fn adopt(
        &self,
        id: CommandId,
        agent: &OsStr,
        leaving: Leaving,
        live: LiveSink,
    ) -> io::Result<Adopted> {
        let line = leaving.line();
        let Leaving { mut running, status, printed, deadline, shown, .. } = leaving;
        let mut spool = Spool::create(&self.folder)?;
        printed.for_each_part(|part| spool.push(part))?;
        let printed = spool.printed();
        let seen = if shown == Shown::SoFar { printed } else { 0 };
        let (progress, _) = watch::channel(Progress { printed, end: None });
        let command = Arc::new(BackgroundCommand {
            agent: agent.to_owned(),
            line,
            started: running.started,
            spool: Mutex::new(spool),
            progress,
            seen: Mutex::new(seen),
            stop: CancellationToken::new(),
        });
        let (report, end) = oneshot::channel();
        let following = Arc::clone(&command);
        let closing = running.closing.clone();
        tokio::spawn(closing.run_until_cancelled_owned(async move {
            running.control.check_meanwhile().await;
            let ended = following.follow(running, status, deadline, LiveStream::new(live)).await;
            let _ = report.send(ended);
        }));
        let mut commands = lock(&self.commands);
        commands.insert(id, Arc::clone(&command));
        forget_old(&mut commands, agent);
        Ok(Adopted { command, end })
    }

    /// The command of an agent with this number.
    pub(crate) fn find(&self, agent: &OsStr, id: CommandId) -> Option<Arc<BackgroundCommand>> {
        let commands = lock(&self.commands);
        commands.get(&id).filter(|command| command.agent == agent).cloned()
    }

    /// The commands of all agents, in the order of their numbers.
    pub fn list(&self) -> Vec<Listed> {
        let commands = lock(&self.commands).clone();
        commands.into_iter().map(|(id, command)| command.listed(id)).collect()
    }

    /// Which agents have a command that runs.
    pub fn agents(&self) -> Vec<OsString> {
        let commands = lock(&self.commands);
        let running = commands.values().filter(|command| command.is_running());
        running.map(|command| command.agent.clone()).collect()
    }

    /// Ends a command with all that it has started. Its end is reported as usual.
    pub fn stop(&self, id: CommandId) -> bool {
        let commands = lock(&self.commands);
        let running = commands.get(&id).filter(|command| command.is_running());
        running.map(|command| command.stop.cancel()).is_some()
    }

    /// Ends all commands of an agent.
    pub fn stop_all_of(&self, agent: &OsStr) {
        let commands = lock(&self.commands);
        let of_agent = commands.values().filter(|command| command.agent == agent);
        of_agent.for_each(|command| command.stop.cancel());
    }
}

/// Forgets the ended commands of an agent, but for the latest.
fn forget_old(commands: &mut BTreeMap<CommandId, Arc<BackgroundCommand>>, agent: &OsStr) {
    let ended = commands.iter().filter(|(_, it)| it.agent == agent && !it.is_running());
    let ended: Vec<CommandId> = ended.map(|(id, _)| *id).collect();
    for id in ended.iter().rev().skip(KEPT_ENDED) {
        commands.remove(id);
    }
}

/// A command that was taken over.
#[derive(Debug)]
pub struct Adopted {
    command: Arc<BackgroundCommand>,
    end: oneshot::Receiver<Ended>,
}

impl Adopted {
    /// Waits for its end. `None` if it is ended with the program.
    pub async fn ended(&mut self) -> Option<Ended> {
        (&mut self.end).await.ok()
    }

    /// From now on the command counts as ended: its end is in the database.
    pub fn settle(&self, exit_code: i32) {
        let elapsed = self.command.started.elapsed();
        self.command.progress.send_modify(|progress| progress.end = Some((exit_code, elapsed)));
    }
}

impl BackgroundCommand {
    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    fn is_running(&self) -> bool {
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

    fn listed(&self, id: CommandId) -> Listed {
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
    async fn follow(
        &self,
        mut running: RunningCommand,
        status: Option<Status>,
        deadline: Option<Instant>,
        mut live: LiveStream,
    ) -> Ended {
        let mut remark = None;
        let ended = match status {
            Some(status) => Ok(status),
            None => self.until_end(&mut running, deadline, &mut live, &mut remark).await,
        };
        self.drain(&mut running).await;
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
        live: &mut LiveStream,
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
                () = live.due() => live.send(),
                read = running.output.read(&mut chunk) => {
                    read?;
                    self.print(&chunk);
                    live.push(&chunk);
                    chunk.clear();
                    // Other commands and agents have to get their turn.
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Takes what is left in the pipe.
    async fn drain(&self, running: &mut RunningCommand) {
        const DRAIN: Duration = Duration::from_millis(100);
        let mut chunk = Vec::with_capacity(16 * CHUNK);
        let _ = running.output.read_ready(&mut chunk);
        self.print(&chunk);
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

/// Splits a stream of bytes into lines.
#[derive(Debug, Default)]
struct Lines {
    /// The start of a line whose end has not come.
    open: Vec<u8>,
}

impl Lines {
    /// A longer line is split: nothing matches a line in full that no one could read.
    const LONGEST: usize = 64 * 1024;

    fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.open.extend_from_slice(part);
            if part.ends_with(b"\n") || self.open.len() >= Lines::LONGEST {
                take(&self.open);
                self.open.clear();
            }
        }
    }

    fn finish(self, mut take: impl FnMut(&[u8])) {
        if !self.open.is_empty() {
            take(&self.open);
        }
    }
}
