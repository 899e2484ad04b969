//! One agent on the screen: its conversation, what it is doing, what waits for it, and what the person is typing to it.

use std::collections::VecDeque;
use std::time::Duration;

use ikigai_conversation::{Body, CallSummary, Message};
use ikigai_protocol::{ApprovalRequest, EventKind, StopReason, TurnEnd};

use crate::activity::{Activity, Work};
use crate::draft::Draft;
use crate::question::Question;
use crate::team::State;
use crate::transcript::{Tone, Transcript};

const MAIL_HELD: &str =
    "mail is held: agents were woken as often as mail.max_wakes allows; your next message frees it";

#[derive(Debug)]
pub(crate) struct Pane {
    pub(crate) transcript: Transcript,
    pub(crate) draft: Draft,
    /// What is put into the draft once that is empty.
    pub(crate) offered: Option<String>,
    pub(crate) activity: Activity,
    /// What the person said and the log does not have yet, the oldest first.
    pub(crate) queued: VecDeque<String>,
    /// The calls that wait for a yes, the oldest first.
    pub(crate) questions: VecDeque<Question>,
    /// Its last turn stopped in a way from which it may go on; Enter does that.
    pub(crate) can_continue: bool,
    /// Its log was asked for.
    pub(crate) is_recalled: bool,
    /// The outside was told that there is a draft.
    pub(crate) is_drafting: bool,
    /// The tokens of the last request and its response.
    pub(crate) tokens: Option<u64>,
    /// What it did last, in a few words.
    pub(crate) last_action: Option<String>,
    /// There is a conversation to come back to.
    pub(crate) has_spoken: bool,
    /// The model that answers and how many tokens it can take, once that was told.
    pub(crate) model: Option<(String, Option<u64>)>,
    /// Something has happened to the agent since the screen was opened.
    is_live: bool,
    /// It is not run here any more.
    pub(crate) is_lost: bool,
    /// Its last turn ended in a way after which mail does not wake it.
    pub(crate) holds_mail: bool,
}

/// What follows from something that happened, beyond the pane.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// Approval is needed for a call of this tool.
    Asks(String),
    Finished,
    /// Nobody in its tree is run here any more.
    Lost,
}

impl Pane {
    pub(crate) fn new() -> Pane {
        Pane {
            transcript: Transcript::default(),
            draft: Draft::default(),
            offered: None,
            activity: Activity::Idle,
            queued: VecDeque::new(),
            questions: VecDeque::new(),
            can_continue: false,
            is_recalled: false,
            is_drafting: false,
            tokens: None,
            last_action: None,
            has_spoken: false,
            model: None,
            is_live: false,
            is_lost: false,
            holds_mail: false,
        }
    }

    /// What the agent is doing, once something has happened to it here; before, the registry knows better.
    pub(crate) fn state(&self) -> Option<State> {
        self.is_live.then(|| match self.questions.is_empty() {
            true => self.activity.state(),
            false => State::Asking,
        })
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.activity.is_busy()
    }

    /// Something happened to the agent.
    pub(crate) fn happen(&mut self, kind: EventKind, now: Duration) -> Option<Consequence> {
        self.is_live = true;
        match kind {
            EventKind::TurnStarted(_) => {
                self.activity.begin(now);
                self.can_continue = false;
                self.holds_mail = false;
            }
            EventKind::Message(message) => self.record(&message, now),
            EventKind::TextDelta(delta) => {
                self.transcript.stream(&delta);
                self.activity.turn_to(Work::Answering, now);
            }
            EventKind::Retry { attempt, reason, delay } => {
                self.transcript.void();
                self.activity.turn_to(Work::Retry { attempt, reason, at: now + delay }, now);
            }
            EventKind::ApprovalRequested(asking) => return Some(self.ask(asking, now)),
            EventKind::DatabaseUnavailable(reason) if self.is_busy() => {
                self.activity.turn_to(Work::Store(reason), now);
            }
            // A command outside of a turn waits, and nothing will say that it has ended.
            EventKind::DatabaseUnavailable(reason) => {
                self.transcript.tell(Tone::Warning, &format!("{reason}; waiting"));
            }
            EventKind::MailHeld => self.transcript.tell(Tone::Warning, MAIL_HELD),
            EventKind::InputRejected(text) => self.give_back(&text),
            EventKind::TurnEnded(done) => return Some(self.end(&done)),
            EventKind::AgentLost(reason) => {
                self.cease();
                // Enter asks for somebody else to talk to, who is not told what was meant for this one.
                self.can_continue = true;
                self.is_lost = true;
                self.queued.clear();
                self.transcript.tell(Tone::Fault, &reason);
                return Some(Consequence::Lost);
            }
        }
        None
    }

    /// Nobody runs the agent here any more.
    pub(crate) fn cease(&mut self) {
        self.activity = Activity::Idle;
        self.transcript.settle_live();
        self.questions.clear();
        self.is_live = false;
    }

    /// The log from before this process looked.
    pub(crate) fn recall(&mut self, log: &[Message]) {
        self.has_spoken |= log.iter().any(|message| message.body == Body::User);
        for message in log {
            self.note_tokens(message);
        }
        self.transcript.recall(log);
    }

    /// The conversation is to be read from the log again.
    pub(crate) fn forget(&mut self) {
        self.transcript = Transcript::default();
        self.is_recalled = false;
    }

    fn record(&mut self, message: &Message, now: Duration) {
        self.note_tokens(message);
        match &message.body {
            Body::User => {
                self.has_spoken = true;
                if let Some(at) = self.queued.iter().position(|text| *text == message.content) {
                    self.queued.remove(at);
                }
            }
            Body::ToolCall(call) => {
                let line = CallSummary::of(call).line();
                self.last_action = Some(line.clone());
                self.activity.turn_to(Work::Tool(line), now);
            }
            Body::ToolResult(_) => self.activity.turn_to(Work::Waiting, now),
            Body::Approval(approval) => {
                self.questions
                    .retain(|question| question.asking.call.tool_call_id != approval.tool_call_id);
                self.activity.turn_to(self.work_after_answer(), now);
            }
            Body::Assistant(_) | Body::System | Body::Notification(_) | Body::Summary(_) => {}
            Body::Fork(_) | Body::Usage(_) | Body::Mark(_) | Body::Rewind(_) | Body::Clear => {}
            // It was shown as it was typed.
            Body::Command(_) => return,
            Body::Trim(_) | Body::Kill(_) | Body::Interrupted(_) => {}
        }
        self.transcript.record(message);
    }

    fn work_after_answer(&self) -> Work {
        self.last_action.clone().map_or(Work::Waiting, Work::Tool)
    }

    fn note_tokens(&mut self, message: &Message) {
        if let Body::Usage(usage) = &message.body {
            self.tokens = Some(usage.input_tokens.saturating_add(usage.output_tokens));
        }
    }

    fn ask(&mut self, asking: ApprovalRequest, now: Duration) -> Consequence {
        let tool = asking.call.name.clone();
        self.questions.push_back(Question::new(asking));
        self.activity.turn_to(Work::Asking, now);
        Consequence::Asks(tool)
    }

    /// What was not taken goes back to where it was typed.
    fn give_back(&mut self, text: &str) {
        self.queued.retain(|queued| queued != text);
        let shown: String = text.chars().take(64).collect();
        let told = format!("too many messages wait, so this one was not taken: {shown}");
        self.transcript.tell(Tone::Warning, &told);
        if self.draft.is_empty() {
            self.draft.paste(text);
        }
    }

    fn end(&mut self, done: &TurnEnd) -> Consequence {
        self.activity = Activity::Idle;
        self.transcript.settle_live();
        self.can_continue = done.can_continue;
        self.holds_mail = matches!(done.stop, StopReason::Interrupted | StopReason::Error);
        self.questions.clear();
        if let Some((tone, text)) = ending(done) {
            self.transcript.tell(tone, &text);
        }
        if done.can_continue {
            self.transcript.tell(Tone::Dim, "Enter tries to go on");
        }
        Consequence::Finished
    }
}

/// What is to be said about how a turn ended, if anything.
fn ending(done: &TurnEnd) -> Option<(Tone, String)> {
    let error = done.error.as_deref();
    Some(match done.stop {
        StopReason::Stop if done.text.trim().is_empty() => {
            (Tone::Warning, "the model had nothing to say".to_owned())
        }
        StopReason::Stop => return None,
        StopReason::Length => {
            (Tone::Warning, "the answer was cut at the model's limit of tokens".to_owned())
        }
        StopReason::ToolLimit => {
            (Tone::Warning, "stopped at the limit of tool calls (max_tool_turns)".to_owned())
        }
        // The log says that it was interrupted; why, where the person did not do it, is said here.
        StopReason::Interrupted => (Tone::Fault, error?.to_owned()),
        StopReason::Error => (Tone::Fault, error.unwrap_or("the turn failed").to_owned()),
    })
}
