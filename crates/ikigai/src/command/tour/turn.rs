//! One turn of an agent, shown as it goes on.

use std::sync::{Arc, Mutex};

use ikigai_agents::{Command, Done, Event, Happening, Seat, Sink, Stop, serve};
use ikigai_conversation::Body;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::page::{SharedPage, lock};
use crate::environment::Environment;
use crate::model;
use crate::opening::equip;

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
    let agent = equip(environment, seat, model, events)?;
    let (tell, commands) = mpsc::channel(1);
    if let Start::Said(text) = start {
        tell.send(Command::Say(text.to_owned())).await?;
    }
    let serving = serve(agent, commands, interrupt.clone());
    let ending = async {
        let end = interrupt.run_until_cancelled(end).await;
        // An agent to which nobody speaks any more ends with its turn.
        drop(tell);
        end
    };
    let (served, end) = tokio::join!(serving, ending);
    served?;
    match end {
        Some(Ok(Done { stop: Stop::Error, error, .. })) => {
            anyhow::bail!("{}", error.unwrap_or_else(|| "the turn failed".to_owned()))
        }
        Some(Ok(_)) | None => {}
        Some(Err(_)) => anyhow::bail!("the agent has ended without an answer"),
    }
    let results = results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(results.clone())
}

fn sink(
    page: SharedPage,
    results: Arc<Mutex<Vec<CallResult>>>,
    ended: oneshot::Sender<Done>,
) -> Sink {
    let mut ended = Some(ended);
    Box::new(move |event: Event| {
        lock(&page).show(&event);
        match event.happening {
            Happening::Logged(message) => {
                if let Body::ToolResult(result) = &message.body {
                    let (success, content) = (result.success, message.content);
                    let mut results =
                        results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    results.push(CallResult { success, content });
                }
            }
            Happening::Done(done) => {
                // Nobody waits for it after an interrupt.
                ended.take().map(|ended| ended.send(done));
            }
            Happening::Text(_) | Happening::Retry { .. } => {}
            Happening::StoreWaits(_) | Happening::MailHeld | Happening::Lost(_) => {}
        }
    })
}
