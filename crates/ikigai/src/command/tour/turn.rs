//! One turn of an agent, shown as it goes on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ikigai_agents::{AgentCommand, FreeAgents, Order, Person, Seat, serve};
use ikigai_conversation::Body;
use ikigai_protocol::{Event, EventKind, EventSink, StopReason, TurnEnd};
use ikigai_tools::Mode;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::page::{SharedPage, lock};
use crate::environment::Environment;
use crate::model;
use crate::opening::{equip, toolbox};
use crate::temporary::TemporaryFolder;

/// How long a turn may take: the longest in the walk takes some seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// What starts a turn.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start<'a> {
    /// The person says this.
    Said(&'a str),
    /// What the agent finds: its mail, or a turn that was cut off.
    Found,
}

/// The result of a call, as far as the walk looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallResult {
    pub(super) success: bool,
    /// In one line.
    pub(super) content: String,
}

/// Runs an agent until its turn has ended, and gives its seat back. Returns the results of its calls.
pub(super) async fn run_turn(
    environment: &Environment,
    seat: Seat,
    start: Start<'_>,
    page: &SharedPage,
    interrupt: &CancellationToken,
) -> anyhow::Result<Vec<CallResult>> {
    let model = model::connect(environment)?;
    let results = Arc::new(Mutex::new(Vec::new()));
    let (ended, end) = oneshot::channel();
    let events = sink(Arc::clone(page), Arc::clone(&results), ended);
    let temporary = TemporaryFolder::of_session(environment, seat.session())?;
    let toolbox = toolbox(environment, &seat, &temporary, Person::Absent)?;
    if toolbox.commands.sandbox_kind().await.is_err() {
        // There would be questions and nobody to answer; all that is run here is known.
        toolbox.permissions.set_mode(Mode::Full);
    }
    let own = seat.agent().clone();
    let mut equipment = equip(environment, model, toolbox, events);
    // The script says who speaks when.
    equipment.limits.free_agents = FreeAgents::Left;
    let (tell, orders) = mpsc::channel(1);
    if let Start::Said(text) = start {
        tell.send(Order::new(own, AgentCommand::Say(text.to_owned())).0).await?;
    }
    let shutdown = interrupt.child_token();
    let serving = serve(seat, equipment, orders, shutdown.clone());
    let ending = async {
        let end = timeout(PATIENCE, interrupt.run_until_cancelled(end)).await;
        if end.is_err() {
            shutdown.cancel();
        }
        // An agent to which nobody speaks any more ends with its turn.
        drop(tell);
        end
    };
    let (served, end) = tokio::join!(serving, ending);
    served?;
    match end {
        Ok(Some(Ok(TurnEnd { stop: StopReason::Error, error, .. }))) => {
            anyhow::bail!("{}", error.unwrap_or_else(|| "the turn failed".to_owned()))
        }
        Ok(Some(Ok(_)) | None) => {}
        Ok(Some(Err(_))) => anyhow::bail!("the agent has ended without an answer"),
        Err(_) => anyhow::bail!("the agent does not answer within {} s", PATIENCE.as_secs()),
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
                // Nobody waits for it after an interrupt.
                unpoisoned(&ended).take().map(|ended| ended.send(done));
            }
            EventKind::TurnStarted(_) | EventKind::TextDelta(_) | EventKind::Retry { .. } => {}
            EventKind::DatabaseUnavailable(_) | EventKind::MailHeld | EventKind::AgentLost(_) => {}
            EventKind::InputRejected(_) => {}
            EventKind::ApprovalRequested(_) => {}
        }
    })
}

fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
