//! `ikigai tool`: runs one call, dispatched like a model's.

use std::ffi::OsStr;
use std::future::Future;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

use ikigai_agents::{User, renderer};
use ikigai_conversation::EffectKind;
use ikigai_host::{Environment, TemporaryFolder, permissions, prompt, settings};
use ikigai_store::{Outcome, Step};
use ikigai_tools::{
    Call, Confinement, Context, Effect, Executor, Fact, Gate, Reach, ToolResult, Verdict, Work,
    refusal,
};
use tokio_util::sync::CancellationToken;

use crate::cli::ToolArguments;
use crate::command::read_stdin;
use crate::exit::Exit;
use crate::print;
use crate::session::StoredSession;
use crate::signals::Signals;

pub(crate) fn run(environment: &Environment, arguments: &ToolArguments) -> anyhow::Result<Exit> {
    let json = arguments.arguments.as_deref().map(read_arguments).transpose()?.unwrap_or_default();
    let name = &arguments.name;
    let result = match settings::tools(&environment.settings).dispatch(name, &json) {
        Ok(call) => match call.work() {
            Work::Executor(_) if environment.selection.new => {
                print::note(&format!(
                    "ikigai: --new cannot be used with {name}, which needs no session"
                ));
                return Ok(Exit::WrongUsage);
            }
            Work::Executor(executor) => execute(environment, &call, executor)?,
            Work::Step(step) => commit(environment, &call, step.clone())?,
        },
        Err(refusal) => Some(refusal),
    };
    let Some(result) = result else {
        print::note("ikigai: interrupted");
        return Ok(Exit::Interrupted);
    };
    print::out(print::safe_json(format_args!("{result}\n")))?;
    Ok(Exit::Done)
}

/// The arguments as typed, or all of standard input for `-`.
fn read_arguments(typed: &OsStr) -> anyhow::Result<Vec<u8>> {
    match typed.as_bytes() {
        b"-" => read_stdin("the arguments"),
        typed => Ok(typed.to_vec()),
    }
}

/// Performs a step on the database on behalf of the user; `None` if interrupted.
fn commit(
    environment: &Environment,
    call: &Call<Step>,
    step: Step,
) -> anyhow::Result<Option<ToolResult>> {
    let settings = &environment.settings;
    // A step only touches the database.
    let fact = |effect: &Effect| match effect {
        Effect::Database => Fact::Database,
        Effect::Read(_) | Effect::Write(_) | Effect::Command { .. } => Fact::Unknown,
        Effect::Host(_) | Effect::Unknown => Fact::Unknown,
    };
    let facts: Vec<Fact> = call.effects().iter().map(fact).collect();
    let gate =
        Gate::new(settings::mode(settings), Confinement::InForce, settings::rules(settings)?);
    if let Err(refused) = without_user(gate.judge(call.tool(), &facts)) {
        return Ok(Some(refused));
    }
    let session = StoredSession::open(environment)?;
    let (render, size) = (renderer(&step), settings::output_size(settings));
    let step = match step.within(settings::agent_limits(settings), || prompt(environment)) {
        Step::Wait(wait) => match session.wait_for_agents(wait)? {
            Some(Ok(waiting)) => Step::EndWait(waiting),
            Some(Err(refusal)) => {
                return Ok(Some(render(Some(&Outcome::Refused(refusal)), size)));
            }
            None => return Ok(None),
        },
        step => step,
    };
    let result = render(session.perform(step)?.as_ref(), size);
    Ok(Some(result.with_repairs(call.repairs())))
}

/// Runs the call; `None` if interrupted.
fn execute(
    environment: &Environment,
    call: &Call<Step>,
    executor: &Executor,
) -> anyhow::Result<Option<ToolResult>> {
    // Only calls with commands need one; others work even if none can be created.
    let runs_commands = call.effect_kinds().contains(&EffectKind::Command);
    let temporary = runs_commands.then(|| TemporaryFolder::of_process(environment));
    let temporary = temporary.transpose()?;
    let temporary = temporary.as_ref().map(TemporaryFolder::path);
    let permissions = permissions(environment, temporary, User::Absent)?;
    let variables = match temporary {
        Some(temporary) => environment.for_commands_in(temporary),
        None => Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let commands = match temporary {
            Some(_) => environment.agents_commands(variables)?,
            None => environment.commands(variables),
        };
        let commands = Arc::new(commands);
        let output_size = settings::output_size(&environment.settings);
        let interrupt = CancellationToken::new();
        let context =
            Context::new(&environment.directory, output_size, commands.clone(), interrupt.clone());
        let context = permissions.enclose(context);
        let running = async {
            let facts = call.facts(&context);
            let destinations = call.destinations(&context, &facts);
            let context =
                match without_user(permissions.judge(call.tool(), &facts, &commands).await) {
                    Ok(Reach::Tree) => context.reaching(Reach::Tree),
                    Ok(reach) => context.reaching(reach).leading_to(destinations),
                    Err(refused) => return refused,
                };
            let execution = executor.run(&context).await;
            let Some(why) = execution.no_sandbox else { return execution.result };
            // If a rule allowed the command without a sandbox, it would have run that way.
            let facts = Fact::leaving_sandbox(facts);
            let verdict = permissions.judge(call.tool(), &facts, &commands).await;
            without_user(verdict.because(Some(why))).err().unwrap_or(execution.result)
        };
        let result = until_interrupted(running, &interrupt).await;
        commands.close().await;
        result
    });
    // Do not wait for a file tool that is stuck in a system call.
    runtime.shutdown_background();
    result
}

/// Judges a call without a user: calls that need approval are refused.
fn without_user(verdict: Verdict) -> Result<Reach, ToolResult> {
    match verdict {
        Verdict::Allow(reach) => Ok(reach),
        Verdict::Ask(question) => Err(question.refusal()),
        Verdict::Deny(why) => Err(refusal(&why)),
    }
}

/// Waits for the call. A signal interrupts it; after a second one its end is not awaited.
async fn until_interrupted(
    call: impl Future<Output = ToolResult>,
    interrupt: &CancellationToken,
) -> anyhow::Result<Option<ToolResult>> {
    /// Longer than a command gets to exit after an interrupt.
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
