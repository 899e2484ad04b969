//! A model's answer, and how it becomes the body of a response.

use std::ops::Range;

use super::captured::Captured;
use super::{anthropic, chat};

/// What the model says, in no format.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// Piece by piece.
    pub(super) text: Vec<String>,
    pub(super) calls: Vec<Call>,
    /// In the words of the chat format; where none is given, what fits.
    pub(super) finish: Option<String>,
    /// Tokens sent and received.
    pub(super) usage: (u64, u64),
    /// What goes wrong after all this.
    pub(super) error: Option<String>,
    pub(super) is_whole: bool,
}

impl Default for Answer {
    fn default() -> Answer {
        let (text, calls) = (Vec::new(), Vec::new());
        Answer { text, calls, finish: None, usage: (10, 5), error: None, is_whole: false }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    /// Piece by piece.
    pub(super) arguments: Vec<String>,
}

impl Call {
    pub(super) fn new(id: &str, name: &str, arguments: &str) -> Call {
        let characters: Vec<char> = arguments.chars().collect();
        let arguments = characters.chunks(8).map(|piece| piece.iter().collect()).collect();
        Call { id: id.to_owned(), name: name.to_owned(), arguments }
    }
}

impl Answer {
    /// Word by word; one word in two halves, so that there is always a middle.
    pub(super) fn of_text(text: &str) -> Answer {
        let mut pieces: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
        if pieces.len() == 1 {
            let half = text.floor_char_boundary(text.len() / 2);
            pieces = [&text[..half], &text[half..]].map(str::to_owned).into();
            pieces.retain(|piece| !piece.is_empty());
        }
        Answer { text: pieces, ..Answer::default() }
    }

    pub(super) fn finish(&self) -> &str {
        let fitting = if self.calls.is_empty() { "stop" } else { "tool_calls" };
        self.finish.as_deref().unwrap_or(fitting)
    }

    pub(super) fn render(&self, format: Format, captured: &Captured) -> Rendered {
        let request = captured.json();
        let is_whole = self.is_whole || request["stream"] != true;
        match (format, is_whole) {
            (Format::Chat, true) => Rendered::document(chat::whole(self)),
            (Format::Chat, false) => {
                let wants_usage = request["stream_options"]["include_usage"] == true;
                chat::stream(self, wants_usage)
            }
            (Format::Anthropic, true) => Rendered::document(anthropic::whole(self)),
            (Format::Anthropic, false) => anthropic::stream(self),
        }
    }
}

/// The format a request is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Chat,
    Anthropic,
}

impl Format {
    pub(super) fn of_path(path: &str) -> Format {
        match path.ends_with("/messages") {
            true => Format::Anthropic,
            false => Format::Chat,
        }
    }
}

/// The body of a response.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    pub(super) content_type: Option<&'static str>,
    /// Sent in chunks, one per piece; otherwise with its length.
    pub(super) is_chunked: bool,
    pub(super) pieces: Vec<Vec<u8>>,
    /// Bytes in all pieces.
    pub(super) length: usize,
    /// Where the last piece of text is in the body.
    pub(super) last_text: Option<Range<usize>>,
    /// Where the last piece of arguments is in the body.
    pub(super) last_arguments: Option<Range<usize>>,
}

impl Rendered {
    pub(super) fn bytes(body: Vec<u8>) -> Rendered {
        Rendered { length: body.len(), pieces: vec![body], ..Rendered::default() }
    }

    pub(super) fn document(body: Vec<u8>) -> Rendered {
        let everything = Some(0..body.len());
        Rendered {
            content_type: Some("application/json"),
            last_text: everything.clone(),
            last_arguments: everything,
            ..Rendered::bytes(body)
        }
    }

    pub(super) fn stream(body: Vec<u8>) -> Rendered {
        Rendered { is_chunked: true, ..Rendered::bytes(body) }
    }

    pub(super) fn events() -> Rendered {
        Rendered { content_type: Some("text/event-stream"), ..Rendered::stream(Vec::new()) }
    }

    /// Adds an event and returns where it is.
    pub(super) fn push(&mut self, event: String) -> Range<usize> {
        let start = self.length;
        self.length += event.len();
        self.pieces.push(event.into_bytes());
        start..self.length
    }

    pub(super) fn in_pieces_of(mut self, bytes: usize) -> Rendered {
        self.pieces = self.pieces.concat().chunks(bytes).map(<[u8]>::to_vec).collect();
        self
    }
}
