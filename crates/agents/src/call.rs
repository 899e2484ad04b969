//! The calls of one response: committed, run, closed, one after another.

use ikigai_conversation::{Body, NewMessage, ToolCall};
use ikigai_store::{Next, Outcome, Requests, Step, StoreError};
use ikigai_tools::{Approved, Facts, Prepared, Reach, ToolResult, Touched};
use tracing::info;

use crate::agent::Agent;
use crate::permission::{Permit, Subject};
use crate::tools::renderer;
use crate::written::Written;

/// What became of a response's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ran {
    /// All are closed, and the model may be asked again.
    All,
    /// All are closed, but no request is left.
    BudgetUsedUp,
    /// The person has stopped them. What was begun is closed.
    Interrupted,
}

impl Agent {
    /// Runs the calls of a response. Its text and its cost are committed together with the first call: a
    /// log that ended in the text alone would pass for an answer. The last result says so if these are the last calls
    /// that the turn's `limit` allows.
    pub(crate) async fn run_calls(
        &mut self,
        response: Written,
        limit: Option<u32>,
    ) -> Result<Ran, StoreError> {
        let mut opening = response.words;
        let count = response.calls.len();
        for (number, call) in (1..).zip(response.calls) {
            opening.push(call);
            let call = self.open_call(std::mem::take(&mut opening)).await?;
            let is_last = number == count;
            let limit = limit.filter(|_| is_last);
            let next = if is_last { Next::Request } else { Next::Tool };
            let requests = self.run_call(call, limit, next).await?;
            if self.interrupt.is_cancelled() {
                return Ok(Ran::Interrupted);
            }
            if requests == Requests::UsedUp {
                return Ok(Ran::BudgetUsedUp);
            }
        }
        Ok(Ran::All)
    }

    /// Commits a call with what stands before it.
    async fn open_call(&mut self, opening: Vec<NewMessage>) -> Result<ToolCall, StoreError> {
        self.record(opening, Next::Tool).await?;
        match self.log.last().map(|message| &message.body) {
            Some(Body::ToolCall(call)) => Ok(call.clone()),
            other => unreachable!("the call was the last to be recorded, not {other:?}"),
        }
    }

    /// Runs a committed call and commits its result.
    async fn run_call(
        &mut self,
        call: ToolCall,
        limit: Option<u32>,
        next: Next,
    ) -> Result<Requests, StoreError> {
        let agent = &self.id().to_string();
        info!(agent, name = call.name, id = call.tool_call_id.as_str(), "call");
        let prepared = self.toolbox().dispatcher.dispatch(&call.name, call.arguments.as_bytes());
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(refusal) => return self.record(vec![close(&call, refusal, limit)], next).await,
        };
        let subject = match &prepared {
            Prepared::Call(prepared) => Subject::of(prepared, &self.context()),
            Prepared::Step(_) => Subject { facts: Facts::Other, destination: None },
        };
        let destination = subject.destination.clone();
        let reach = match self.permit(&call, subject.clone()).await? {
            Permit::Granted(reach) => reach,
            Permit::Refused(answer, result) => {
                let result = close(&call, result, limit);
                return self.record(answer.into_iter().chain([result]).collect(), next).await;
            }
        };
        match prepared {
            Prepared::Call(prepared) => {
                // What commands of other agents find there meanwhile is none of theirs.
                let expecting = match (&destination, reach) {
                    (Some(path), Reach::TreeAndGuarded | Reach::Anywhere | Reach::Full) => {
                        Some(self.toolbox().commands.expecting(path).await)
                    }
                    _ => None,
                };
                let context = self.context().reaching(reach);
                let context = match reach {
                    Reach::Tree | Reach::Network => context,
                    Reach::TreeAndGuarded | Reach::Anywhere | Reach::Full => {
                        context.leading_to(destination)
                    }
                };
                let mut ran = prepared.run(&context).await;
                if let (Some(expecting), Some(Touched::Changed(change))) = (expecting, &ran.touched)
                {
                    expecting.wrote(&Approved::Content(change.hash.clone())).await;
                }
                if let Some(why) = ran.no_sandbox {
                    return self.run_without_sandbox(call, subject, why, limit, next).await;
                }
                for line in self.ask_to_put_back(&call).await? {
                    ran.result.add_line(&line);
                }
                self.record_ran(ran, |result| close(&call, result, limit), next).await
            }
            Prepared::Step(step) => self.run_step(call, step, limit, next).await,
        }
    }

    /// Runs a command whose sandbox could not be had, if it may run without.
    async fn run_without_sandbox(
        &mut self,
        call: ToolCall,
        subject: Subject,
        why: String,
        limit: Option<u32>,
        next: Next,
    ) -> Result<Requests, StoreError> {
        let reach = match self.permit_without_sandbox(&call, subject, why).await? {
            Permit::Granted(reach) => reach,
            Permit::Refused(answer, result) => {
                let result = close(&call, result, limit);
                return self.record(answer.into_iter().chain([result]).collect(), next).await;
            }
        };
        match self.toolbox().dispatcher.dispatch(&call.name, call.arguments.as_bytes()) {
            Ok(Prepared::Call(prepared)) => {
                let ran = prepared.run(&self.context().reaching(reach)).await;
                self.record_ran(ran, |result| close(&call, result, limit), next).await
            }
            Ok(Prepared::Step(step)) => self.run_step(call, step, limit, next).await,
            Err(refusal) => self.record(vec![close(&call, refusal, limit)], next).await,
        }
    }

    /// Performs a committed call's step and commits its result with it.
    async fn run_step(
        &mut self,
        call: ToolCall,
        step: Step,
        limit: Option<u32>,
        next: Next,
    ) -> Result<Requests, StoreError> {
        let step = step.within(self.limits().agents, || self.prompt());
        let (result_of, size) = (renderer(&step), self.toolbox().output_size);
        let render = move |outcome: &Outcome| close(&call, result_of(Some(outcome), size), limit);
        match step {
            Step::Wait(wait) => self.run_wait(wait, render, next).await,
            step => self.record_step(step, render, next).await,
        }
    }
}

/// The result's message; with the limit's words, if it is the last that this turn may have.
fn close(call: &ToolCall, mut result: ToolResult, limit: Option<u32>) -> NewMessage {
    if let Some(turns) = limit {
        result.mark_limit_reached(turns);
    }
    NewMessage::tool_result(call, result.to_string())
}
