//! Orders are answered whatever the agent is doing.

use ikigai_agents::{AgentCommand, Answer, BetweenTurns, CompactRequest};
use ikigai_conversation::{AgentId, Body, MessageId};
use ikigai_protocol::{CommandError, Event, EventKind, Nothing, QueuedUntil, Reply};
use ikigai_testkit::{CapturedRequest, Gate, ModelServer, Point, Reply as ModelReply};
use serde_json::json;

use crate::support::Process;

/// The states of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The session has not started.
    New,
    /// It has answered.
    Idle,
    /// Its last turn failed.
    Failed,
    /// The model is answering.
    Streaming,
    /// It runs a tool.
    Tool,
    /// It waits for approval.
    Asking,
}

const STATES: [State; 6] =
    [State::New, State::Idle, State::Failed, State::Streaming, State::Tool, State::Asking];

impl State {
    fn is_turn(self) -> bool {
        match self {
            State::New | State::Idle | State::Failed => false,
            State::Streaming | State::Tool | State::Asking => true,
        }
    }

    /// A process whose agent 0/ is in this state.
    async fn reach(self) -> Process {
        let mut process = Process::start(self.model()).await;
        if self == State::New {
            return process;
        }
        process.order(AgentCommand::Say("go".to_owned())).await.unwrap();
        match self {
            State::New | State::Idle | State::Failed => process.wait_for_turn_end().await,
            State::Streaming => {
                process.wait_for(|event| matches!(event.kind, EventKind::TextDelta(_))).await;
            }
            State::Tool => process.wait_for_message(is_call_of_wait).await,
            State::Asking => {
                let asks = |event: &Event| matches!(event.kind, EventKind::ApprovalRequested(_));
                process.wait_for(asks).await;
            }
        }
        process
    }

    fn model(self) -> ModelServer {
        ModelServer::choosing(move |request: &CapturedRequest| match self {
            State::New | State::Idle => ModelReply::text("done"),
            State::Failed => ModelReply::status(400),
            State::Streaming => {
                ModelReply::pieces(["one ", "two"]).hold_at(Point::Text, &Gate::new())
            }
            // The child never gets an answer, so the parent waits for it.
            State::Tool if request.agent().as_deref() != Some("0/") => ModelReply::silence(),
            State::Tool => ModelReply::calls([
                ("a", "fork", json!({"prompt": "think"})),
                ("b", "wait", json!({})),
            ]),
            State::Asking => {
                let write = json!({"path": "AGENTS.md", "content": "x"});
                ModelReply::call("c", "file_write", write)
            }
        })
    }
}

fn is_call_of_wait(body: &Body) -> bool {
    matches!(body, Body::ToolCall(call) if call.name == "wait")
}

fn orders() -> Vec<AgentCommand> {
    vec![
        AgentCommand::Say("more".to_owned()),
        AgentCommand::Unqueue,
        AgentCommand::Continue,
        AgentCommand::Interrupt,
        AgentCommand::Background,
        AgentCommand::BetweenTurns(BetweenTurns::Clear),
        AgentCommand::BetweenTurns(BetweenTurns::Mark(Some("here".to_owned()))),
        AgentCommand::BetweenTurns(BetweenTurns::Rewind(None)),
        AgentCommand::BetweenTurns(BetweenTurns::RewindTo(MessageId::new(9_999).unwrap())),
        AgentCommand::BetweenTurns(BetweenTurns::Note("/undo".to_owned())),
        AgentCommand::Compact(CompactRequest::default()),
        AgentCommand::HoldMail,
        AgentCommand::ReleaseMail,
    ]
}

fn expected(state: State, order: &AgentCommand) -> Answer {
    let nothing = |nothing| Err(CommandError::NothingToDo(nothing));
    match order {
        AgentCommand::Say(_) if state.is_turn() => Ok(Reply::Queued(QueuedUntil::NextStep)),
        AgentCommand::Say(_) | AgentCommand::HoldMail | AgentCommand::ReleaseMail => {
            Ok(Reply::Done)
        }
        AgentCommand::Unqueue => nothing(Nothing::Queue),
        AgentCommand::Continue if state == State::Failed => Ok(Reply::Done),
        AgentCommand::Continue => nothing(Nothing::Continue),
        AgentCommand::Interrupt if state.is_turn() => Ok(Reply::Done),
        AgentCommand::Interrupt => nothing(Nothing::Interrupt),
        AgentCommand::Background if state.is_turn() => Ok(Reply::Done),
        AgentCommand::Background => nothing(Nothing::Command),
        AgentCommand::BetweenTurns(BetweenTurns::RewindTo(_)) if state.is_turn() => {
            Err(CommandError::Working(AgentId::top_level(0)))
        }
        AgentCommand::BetweenTurns(_) | AgentCommand::Compact(_) if state.is_turn() => {
            Ok(Reply::Queued(QueuedUntil::TurnEnd))
        }
        AgentCommand::Compact(_) if state == State::New => nothing(Nothing::Conversation),
        AgentCommand::Compact(_) => Ok(Reply::Done),
        AgentCommand::BetweenTurns(BetweenTurns::Clear) => Ok(Reply::Cleared),
        AgentCommand::BetweenTurns(BetweenTurns::Rewind(_)) => nothing(Nothing::Mark),
        AgentCommand::BetweenTurns(BetweenTurns::RewindTo(_)) => nothing(Nothing::RewindPoint),
        AgentCommand::BetweenTurns(_) if state == State::New => nothing(Nothing::Conversation),
        AgentCommand::BetweenTurns(BetweenTurns::Mark(label)) => {
            Ok(Reply::Marked { label: label.clone() })
        }
        AgentCommand::BetweenTurns(BetweenTurns::Note(_)) => Ok(Reply::Done),
        AgentCommand::Look => unreachable!("it is the team's own"),
    }
}

#[tokio::test]
async fn every_order_is_answered_in_every_state() {
    for state in STATES {
        for order in orders() {
            let process = state.reach().await;
            let answer = process.order(order.clone()).await;
            assert_eq!(answer, expected(state, &order), "{order:?} while {state:?}");
            process.end().await;
        }
    }
}

#[tokio::test]
async fn an_order_for_an_agent_of_another_process_is_refused() {
    let process = State::Idle.reach().await;
    for order in orders() {
        let answer = process.order_for("7/", order.clone()).await;
        match order {
            // Its own process decides whether to hold its mail.
            AgentCommand::HoldMail | AgentCommand::ReleaseMail => {
                assert_eq!(answer, Ok(Reply::Done));
            }
            _ => assert!(matches!(answer, Err(CommandError::NotRunning(_))), "{answer:?}"),
        }
    }
    process.end().await;
}

/// Regression test: such orders were silently dropped.
#[tokio::test]
async fn deferred_orders_run_in_order_after_the_turn() {
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::start([
        ModelReply::pieces(["one ", "two"]).hold_at(Point::Text, &held),
        ModelReply::text("fresh"),
    ]);
    let mut process = Process::start(model).await;
    process.order(AgentCommand::Say("before".to_owned())).await.unwrap();
    process.wait_for(|event| matches!(event.kind, EventKind::TextDelta(_))).await;
    for command in [BetweenTurns::Mark(None), BetweenTurns::Clear] {
        process.order(AgentCommand::BetweenTurns(command)).await.unwrap();
    }
    gate.open();
    process.wait_for_turn_end().await;
    process.wait_for_message(|body| matches!(body, Body::Mark(_))).await;
    process.wait_for_message(|body| matches!(body, Body::Clear)).await;
    process.order(AgentCommand::Say("after".to_owned())).await.unwrap();
    process.wait_for_turn_end().await;
    let last = process.model.requests().pop().unwrap().body.clone();
    let last = String::from_utf8(last).unwrap();
    assert!(last.contains("after") && !last.contains("before"), "{last}");
    process.end().await;
}

#[tokio::test]
async fn a_rewind_returns_to_the_named_mark() {
    let mut process = Process::start(ModelServer::choosing(|_| ModelReply::text("ok"))).await;
    for (text, label) in [("alpha", "first"), ("beta", "second"), ("gamma", "third")] {
        process.order(AgentCommand::Say(text.to_owned())).await.unwrap();
        process.wait_for_turn_end().await;
        let mark = BetweenTurns::Mark(Some(label.to_owned()));
        process.order(AgentCommand::BetweenTurns(mark)).await.unwrap();
    }
    let label = Some("first".to_owned());
    let rewind = BetweenTurns::Rewind(label.clone());
    let answer = process.order(AgentCommand::BetweenTurns(rewind)).await;
    assert_eq!(answer, Ok(Reply::Rewound { label }));
    process.order(AgentCommand::Say("delta".to_owned())).await.unwrap();
    process.wait_for_turn_end().await;
    let last = process.model.requests().pop().unwrap().body.clone();
    let last = String::from_utf8(last).unwrap();
    assert!(last.contains("alpha") && !last.contains("beta") && last.contains("delta"), "{last}");
    process.end().await;
}
