//! The calls of one response: committed, run, closed, one after another.

use ikigai_conversation::{Body, NewMessage, ToolCall};
use ikigai_store::{Next, Outcome, Requests, Step, StoreError};
use ikigai_tools::{Approved, Call, Executor, FileUse, Reach, ToolResult, Work};
use tracing::info;

use crate::agent::Agent;
use crate::permission::{Permit, Subject};
use crate::tools::renderer;
use crate::written::Written;

/// What became of a response's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallsEnd {
    /// All are closed, and the model may be asked again.
    All,
    /// All are closed, but no request is left.
    BudgetUsedUp,
    /// The user has stopped them. What was started is closed.
    Interrupted,
}

/// A committed call that has no result yet.
#[derive(Clone)]
struct OpenCall {
    call: ToolCall,
    /// The turn's limit of responses with calls, if this is the last call that it allows.
    limit: Option<u32>,
    /// What the agent does when it is closed.
    next: Next,
}

impl OpenCall {
    /// The result's message.
    fn close(&self, mut result: ToolResult) -> NewMessage {
        if let Some(turns) = self.limit {
            result.mark_limit_reached(turns);
        }
        result.into_message(&self.call)
    }
}

impl Agent {
    /// Runs the calls of a response. Its text and its cost are committed together with the first call: a
    /// log that ended in the text alone would pass for an answer. The last result says so if these are the last calls
    /// that the turn's `limit` allows.
    pub(crate) async fn run_calls(
        &mut self,
        response: Written,
        limit: Option<u32>,
    ) -> Result<CallsEnd, StoreError> {
        let mut opening = response.words;
        let count = response.calls.len();
        for (number, message) in (1..).zip(response.calls) {
            let (message, prepared) = self.prepare(message);
            opening.push(message);
            let call = self.open_call(std::mem::take(&mut opening)).await?;
            let is_last = number == count;
            let limit = limit.filter(|_| is_last);
            let next = if is_last { Next::Request } else { Next::Tool };
            let requests = self.run_call(&OpenCall { call, limit, next }, prepared).await?;
            if self.interrupt.is_cancelled() {
                return Ok(CallsEnd::Interrupted);
            }
            if requests == Requests::UsedUp {
                return Ok(CallsEnd::BudgetUsedUp);
            }
        }
        Ok(CallsEnd::All)
    }

    /// Makes a call of a message, which then says what the call would do and how it is shown.
    fn prepare(&self, message: NewMessage) -> (NewMessage, Result<Call<Step>, ToolResult>) {
        let Body::ToolCall(call) = &message.body else {
            unreachable!("a response's calls are calls, not {:?}", message.body)
        };
        let dispatcher = &self.toolbox().dispatcher;
        match dispatcher.dispatch(&call.name, call.arguments.as_bytes()) {
            Ok(call) => (message.with_shown(call.effect_kinds(), call.summary()), Ok(call)),
            Err(refusal) => (message, Err(refusal)),
        }
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
        open: &OpenCall,
        prepared: Result<Call<Step>, ToolResult>,
    ) -> Result<Requests, StoreError> {
        let agent = &self.id().to_string();
        info!(agent, name = open.call.name, id = open.call.tool_call_id.as_str(), "call");
        let call = match prepared {
            Ok(call) => call,
            Err(refusal) => return self.record(vec![open.close(refusal)], open.next).await,
        };
        let subject = Subject::of(&call, &open.call.arguments, &self.context());
        let reach = match self.permit(&open.call, &call, subject.clone()).await? {
            Permit::Granted(reach) => reach,
            Permit::Refused(answer, result) => return self.refuse(open, answer, result).await,
        };
        match call.work() {
            Work::Executor(executor) => self.execute(open, &call, executor, subject, reach).await,
            Work::Step(step) => self.run_step(open, step.clone()).await,
        }
    }

    /// Closes a call that is not carried out, behind the user's answer if there was one.
    async fn refuse(
        &mut self,
        open: &OpenCall,
        answer: Option<NewMessage>,
        result: ToolResult,
    ) -> Result<Requests, StoreError> {
        let messages = answer.into_iter().chain([open.close(result)]).collect();
        self.record(messages, open.next).await
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
        let context = self.context().reaching(reach);
        let mut approved = Vec::with_capacity(subject.destinations.len());
        let context = match reach {
            Reach::Tree | Reach::Network => context,
            Reach::TreeAndGuarded | Reach::Anywhere | Reach::Full => {
                // What commands of other agents find there meanwhile is none of theirs.
                for path in &subject.destinations {
                    approved.push(self.toolbox().commands.approve_write(path).await);
                }
                context.leading_to(subject.destinations.clone())
            }
        };
        let mut execution = executor.run(&context).await;
        // The watchdog accepts what was written, and no other content that is found there.
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
        for line in self.ask_to_put_back(&open.call, call).await? {
            execution.result.add_line(&line);
        }
        self.record_execution(execution, |result| open.close(result), open.next).await
    }

    /// Runs a command whose sandbox could not be had, if it may run without.
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
        let execution = executor.run(&self.context().reaching(reach)).await;
        self.record_execution(execution, |result| open.close(result), open.next).await
    }

    /// Performs a committed call's step and commits its result with it.
    async fn run_step(&mut self, open: &OpenCall, step: Step) -> Result<Requests, StoreError> {
        let step = step.within(self.limits().agents, || self.prompt());
        let (result_of, size) = (renderer(&step), self.toolbox().output_size);
        let (next, open) = (open.next, open.clone());
        let render = move |outcome: &Outcome| open.close(result_of(Some(outcome), size));
        match step {
            Step::Wait(wait) => self.run_wait(wait, render, next).await,
            step => self.record_step(step, render, next).await,
        }
    }
}
