//! The visible conversation of an agent: its log as blocks, and the answer that is streaming.
//!
//! Only visible blocks are laid out, and layouts are cached until a block changes. The total number
//! of rows is never known: the position is a block and a row in it, and scrolling walks from there.

mod block;
mod parts;
mod scroll;

use std::collections::VecDeque;

use ikigai_conversation::{
    Approval, Body, CallSummary, Decision, Message, MessageId, ToolCall, ToolResult,
};
use ikigai_protocol::RECALLED;

use crate::safe::safe_line;
pub(crate) use block::Tone;
use block::{Block, Content};
use parts::{Part, Parts};
use scroll::Position;
pub(crate) use scroll::Window;

/// The limit of the scrollback: more than the user reads. The log has the rest.
const LIMIT_BYTES: usize = 32 * 1024 * 1024;
/// How many layouts are cached: several screens in both directions.
const LAID_OUT: usize = 512;

/// An agent's conversation on the screen.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    blocks: VecDeque<Block>,
    /// The number of the first block in `blocks`. Numbers are never reused.
    first: usize,
    bytes: usize,
    /// The numbers of blocks with a cached layout, the oldest layout first.
    laid_out: VecDeque<usize>,
    /// The answer that is streaming.
    live: Option<Live>,
    last_answer: Option<String>,
    /// The labels of marks, the latest last.
    marks: Vec<String>,
    position: Position,
}

/// An answer that is streaming.
#[derive(Debug, Default)]
struct Live {
    /// The number of its first block.
    from: usize,
    /// The number of its last block, which still grows.
    tail: Option<usize>,
    text: String,
    parts: Parts,
}

impl Transcript {
    /// Adds a message of the log.
    pub(crate) fn record(&mut self, message: &Message) {
        let id = Some(message.id);
        let content = message.content.as_str();
        match &message.body {
            Body::User => self.push(id, Content::Said(content.to_owned())),
            Body::Assistant(_) => self.record_answer(message.id, content),
            Body::ToolCall(call) => self.record_call(message.id, call),
            Body::ToolResult(result) => self.record_result(id, result, content),
            Body::Notification(_) => self.push(id, Content::note(Tone::Dim, content)),
            Body::Summary(_) => self.rule(id, "what was said before is summed up from here on"),
            Body::Fork(fork) => self.rule(id, &format!("forked by {}", fork.parent)),
            Body::Mark(mark) => self.record_mark(id, mark.label.as_deref()),
            Body::Rewind(rewind) => {
                self.dim_after(rewind.to);
                let label = rewind.label.as_deref().map(|label| format!(" to {label}"));
                self.rule(id, &format!("rewound{}", label.unwrap_or_default()));
            }
            Body::Clear => self.rule(id, "a fresh context"),
            Body::Kill(kill) => {
                let killed: Vec<String> = kill.killed.iter().map(ToString::to_string).collect();
                self.push(id, Content::note(Tone::Dim, &format!("killed: {}", killed.join(", "))));
            }
            Body::Approval(approval) => {
                self.push(id, Content::note(Tone::Dim, &answered(approval)));
            }
            Body::Command(command) => {
                self.push(id, Content::note(Tone::Dim, &format!("❯ {}", command.command)));
            }
            Body::Interrupted(_) => self.push(id, Content::note(Tone::Fault, "interrupted")),
            Body::System | Body::Usage(_) | Body::Trim(_) => {}
        }
    }

    /// Adds a delta of the answer.
    pub(crate) fn stream(&mut self, delta: &str) {
        let from = self.end();
        let live = self.live.get_or_insert_with(|| Live { from, ..Live::default() });
        live.text.push_str(delta);
        let finished = live.parts.push(delta);
        if finished.is_empty() && live.tail.is_some() {
            return self.change_tail(|part| part.text.push_str(delta));
        }
        let tail = live.parts.tail().clone();
        let mut parts = finished.into_iter().chain([tail]);
        if live.tail.is_some()
            && let Some(finished) = parts.next()
        {
            self.change_tail(|part| *part = finished);
        }
        for part in parts {
            self.push_tail(part);
        }
    }

    /// Discards the streaming answer.
    pub(crate) fn discard_stream(&mut self) {
        let Some(live) = self.live.take() else { return };
        self.forget_layouts();
        let keep = live.from.saturating_sub(self.first).min(self.blocks.len());
        for block in self.blocks.split_off(keep) {
            match block.is_streaming() {
                true => self.bytes -= block.bytes,
                false => self.blocks.push_back(block),
            }
        }
        if matches!(self.position, Position::At { block, .. } if block >= self.end()) {
            self.position = Position::End;
        }
    }

    /// Ends the turn. Streamed text that is not in the log is not part of the conversation.
    pub(crate) fn end_stream(&mut self) {
        let Some(live) = self.live.take() else { return };
        let blocks = self.blocks.iter_mut().skip(live.from.saturating_sub(self.first));
        blocks.filter(|block| block.is_streaming()).for_each(Block::dim);
    }

    /// Adds a note that is not in the log: the reply to a command, a warning.
    pub(crate) fn note(&mut self, tone: Tone, text: &str) {
        self.push(None, Content::note(tone, text));
    }

    /// Inserts an earlier part of the log before the present blocks.
    pub(crate) fn recall(&mut self, log: &[Message]) {
        let known = self.blocks.iter().find_map(|block| block.message);
        let is_earlier = |message: &&Message| known.is_none_or(|known| message.id < known);
        let mut whole = Transcript::default();
        if u32::try_from(log.len()) == Ok(RECALLED) {
            whole.rule(None, "what was said before this is in the log: ikigai log");
        }
        log.iter().filter(is_earlier).for_each(|message| whole.record(message));
        if whole.last_answer.is_some() && self.last_answer.is_none() {
            self.last_answer = whole.last_answer.take();
        }
        whole.marks.append(&mut self.marks);
        self.marks = whole.marks;
        // The new blocks take the first numbers, and all references to the present ones are
        // shifted.
        let shift = whole.blocks.len();
        self.forget_layouts();
        for block in whole.blocks.into_iter().rev() {
            self.bytes += block.bytes;
            self.blocks.push_front(block);
        }
        if let Some(live) = &mut self.live {
            live.from += shift;
            live.tail = live.tail.map(|tail| tail + shift);
        }
        if let Position::At { block, .. } = &mut self.position {
            *block += shift;
        }
        self.bound();
    }

    /// The last complete answer.
    pub(crate) fn last_answer(&self) -> Option<&str> {
        self.last_answer.as_deref()
    }

    /// The labels of all marks.
    pub(crate) fn marks(&self) -> &[String] {
        &self.marks
    }

    fn record_answer(&mut self, id: MessageId, content: &str) {
        self.last_answer = Some(content.to_owned());
        match &self.live {
            Some(live) if live.text == content => self.keep_live(id),
            Some(_) | None => {
                self.discard_stream();
                self.push_answer(id, content);
            }
        }
    }

    /// Keeps the streamed blocks: they show the whole answer.
    fn keep_live(&mut self, id: MessageId) {
        let Some(live) = self.live.take() else { return };
        let blocks = self.blocks.iter_mut().skip(live.from.saturating_sub(self.first));
        blocks.filter(|block| block.is_streaming()).for_each(|block| block.message = Some(id));
    }

    fn push_answer(&mut self, id: MessageId, content: &str) {
        let mut parts = Parts::default();
        let mut is_first = true;
        let finished = parts.push(content);
        for part in finished.into_iter().chain([parts.into_tail()]) {
            self.push(Some(id), Content::Answer { part, is_first });
            is_first = false;
        }
    }

    fn record_call(&mut self, id: MessageId, call: &ToolCall) {
        self.live = None;
        self.push(Some(id), Content::Call(CallSummary::of(call).to_string()));
    }

    fn record_result(&mut self, id: Option<MessageId>, result: &ToolResult, content: &str) {
        self.push(id, Content::result(result, content));
    }

    fn record_mark(&mut self, id: Option<MessageId>, label: Option<&str>) {
        let label = label.unwrap_or_default();
        if !label.is_empty() {
            self.marks.push(label.to_owned());
        }
        self.rule(id, format!("mark {label}").trim_end());
    }

    fn rule(&mut self, id: Option<MessageId>, text: &str) {
        self.push(id, Content::Rule(safe_line(text)));
    }

    /// Dims what a rewind hides from the model; the user can still read it.
    fn dim_after(&mut self, last: MessageId) {
        for block in self.blocks.iter_mut().rev() {
            match block.message {
                Some(id) if id <= last => break,
                Some(_) | None => block.dim(),
            }
        }
    }

    /// Starts the next part of the streaming answer.
    fn push_tail(&mut self, part: Part) {
        let number = self.end();
        let Some(live) = &mut self.live else { return };
        let is_first = live.tail.replace(number).is_none();
        self.push(None, Content::Answer { part, is_first });
    }

    fn change_tail(&mut self, change: impl FnOnce(&mut Part)) {
        let tail = self.live.as_ref().and_then(|live| live.tail);
        let Some(index) = tail.and_then(|tail| tail.checked_sub(self.first)) else { return };
        let Some(block) = self.blocks.get_mut(index) else { return };
        if let Content::Answer { part, .. } = &mut block.content {
            let before = part.text.len();
            change(part);
            block.layout = None;
            block.bytes = block.bytes + part.text.len() - before;
            self.bytes = self.bytes + part.text.len() - before;
        }
    }

    fn push(&mut self, message: Option<MessageId>, content: Content) {
        let is_joined = self.blocks.back().is_some_and(|last| last.content.joins(&content));
        let block = Block::new(message, content, is_joined);
        self.bytes += block.bytes;
        self.blocks.push_back(block);
        self.bound();
    }

    /// The number of the next block.
    fn end(&self) -> usize {
        self.first + self.blocks.len()
    }

    fn bound(&mut self) {
        while self.bytes > LIMIT_BYTES && self.blocks.len() > 1 {
            if let Some(block) = self.blocks.pop_front() {
                self.bytes -= block.bytes;
                self.first += 1;
            }
        }
    }

    fn forget_layouts(&mut self) {
        self.laid_out.clear();
        self.blocks.iter_mut().for_each(|block| block.layout = None);
    }
}

fn answered(approval: &Approval) -> String {
    match (&approval.decision, &approval.reason) {
        (Decision::Once, _) => "you said yes, once".to_owned(),
        (Decision::Always, _) => "you said yes, for this session".to_owned(),
        (Decision::No, Some(reason)) => format!("you said no: {reason}"),
        (Decision::No, None) => "you said no".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::{
        AgentId, DiffLine, FileDiff, Hunk, NewMessage, ResponseId, ResultState, ResultSummary,
        Time, ToolCallId,
    };

    use super::*;

    #[test]
    fn diffs_count_towards_the_scrollback_limit() {
        let mut transcript = Transcript::default();
        let call = NewMessage::tool_call(ToolCallId::new("c"), "x", "{}", ResponseId::new("r"));
        let Body::ToolCall(call) = call.body else { unreachable!("it is one") };
        for number in 1..100 {
            let lines = vec![DiffLine::Added("x".repeat(1024)); 1024];
            let hunks = vec![Hunk { old: 1, new: 1, lines }];
            let path = "f".to_owned();
            let diff = FileDiff { path, added: 1024, removed: 0, hunks, omitted: 0 };
            let summary = ResultSummary::new("+1", ResultState::Succeeded, Some(diff), None);
            let result = NewMessage::shown_result(&call, "{}".to_owned(), true, "ok", summary);
            let (id, agent) = (MessageId::new(number).unwrap(), AgentId::top_level(0));
            transcript.record(&result.into_message(id, agent, Time::from_millis(0)));
        }
        let held: usize = transcript.blocks.iter().map(|block| block.bytes).sum();
        assert_eq!(transcript.bytes, held);
        assert!(transcript.blocks.len() < 40, "{}", transcript.blocks.len());
    }
}
