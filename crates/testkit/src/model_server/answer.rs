//! A model's answer, and its body in each format.

use std::ops::Range;

use super::captured::CapturedRequest;
use super::{anthropic, chat, google, responses};

/// The content of an answer, in no format.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// The text in pieces.
    pub(super) text: Vec<String>,
    pub(super) calls: Vec<Call>,
    /// The finish reason in the chat format; by default the one that fits.
    pub(super) finish: Option<String>,
    /// Tokens sent and received.
    pub(super) usage: (u64, u64),
    /// How many of those sent came from a cache.
    pub(super) cached: u64,
    /// A fault after all this.
    pub(super) error: Option<String>,
    pub(super) is_whole: bool,
}

impl Default for Answer {
    fn default() -> Answer {
        let (text, calls) = (Vec::new(), Vec::new());
        Answer {
            text,
            calls,
            finish: None,
            usage: (10, 5),
            cached: 0,
            error: None,
            is_whole: false,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    /// The arguments in pieces.
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
    /// Splits a text into words, and one of the words in half, so that there is always a middle.
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

    pub(super) fn render(&self, format: Format, captured: &CapturedRequest) -> Rendered {
        let request = captured.json();
        // In Google's format the address says it.
        let is_streamed = request["stream"] == true || format == Format::Google;
        let is_whole = self.is_whole || !is_streamed;
        match (format, is_whole) {
            (Format::Chat, true) => Rendered::document(chat::whole(self)),
            (Format::Chat, false) => {
                let wants_usage = request["stream_options"]["include_usage"] == true;
                chat::stream(self, wants_usage)
            }
            (Format::Anthropic, true) => Rendered::document(anthropic::whole(self)),
            (Format::Anthropic, false) => anthropic::stream(self),
            (Format::Responses, true) => Rendered::document(responses::whole(self)),
            (Format::Responses, false) => responses::stream(self),
            (Format::Google, true) => Rendered::document(google::whole(self)),
            (Format::Google, false) => google::stream(self),
        }
    }
}

/// The format of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Chat,
    Anthropic,
    Responses,
    Google,
}

impl Format {
    pub(super) fn of_path(path: &str) -> Format {
        let path = path.split('?').next().unwrap_or(path);
        if path.ends_with("/messages") {
            Format::Anthropic
        } else if path.ends_with("/responses") {
            Format::Responses
        } else if path.ends_with(":streamGenerateContent") {
            Format::Google
        } else {
            Format::Chat
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
    /// The length of all pieces.
    pub(super) length: usize,
    /// The position of the last piece of text in the body.
    pub(super) last_text: Option<Range<usize>>,
    /// The position of the last piece of arguments in the body.
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

    /// Adds an event and returns its position.
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
