//! One agent on the screen: its conversation, activity, pending questions, and draft.

use std::collections::VecDeque;
use std::time::Duration;

use ikigai_conversation::{Body, CallSummary, EffectKind, Message, ToolCall};
use ikigai_protocol::{
    AgentState, ApprovalRequest, BlockContent, EventKind, NoticeTone, StopReason, TurnEnd,
    render_count, typed_text,
};

use crate::activity::{Activity, Phase};
use crate::draft::Draft;
use crate::question::Question;
use crate::transcript::Transcript;

#[derive(Debug)]
pub(crate) struct Pane {
    pub(crate) transcript: Transcript,
    pub(crate) draft: Draft,
    /// A suggestion that goes into the draft once that is empty.
    pub(crate) offered: Option<String>,
    pub(crate) activity: Activity,
    /// Messages that were sent and are not in the log yet, the oldest first.
    pub(crate) queued: VecDeque<String>,
    /// Whether a command of the user's own runs.
    pub(crate) is_shell_busy: bool,
    /// The calls that wait for approval, the oldest first.
    pub(crate) questions: VecDeque<Question>,
    /// Whether its last turn can be continued, with Enter.
    pub(crate) can_continue: bool,
    /// Whether its log has been requested.
    pub(crate) is_recalled: bool,
    /// Whether a draft has been reported.
    pub(crate) is_drafting: bool,
    /// The tokens of the last request and its response.
    pub(crate) tokens: Option<u64>,
    /// How many tokens fit, as far as the agent knows by now.
    pub(crate) window: Option<u64>,
    /// A short description of its last action.
    pub(crate) last_action: Option<String>,
    /// Whether there is a conversation to continue.
    pub(crate) has_spoken: bool,
    /// Its model and the context window of that, once known.
    pub(crate) model: Option<(String, Option<u64>)>,
    /// Whether the agent has emitted an event since the screen was opened.
    is_live: bool,
    /// Whether this process has lost the agent.
    pub(crate) is_lost: bool,
    /// Whether its last turn ended in a way that keeps mail from waking it.
    pub(crate) holds_mail: bool,
}

/// What the model is writing: `Writing src/ops.py · 80 lines`
fn writing(name: &str, effects: &[EffectKind], subject: Option<&str>, lines: u64) -> String {
    let what = match (effects.contains(&EffectKind::Write), subject) {
        (true, Some(path)) => format!("Writing {path}"),
        (_, Some(subject)) => format!("Preparing {name}  {subject}"),
        (_, None) => format!("Preparing {name}"),
    };
    match lines {
        0 => what,
        1 => format!("{what} · 1 line"),
        lines => format!("{what} · {} lines", render_count(lines)),
    }
}

/// What an event means for the rest of the screen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// Approval is needed for a call of this tool.
    NeedsApproval(String),
    Finished,
    Failed,
    Interrupted,
    /// This process no longer runs any agent of its tree.
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
            is_shell_busy: false,
            questions: VecDeque::new(),
            can_continue: false,
            is_recalled: false,
            is_drafting: false,
            tokens: None,
            window: None,
            last_action: None,
            has_spoken: false,
            model: None,
            is_live: false,
            is_lost: false,
            holds_mail: false,
        }
    }

    /// What the agent is doing, once it has emitted an event. Before that, the agent list knows
    /// better.
    pub(crate) fn state(&self) -> Option<AgentState> {
        self.is_live.then(|| match self.questions.is_empty() {
            true => self.activity.state(),
            false => AgentState::Asking,
        })
    }

    /// Whether a call runs that may continue in the background.
    pub(crate) fn runs_call(&self) -> bool {
        self.activity.state() == AgentState::Tool
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.activity.is_busy()
    }

    /// Handles an event of the agent.
    pub(crate) fn handle_event(&mut self, kind: EventKind, now: Duration) -> Option<Consequence> {
        self.is_live = true;
        // A command was shown when it was entered.
        if !matches!(&kind, EventKind::Message(Message { body: Body::Command(_), .. })) {
            self.transcript.handle(&kind);
        }
        match kind {
            EventKind::TurnStarted(_) => {
                self.activity.start(now);
                self.can_continue = false;
                self.holds_mail = false;
            }
            EventKind::Message(message) => self.record(&message, now),
            EventKind::TextDelta(_) => self.activity.set_phase(Phase::Answering, now),
            EventKind::Retry { attempt, of, reason, delay } => {
                let at = now + delay;
                self.activity.set_phase(Phase::Retry { attempt, of, reason, at }, now);
            }
            EventKind::ReadsStarted(calls) => self.start_reads(&calls, now),
            EventKind::CommandStarted { .. } | EventKind::CommandOutput { .. } => {}
            EventKind::CommandEnded { .. } | EventKind::CommandLost { .. } => {}
            EventKind::ContextUsed { used, window } => {
                (self.tokens, self.window) = (Some(used), window);
            }
            EventKind::Compaction(_) => {}
            EventKind::ToolOutput { call, delta, .. } => self.activity.add_output(&call, &delta),
            EventKind::ApprovalRequested(request) => return Some(self.ask(request, now)),
            EventKind::DatabaseUnavailable(reason) if self.is_busy() => {
                self.activity.set_phase(Phase::Database(reason), now);
            }
            // A command outside a turn waits, and no event says when it is done.
            EventKind::DatabaseUnavailable(reason) => {
                let text = format!("{reason}; waiting");
                self.transcript.add(BlockContent::notice(NoticeTone::Warning, text));
            }
            EventKind::ThinkingDelta(text) => self.activity.think(&text, now),
            EventKind::CallProgress { name, effects, subject, lines } => {
                let text = writing(&name, &effects, subject.as_deref(), lines);
                self.activity.set_phase(Phase::Writing(text), now);
            }
            EventKind::MailHeld | EventKind::Warning(_) | EventKind::EffortRefused(_) => {}
            EventKind::InputRejected(text) => self.restore_input(&text),
            EventKind::TurnEnded(turn) => return Some(self.end(&turn)),
            EventKind::AgentLost(_) => {
                self.stop();
                // Enter asks for another agent, which does not get the messages meant for this one.
                self.can_continue = true;
                self.is_lost = true;
                self.queued.clear();
                return Some(Consequence::Lost);
            }
        }
        None
    }

    /// This process no longer runs the agent.
    pub(crate) fn stop(&mut self) {
        self.activity = Activity::Idle;
        self.transcript.stop();
        self.questions.clear();
        self.is_live = false;
    }

    /// Adds the log from before the screen was opened.
    pub(crate) fn recall(&mut self, log: &[Message]) {
        self.has_spoken |= log.iter().any(|message| message.body == Body::User);
        for message in log {
            self.note_tokens(message);
        }
        self.transcript.recall(log);
    }

    /// Shows the open approval requests of an agent that another process runs. Returns the tool of a
    /// new one.
    pub(crate) fn set_questions(
        &mut self,
        open: Vec<ApprovalRequest>,
        now: Duration,
    ) -> Option<String> {
        let mut new = None;
        self.questions.retain(|question| open.contains(&question.request));
        for request in open {
            if !self.questions.iter().any(|question| question.request == request) {
                new = Some(request.call.name.clone());
                self.questions.push_back(Question::new(request, now));
            }
        }
        new
    }

    /// Adds messages of an agent that another process runs.
    pub(crate) fn follow(&mut self, messages: &[Message]) {
        for message in messages {
            self.note_tokens(message);
            self.transcript.handle(&EventKind::Message(message.clone()));
        }
    }

    /// Drops the conversation, so that it is loaded again.
    pub(crate) fn forget(&mut self) {
        self.transcript = Transcript::default();
        self.is_recalled = false;
    }

    fn record(&mut self, message: &Message, now: Duration) {
        self.note_tokens(message);
        match &message.body {
            Body::User => {
                self.has_spoken = true;
                if let Some(at) =
                    self.queued.iter().position(|text| text == typed_text(&message.content))
                {
                    self.queued.remove(at);
                }
            }
            Body::ToolCall(call) => {
                self.last_action = Some(CallSummary::of(call).line());
                self.activity.start_call(call, now);
            }
            Body::ToolResult(result) => self.activity.end_call(&result.tool_call_id, now),
            Body::Approval(approval) => {
                self.questions
                    .retain(|question| question.request.call.tool_call_id != approval.tool_call_id);
                self.activity.answer_call(&approval.tool_call_id, now);
            }
            Body::Assistant(_) | Body::System | Body::Notification(_) | Body::Summary(_) => {}
            Body::Fork(_) | Body::Usage(_) | Body::Mark(_) | Body::Rewind(_) | Body::Clear => {}
            Body::Trim(_) | Body::Kill(_) | Body::Interrupted(_) | Body::Command(_) => {}
        }
    }

    fn start_reads(&mut self, calls: &[ToolCall], now: Duration) {
        for call in calls {
            self.last_action = Some(CallSummary::of(call).line());
            self.activity.start_call(call, now);
        }
    }

    fn note_tokens(&mut self, message: &Message) {
        if let Body::Usage(usage) = &message.body {
            self.tokens = Some(usage.input_tokens.saturating_add(usage.output_tokens));
        } else if let Body::Summary(summary) = &message.body {
            self.tokens = Some(summary.after);
        } else if message.body == Body::Clear {
            self.tokens = None;
        }
    }

    fn ask(&mut self, request: ApprovalRequest, now: Duration) -> Consequence {
        let tool = request.call.name.clone();
        self.questions.push_back(Question::new(request, now));
        self.activity.set_phase(Phase::Asking, now);
        Consequence::NeedsApproval(tool)
    }

    /// Puts a rejected message back into the draft.
    fn restore_input(&mut self, text: &str) {
        let text = typed_text(text);
        self.queued.retain(|queued| queued != text);
        if self.draft.is_empty() {
            self.draft.paste(text);
        }
    }

    fn end(&mut self, turn: &TurnEnd) -> Consequence {
        self.activity = Activity::Idle;
        self.can_continue = turn.can_continue;
        self.holds_mail = matches!(turn.stop, StopReason::Interrupted | StopReason::Error);
        self.questions.clear();
        if let Some(hint) = turn.how_to_continue() {
            self.transcript.add(BlockContent::notice(NoticeTone::Info, hint));
        }
        match turn.stop {
            StopReason::Stop | StopReason::Call | StopReason::Length | StopReason::ToolLimit => {
                Consequence::Finished
            }
            StopReason::Interrupted => Consequence::Interrupted,
            StopReason::Error => Consequence::Failed,
        }
    }
}
