//! Running one turn of an agent, printed as it happens.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ikigai_conversation::Body;
use ikigai_host::{AgentChoice, AgentSlot, Environment, ServiceEnd, connect};
use ikigai_protocol::{Command, Event, EventKind, EventSink, Request, StopReason, TurnEnd};
use ikigai_tools::Mode;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::page::{SharedPage, lock};

/// The limit on a turn; the longest in the tour takes a few seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// What starts a turn.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start<'a> {
    /// A message of the user.
    Message(&'a str),
    /// Pending work: mail, or a turn that was cut off.
    Pending,
}

/// The part of a call's result that the tour checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallResult {
    pub(super) success: bool,
    /// The result's summary line.
    pub(super) content: String,
}

/// Runs an agent until its turn has ended, and releases it. Returns the results of its calls.
pub(super) async fn run_turn(
    environment: &Environment,
    slot: AgentSlot,
    start: Start<'_>,
    page: &SharedPage,
    interrupt: &CancellationToken,
) -> anyhow::Result<Vec<CallResult>> {
    let model = connect(environment)?;
    let results = Arc::new(Mutex::new(Vec::new()));
    let (ended, end) = oneshot::channel();
    let events = sink(Arc::clone(page), Arc::clone(&results), ended);
    let agent = slot.agent().clone();
    let (session, service) = slot.open(AgentChoice::new(environment, model), events).await?;
    let request = |command| Request { agent: agent.clone(), command };
    if session.sandbox().is_err() {
        // Without a sandbox every command needs approval, but the tour only runs known commands.
        session.execute(request(Command::Mode { mode: Some(Mode::Full) })).await?;
    }
    let stop = interrupt.child_token();
    let serving = service.run(stop.clone());
    let ending = async {
        if let Start::Message(text) = start {
            // Errors end the service.
            let _ = session.execute(request(Command::Say { text: text.to_owned() })).await;
        }
        let end = timeout(PATIENCE, interrupt.run_until_cancelled(end)).await;
        if end.is_err() {
            stop.cancel();
        }
        // Once the session is dropped, the service ends with the turn.
        drop(session);
        end
    };
    let (end, served) = tokio::join!(ending, serving);
    match served? {
        ServiceEnd::Finished => {}
        ServiceEnd::AgentLost(error) => return Err(error.into()),
    }
    match end {
        Ok(Some(Ok(TurnEnd { stop: StopReason::Error, error, .. }))) => {
            anyhow::bail!("{}", error.unwrap_or_else(|| "the turn failed".to_owned()))
        }
        Ok(Some(Ok(_)) | None) => {}
        Ok(Some(Err(_))) => anyhow::bail!("the agent ended without an answer"),
        Err(_) => anyhow::bail!("the agent did not answer within {} s", PATIENCE.as_secs()),
    }
    Ok(std::mem::take(&mut *unpoisoned(&results)))
}

fn sink(
    page: SharedPage,
    results: Arc<Mutex<Vec<CallResult>>>,
    ended: oneshot::Sender<TurnEnd>,
) -> EventSink {
    let ended = Mutex::new(Some(ended));
    Arc::new(move |event: Event| {
        lock(&page).show(&event);
        match event.kind {
            EventKind::Message(message) => {
                if let Body::ToolResult(result) = &message.body {
                    let (success, content) = (result.success, message.content);
                    unpoisoned(&results).push(CallResult { success, content });
                }
            }
            EventKind::TurnEnded(done) => {
                // After an interrupt there is no receiver.
                unpoisoned(&ended).take().map(|ended| ended.send(done));
            }
            EventKind::TurnStarted(_) | EventKind::TextDelta(_) | EventKind::Retry { .. } => {}
            EventKind::DatabaseUnavailable(_) | EventKind::MailHeld | EventKind::AgentLost(_) => {}
            EventKind::InputRejected(_) | EventKind::ThinkingDelta(_) => {}
            EventKind::EffortRefused(_) | EventKind::Warning(_) => {}
            EventKind::ContextUsed { .. } | EventKind::Compaction(_) => {}
            EventKind::ReadsStarted(_) | EventKind::ToolOutput { .. } => {}
            EventKind::CommandStarted { .. } | EventKind::CommandOutput { .. } => {}
            EventKind::CommandEnded { .. } | EventKind::CommandLost { .. } => {}
            EventKind::ApprovalRequested(_) | EventKind::CallProgress { .. } => {}
        }
    })
}

fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
