//! Calls that only read and need no approval. Those that follow each other run at the same time, and
//! reach the log together: they have no effects that a crash could leave without a trace, so that
//! committing each before it runs would protect nothing.

use std::collections::VecDeque;

use ikigai_conversation::{Body, EffectKind, NewMessage, ToolCall};
use ikigai_protocol::EventKind;
use ikigai_store::{Requests, Step, StoreError};
use ikigai_tools::{Call, Context, Execution, Executor, Work, interrupted};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::agent::Agent;
use crate::call::{AfterCall, OpenCall, PreparedCall};
use crate::files::Access;
use crate::permission::Subject;

/// How many run at the same time: enough to keep a disk busy, few enough for the other agents to
/// get their turn.
const AT_ONCE: usize = 8;

/// A call that may run at the same time as others.
pub(crate) struct Read {
    message: NewMessage,
    call: ToolCall,
    executor: Executor,
    context: Context,
}

impl Agent {
    /// Takes the reads at the front of the calls.
    pub(crate) async fn take_reads(&self, calls: &mut VecDeque<PreparedCall>) -> Vec<Read> {
        let mut reads = Vec::new();
        while let Some(call) = calls.front()
            && let Some(read) = self.as_read(call).await
        {
            calls.pop_front();
            reads.push(read);
        }
        reads
    }

    async fn as_read(&self, call: &PreparedCall) -> Option<Read> {
        let PreparedCall { message, prepared: Ok(prepared) } = call else { return None };
        let (Body::ToolCall(call), Work::Executor(executor)) = (&message.body, prepared.work())
        else {
            return None;
        };
        if !only_reads(prepared) {
            return None;
        }
        let subject = Subject::of(prepared, &call.arguments, &self.context());
        let reach = self.reach_without_approval(prepared, &subject).await?;
        let context = self.context().reaching(reach).leading_to(subject.destinations);
        Some(Read {
            message: message.clone(),
            call: call.clone(),
            executor: executor.clone(),
            context,
        })
    }

    /// Runs reads at the same time. Calls and results are committed in the order of the calls,
    /// together with the messages `before` them. An interrupt closes those that have not ended.
    pub(crate) async fn run_reads(
        &mut self,
        before: Vec<NewMessage>,
        reads: Vec<Read>,
        after: AfterCall,
    ) -> Result<Requests, StoreError> {
        let agent = &self.id().to_string();
        info!(agent, count = reads.len(), "reads");
        self.emit(EventKind::ReadsStarted(reads.iter().map(|read| read.call.clone()).collect()));
        let executions = execute_all(&reads, &self.interrupt).await;
        let last = reads.len() - 1;
        let mut accesses: Vec<Access> = before.into_iter().map(Access::from).collect();
        for (number, (read, execution)) in reads.into_iter().zip(executions).enumerate() {
            let after = if number == last { after } else { AfterCall::ANOTHER_CALL };
            let result = OpenCall::new(read.call, after).close(execution.result);
            accesses.push(read.message.into());
            accesses.push(Access { file: execution.file, ..result.into() });
        }
        self.record_accesses(accesses, after.next).await
    }
}

/// Runs reads at the same time, as many as may. The results are in the order of the reads.
async fn execute_all(reads: &[Read], interrupt: &CancellationToken) -> Vec<Execution> {
    let mut executions: Vec<Option<Execution>> = reads.iter().map(|_| None).collect();
    let mut waiting = reads.iter().enumerate();
    let mut running = JoinSet::new();
    loop {
        while running.len() < AT_ONCE
            && !interrupt.is_cancelled()
            && let Some((number, read)) = waiting.next()
        {
            let (executor, context) = (read.executor.clone(), read.context.clone());
            running.spawn(async move { (number, executor.run(&context).await) });
        }
        match running.join_next().await {
            Some(Ok((number, execution))) => executions[number] = Some(execution),
            // It panicked, and is closed like one that did not run.
            Some(Err(_)) => {}
            None => break,
        }
    }
    executions.into_iter().map(|done| done.unwrap_or_else(|| interrupted().into())).collect()
}

fn only_reads(call: &Call<Step>) -> bool {
    call.effect_kinds().iter().all(|kind| *kind == EffectKind::Read)
}
