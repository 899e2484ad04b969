//! `bash`: a command, with a bounded output and a time limit.

mod leaving;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use grep_regex::RegexMatcher;
use ikigai_conversation::{EffectKind, Preview, ResultState};
use tokio::time::{Instant, sleep_until, timeout};

use crate::arguments::{Arguments, ShellCommand, Whole};
use crate::call::Call;
use crate::commands::{CommandSpec, RunningCommand};
use crate::context::Context;
use crate::declaration::tool;
use crate::effect::Effect;
use crate::file_error::without_number;
use crate::live_output::LiveStream;
use crate::output::{Capture, Output};
use crate::result::{Execution, ToolResult};
use crate::sandbox::{EndedCommand, Kind, Sandbox, hint};
use crate::tool::{BuiltIn, Tool};
use crate::watchdog::{GRACE, Status};
use leaving::{AtLimit, Patience, leave_requested};

pub(crate) fn tool<S: 'static>() -> Arc<dyn Tool<S>> {
    BuiltIn::new(Bash::declaration(), &[EffectKind::Command], prepare)
        .repairing(Bash::PARAMETERS)
        .shared()
}

fn prepare<S>(arguments: &Arguments) -> Result<Call<S>, ToolResult> {
    let call = Arc::new(Bash::parse(arguments)?);
    let command = call.command.0.clone();
    let (leaves_sandbox, wants_network) = (call.sandbox == Some(false), call.network == Some(true));
    let notify_on = call.notify_on.as_deref().map(RegexMatcher::new_line_matcher).transpose();
    let notify_on =
        notify_on.map_err(|error| ToolResult::error(&format!("Invalid pattern: {error}")))?;
    let effect = Effect::Command { command: command.clone(), leaves_sandbox, wants_network };
    let work = move |context: Context| {
        let (call, notify_on) = (Arc::clone(&call), notify_on.clone());
        async move {
            let mut execution = call.execute(&context).await;
            if let Some(leaving) = &mut execution.leaving {
                leaving.notify_on = notify_on;
            }
            execution
        }
    };
    Ok(Call::waiting(work)
        .with_effects([effect])
        .shown_as("Bash", &command.clone())
        .with_preview(move |_| Preview::Command { command: command.clone() }))
}

tool! {
    /// Run a command with bash -c
    struct Bash = "bash" {
        /// Command to run
        command: ShellCommand,
        /// Seconds, default 120
        timeout: Option<Whole<1, 3600>>,
        /// false: ask to leave the sandbox
        sandbox: Option<bool>,
        /// true: ask for the network
        network: Option<bool>,
        /// true: return at once; you are notified of the end
        background: Option<bool>,
        /// Regex: notify at the first line
        notify_on: Option<String>,
    }
}

const DEFAULT_TIMEOUT: u64 = 120;
/// The exit code of a command that was stopped at its time limit, as of timeout(1).
const TIMED_OUT: i32 = 124;
/// The exit code of a command that the user interrupted, as of a shell.
const INTERRUPTED: i32 = 130;
/// Read at a time: as much as the pipe holds.
const CHUNK: usize = 1024 * 1024;
/// How long output is still awaited after the command's own end, when something that it left in the
/// background holds the pipe open.
const DRAIN: Duration = Duration::from_millis(100);
/// How often a sandbox is set up for a command that was not started: a socket that is to be covered may vanish
/// between the look at it and the mount over it.
const SANDBOX_ATTEMPTS: u32 = 4;
/// The system takes no longer argument (128 KiB with its end mark).
const LONGEST_COMMAND: usize = 128 * 1024 - 1;

/// Why a command was followed no further.
enum End {
    /// It ended by itself.
    Own(Status),
    TimedOut,
    Interrupted,
    /// It continues in the background, or has just ended there.
    Left(Box<(RunningCommand, Option<Status>)>),
}

impl Bash {
    async fn execute(&self, context: &Context) -> Execution {
        // What a command that asks for it may reach was decided before, and is in the context.
        let _ = (self.sandbox, self.network, &self.notify_on);
        if let Err(reason) = self.check() {
            return ToolResult::failure(&format!("Cannot start bash: {reason}")).into();
        }
        let patience = match self.patience(context) {
            Ok(patience) => patience,
            Err(refusal) => return ToolResult::failure(&refusal).into(),
        };
        let (end, printed) = match self.run(context, patience).await {
            Ok(ran) => ran,
            Err(error) => {
                let reason = without_number(&error.to_string());
                return ToolResult::failure(&format!("Cannot run bash: {reason}")).into();
            }
        };
        if let End::Left(left) = end {
            return self.leave(*left, printed);
        }
        let mut output = printed.finish();
        let exit_code = match end {
            End::Own(Status::Exited(code)) => code,
            End::Own(Status::Killed(signal)) => 128 + signal,
            End::Own(Status::NotStarted(reason)) => {
                let reason = with_words(&without_number(&reason), &output);
                let place = context.directory().display();
                let error = format!("Cannot start bash in {place}: {reason}");
                let why = |kind| format!("the {kind} sandbox cannot be set up: {reason}");
                let no_sandbox = self.lost_sandbox(context).map(why);
                return Execution { no_sandbox, ..ToolResult::failure(&error).into() };
            }
            End::TimedOut | End::Left(_) => TIMED_OUT,
            End::Interrupted => INTERRUPTED,
        };
        for note in context.commands.take_notes(&context.agent) {
            output.add_line(&format!("[ikigai: {note}]"));
        }
        if let Some(sandbox) = &context.sandbox
            && matches!(end, End::Own(Status::Exited(_)))
            && let Some(line) = self.hint(context, sandbox, exit_code, &output)
        {
            output.add_line(line);
        }
        match end {
            End::Own(_) | End::Left(_) => {}
            End::TimedOut => {
                let seconds = patience.time.as_secs();
                output.add_line(&format!(
                    "[Time limit of {seconds} s reached: the command was ended]"
                ));
            }
            End::Interrupted => output.add_line("[Interrupted: the command was ended]"),
        }
        let state = if exit_code == 0 { ResultState::Succeeded } else { ResultState::Failed };
        let result = ToolResult::from(output).with("exit_code", exit_code).in_state(state);
        result.summed_up(format!("exit {exit_code}")).into()
    }

    fn hint(
        &self,
        context: &Context,
        sandbox: &Sandbox,
        exit_code: i32,
        output: &Output,
    ) -> Option<&'static str> {
        let kind = context.commands.likely_kind(sandbox);
        hint(
            sandbox,
            kind,
            EndedCommand { command: &self.command.0, exit_code, output: &output.text },
        )
    }

    /// The kind of sandbox in which a command could not be started. A folder that was moved or replaced is not the
    /// sandbox's fault: the command has no place to work in.
    fn lost_sandbox(&self, context: &Context) -> Option<Kind> {
        let sandbox = context.sandbox.as_ref()?;
        let mut roots = sandbox.write.iter().chain(&sandbox.read);
        let is_whole = roots.all(|root| root.reopen().is_ok());
        is_whole.then(|| context.commands.likely_kind(sandbox))
    }

    fn check(&self) -> Result<(), String> {
        let command = &self.command.0;
        if command.contains('\0') {
            return Err("the command holds a NUL character".to_owned());
        }
        if command.len() > LONGEST_COMMAND {
            return Err(format!(
                "the command is too long ({} bytes, at most {LONGEST_COMMAND}): put it in a file and run that",
                command.len()
            ));
        }
        Ok(())
    }

    /// Runs the command, in the sandbox of the context if there is one.
    async fn run(&self, context: &Context, patience: Patience) -> io::Result<(End, Capture)> {
        let Some(sandbox) = &context.sandbox else {
            return self.follow(context, None, patience).await;
        };
        // Settled by the first command, and never changed: no command gets a weaker one than the others.
        let commands = &context.commands;
        let settled = commands.kind_in_force(sandbox);
        let mut kind = commands.likely_kind(sandbox);
        let mut ran = match self.follow(context, Some((sandbox, kind)), patience).await {
            Err(error) if settled.is_none() => {
                let nothing = Capture::both_ends(context.output_size);
                (End::Own(Status::NotStarted(error.to_string())), nothing)
            }
            ran => ran?,
        };
        for _ in 1..SANDBOX_ATTEMPTS {
            if !matches!(ran.0, End::Own(Status::NotStarted(_))) {
                break;
            }
            if settled.is_none() {
                // Nothing ran yet: a trial tells which kind works.
                match commands.sandbox_kind().await {
                    Ok(works) => kind = works,
                    Err(none) => {
                        ran.0 = End::Own(Status::NotStarted(none.to_string()));
                        break;
                    }
                }
            }
            ran = self.follow(context, Some((sandbox, kind)), patience).await?;
        }
        if settled.is_none() && !matches!(ran.0, End::Own(Status::NotStarted(_))) {
            commands.settle(kind);
        }
        Ok(ran)
    }

    /// Runs the command once to its end, whichever comes first.
    async fn follow(
        &self,
        context: &Context,
        walls: Option<(&Sandbox, Kind)>,
        patience: Patience,
    ) -> io::Result<(End, Capture)> {
        let mut capture = Capture::both_ends(context.output_size);
        let end = self.capture(context, walls, patience, &mut capture).await?;
        Ok((end, capture))
    }

    async fn capture(
        &self,
        context: &Context,
        walls: Option<(&Sandbox, Kind)>,
        patience: Patience,
        capture: &mut Capture,
    ) -> io::Result<End> {
        let order = CommandSpec {
            command: &self.command.0,
            directory: context.directory(),
            variables: &context.variables,
            agent: &context.agent,
            sandbox: walls,
            avoided: &context.avoided,
        };
        let left = leave_requested(context);
        let mut left = std::pin::pin!(left);
        let mut running = context.commands.start(&order).await?;
        let mut live = context.live.clone().map(LiveStream::new);
        let deadline = running.started + patience.time;
        let mut chunk = Vec::with_capacity(CHUNK);
        let end = loop {
            tokio::select! {
                // An end of its own comes first; output comes last, since there may always be more of it.
                biased;
                status = running.control.status() => break End::Own(status?),
                () = sleep_until(deadline) => match patience.then {
                    AtLimit::End => break End::TimedOut,
                    AtLimit::Leave => return Ok(End::Left(Box::new((running, None)))),
                },
                () = &mut left => return Ok(End::Left(Box::new((running, None)))),
                () = context.interrupt.cancelled() => break End::Interrupted,
                () = due(live.as_ref()) => live.iter_mut().for_each(LiveStream::send),
                read = running.output.read(&mut chunk) => {
                    read?;
                    live.iter_mut().for_each(|live| live.push(&chunk));
                    take(&mut chunk, capture);
                }
            }
        };
        let end = match end {
            // A sandbox that could not be had is reported by the call.
            End::Own(Status::NotStarted(reason)) => End::Own(Status::NotStarted(reason)),
            End::Own(status) if self.background == Some(true) => {
                return Ok(End::Left(Box::new((running, Some(status)))));
            }
            end => end,
        };
        if !matches!(end, End::Own(_)) {
            running.control.end().await?;
            // What the system itself holds fast cannot be ended, but neither must it keep us.
            let following = follow_ending(&mut running, &mut chunk, capture);
            let _ = timeout(GRACE + Duration::from_secs(1), following).await;
        }
        drain(&mut running, &mut chunk, capture).await?;
        if matches!(end, End::Own(_)) {
            running.leave();
        }
        Ok(end)
    }
}

/// Waits until live output may be sent; for ever if there is none.
async fn due(live: Option<&LiveStream>) {
    match live {
        Some(live) => live.due().await,
        None => std::future::pending().await,
    }
}

/// The reason, with the message of the program that could not start the command.
fn with_words(reason: &str, words: &Output) -> String {
    match words.text.trim_end() {
        "" => reason.to_owned(),
        words => format!("{reason}: {words}"),
    }
}

/// Takes what a command still prints while it is being ended.
async fn follow_ending(
    running: &mut RunningCommand,
    chunk: &mut Vec<u8>,
    capture: &mut Capture,
) -> io::Result<()> {
    loop {
        tokio::select! {
            status = running.control.status() => return status.map(drop),
            read = running.output.read(chunk) => { read?; take(chunk, capture) }
        }
    }
}

/// Takes what is left in the pipe, and waits only a little for what holds it open.
async fn drain(
    running: &mut RunningCommand,
    chunk: &mut Vec<u8>,
    capture: &mut Capture,
) -> io::Result<()> {
    // All that the command itself printed is there by now, however long we were kept from reading it.
    running.output.read_ready(chunk)?;
    take(chunk, capture);
    let deadline = Instant::now() + DRAIN;
    while !running.output.is_drained() {
        tokio::select! {
            biased;
            () = sleep_until(deadline) => break,
            read = running.output.read(chunk) => { read?; take(chunk, capture) }
        }
    }
    Ok(())
}

fn take(chunk: &mut Vec<u8>, capture: &mut Capture) {
    capture.push(chunk);
    chunk.clear();
}
