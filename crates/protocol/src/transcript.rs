//! The transcript: events and log messages of an agent, folded into blocks. Every front end shows
//! these, so a conversation reads the same live and from the log.

use std::time::Duration;

use ikigai_conversation::{
    Approval, Body, Message, MessageId, ResultState, THINKING_LIMIT, Time, ToolCall, ToolCallId,
    ToolResult,
};

use crate::RECALLED;
use crate::attachments::shown_message;
use crate::block::{
    Block, BlockChange, BlockContent, BlockId, CallBlock, CallChange, CallEnd, NoticeTone,
    OutputPreview, ThoughtChange, Visibility, apply,
};
use crate::event::{Compaction, CompactionMethod, EventKind, StartReason, StopReason, TurnEnd};
use crate::mail_card::mail_cards;
use crate::notice::{MAIL_HELD, effort_refused, input_rejected, turn_end_notice};
use crate::render::render_compaction;

/// Folds the events and log messages of one agent into blocks. It keeps only what may still
/// change; front ends keep the blocks that they show.
#[derive(Debug, Default)]
pub struct TranscriptReducer {
    /// The next block ID.
    next: i64,
    /// The answer that is streaming.
    streaming: Option<Streaming>,
    /// The block with what the model thinks, and how many more bytes it takes.
    thinking: Option<(BlockId, usize)>,
    /// Calls without a result, in order.
    open: Vec<OpenCall>,
    /// Results whose calls are not known, until the log is recalled.
    orphans: Vec<(ToolCallId, BlockId)>,
    /// Whether room is being made in the context, instead of a turn.
    is_compaction: bool,
    /// The first message that was folded.
    first: Option<MessageId>,
    /// The last one. What a recalled log already has may arrive as an event afterwards.
    last: Option<MessageId>,
}

#[derive(Debug)]
struct Streaming {
    block: BlockId,
    text: String,
}

#[derive(Debug)]
struct OpenCall {
    call: ToolCallId,
    block: BlockId,
    /// When it started to run, as far as known.
    since: Time,
    preview: OutputPreview,
}

/// The part of a conversation before the blocks that are known.
#[derive(Debug, Default)]
pub struct Recalled {
    /// Its blocks, in order.
    pub blocks: Vec<Block>,
    /// What this changes for the known blocks.
    pub changes: Vec<BlockChange>,
}

impl TranscriptReducer {
    /// Folds an event.
    pub fn event(&mut self, event: &EventKind) -> Vec<BlockChange> {
        match event {
            EventKind::Message(message) => self.message(message),
            EventKind::TextDelta(delta) => vec![self.stream(delta)],
            EventKind::ThinkingDelta(delta) => self.think(delta).into_iter().collect(),
            EventKind::Retry { .. } => {
                let thinking = self.thinking.take().map(|(block, _)| BlockChange::Removed(block));
                thinking.into_iter().chain(self.discard_stream()).collect()
            }
            EventKind::ApprovalRequested(request) => {
                self.change_call(&request.call.tool_call_id, CallChange::Asked)
            }
            EventKind::MailHeld => vec![self.notice(NoticeTone::Warning, MAIL_HELD)],
            EventKind::Warning(text) => vec![self.notice(NoticeTone::Warning, text)],
            EventKind::EffortRefused(label) => {
                vec![self.notice(NoticeTone::Warning, &effort_refused(label))]
            }
            EventKind::InputRejected(text) => {
                vec![self.notice(NoticeTone::Warning, &input_rejected(text))]
            }
            EventKind::TurnEnded(turn) => self.end_turn(turn),
            EventKind::AgentLost(reason) => {
                let mut changes = self.stop();
                changes.push(self.notice(NoticeTone::Fault, reason));
                changes
            }
            EventKind::Compaction(compaction) => match compaction.method {
                CompactionMethod::Trim => {
                    vec![self.notice(NoticeTone::Info, &render_compaction(compaction))]
                }
                // Its message is in the log.
                CompactionMethod::Summary => Vec::new(),
            },
            EventKind::TurnStarted(reason) => {
                self.is_compaction = *reason == StartReason::Compaction;
                Vec::new()
            }
            // Front ends show these only while they last.
            EventKind::DatabaseUnavailable(_)
            | EventKind::CallProgress { .. }
            | EventKind::ContextUsed { .. }
            | EventKind::ReadsStarted(_)
            | EventKind::CommandStarted { .. }
            | EventKind::CommandOutput { .. }
            | EventKind::CommandEnded { .. }
            | EventKind::CommandLost { .. }
            | EventKind::ToolOutput { .. } => Vec::new(),
        }
    }

    /// Folds a message of the log.
    pub fn message(&mut self, message: &Message) -> Vec<BlockChange> {
        if self.last.is_some_and(|last| message.id <= last) {
            return Vec::new();
        }
        self.first.get_or_insert(message.id);
        self.last = Some(message.id);
        let id = message.id;
        let content = message.content.as_str();
        let one = |reducer: &mut Self, content| vec![reducer.push(Some(id), content)];
        let divider = |reducer: &mut Self, text: String| {
            vec![reducer.push(Some(id), BlockContent::Divider(text))]
        };
        match &message.body {
            Body::User => one(self, BlockContent::Said(shown_message(content))),
            Body::Assistant(_) => {
                self.end_thought(message).into_iter().chain(self.end_answer(id, content)).collect()
            }
            Body::ToolCall(call) => {
                self.end_thought(message).into_iter().chain(self.open_call(message, call)).collect()
            }
            Body::ToolResult(result) => self.close_call(message, result),
            Body::Approval(approval) => self.answer_call(message, approval),
            Body::Notification(_) => match mail_cards(&message.agent, content) {
                Some(cards) => one(self, BlockContent::Mail(cards)),
                None => one(self, BlockContent::Notification(content.to_owned())),
            },
            Body::Summary(summary) => {
                let title = render_compaction(&Compaction::by_summary(summary));
                one(self, BlockContent::Summary { title, text: content.to_owned() })
            }
            Body::Fork(fork) => divider(self, format!("forked by {}", fork.parent)),
            Body::Mark(mark) => {
                let label = mark.label.as_deref().unwrap_or_default();
                divider(self, format!("mark {label}").trim_end().to_owned())
            }
            Body::Rewind(rewind) => {
                let label = rewind.label.as_deref().map(|label| format!(" to {label}"));
                let text = format!("rewound{}", label.unwrap_or_default());
                let hidden = BlockChange::HiddenAfter(rewind.to);
                std::iter::once(hidden).chain(divider(self, text)).collect()
            }
            Body::Clear => vec![BlockChange::Cleared],
            Body::Kill(kill) => {
                let killed: Vec<String> = kill.killed.iter().map(ToString::to_string).collect();
                let text = format!("killed: {}", killed.join(", "));
                one(self, BlockContent::notice(NoticeTone::Info, text))
            }
            Body::Command(command) => one(self, BlockContent::Typed(command.command.clone())),
            Body::Interrupted(_) => {
                one(self, BlockContent::notice(NoticeTone::Fault, "interrupted"))
            }
            Body::System | Body::Usage(_) | Body::Trim(_) => Vec::new(),
        }
    }

    /// Adds a block that is neither an event nor in the log: the reply to a command, a remark of
    /// the front end.
    pub fn add(&mut self, content: BlockContent) -> BlockChange {
        self.push(None, content)
    }

    /// The text of the answer that is streaming, so far.
    pub fn streaming(&self) -> Option<&str> {
        self.streaming.as_ref().map(|streaming| streaming.text.as_str())
    }

    /// This process no longer runs the agent, or its turn has ended: what is open stays as it is.
    pub fn stop(&mut self) -> Vec<BlockChange> {
        let streaming = self.streaming.take();
        let thinking = self.thinking.take().map(|(block, _)| block);
        let hidden = thinking.into_iter().chain(streaming.map(|streaming| streaming.block));
        let hidden = hidden.map(BlockChange::Hidden);
        let open = std::mem::take(&mut self.open);
        let unfinished = open
            .into_iter()
            .map(|open| BlockChange::Call { block: open.block, change: CallChange::Unfinished });
        hidden.chain(unfinished).collect()
    }

    /// Folds the part of the log before the first message that is known. The log may reach further.
    pub fn recall(&mut self, log: &[Message]) -> Recalled {
        let mut earlier = TranscriptReducer::default();
        let mut blocks = Vec::new();
        if u32::try_from(log.len()) == Ok(RECALLED) {
            let text = "earlier messages are in the log: ikigai log";
            apply(&mut blocks, earlier.add(BlockContent::Divider(text.to_owned())));
        }
        let known = log.iter().position(|message| self.first.is_some_and(|id| message.id >= id));
        let (before, after) = log.split_at(known.unwrap_or(log.len()));
        for message in before {
            earlier.message(message).into_iter().for_each(|change| apply(&mut blocks, change));
        }
        let changes = self.fold_late(after, &mut earlier, &mut blocks);
        self.orphans.clear();
        self.last = self.last.max(before.last().map(|message| message.id));
        self.first = log.first().map(|message| message.id).or(self.first);
        // Later blocks have higher IDs.
        let shift = |id: BlockId| BlockId(id.0 - earlier.next);
        blocks.iter_mut().for_each(|block| block.id = shift(block.id));
        let open = earlier.open.into_iter();
        let open = open.map(|open| OpenCall { block: shift(open.block), ..open });
        self.open.splice(0..0, open);
        Recalled { blocks, changes }
    }

    /// Folds what came when the messages before it were not known into their blocks. Returns what
    /// that changes for the known blocks.
    fn fold_late(
        &mut self,
        after: &[Message],
        earlier: &mut TranscriptReducer,
        blocks: &mut Vec<Block>,
    ) -> Vec<BlockChange> {
        let mut changes = Vec::new();
        let last = self.last;
        for message in after.iter().take_while(|message| Some(message.id) <= last) {
            let late = match &message.body {
                Body::Approval(approval) => earlier.answer_call(message, approval),
                Body::Rewind(rewind) => vec![BlockChange::HiddenAfter(rewind.to)],
                Body::Clear => vec![BlockChange::Cleared],
                Body::ToolResult(result) => match self.take_orphan(&result.tool_call_id) {
                    Some(orphan) if earlier.is_open(&result.tool_call_id) => {
                        changes.push(BlockChange::Removed(orphan));
                        earlier.close_call(message, result)
                    }
                    Some(_) | None => continue,
                },
                _ => continue,
            };
            late.into_iter().for_each(|change| apply(blocks, change));
        }
        changes
    }

    fn stream(&mut self, delta: &str) -> BlockChange {
        if let Some(streaming) = &mut self.streaming {
            streaming.text.push_str(delta);
            return BlockChange::Extended { block: streaming.block, text: delta.to_owned() };
        }
        let block = BlockId(self.next);
        self.streaming = Some(Streaming { block, text: delta.to_owned() });
        self.push(None, BlockContent::Answer(delta.to_owned()))
    }

    /// Adds to what the model thinks, as much as the log keeps.
    fn think(&mut self, delta: &str) -> Option<BlockChange> {
        let room = self.thinking.map_or(THINKING_LIMIT, |(_, room)| room);
        let kept = delta.floor_char_boundary(room);
        let left = if kept < delta.len() { 0 } else { room - kept };
        let text = delta[..kept].to_owned();
        match &mut self.thinking {
            Some((_, room)) if text.is_empty() => {
                *room = left;
                None
            }
            Some((block, room)) => {
                *room = left;
                Some(BlockChange::Thought { block: *block, change: ThoughtChange::More(text) })
            }
            None => {
                self.thinking = Some((BlockId(self.next), left));
                Some(self.push(None, BlockContent::Thought { text, duration: None }))
            }
        }
    }

    /// The thought that a response starts with is in the log.
    fn end_thought(&mut self, message: &Message) -> Option<BlockChange> {
        let (text, duration) = message.thought()?;
        let id = message.id;
        Some(match self.thinking.take() {
            Some((block, _)) => {
                let change = ThoughtChange::Ended { message: id, duration };
                BlockChange::Thought { block, change }
            }
            None => {
                let (text, duration) = (text.to_owned(), Some(duration));
                self.push(Some(id), BlockContent::Thought { text, duration })
            }
        })
    }

    fn discard_stream(&mut self) -> Option<BlockChange> {
        self.streaming.take().map(|streaming| BlockChange::Removed(streaming.block))
    }

    fn end_answer(&mut self, message: MessageId, content: &str) -> Vec<BlockChange> {
        match self.streaming.take_if(|streaming| streaming.text == content) {
            Some(Streaming { block, .. }) => vec![BlockChange::Logged { block, message }],
            None => {
                let answer = BlockContent::Answer(content.to_owned());
                let discarded = self.discard_stream();
                discarded.into_iter().chain([self.push(Some(message), answer)]).collect()
            }
        }
    }

    fn open_call(&mut self, message: &Message, call: &ToolCall) -> Vec<BlockChange> {
        let block = BlockId(self.next);
        let (id, since) = (call.tool_call_id.clone(), message.created_at);
        let preview = OutputPreview::of(call.effects.as_deref().unwrap_or_default());
        self.open.push(OpenCall { call: id, block, since, preview });
        vec![self.push(Some(message.id), BlockContent::Call(Box::new(CallBlock::new(call))))]
    }

    fn is_open(&self, call: &ToolCallId) -> bool {
        self.open.iter().any(|open| open.call == *call)
    }

    fn take_orphan(&mut self, call: &ToolCallId) -> Option<BlockId> {
        let at = self.orphans.iter().position(|(orphan, _)| orphan == call)?;
        Some(self.orphans.remove(at).1)
    }

    fn answer_call(&mut self, message: &Message, approval: &Approval) -> Vec<BlockChange> {
        if let Some(open) = self.open.iter_mut().find(|open| open.call == approval.tool_call_id) {
            // The time before was the user's.
            open.since = message.created_at;
        }
        self.change_call(&approval.tool_call_id, CallChange::Answered(approval.clone()))
    }

    fn close_call(&mut self, message: &Message, result: &ToolResult) -> Vec<BlockChange> {
        let id = &result.tool_call_id;
        let open = self.open.iter().position(|open| open.call == *id);
        let open = open.map(|at| self.open.remove(at));
        let duration = open.as_ref().map(|open| elapsed(open.since, message.created_at));
        let preview = open.as_ref().map_or(OutputPreview::End, |open| open.preview);
        let mut end = CallEnd::new(result, &message.content, preview, duration);
        if end.state == ResultState::Refused {
            end.duration = None;
        }
        match open {
            Some(OpenCall { block, .. }) => {
                vec![BlockChange::Call { block, change: CallChange::Ended(end) }]
            }
            None => {
                self.orphans.push((id.clone(), BlockId(self.next)));
                let call = Box::new(CallBlock::of_result(result, end));
                vec![self.push(Some(message.id), BlockContent::Call(call))]
            }
        }
    }

    fn change_call(&self, call: &ToolCallId, change: CallChange) -> Vec<BlockChange> {
        let open = self.open.iter().find(|open| open.call == *call);
        open.map(|open| BlockChange::Call { block: open.block, change }).into_iter().collect()
    }

    fn end_turn(&mut self, turn: &TurnEnd) -> Vec<BlockChange> {
        let mut changes = self.stop();
        // Making room has no answer.
        let is_done = self.is_compaction && turn.stop == StopReason::Stop;
        if let Some((tone, text)) = turn_end_notice(turn).filter(|_| !is_done) {
            changes.push(self.notice(tone, &text));
        }
        changes
    }

    fn notice(&mut self, tone: NoticeTone, text: &str) -> BlockChange {
        self.add(BlockContent::notice(tone, text))
    }

    fn push(&mut self, message: Option<MessageId>, content: BlockContent) -> BlockChange {
        let id = BlockId(self.next);
        self.next += 1;
        BlockChange::Added(Block { id, message, visibility: Visibility::Visible, content })
    }
}

fn elapsed(since: Time, until: Time) -> Duration {
    let millis = until.as_millis().saturating_sub(since.as_millis());
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::{AgentId, Decision, NewMessage, Preview, ResponseId};

    use super::*;
    use crate::approval::ApprovalRequest;
    use crate::block::CallState;

    fn message(id: i64, new: NewMessage) -> Message {
        let (agent, time) = (AgentId::top_level(0), Time::from_millis(id * 100));
        new.into_message(MessageId::new(id).unwrap(), agent, time)
    }

    fn call(name: &str) -> NewMessage {
        NewMessage::tool_call(ToolCallId::new("c"), name, "{}", ResponseId::new("r"))
    }

    fn body(call: &NewMessage) -> ToolCall {
        let Body::ToolCall(call) = &call.body else { unreachable!("it is a call") };
        call.clone()
    }

    fn result(name: &str) -> NewMessage {
        let output = r#"{"success":true,"data":{"output":"done\nall"}}"#;
        NewMessage::tool_result(&body(&call(name)), output)
    }

    fn approval() -> NewMessage {
        let (tool_call_id, reason) = (ToolCallId::new("c"), None);
        let body = Body::Approval(Approval { tool_call_id, decision: Decision::Once, reason });
        NewMessage { content: String::new(), body }
    }

    fn log() -> Vec<Message> {
        let response = || ResponseId::new("r");
        let new = [
            NewMessage::user("fix it"),
            NewMessage::assistant("I look first.", response()),
            call("read"),
            result("read"),
            call("bash"),
            approval(),
            result("bash"),
            NewMessage::notification("#1 from 1/", Vec::new()),
            NewMessage::mark(Some("here".to_owned())),
            NewMessage::user("hidden"),
            NewMessage::rewind(MessageId::new(9).unwrap(), None),
            NewMessage::assistant("Fixed.", response())
                .with_thinking("So that was it.".to_owned(), Duration::from_secs(6)),
            NewMessage::interrupted(None),
        ];
        (1..).zip(new).map(|(id, new)| message(id, new)).collect()
    }

    /// The events of the log, as they come while the agent works.
    fn events(log: &[Message]) -> Vec<EventKind> {
        let mut events = Vec::new();
        for message in log {
            if let Body::Assistant(_) = message.body {
                events.push(EventKind::ThinkingDelta("voided".to_owned()));
                events.push(EventKind::TextDelta("voided".to_owned()));
                let (reason, delay) = ("overloaded".to_owned(), Duration::ZERO);
                events.push(EventKind::Retry { attempt: 1, of: 5, reason, delay });
                if let Some((thought, _)) = message.thought() {
                    let pieces = [&thought[..4], &thought[4..]];
                    events.extend(pieces.map(|text| EventKind::ThinkingDelta(text.to_owned())));
                }
                let (first, rest) = message.content.split_at(3);
                events.extend([first, rest].map(|text| EventKind::TextDelta(text.to_owned())));
            }
            if let Body::Approval(_) = message.body {
                events.push(EventKind::ApprovalRequested(ApprovalRequest {
                    call: body(&call("bash")),
                    preview: Preview::Command { command: "ls".to_owned() },
                    why: String::new(),
                    rule: None,
                    cause: String::new(),
                    hash: String::new(),
                }));
            }
            events.push(EventKind::Message(message.clone()));
        }
        events
    }

    fn fold(reducer: &mut TranscriptReducer, events: &[EventKind]) -> Vec<Block> {
        let mut blocks = Vec::new();
        let changes = events.iter().flat_map(|event| reducer.event(event));
        changes.for_each(|change| apply(&mut blocks, change));
        blocks
    }

    /// What is shown: everything but the IDs.
    fn shown(blocks: &[Block]) -> Vec<(Option<MessageId>, Visibility, BlockContent)> {
        let shown = |block: &Block| (block.message, block.visibility, block.content.clone());
        blocks.iter().map(shown).collect()
    }

    #[test]
    fn a_resumed_session_and_a_live_one_show_the_same_blocks() {
        let log = log();
        let live = fold(&mut TranscriptReducer::default(), &events(&log));
        let resumed = TranscriptReducer::default().recall(&log).blocks;
        assert_eq!(shown(&live), shown(&resumed));
        assert_eq!(live.len(), 11);
        // Wherever the log is recalled in the middle of the work, the whole is the same.
        for at in 0..=log.len() {
            for known in at..=log.len() {
                let mut reducer = TranscriptReducer::default();
                let mut later = fold(&mut reducer, &events(&log[at..known]));
                let Recalled { mut blocks, changes } = reducer.recall(&log[..known]);
                changes.into_iter().for_each(|change| apply(&mut later, change));
                blocks.extend(later);
                for event in events(&log[known..]) {
                    reducer.event(&event).into_iter().for_each(|change| apply(&mut blocks, change));
                }
                assert_eq!(shown(&blocks), shown(&resumed), "{at} {known}");
                assert!(blocks.is_sorted_by_key(|block| block.id), "{at} {known}");
            }
        }
    }

    #[test]
    fn an_event_that_the_recalled_log_already_has_is_folded_once() {
        let log = log();
        let mut reducer = TranscriptReducer::default();
        reducer.recall(&log);
        assert_eq!(reducer.event(&EventKind::Message(log[12].clone())), []);
    }

    #[test]
    fn a_call_knows_how_long_it_ran_without_the_users_time() {
        let blocks = TranscriptReducer::default().recall(&log()).blocks;
        let ends = blocks.iter().filter_map(|block| match &block.content {
            BlockContent::Call(call) => Some(call),
            _ => None,
        });
        let durations = ends.map(|call| match &call.state {
            CallState::Ended(end) => (end.duration, end.output.as_str()),
            _ => unreachable!("all have ended"),
        });
        let expected = (Some(Duration::from_millis(100)), "done\nall");
        assert_eq!(durations.collect::<Vec<_>>(), [expected, expected]);
    }

    #[test]
    fn what_is_open_at_the_end_of_a_turn_stays_unfinished() {
        let mut reducer = TranscriptReducer::default();
        let (error, text) = (Some("no key".to_owned()), String::new());
        let end = TurnEnd { stop: StopReason::Error, text, error, can_continue: true };
        let blocks = fold(
            &mut reducer,
            &[
                EventKind::Message(message(1, call("bash"))),
                EventKind::TextDelta("half".to_owned()),
                EventKind::TurnEnded(end),
            ],
        );
        assert!(
            matches!(&blocks[0].content, BlockContent::Call(call) if call.state == CallState::Unfinished)
        );
        assert_eq!(blocks[1].visibility, Visibility::Hidden);
        assert_eq!(blocks[2].content, BlockContent::notice(NoticeTone::Fault, "no key"));
    }
}
