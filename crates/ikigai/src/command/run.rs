//! `ikigai run`: one task for one agent, without a person at hand.

mod json;
mod printer;
mod text;

use std::thread;
use std::time::Duration;

use ikigai_agents::{AgentCommand, Order, Person, serve};
use ikigai_protocol::StopReason;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::cli::RunArguments;
use crate::command::read_stdin;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::model;
use crate::opening::{Otherwise, equip, take_seat, toolbox};
use crate::print;
use crate::signals;
use crate::temporary::TemporaryFolder;

use json::JsonLines;
use printer::{Output, SharedPrinter};
use text::PlainText;

pub(crate) fn run(environment: &Environment, arguments: &RunArguments) -> anyhow::Result<Exit> {
    let prompt = prompt(&arguments.prompt)?;
    if prompt.trim().is_empty() {
        print::note("ikigai: the prompt is empty: say what is to be done");
        return Ok(Exit::WrongUsage);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let model = runtime.block_on(model::connect_again(environment)).map_err(model::explain)?;
    let interrupt = CancellationToken::new();
    signals::cancel(interrupt.clone())?;
    if let Some(seconds) = arguments.timeout {
        limit_time(seconds, interrupt.clone())?;
    }
    let stop = runtime.block_on(async {
        let seat = take_seat(environment, Otherwise::New).await?;
        let output: Box<dyn Output> = match arguments.json {
            true => Box::new(JsonLines::new(seat.agent().clone())),
            false => Box::new(PlainText::new(seat.agent().clone())),
        };
        let printer = SharedPrinter::new(output, &seat, &model.label, interrupt.clone());
        let temporary = TemporaryFolder::of_session(environment, seat.session())?;
        let toolbox = toolbox(environment, &seat, &temporary, Person::Absent)?;
        let equipment = equip(environment, model, toolbox, printer.sink());
        let (give, orders) = mpsc::channel(1);
        give.send(Order::new(seat.agent().clone(), AgentCommand::Say(prompt)).0).await?;
        drop(give);
        let served = serve(seat, equipment, orders, interrupt).await;
        printer.finish(served.err())
    });
    // A file tool that is stuck in the system must not keep us.
    runtime.shutdown_background();
    Ok(match stop? {
        StopReason::Stop | StopReason::Length | StopReason::ToolLimit => Exit::Done,
        StopReason::Interrupted => Exit::Interrupted,
        StopReason::Error => Exit::Failed,
    })
}

/// Cancels `interrupt` after so many seconds, from a thread of its own: the runtime's thread may be stuck in the system,
/// on a file system that does not answer. If that does not end the program, it is ended all the same. What is committed
/// is safe at any moment.
fn limit_time(seconds: u64, interrupt: CancellationToken) -> std::io::Result<()> {
    /// Twice as long as it takes to end commands that do not listen.
    const PATIENCE: Duration = Duration::from_secs(10);
    let wait = move || {
        thread::sleep(Duration::from_secs(seconds));
        print::note(&format!("ikigai: the time is up (--timeout {seconds})"));
        interrupt.cancel();
        thread::sleep(PATIENCE);
        print::note(
            "ikigai: a file or the database does not respond: ended without waiting for it",
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
