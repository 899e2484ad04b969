//! A single request to the model.

use std::time::Duration;

use ikigai_conversation::Effort;
use ikigai_providers::{Category, Delta, Fault, Progress, Request, Response, ToolUse};
use ikigai_store::StoreError;
use ikigai_tools::Mode;
use tracing::{debug, info, warn};

use crate::agent::Agent;
use crate::thought::Thought;
use crate::written_call::{WrittenCall, WrittenCalls};
use ikigai_protocol::EventKind;

/// Models usually take longer than this to answer. If one does not, there is no time to prepare.
const PREPARE_DELAY: Duration = Duration::from_millis(20);

/// The outcome of a request.
pub(crate) enum RequestOutcome {
    Answered(Response, Option<Thought>),
    /// Interrupted by the user, with what had arrived.
    Interrupted(Arrived),
    /// It failed, and retries did not help or are pointless.
    Failed(Fault),
}

/// What has arrived of a response.
#[derive(Debug, Default)]
pub(crate) struct Arrived {
    pub(crate) text: String,
    pub(crate) thought: Option<Thought>,
}

impl Agent {
    /// Asks the model what to do next. Text is emitted as it arrives. What came to nothing and may
    /// have been billed is accounted for.
    pub(crate) async fn ask(&mut self, tool_use: ToolUse) -> Result<RequestOutcome, StoreError> {
        self.refresh();
        let mut open_attempts = 0;
        let outcome = self.send(tool_use, &mut open_attempts).await;
        let reported = match &outcome {
            RequestOutcome::Answered(response, _) if response.tokens.is_some() => {
                // The table is small, and the request took longer than reading it.
                self.model().facts.looked_up().await;
                1
            }
            RequestOutcome::Answered(..)
            | RequestOutcome::Interrupted(_)
            | RequestOutcome::Failed(_) => 0,
        };
        if let RequestOutcome::Answered(..) = &outcome {
            self.warn_without_price(self.model());
        }
        self.lost_attempts = open_attempts.saturating_sub(reported);
        if reported == 0 && self.lost_attempts > 0 {
            let lost = std::mem::take(&mut self.lost_attempts);
            self.settle_request(lost).await?;
        }
        Ok(outcome)
    }

    /// Sends a request. A model that refuses the effort is asked once more without it, and the user
    /// is told. `open_attempts` counts the attempts that may be billed.
    async fn send(&self, tool_use: ToolUse, open_attempts: &mut u32) -> RequestOutcome {
        let effort = self.effort();
        let asked = self.send_with(effort, tool_use, open_attempts).await;
        match (&asked, effort) {
            (RequestOutcome::Failed(fault), Some(_)) if fault.category == Category::Refused => {}
            _ => return asked,
        }
        let outcome = self.send_with(None, tool_use, open_attempts).await;
        match &outcome {
            // Then the effort was not the reason.
            RequestOutcome::Failed(_) => return asked,
            RequestOutcome::Answered(..) => {
                let label = &self.model().label;
                if self.setup().models.refuse_effort(label) {
                    self.emit(EventKind::EffortRefused(label.clone()));
                }
            }
            RequestOutcome::Interrupted(_) => {}
        }
        outcome
    }

    async fn send_with(
        &self,
        effort: Option<Effort>,
        tool_use: ToolUse,
        open_attempts: &mut u32,
    ) -> RequestOutcome {
        let (model, interrupt) = (self.model(), self.interrupt.clone());
        let agent = &self.id().to_string();
        let log = self.log();
        let view = log.view();
        let request = Request {
            model: &model.name,
            origin: model.origin(),
            view: &view,
            tools: self.declared(),
            tool_use,
            effort,
            max_output_tokens: None,
        };
        let mut arrived = Arrived::default();
        let mut written = WrittenCalls::default();
        let mut on_progress = |progress: Progress<'_>| match progress {
            Progress::Sending => *open_attempts += 1,
            Progress::Refused => *open_attempts = open_attempts.saturating_sub(1),
            Progress::Delta(Delta::Text(text)) => {
                arrived.text.push_str(text);
                self.emit(EventKind::TextDelta(text.to_owned()));
            }
            Progress::Delta(Delta::Thinking(text)) => {
                arrived.thought.get_or_insert_with(Thought::start).add(text);
                self.emit(EventKind::ThinkingDelta(text.to_owned()));
            }
            Progress::Delta(Delta::Call { number, name, arguments }) => {
                if let Some(call) = written.add(number, name, arguments) {
                    self.emit(self.progress_of(call));
                }
            }
            Progress::Retry { attempt, of, fault, delay } => {
                arrived = Arrived::default();
                written = WrittenCalls::default();
                warn!(agent, attempt, %fault, ?delay, "asking again");
                let reason = fault.to_string();
                self.emit(EventKind::Retry { attempt, of, reason, delay });
            }
        };
        debug!(agent, model = model.label, seen = view.len(), "asking");
        let asked = self.while_preparing(model.client.ask(&request, &mut on_progress));
        match interrupt.run_until_cancelled(asked).await {
            Some(Ok(response)) => {
                let (calls, bytes) = (response.calls.len(), response.text.len());
                info!(agent, model = model.label, calls, bytes, ?response.tokens, "answered");
                RequestOutcome::Answered(response, arrived.thought)
            }
            Some(Err(fault)) => {
                warn!(agent, model = model.label, %fault, "failed");
                RequestOutcome::Failed(fault)
            }
            None => {
                info!(agent, model = model.label, "interrupted");
                RequestOutcome::Interrupted(arrived)
            }
        }
    }

    /// How far the model is with a call. What kind of call it is, its tool knows.
    fn progress_of(&self, call: WrittenCall) -> EventKind {
        let WrittenCall { name, subject, lines } = call;
        let mut tools = self.toolbox().dispatcher.tools();
        let tool = tools.find(|tool| tool.declaration().name == name);
        let effects = tool.map(|tool| tool.effects().to_vec()).unwrap_or_default();
        EventKind::CallProgress { name, effects, subject, lines }
    }

    /// Prepares the sandbox for commands that the model may call, while it is still answering.
    async fn while_preparing<T>(&self, asked: impl Future<Output = T>) -> T {
        let get_ready = async {
            tokio::time::sleep(PREPARE_DELAY).await;
            self.model().facts.look_up();
            let toolbox = self.toolbox();
            if toolbox.permissions.mode() == Mode::Work && toolbox.runs_commands() {
                self.context().get_ready().await;
            }
            std::future::pending().await
        };
        tokio::select! {
            // The request comes first: nothing that is only prepared may delay it.
            biased;
            answer = asked => answer,
            never = get_ready => never,
        }
    }
}
