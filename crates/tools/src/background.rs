//! Background commands: they continue after the call that started them, until they end, are stopped, or
//! the program ends.
//!
//! A task without a thread of its own reads the output of each into a [`Spool`], so a command that
//! prints fast is never held up for long, and one that prints for days costs no memory. That a
//! command has ended is for its caller to [settle](Adopted::settle): until the end is in the
//! database, nothing here says that the command has ended.

mod listeners;
mod running;
mod spool;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grep_regex::RegexMatcher;
use ikigai_conversation::CommandId;
use serde_json::{Map, Value};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::commands::RunningCommand;
use crate::live_output::{LiveSink, LiveStream};
use crate::lock::lock;
use crate::output::{Capture, Output};
use crate::result::ToolResult;
use crate::watchdog::Status;
use listeners::{LineWatch, Listeners};
pub use running::Ended;
use running::Progress;
pub(crate) use running::{BackgroundCommand, Wanted};
use spool::Spool;

/// How many may run for one agent.
pub(crate) const MOST_OF_AGENT: usize = 16;
/// How many may run for all agents of a process.
const MOST_OF_PROCESS: usize = 64;
/// How many ended commands of an agent keep their output: what is read at all is read soon.
const KEPT_ENDED: usize = 16;

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
    /// The first line that matches is reported.
    pub(crate) notify_on: Option<RegexMatcher>,
}

/// What the result of the call that started a command shows of its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Nothing: it has just started.
    Nothing,
    /// All of it so far.
    SoFar,
}

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
        let Leaving { mut running, status, printed, deadline, shown, notify_on, .. } = leaving;
        let mut spool = Spool::create(&self.folder)?;
        let (report, matched) = oneshot::channel();
        let watch = notify_on.map(|pattern| LineWatch::new(pattern, report));
        let mut listeners = Listeners { live: LiveStream::new(live), watch };
        printed.for_each_part(|part| {
            listeners.watch(part);
            spool.push(part)
        })?;
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
            let ended = following.follow(running, status, deadline, listeners).await;
            let _ = report.send(ended);
        }));
        let mut commands = lock(&self.commands);
        commands.insert(id, Arc::clone(&command));
        forget_old(&mut commands, agent);
        Ok(Adopted { command, matched: Some(matched), end })
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
    /// The line that its agent waits for.
    matched: Option<oneshot::Receiver<String>>,
    end: oneshot::Receiver<Ended>,
}

/// What a background command reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandReport {
    /// It has printed the line that its agent waits for.
    Line(String),
    /// It has ended.
    Ended(Ended),
}

impl Adopted {
    /// Waits for its next report; the end is the last. `None` if it is ended with the program.
    pub async fn next(&mut self) -> Option<CommandReport> {
        if let Some(mut matched) = self.matched.take() {
            tokio::select! {
                // A line comes before the end.
                biased;
                Ok(line) = &mut matched => return Some(CommandReport::Line(line)),
                end = &mut self.end => return end.ok().map(CommandReport::Ended),
            }
        }
        (&mut self.end).await.ok().map(CommandReport::Ended)
    }

    /// From now on the command counts as ended: its end is in the database.
    pub fn settle(&self, exit_code: i32) {
        let elapsed = self.command.started.elapsed();
        self.command.progress.send_modify(|progress| progress.end = Some((exit_code, elapsed)));
    }
}
