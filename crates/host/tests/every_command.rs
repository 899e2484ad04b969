//! Every command is answered, whatever the agent is doing.

use ikigai_conversation::{Body, CommandId, Decision, MessageId, SessionId, ToolCallId};
use ikigai_protocol::{
    ApprovalAnswer, Command, CommandError, Event, EventKind, Reply, RewindPart, StartReason,
    UsageBy,
};
use ikigai_testkit::{CapturedRequest, Gate, ModelServer, Point, Reply as ModelReply};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::{Home, TestSession, say};

/// The states of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was said yet.
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
    /// The model is asked for a summary.
    Compacting,
}

const STATES: [State; 7] = [
    State::New,
    State::Idle,
    State::Failed,
    State::Streaming,
    State::Tool,
    State::Asking,
    State::Compacting,
];

impl State {
    fn is_busy(self) -> bool {
        match self {
            State::New | State::Idle | State::Failed => false,
            State::Streaming | State::Tool | State::Asking | State::Compacting => true,
        }
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
            State::Compacting if !request.text().contains("zebra") => ModelReply::text("zebra"),
            State::Compacting => ModelReply::silence(),
        })
    }

    /// A session whose agent 0/ is in this state.
    async fn reach(self, home: &Home) -> TestSession {
        let mut session = home.open().await;
        if self == State::New {
            return session;
        }
        assert_eq!(session.execute("0/", say("go")).await, Ok(Reply::Done));
        match self {
            State::New | State::Idle | State::Failed => drop(session.turn_end("0/").await),
            State::Streaming => {
                session
                    .wait_for(|event| is(event, |kind| matches!(kind, EventKind::TextDelta(_))))
                    .await;
            }
            State::Tool => {
                let is_wait =
                    |body: &Body| matches!(body, Body::ToolCall(call) if call.name == "wait");
                let waits = |kind: &EventKind| matches!(kind, EventKind::Message(message) if is_wait(&message.body));
                session.wait_for(|event| is(event, waits)).await;
            }
            State::Asking => {
                let asks = |kind: &EventKind| matches!(kind, EventKind::ApprovalRequested(_));
                session.wait_for(|event| is(event, asks)).await;
            }
            State::Compacting => {
                session.turn_end("0/").await;
                let compact = Command::Compact { focus: None, before: None };
                assert_eq!(session.execute("0/", compact).await, Ok(Reply::Done));
                let starts = |kind: &EventKind| {
                    matches!(kind, EventKind::TurnStarted(StartReason::Compaction))
                };
                session.wait_for(|event| is(event, starts)).await;
            }
        }
        session
    }
}

fn is(event: &Event, kind: impl Fn(&EventKind) -> bool) -> Option<()> {
    kind(&event.kind).then_some(())
}

/// The command after this one. A new command must get its place here, and its answers below.
fn after(command: Option<&Command>) -> Option<Command> {
    let Some(command) = command else { return Some(say("more")) };
    let answer = ApprovalAnswer {
        call: ToolCallId::new("another"),
        hash: "another".to_owned(),
        decision: Decision::No,
        reason: None,
        save_rule: None,
    };
    let unknown = SessionId::new(Uuid::nil());
    Some(match command {
        Command::Say { .. } => Command::Unqueue,
        Command::Unqueue => Command::Shell { line: "true".to_owned() },
        Command::Shell { .. } => Command::Continue,
        Command::Continue => Command::Interrupt,
        Command::Interrupt => Command::Answer(answer),
        Command::Answer(_) => Command::Clear,
        Command::Clear => Command::Compact { focus: None, before: None },
        Command::Compact { .. } => Command::Context,
        Command::Context => Command::Mark { label: None },
        Command::Mark { .. } => Command::Rewind { label: None },
        Command::Rewind { .. } => Command::ListRewindPoints,
        Command::ListRewindPoints => {
            let point = MessageId::new(9_999).unwrap();
            Command::RewindTo { point, part: RewindPart::Conversation }
        }
        Command::RewindTo { .. } => Command::Undo,
        Command::Undo => Command::Redo,
        Command::Redo => Command::Mail { line: String::new() },
        Command::Mail { .. } => Command::HoldMail,
        Command::HoldMail => Command::ReleaseMail,
        Command::ReleaseMail => Command::Fork { prompt: None },
        Command::Fork { .. } => Command::Kill { target: Some("unknown".to_owned()) },
        Command::Kill { .. } => Command::Model { name: None },
        Command::Model { .. } => Command::Effort { effort: None },
        Command::Effort { .. } => Command::Mode { mode: None },
        Command::Mode { .. } => Command::Open { target: None },
        Command::Open { .. } => Command::Agents,
        Command::Agents => Command::Sessions,
        Command::Sessions => Command::PreviewSession { session: unknown },
        Command::PreviewSession { .. } => {
            Command::RenameSession { session: unknown, title: "title".to_owned() }
        }
        Command::RenameSession { .. } => Command::DeleteSession { session: unknown },
        Command::DeleteSession { .. } => Command::ListCommands,
        Command::ListCommands => Command::StopCommand { id: CommandId::new(9).unwrap() },
        Command::StopCommand { .. } => Command::Background,
        Command::Background => Command::Tools,
        Command::Tools => Command::Usage { by: UsageBy::Message },
        Command::Usage { .. } => Command::Config,
        Command::Config => Command::Export { file: "talk.md".to_owned() },
        Command::Export { .. } => Command::ListFiles,
        Command::ListFiles => Command::ListModels,
        Command::ListModels => return None,
    })
}

/// The kind of answer.
fn kind(answer: Result<Reply, CommandError>) -> String {
    let (line, key) = match answer {
        Ok(reply) => (serde_json::to_value(reply), "reply"),
        Err(error) => (serde_json::to_value(error), "error"),
    };
    let line: Value = line.unwrap();
    line[key].as_str().unwrap().to_owned()
}

fn expected(state: State, command: &Command) -> &'static str {
    const NOTHING: &str = "nothing_to_do";
    let between_turns = |answer| if state.is_busy() { "queued" } else { answer };
    let if_said = |answer| if state == State::New { NOTHING } else { answer };
    match command {
        Command::Say { .. } => between_turns("done"),
        Command::Unqueue => NOTHING,
        // Nothing can be started here.
        Command::Shell { .. } => "refused",
        Command::Continue if state == State::Failed => "done",
        Command::Interrupt | Command::Background if state.is_busy() => "done",
        Command::Continue | Command::Interrupt | Command::Answer(_) => NOTHING,
        Command::Background => NOTHING,
        Command::Clear => between_turns("cleared"),
        Command::Compact { .. } => between_turns(if_said("done")),
        Command::Mark { .. } => between_turns(if_said("marked")),
        Command::Rewind { .. } => between_turns(NOTHING),
        Command::ListRewindPoints => "rewind_points",
        Command::RewindTo { .. } if state.is_busy() => "working",
        Command::RewindTo { .. } => NOTHING,
        Command::PreviewSession { .. }
        | Command::RenameSession { .. }
        | Command::DeleteSession { .. } => "not_started",
        Command::ListCommands => "commands",
        Command::StopCommand { .. } => "refused",
        Command::Undo | Command::Redo if state.is_busy() => "working",
        Command::Undo | Command::Redo => NOTHING,
        Command::Export { .. } => if_said("exported"),
        Command::HoldMail | Command::ReleaseMail => "done",
        Command::Context => "context",
        Command::Mail { .. } => "inbox",
        Command::Fork { .. } => "forked",
        Command::Kill { .. } => "refused",
        Command::Model { .. } => "model",
        Command::Effort { .. } => "effort",
        Command::Mode { .. } => "mode",
        Command::Open { .. } => "opened",
        Command::Agents => "agents",
        Command::Sessions => "sessions",
        Command::Tools => "tools",
        Command::Usage { .. } => "usage",
        Command::Config => "config",
        Command::ListFiles => "files",
        Command::ListModels => "models",
    }
}

/// The answers in a state that are not as expected.
async fn wrong_answers(state: State) -> Vec<String> {
    let mut wrong = Vec::new();
    for command in std::iter::successors(after(None), |command| after(Some(command))) {
        let home = Home::new(state.model());
        let session = state.reach(&home).await;
        let answer = kind(session.execute("0/", command.clone()).await);
        if answer != expected(state, &command) {
            wrong.push(format!("{command:?} while {state:?}: {answer}"));
        }
        session.leave().await;
    }
    wrong
}

#[tokio::test]
async fn every_command_is_answered_in_every_state() {
    let states: JoinSet<Vec<String>> = STATES.into_iter().map(wrong_answers).collect();
    assert_eq!(states.join_all().await.concat(), Vec::<String>::new());
}
