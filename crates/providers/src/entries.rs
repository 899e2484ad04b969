//! Converts a view of a log to entries as wire formats need them: the identity of the model
//! precedes the next text, and the text and calls of one response form one answer.

use ikigai_conversation::{Extras, ResponseId, Seen, ToolCall};

use crate::origin::is_foreign;
use crate::request::Request;
use crate::stored_blocks::{Piece, PlacedBlock};

/// One entry to encode.
#[derive(Debug)]
pub(crate) enum Entry<'a> {
    /// User input. It is never blank, because some APIs refuse that.
    Said(String),
    Answer(Answer<'a>),
    /// The result of a call. Results are in the order of their calls, right after their answer.
    Result {
        call: &'a ToolCall,
        output: &'a str,
        success: bool,
    },
}

/// The parts of one response, possibly none.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    response: &'a ResponseId,
    pub(crate) text: &'a str,
    pub(crate) calls: Vec<&'a ToolCall>,
    pub(crate) extras: Option<&'a Extras>,
}

impl<'a> Answer<'a> {
    /// The parts in their original order, with `blocks` in their positions. `None` if a position is
    /// not in this answer: then the blocks do not belong to it.
    pub(crate) fn split<B>(&self, blocks: Vec<PlacedBlock<B>>) -> Option<Vec<Piece<'a, B>>> {
        let mut pieces = Vec::new();
        let (mut text, mut calls) = (0, 0);
        for placed in blocks {
            pieces.push(Piece::Text(self.text.get(text..placed.text)?));
            pieces
                .extend(self.calls.get(calls..placed.calls)?.iter().map(|call| Piece::Call(call)));
            pieces.push(Piece::Block(placed.block));
            (text, calls) = (placed.text, placed.calls);
        }
        pieces.push(Piece::Text(self.text.get(text..)?));
        pieces.extend(self.calls.get(calls..)?.iter().map(|call| Piece::Call(call)));
        pieces.retain(|piece| !matches!(piece, Piece::Text("")));
        Some(pieces)
    }

    fn has_begun(&self) -> bool {
        !self.text.is_empty() || !self.calls.is_empty()
    }
}

/// The prompt, with its parts joined.
pub(crate) fn prompt(view: &[Seen<'_>]) -> Option<String> {
    let text = |seen: &Seen<'_>| match seen {
        Seen::System(text) => Some((*text).to_owned()),
        _ => None,
    };
    let parts: Vec<String> = view.iter().filter_map(text).filter(|text| !is_blank(text)).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Everything but the prompt, in order.
pub(crate) fn entries<'a>(request: &Request<'a>) -> Vec<Entry<'a>> {
    let mut writer = Writer { origin: request.origin, ..Writer::default() };
    request.view.iter().for_each(|seen| writer.add(seen));
    writer.end_answer();
    writer.end_identity();
    writer.entries
}

/// Whether a text is only white space.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

#[derive(Default)]
struct Writer<'a> {
    origin: &'a str,
    entries: Vec<Entry<'a>>,
    /// The identity line that will precede the next text.
    identity: Option<String>,
    /// The response that is being assembled.
    answer: Option<Answer<'a>>,
}

impl<'a> Writer<'a> {
    fn add(&mut self, seen: &Seen<'a>) {
        match seen {
            Seen::System(_) => {}
            Seen::Identity(identity) => {
                self.end_answer();
                self.end_identity();
                self.identity = Some(identity.to_string());
            }
            Seen::User(text) | Seen::Notification(text) => self.say(text),
            Seen::Summary(text) | Seen::Obligations(text) => self.say(text),
            Seen::Assistant { text, response, extras } => {
                // A response has one text, before its calls. A second text belongs to another
                // response.
                if self.answer.as_ref().is_some_and(Answer::has_begun) {
                    self.end_answer();
                }
                let extras = extras.filter(|extras| !is_foreign(extras, self.origin));
                let answer = self.answer_of(response);
                answer.text = text;
                answer.extras = answer.extras.or(extras);
            }
            Seen::ToolCall(call) => {
                let extras = call.extras.as_ref();
                let extras = extras.filter(|extras| !is_foreign(extras, self.origin));
                let answer = self.answer_of(&call.response);
                answer.calls.push(call);
                answer.extras = answer.extras.or(extras);
            }
            Seen::ToolResult { call, output, success } => {
                self.end_answer();
                self.entries.push(Entry::Result { call, output, success: *success });
            }
        }
    }

    fn say(&mut self, text: &str) {
        self.end_answer();
        if is_blank(text) {
            // The line is written now. Otherwise it would move when the log grows.
            return self.end_identity();
        }
        let said = match self.identity.take() {
            Some(identity) => format!("{identity}\n\n{text}"),
            None => text.to_owned(),
        };
        self.entries.push(Entry::Said(said));
    }

    /// The response with this id, started if it is a new one.
    fn answer_of(&mut self, response: &'a ResponseId) -> &mut Answer<'a> {
        if self.answer.as_ref().is_some_and(|answer| answer.response != response) {
            self.end_answer();
        }
        self.end_identity();
        self.answer.get_or_insert_with(|| Answer {
            response,
            text: "",
            calls: Vec::new(),
            extras: None,
        })
    }

    fn end_answer(&mut self) {
        self.entries.extend(self.answer.take().map(Entry::Answer));
    }

    /// Writes an identity that no text follows.
    fn end_identity(&mut self) {
        self.entries.extend(self.identity.take().map(Entry::Said));
    }
}
