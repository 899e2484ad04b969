//! The visible conversation of an agent: its blocks, with long answers in parts.
//!
//! Only visible pieces are laid out, and layouts are cached until a piece changes. The total number
//! of rows is never known: the position is a piece and a row in it, and scrolling walks from there.

mod call;
mod parts;
mod piece;
mod scroll;

use std::collections::{BTreeMap, VecDeque};

use ikigai_conversation::{Body, Message, MessageId};
use ikigai_protocol::{
    Block, BlockChange, BlockContent, BlockId, CallChange, EventKind, PlainText, Recalled,
    ThoughtChange, TranscriptReducer, Visibility,
};

use crate::markdown::last_code;

pub(crate) use call::bar_row;
use parts::{Part, Parts};
use piece::{Content, Piece};
use scroll::Position;
pub(crate) use scroll::{Direction, Window};

/// The limit of the scrollback: more than the user reads. The log has the rest.
const LIMIT_BYTES: usize = 32 * 1024 * 1024;
/// How many layouts are cached: several screens in both directions.
const LAID_OUT: usize = 512;

/// An agent's conversation on the screen.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    reducer: TranscriptReducer,
    pieces: VecDeque<Piece>,
    /// The number of the first piece in `pieces`. Numbers are never reused.
    first: usize,
    bytes: usize,
    /// The numbers of pieces with a cached layout, the oldest layout first.
    laid_out: VecDeque<usize>,
    /// The answer that is streaming.
    live: Option<Live>,
    last_answer: Option<String>,
    /// The labels of marks.
    marks: BTreeMap<MessageId, String>,
    position: Position,
    /// The number of the piece that the user has selected.
    selected: Option<usize>,
}

/// An answer that is streaming. Its last piece still grows.
#[derive(Debug)]
struct Live {
    block: BlockId,
    /// The number of its first piece.
    from: usize,
    text: String,
    parts: Parts,
}

impl Transcript {
    /// Handles an event of the agent.
    pub(crate) fn handle(&mut self, event: &EventKind) {
        if let EventKind::Message(message) = event {
            self.note_mark(message);
        }
        let changes = self.reducer.event(event);
        changes.into_iter().for_each(|change| self.apply(change));
    }

    /// Adds a block that is not in the log: the reply to a command, a warning.
    pub(crate) fn add(&mut self, content: BlockContent) {
        let change = self.reducer.add(content);
        self.apply(change);
    }

    /// This process no longer runs the agent.
    pub(crate) fn stop(&mut self) {
        let changes = self.reducer.stop();
        changes.into_iter().for_each(|change| self.apply(change));
    }

    /// Inserts an earlier part of the log before the present pieces.
    pub(crate) fn recall(&mut self, log: &[Message]) {
        let Recalled { blocks, changes } = self.reducer.recall(log);
        changes.into_iter().for_each(|change| self.apply(change));
        let mut earlier = Transcript::default();
        blocks.into_iter().for_each(|block| earlier.push_block(block));
        if self.last_answer.is_none() {
            self.last_answer = earlier.last_answer.take();
        }
        log.iter().for_each(|message| self.note_mark(message));
        // The new pieces take the first numbers, and all references to the present ones are
        // shifted.
        let shift = earlier.pieces.len();
        self.forget_layouts();
        for mut piece in earlier.pieces.into_iter().rev() {
            piece.layout = None;
            self.bytes += piece.bytes;
            self.pieces.push_front(piece);
        }
        if let Some(live) = &mut self.live {
            live.from += shift;
        }
        if let Position::At { piece, .. } = &mut self.position {
            *piece += shift;
        }
        self.selected = self.selected.map(|selected| selected + shift);
        self.bound();
    }

    /// The last complete answer.
    pub(crate) fn last_answer(&self) -> Option<&str> {
        self.last_answer.as_deref()
    }

    /// The last code block of the last answer.
    pub(crate) fn last_code(&self) -> Option<String> {
        last_code(self.last_answer.as_deref()?)
    }

    /// The whole conversation as plain text.
    pub(crate) fn plain(&self) -> String {
        let mut text = PlainText::default();
        let mut pieces = self.pieces.iter().peekable();
        while let Some(piece) = pieces.next() {
            match &piece.content {
                Content::Block(content) => text.push(content),
                Content::Part { part, .. } => {
                    let mut answer = part.text.clone();
                    while let Some(next) = pieces.next_if(|next| next.block == piece.block) {
                        if let Content::Part { part, .. } = &next.content {
                            answer.push_str(part.continued());
                        }
                    }
                    text.push(&BlockContent::Answer(answer));
                }
            }
        }
        text.take()
    }

    /// The labels of all marks, the latest last.
    pub(crate) fn marks(&self) -> Vec<String> {
        self.marks.values().cloned().collect()
    }

    fn note_mark(&mut self, message: &Message) {
        if let Body::Mark(mark) = &message.body
            && let Some(label) = mark.label.as_ref().filter(|label| !label.is_empty())
        {
            self.marks.insert(message.id, label.clone());
        }
    }

    fn apply(&mut self, change: BlockChange) {
        match change {
            BlockChange::Added(block) => self.push_block(block),
            BlockChange::Extended { block, text } => self.extend(block, &text),
            BlockChange::Logged { block, message } => self.log_answer(block, message),
            BlockChange::Thought { block, change } => self.change_thought(block, change),
            BlockChange::Call { block, change } => self.change_call(block, change),
            BlockChange::Removed(block) => self.remove(block),
            BlockChange::Hidden(block) => {
                self.pieces_of(block).for_each(Piece::dim);
                self.live.take_if(|live| live.block == block);
            }
            BlockChange::HiddenAfter(message) => self.hide_after(message),
            BlockChange::Cleared => self.clear(),
        }
    }

    fn push_block(&mut self, block: Block) {
        let Block { id, message, visibility, content } = block;
        let from = self.end();
        match content {
            BlockContent::Answer(text) if message.is_none() => {
                let parts = Parts::default();
                self.live = Some(Live { block: id, from, text: String::new(), parts });
                self.push(id, None, Content::first_part());
                self.extend(id, &text);
            }
            BlockContent::Answer(text) => self.push_answer(id, message, text),
            content => self.push(id, message, Content::Block(content)),
        }
        if visibility == Visibility::Hidden {
            let from = from.saturating_sub(self.first);
            self.pieces.iter_mut().skip(from).for_each(Piece::dim);
        }
    }

    fn push_answer(&mut self, id: BlockId, message: Option<MessageId>, text: String) {
        let mut parts = Parts::default();
        let finished = parts.push(&text);
        for (number, part) in finished.into_iter().chain([parts.into_tail()]).enumerate() {
            self.push(id, message, Content::Part { part, is_first: number == 0 });
        }
        self.last_answer = Some(text);
    }

    /// Adds a delta of the answer that is streaming.
    fn extend(&mut self, block: BlockId, delta: &str) {
        let Some(live) = self.live.as_mut().filter(|live| live.block == block) else { return };
        live.text.push_str(delta);
        let finished = live.parts.push(delta);
        if finished.is_empty() {
            return self.change_tail(block, |part| part.text.push_str(delta));
        }
        let tail = live.parts.tail().clone();
        let mut parts = finished.into_iter().chain([tail]);
        if let Some(finished) = parts.next() {
            self.change_tail(block, |part| *part = finished);
        }
        for part in parts {
            self.push(block, None, Content::Part { part, is_first: false });
        }
    }

    fn change_tail(&mut self, block: BlockId, change: impl FnOnce(&mut Part)) {
        let tail = self.pieces.iter_mut().rfind(|piece| piece.block == block);
        let Some(piece) = tail else { return };
        let before = piece.bytes;
        if let Content::Part { part, .. } = &mut piece.content {
            change(part);
        }
        piece.refresh();
        self.bytes = self.bytes + piece.bytes - before;
    }

    /// The streamed pieces show the whole answer.
    fn log_answer(&mut self, block: BlockId, message: MessageId) {
        self.pieces_of(block).for_each(|piece| piece.message = Some(message));
        if let Some(live) = self.live.take_if(|live| live.block == block) {
            self.last_answer = Some(live.text);
        }
    }

    fn change_call(&mut self, block: BlockId, change: CallChange) {
        let Some(piece) = self.pieces_of(block).next() else { return };
        let before = piece.bytes;
        if let Content::Block(BlockContent::Call(call)) = &mut piece.content {
            call.apply(change);
        }
        piece.refresh();
        let after = piece.bytes;
        self.bytes = self.bytes + after - before;
        self.bound();
    }

    fn change_thought(&mut self, block: BlockId, change: ThoughtChange) {
        let Some(piece) = self.pieces_of(block).next() else { return };
        let before = piece.bytes;
        if let ThoughtChange::Ended { message, .. } = change {
            piece.message = Some(message);
        }
        if let Content::Block(BlockContent::Thought { text, duration }) = &mut piece.content {
            change.apply(text, duration);
        }
        piece.refresh();
        let after = piece.bytes;
        self.bytes = self.bytes + after - before;
    }

    fn remove(&mut self, block: BlockId) {
        self.forget_layouts();
        self.bytes -= self.pieces_of(block).map(|piece| piece.bytes).sum::<usize>();
        self.live.take_if(|live| live.block == block);
        self.pieces.retain(|piece| piece.block != block);
        self.selected = None;
        if matches!(self.position, Position::At { piece, .. } if piece >= self.end()) {
            self.position = Position::End;
        }
    }

    /// Forgets what was shown. The log has it.
    fn clear(&mut self) {
        self.forget_layouts();
        self.first = self.end();
        self.pieces.clear();
        self.bytes = 0;
        self.live = None;
        self.selected = None;
        self.position = Position::End;
    }

    /// Dims what a rewind hides from the model; the user can still read it.
    fn hide_after(&mut self, last: MessageId) {
        let after = |piece: &&mut Piece| piece.message.is_none_or(|id| id > last);
        self.pieces.iter_mut().rev().take_while(after).for_each(Piece::dim);
    }

    /// The pieces of a block. Remarks may stand between those of an answer that streams.
    fn pieces_of(&mut self, block: BlockId) -> impl Iterator<Item = &mut Piece> {
        let from = match &self.live {
            Some(live) if live.block == block => live.from.saturating_sub(self.first),
            // What changes is near the end.
            Some(_) | None => {
                let last = self.pieces.iter().rposition(|piece| piece.block == block);
                last.unwrap_or(self.pieces.len())
            }
        };
        self.pieces.iter_mut().skip(from).filter(move |piece| piece.block == block)
    }

    fn push(&mut self, block: BlockId, message: Option<MessageId>, content: Content) {
        let is_joined = self.pieces.back().is_some_and(|last| last.content.joins(&content));
        let piece = Piece::new(block, message, content, is_joined);
        self.bytes += piece.bytes;
        self.pieces.push_back(piece);
        self.bound();
    }

    /// The number of the next piece.
    fn end(&self) -> usize {
        self.first + self.pieces.len()
    }

    fn bound(&mut self) {
        while self.bytes > LIMIT_BYTES && self.pieces.len() > 1 {
            if let Some(piece) = self.pieces.pop_front() {
                self.bytes -= piece.bytes;
                self.first += 1;
            }
        }
    }

    fn forget_layouts(&mut self) {
        self.laid_out.clear();
        self.pieces.iter_mut().for_each(|piece| piece.layout = None);
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
            let result = result.into_message(id, agent, Time::from_millis(0));
            transcript.handle(&EventKind::Message(result));
        }
        let held: usize = transcript.pieces.iter().map(|piece| piece.bytes).sum();
        assert_eq!(transcript.bytes, held);
        assert!(transcript.pieces.len() < 40, "{}", transcript.pieces.len());
    }
}
