//! `ikigai run`: one task for one agent, unattended.

mod json;
mod printer;
mod text;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ikigai_agents::CommandsAtEnd;
use ikigai_host::{
    AgentChoice, Environment, ServiceEnd, SessionOptions, connect_again, explain_model,
};
use ikigai_protocol::{Command, Request, StopReason};
use tokio_util::sync::CancellationToken;

use crate::cli::RunArguments;
use crate::command::read_stdin;
use crate::exit::Exit;
use crate::print;
use crate::session::claim;
use crate::signals;

use json::JsonLines;
use printer::{Output, SharedPrinter};
use text::PlainText;

pub(crate) fn run(environment: Environment, arguments: &RunArguments) -> anyhow::Result<Exit> {
    let environment = &Arc::new(environment);
    let prompt = prompt(&arguments.prompt)?;
    if prompt.trim().is_empty() {
        print::note("ikigai: the prompt is empty: describe the task");
        return Ok(Exit::WrongUsage);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let model = runtime.block_on(connect_again(environment)).map_err(explain_model)?;
    let interrupt = CancellationToken::new();
    signals::cancel(interrupt.clone())?;
    if let Some(seconds) = arguments.timeout {
        limit_time(seconds, interrupt.clone())?;
    }
    let stop = runtime.block_on(async {
        let commands_at_end = match arguments.wait_commands {
            true => CommandsAtEnd::Awaited,
            false => CommandsAtEnd::Ended,
        };
        let options = SessionOptions { commands_at_end, ..SessionOptions::UNATTENDED };
        let slot = claim(environment, options).await?;
        let agent = slot.agent().clone();
        let output: Box<dyn Output> = match arguments.json {
            true => Box::new(JsonLines::new(agent.clone())),
            false => Box::new(PlainText::new(agent.clone())),
        };
        let printer = SharedPrinter::new(output, &slot, &model.label, interrupt.clone());
        let choice = AgentChoice::new(environment, model);
        let (session, service) = slot.open(choice, printer.sink()).await?;
        let request = Request { agent, command: Command::Say { text: prompt } };
        let say = async move {
            // Errors are events or end the service. Once the session is dropped, the service ends
            // with the turn.
            let _ = session.execute(request).await;
        };
        let ((), end) = tokio::join!(say, service.run(interrupt));
        printer.finish(match end {
            Ok(ServiceEnd::Finished) => None,
            Ok(ServiceEnd::AgentLost(error)) | Err(error) => Some(error),
        })
    });
    // Do not wait for a file tool that is stuck in a system call.
    runtime.shutdown_background();
    Ok(match stop? {
        StopReason::Stop | StopReason::Call | StopReason::Length | StopReason::ToolLimit => {
            Exit::Done
        }
        StopReason::Interrupted => Exit::Interrupted,
        StopReason::Error => Exit::Failed,
    })
}

/// Cancels `interrupt` after `seconds`, and exits if that does not end the program. It runs on a
/// separate thread, since the runtime's thread may be stuck in a system call on an unresponsive
/// file system. Committed data is safe at any moment.
fn limit_time(seconds: u64, interrupt: CancellationToken) -> std::io::Result<()> {
    /// Twice as long as it takes to kill commands that ignore signals.
    const PATIENCE: Duration = Duration::from_secs(10);
    let wait = move || {
        thread::sleep(Duration::from_secs(seconds));
        print::note(&format!("ikigai: interrupted after {seconds} s (--timeout)"));
        interrupt.cancel();
        thread::sleep(PATIENCE);
        print::note(
            "ikigai: a file or the database does not respond; exiting without waiting for it",
        );
        std::process::exit(Exit::Interrupted.code().into());
    };
    thread::Builder::new().name("time limit".to_owned()).spawn(wait).map(drop)
}

/// The prompt as typed, or all of standard input for `-`.
fn prompt(typed: &str) -> anyhow::Result<String> {
    /// More than any model reads.
    const LIMIT: usize = 16 * 1024 * 1024;
    let prompt = match typed {
        "-" => String::from_utf8_lossy(&read_stdin("the prompt")?).into_owned(),
        typed => typed.to_owned(),
    };
    anyhow::ensure!(prompt.len() <= LIMIT, "the prompt has more than {LIMIT} bytes");
    Ok(prompt)
}
