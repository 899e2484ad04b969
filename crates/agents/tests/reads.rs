//! Calls that only read, by a tool that shows how many of them run at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ikigai_agents::{AgentCommand, User};
use ikigai_conversation::{Body, EffectKind, Mode};
use ikigai_protocol::EventKind;
use ikigai_store::Step;
use ikigai_testkit::{ModelServer, Reply};
use ikigai_tools::{
    Arguments, Call, Declaration, Dispatcher, Effect, Execution, Tool, ToolResult, interrupted,
};
use serde_json::json;
use tokio::sync::Barrier;

use crate::support::{Abilities, Process};

/// The most reads that may run at the same time.
const AT_ONCE: usize = 8;

/// A tool that reads, and ends as soon as as many calls as may run do.
#[derive(Debug)]
struct Look {
    declaration: Declaration,
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    full: Arc<Barrier>,
}

impl Tool<Step> for Look {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn effects(&self) -> &[EffectKind] {
        &[EffectKind::Read]
    }

    fn prepare(&self, _: &Arguments) -> Result<Call<Step>, ToolResult> {
        let (running, most) = (Arc::clone(&self.running), Arc::clone(&self.most));
        let full = Arc::clone(&self.full);
        let work = move |context: ikigai_tools::Context| {
            let (running, most, full) = (running.clone(), most.clone(), full.clone());
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let met = context.until_interrupted(full.wait()).await;
                running.fetch_sub(1, Ordering::SeqCst);
                Execution::from(match met {
                    Some(_) => ToolResult::output("seen".to_owned()),
                    None => interrupted(),
                })
            }
        };
        Ok(Call::waiting(work).with_effects([Effect::Read(".".to_owned())]))
    }
}

/// An agent whose model makes so many calls in one response.
async fn agent_with(calls: usize) -> (Process, Arc<AtomicUsize>) {
    let most = Arc::new(AtomicUsize::new(0));
    let declaration = Declaration::new("look", "Look around", &[]);
    let (running, full) = (Arc::default(), Arc::new(Barrier::new(AT_ONCE)));
    let tool = Look { declaration, running, most: Arc::clone(&most), full };
    let ids: Vec<String> = (0..calls).map(|number| format!("c{number}")).collect();
    let calls = ids.iter().map(|id| (id.as_str(), "look", json!({})));
    let server = ModelServer::start([Reply::calls(calls), Reply::text("done")]);
    let tools = Dispatcher::new(vec![Arc::new(tool)]);
    let (mode, rules, user) = (Mode::Work, Vec::new(), User::Present);
    let process = Process::start_with(server, Abilities { tools, mode, rules, user }).await;
    process.order(AgentCommand::Say("look around".to_owned())).await.unwrap();
    (process, most)
}

/// What the results in the log say, until the turn ends.
async fn results(process: &mut Process) -> Vec<String> {
    let mut results = Vec::new();
    loop {
        match process.wait_for(|_| true).await.kind {
            EventKind::Message(message) if matches!(message.body, Body::ToolResult(_)) => {
                results.push(message.content);
            }
            EventKind::TurnEnded(_) => return results,
            _ => {}
        }
    }
}

#[tokio::test]
async fn eight_reads_run_at_the_same_time_and_no_more() {
    let (mut process, most) = agent_with(2 * AT_ONCE).await;
    assert_eq!(results(&mut process).await, ["seen"; 2 * AT_ONCE]);
    assert_eq!(most.load(Ordering::SeqCst), AT_ONCE);
    process.end().await;
}

/// Nine calls: eight end, and the ninth waits for others that never come.
#[tokio::test]
async fn an_interrupt_keeps_the_results_that_are_there_and_closes_the_others() {
    let (mut process, _) = agent_with(AT_ONCE + 1).await;
    let started = process.wait_for(|event| matches!(event.kind, EventKind::ReadsStarted(_))).await;
    let EventKind::ReadsStarted(calls) = started.kind else { panic!("it is one") };
    assert_eq!(calls.len(), AT_ONCE + 1);
    process.order(AgentCommand::Interrupt).await.unwrap();
    let results = results(&mut process).await;
    assert_eq!(results.len(), AT_ONCE + 1);
    let closed = "error: Interrupted: it was not carried out";
    assert!(results.iter().all(|result| result == "seen" || result == closed), "{results:?}");
    assert_eq!(results.last().map(String::as_str), Some(closed));
    process.end().await;
}
