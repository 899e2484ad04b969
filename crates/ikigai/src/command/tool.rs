//! `ikigai tool`: one call, dispatched as a model's would be.

use std::ffi::OsStr;
use std::future::Future;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

use ikigai_agents::renderer;
use ikigai_store::{Outcome, Step};
use ikigai_tools::{Call, Commands, Context, Prepared, ToolResult};
use tokio_util::sync::CancellationToken;

use crate::catalogue;
use crate::cli::ToolArguments;
use crate::command::read_stdin;
use crate::environment::{self, Environment};
use crate::exit::Exit;
use crate::opening::prompt;
use crate::print;
use crate::session::OpenSession;
use crate::signals::Signals;

pub(crate) fn run(environment: &Environment, arguments: &ToolArguments) -> anyhow::Result<Exit> {
    let json = arguments.arguments.as_deref().map(read_arguments).transpose()?.unwrap_or_default();
    let result = match catalogue::offered(&environment.settings).dispatch(&arguments.name, &json) {
        Ok(Prepared::Call(call)) => execute(environment, call)?,
        Ok(Prepared::Step(step)) => commit(environment, step)?,
        Err(refusal) => Some(refusal),
    };
    let Some(result) = result else {
        print::note("ikigai: interrupted");
        return Ok(Exit::Interrupted);
    };
    print::out(format!("{result}\n"))?;
    Ok(Exit::Done)
}

/// The arguments as typed, or all of standard input for `-`.
fn read_arguments(typed: &OsStr) -> anyhow::Result<Vec<u8>> {
    match typed.as_bytes() {
        b"-" => read_stdin("the arguments"),
        typed => Ok(typed.to_vec()),
    }
}

/// Performs a step on the database, as the person's hand; `None` when it was interrupted.
fn commit(environment: &Environment, step: Step) -> anyhow::Result<Option<ToolResult>> {
    let session = OpenSession::open(environment)?;
    let settings = &environment.settings;
    let (render, size) = (renderer(&step), settings.max_output_size());
    let step = match step.within(settings.agent_limits(), || prompt(environment)) {
        Step::Wait(wait) => match session.wait_for_agents(wait)? {
            Some(Ok(waiting)) => Step::EndWait(waiting),
            Some(Err(refusal)) => {
                return Ok(Some(render(Some(&Outcome::Refused(refusal)), size)));
            }
            None => return Ok(None),
        },
        step => step,
    };
    Ok(Some(render(session.perform(step)?.as_ref(), size)))
}

/// Runs the call; `None` when it was interrupted.
fn execute(environment: &Environment, call: Call) -> anyhow::Result<Option<ToolResult>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let commands = Arc::new(Commands::new(
            &environment::own_program()?,
            OsStr::new(environment::WATCHDOG),
            environment.for_commands(),
        ));
        let output_size = environment.settings.max_output_size();
        let interrupt = CancellationToken::new();
        let context =
            Context::new(&environment.directory, output_size, commands.clone(), interrupt.clone());
        let result = until_interrupted(call.run(&context), &interrupt).await;
        commands.close().await;
        result
    });
    // A file tool that is stuck in the system must not keep us.
    runtime.shutdown_background();
    result
}

/// Waits for the call; a signal interrupts it, a second one does not even wait for its end.
async fn until_interrupted(
    call: impl Future<Output = ToolResult>,
    interrupt: &CancellationToken,
) -> anyhow::Result<Option<ToolResult>> {
    /// Longer than a command is given to end by itself.
    const PATIENCE: Duration = Duration::from_secs(3);
    let mut signals = Signals::listen()?;
    tokio::pin!(call);
    tokio::select! {
        result = &mut call => return Ok(Some(result)),
        _ = signals.next() => interrupt.cancel(),
    }
    tokio::select! {
        _ = call => {}
        _ = signals.next() => {}
        () = tokio::time::sleep(PATIENCE) => {}
    }
    Ok(None)
}
