//! The calls of a response: each is committed, run and closed before the next, except for those that
//! only read (`reads.rs`).

use std::collections::VecDeque;

use ikigai_conversation::{Body, NewMessage, ToolCall};
use ikigai_protocol::{Event, EventKind};
use ikigai_store::{Next, Outcome, Requests, Sleep, Step, StoreError};
use ikigai_tools::{
    Approved, Call, Executor, FileUse, LiveOutput, LiveSink, Reach, ToolResult, Work,
};
use tracing::info;

use crate::agent::Agent;
use crate::permission::{Permit, Subject};
use crate::response_messages::ResponseMessages;
use crate::tools::renderer;

/// How the calls of a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallsEnd {
    /// All are closed, and another request may be made.
    All,
    /// All are closed, but the request budget is used up.
    BudgetUsedUp,
    /// The user interrupted them. Calls that had started are closed.
    Interrupted,
    /// All are closed, and the turn ended with the last result.
    TurnEnded(Sleep),
}

/// Whether the turn ends with the result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnAfter {
    Continues,
    /// It ends if the call succeeds. The model has to see why it failed.
    EndsOnSuccess,
    Ends,
}

/// What follows a call, or the last of several that are committed together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AfterCall {
    /// The turn's limit of responses with calls, if this is the last call within it.
    limit: Option<u32>,
    /// What the agent does next, if the turn continues.
    pub(crate) next: Next,
    turn: TurnAfter,
}

impl AfterCall {
    pub(crate) const ANOTHER_CALL: AfterCall =
        AfterCall { limit: None, next: Next::Tool, turn: TurnAfter::Continues };

    /// After a call that is followed by `later` ones of the same response.
    fn followed_by(later: usize, limit: Option<u32>, turn: TurnAfter) -> AfterCall {
        match later {
            0 => AfterCall { limit, next: Next::Request, turn },
            _ => AfterCall::ANOTHER_CALL,
        }
    }
}

/// A call of a response, as far as it was understood.
pub(crate) struct PreparedCall {
    /// With the call's effects and summary.
    pub(crate) message: NewMessage,
    /// The result of a call that cannot be run.
    pub(crate) prepared: Result<Call<Step>, ToolResult>,
}

/// A call that has no result yet. It is committed, unless it only reads.
#[derive(Clone)]
pub(crate) struct OpenCall {
    pub(crate) call: ToolCall,
    pub(crate) after: AfterCall,
}

impl OpenCall {
    pub(crate) fn new(call: ToolCall, after: AfterCall) -> OpenCall {
        OpenCall { call, after }
    }

    /// The message with the result.
    pub(crate) fn close(&self, mut result: ToolResult) -> NewMessage {
        if let Some(turns) = self.after.limit {
            result.mark_limit_reached(turns);
        }
        let ends_turn = match self.after.turn {
            TurnAfter::Continues => false,
            TurnAfter::EndsOnSuccess => result.is_success(),
            TurnAfter::Ends => true,
        };
        let message = result.into_message(&self.call);
        if ends_turn { message.ending_turn() } else { message }
    }
}

impl Agent {
    /// Runs the calls of a response: those that only read together, all others one after another.
    /// The response's text and usage are committed with the first call: a log that ended with the
    /// text alone would look like an answer. If these are the last calls within the turn's `limit`,
    /// the last result says so. If one of them that ends the turn has succeeded, the turn ends with
    /// the last result.
    pub(crate) async fn run_calls(
        &mut self,
        response: ResponseMessages,
        limit: Option<u32>,
    ) -> Result<CallsEnd, StoreError> {
        let mut before = response.messages;
        let calls = response.calls.into_iter().map(|message| self.prepare(message));
        let mut calls: VecDeque<PreparedCall> = calls.collect();
        let mut at_end = TurnAfter::Continues;
        loop {
            let reads = self.take_reads(&mut calls).await;
            let before = std::mem::take(&mut before);
            let requests = if !reads.is_empty() {
                let after = AfterCall::followed_by(calls.len(), limit, at_end);
                self.run_reads(before, reads, after).await?
            } else if let Some(call) = calls.pop_front() {
                let ends_turn = call.prepared.as_ref().is_ok_and(Call::ends_turn);
                let turn = match at_end {
                    TurnAfter::Continues if ends_turn => TurnAfter::EndsOnSuccess,
                    turn => turn,
                };
                let after = AfterCall::followed_by(calls.len(), limit, turn);
                let requests = self.run_call(before, call, after).await?;
                if ends_turn && self.last_call_succeeded() {
                    at_end = TurnAfter::Ends;
                }
                requests
            } else {
                return Ok(CallsEnd::All);
            };
            match requests {
                Requests::NotNeeded(sleep) => return Ok(CallsEnd::TurnEnded(sleep)),
                _ if self.interrupt.is_cancelled() => return Ok(CallsEnd::Interrupted),
                Requests::UsedUp => return Ok(CallsEnd::BudgetUsedUp),
                Requests::Granted => {}
            }
        }
    }

    fn last_call_succeeded(&self) -> bool {
        let result = self.log.iter().rev().find_map(|message| match &message.body {
            Body::ToolResult(result) => Some(result.success),
            _ => None,
        });
        result.unwrap_or(false)
    }

    /// Prepares the call in a message.
    fn prepare(&self, message: NewMessage) -> PreparedCall {
        let Body::ToolCall(call) = &message.body else {
            unreachable!("a response's calls are calls, not {:?}", message.body)
        };
        let dispatcher = &self.toolbox().dispatcher;
        match dispatcher.dispatch(&call.name, call.arguments.as_bytes()) {
            Ok(call) => {
                let message = message.with_shown(call.effect_kinds(), call.summary());
                PreparedCall { message, prepared: Ok(call) }
            }
            Err(refusal) => PreparedCall { message, prepared: Err(refusal) },
        }
    }

    /// Commits a call together with the messages before it.
    async fn open_call(&mut self, messages: Vec<NewMessage>) -> Result<ToolCall, StoreError> {
        self.record(messages, Next::Tool).await?;
        match self.log.last().map(|message| &message.body) {
            Some(Body::ToolCall(call)) => Ok(call.clone()),
            other => unreachable!("the call was the last to be recorded, not {other:?}"),
        }
    }

    /// Commits a call together with the messages before it, runs it and commits its result.
    async fn run_call(
        &mut self,
        mut before: Vec<NewMessage>,
        call: PreparedCall,
        after: AfterCall,
    ) -> Result<Requests, StoreError> {
        let PreparedCall { message, prepared } = call;
        before.push(message);
        let open = &OpenCall::new(self.open_call(before).await?, after);
        let agent = &self.id().to_string();
        info!(agent, name = open.call.name, id = open.call.tool_call_id.as_str(), "call");
        let call = match prepared {
            Ok(call) => call,
            Err(refusal) => return self.record(vec![open.close(refusal)], after.next).await,
        };
        let subject = Subject::of(&call, &open.call.arguments, &self.context());
        let reach = match self.permit(&open.call, &call, subject.clone()).await? {
            Permit::Granted(reach) => reach,
            Permit::Refused(answer, result) => return self.refuse(open, answer, result).await,
        };
        match call.work() {
            Work::Executor(executor) => self.execute(open, &call, executor, subject, reach).await,
            Work::Step(step) => self.run_step(open, &call, step.clone()).await,
        }
    }

    /// Closes a call that was refused, after the user's answer if there was one.
    async fn refuse(
        &mut self,
        open: &OpenCall,
        answer: Option<NewMessage>,
        result: ToolResult,
    ) -> Result<Requests, StoreError> {
        let messages = answer.into_iter().chain([open.close(result)]).collect();
        self.record(messages, open.after.next).await
    }

    /// Runs a permitted call and commits its result.
    async fn execute(
        &mut self,
        open: &OpenCall,
        call: &Call<Step>,
        executor: &Executor,
        subject: Subject,
        reach: Reach,
    ) -> Result<Requests, StoreError> {
        let context = self.context().reaching(reach).with_live_output(self.live_sink(&open.call));
        let mut approved = Vec::with_capacity(subject.destinations.len());
        let context = match reach {
            Reach::Tree | Reach::Network => context,
            Reach::TreeAndGuarded | Reach::Anywhere | Reach::Full => {
                // Changes to these paths must not be attributed to other agents' commands that run
                // now.
                for path in &subject.destinations {
                    approved.push(self.toolbox().commands.approve_write(path).await);
                }
                context.leading_to(subject.destinations.clone())
            }
        };
        let mut execution = executor.run(&context).await;
        // The watchdog accepts exactly the content that was written.
        if let Some(FileUse::Changed(change)) = &execution.file {
            let content = Approved::Content(change.hash.clone());
            for write in approved.drain(..) {
                write.wrote(&content).await;
            }
        }
        drop(approved);
        if let Some(why) = execution.no_sandbox {
            return self.run_without_sandbox(open, call, executor, subject, why).await;
        }
        if let Some(leaving) = execution.leaving.take() {
            return self.record_background(open, call, *leaving).await;
        }
        for line in self.ask_to_restore(&open.call, call).await? {
            execution.result.add_line(&line);
        }
        self.record_execution(execution, |result| open.close(result), open.after.next).await
    }

    /// Passes on what a call prints while it runs.
    fn live_sink(&self, call: &ToolCall) -> LiveSink {
        let (setup, agent) = (self.setup(), self.id().clone());
        let call = call.tool_call_id.clone();
        LiveSink::new(move |LiveOutput { text: delta, skipped }| {
            let kind = EventKind::ToolOutput { call: call.clone(), delta, skipped };
            (setup.events)(Event { agent: agent.clone(), kind });
        })
    }

    /// Runs a command whose sandbox is not available, if it may run without one.
    async fn run_without_sandbox(
        &mut self,
        open: &OpenCall,
        call: &Call<Step>,
        executor: &Executor,
        subject: Subject,
        why: String,
    ) -> Result<Requests, StoreError> {
        let reach = match self.permit_without_sandbox(&open.call, call, subject, why).await? {
            Permit::Granted(reach) => reach,
            Permit::Refused(answer, result) => return self.refuse(open, answer, result).await,
        };
        let context = self.context().reaching(reach).with_live_output(self.live_sink(&open.call));
        let mut execution = executor.run(&context).await;
        if let Some(leaving) = execution.leaving.take() {
            return self.record_background(open, call, *leaving).await;
        }
        self.record_execution(execution, |result| open.close(result), open.after.next).await
    }

    /// Performs the step of a committed call, in the same commit as its result.
    async fn run_step(
        &mut self,
        open: &OpenCall,
        call: &Call<Step>,
        step: Step,
    ) -> Result<Requests, StoreError> {
        let step = step.within(self.limits().agents, || self.prompt());
        let (result_of, size) = (renderer(&step), self.output_size());
        let (next, open, repairs) = (open.after.next, open.clone(), call.repairs().cloned());
        let render = move |outcome: &Outcome| {
            open.close(result_of(Some(outcome), size).with_repairs(repairs.as_ref()))
        };
        match step {
            Step::Wait(wait) => self.run_wait(wait, render, next).await,
            step => self.record_step(step, render, next).await,
        }
    }
}
