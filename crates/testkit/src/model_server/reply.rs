//! Replies of the server.

use std::time::Duration;

use serde_json::{Value, json};

use super::answer::{Answer, Call, Format, Rendered};
use super::captured::CapturedRequest;
use super::gate::Gate;

/// A reply. Its methods change it.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    content: Content,
    /// The number of bytes per chunk; by default one event.
    chunk: Option<usize>,
    pub(super) pause: Duration,
    pub(super) gate: Option<Gate>,
    pub(super) opens: Option<Gate>,
    pub(super) act: Option<(Point, Act)>,
    pub(super) hangs_up: bool,
}

#[derive(Debug, Clone)]
enum Content {
    /// A model's answer, in the format of the request.
    Answer(Answer),
    /// An error, in the format of the request.
    Error(String),
    /// Any bytes, sent with their length.
    Bytes(Vec<u8>),
    /// Any bytes, sent in chunks.
    Stream(Vec<u8>),
}

/// A point in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// Before the status line.
    Head,
    /// After this many bytes of the body, or at its end.
    Byte(usize),
    /// In the middle of the last piece of text.
    Text,
    /// In the middle of the last piece of a call's arguments.
    Arguments,
}

/// What happens at a point.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Close,
    Reset,
    Stall,
    Hold(Gate),
}

impl Reply {
    /// A text, word by word.
    pub fn text(text: &str) -> Reply {
        Reply::of(Content::Answer(Answer::of_text(text)))
    }

    /// A text in exactly these pieces.
    pub fn pieces<T: Into<String>>(pieces: impl IntoIterator<Item = T>) -> Reply {
        let text = pieces.into_iter().map(T::into).collect();
        Reply::of(Content::Answer(Answer { text, ..Answer::default() }))
    }

    /// One call.
    pub fn call(id: &str, name: &str, arguments: Value) -> Reply {
        Reply::calls([(id, name, arguments)])
    }

    /// Several calls.
    pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str, Value)>) -> Reply {
        Reply::text_and_calls("", calls)
    }

    /// A text followed by calls.
    pub fn text_and_calls<'a>(
        text: &str,
        calls: impl IntoIterator<Item = (&'a str, &'a str, Value)>,
    ) -> Reply {
        let mut answer = Answer::of_text(text);
        answer.calls = calls
            .into_iter()
            .map(|(id, name, arguments)| Call::new(id, name, &raw_arguments(arguments)))
            .collect();
        Reply::of(Content::Answer(answer))
    }

    /// An error with this status, in the format of the request.
    pub fn error(status: u16, message: &str) -> Reply {
        Reply { status, ..Reply::of(Content::Error(message.to_owned())) }
    }

    /// An error with this status and a default message.
    pub fn status(status: u16) -> Reply {
        Reply::error(status, "scripted")
    }

    /// Any response, sent with its length.
    pub fn raw(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Reply {
        let reply = Reply { status, ..Reply::of(Content::Bytes(body.into())) };
        headers.iter().fold(reply, |reply, (name, value)| reply.header(name, value))
    }

    /// A JSON document.
    pub fn json(status: u16, body: &Value) -> Reply {
        Reply::raw(status, &[("Content-Type", "application/json")], body.to_string())
    }

    /// A web page with a success status.
    pub fn page(html: &str) -> Reply {
        Reply::raw(200, &[("Content-Type", "text/html; charset=utf-8")], html)
    }

    /// Any bytes as an event stream, which may be empty.
    pub fn sse(body: impl Into<Vec<u8>>) -> Reply {
        Reply::of(Content::Stream(body.into())).header("Content-Type", "text/event-stream")
    }

    /// An event stream with a line of this length that never ends.
    pub fn long_line(bytes: usize) -> Reply {
        let mut body = b"data: ".to_vec();
        body.resize(bytes, b'x');
        Reply::sse(body).in_chunks(1 << 16)
    }

    /// No answer until the client disconnects.
    pub fn silence() -> Reply {
        Reply::text("").stall_at(Point::Head)
    }

    /// Closes the connection as soon as it is accepted. In a list it needs no request. If replies
    /// are chosen, or the connection already existed, it is closed without an answer.
    pub fn hang_up() -> Reply {
        Reply { hangs_up: true, ..Reply::text("").close_at(Point::Head) }
    }

    fn of(content: Content) -> Reply {
        Reply {
            status: 200,
            headers: Vec::new(),
            content,
            chunk: None,
            pause: Duration::ZERO,
            gate: None,
            opens: None,
            act: None,
            hangs_up: false,
        }
    }

    /// With another header.
    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a `retry-after` of this many seconds.
    pub fn retry_after(self, seconds: u64) -> Reply {
        self.header("Retry-After", &seconds.to_string())
    }

    /// With this finish reason of the chat format: `stop`, `length`, `tool_calls`,
    /// `content_filter`.
    pub fn finish(self, reason: &str) -> Reply {
        self.answering(|answer| answer.finish = Some(reason.to_owned()))
    }

    /// With these token counts.
    pub fn usage(self, input: u64, output: u64) -> Reply {
        self.answering(|answer| answer.usage = (input, output))
    }

    /// With this many of the tokens sent from a cache.
    pub fn cached(self, tokens: u64) -> Reply {
        self.answering(|answer| answer.cached = tokens)
    }

    /// Ends with an error inside the stream.
    pub fn then_error(self, message: &str) -> Reply {
        self.answering(|answer| answer.error = Some(message.to_owned()))
    }

    /// As one document, even if a stream was requested.
    pub fn whole(self) -> Reply {
        self.answering(|answer| answer.is_whole = true)
    }

    fn answering(mut self, change: impl FnOnce(&mut Answer)) -> Reply {
        let Content::Answer(answer) = &mut self.content else {
            panic!("this is no answer: {self:?}")
        };
        change(answer);
        self
    }

    /// The body in chunks of this size, which may split lines and characters.
    pub fn in_chunks(mut self, bytes: usize) -> Reply {
        assert!(bytes > 0, "a chunk of no bytes is the end");
        self.chunk = Some(bytes);
        self
    }

    /// With a pause before every chunk of the body.
    pub fn drip(mut self, pause: Duration) -> Reply {
        self.pause = pause;
        self
    }

    /// Only after the gate was opened.
    pub fn after(mut self, gate: &Gate) -> Reply {
        self.gate = Some(gate.clone());
        self
    }

    /// Opens the gate when it is requested, before it waits for its own gate.
    pub fn opening(mut self, gate: &Gate) -> Reply {
        self.opens = Some(gate.clone());
        self
    }

    /// Up to this point, then the connection is closed.
    pub fn close_at(self, point: Point) -> Reply {
        self.acting(point, Act::Close)
    }

    /// Up to this point, then the connection is reset.
    pub fn reset_at(self, point: Point) -> Reply {
        self.acting(point, Act::Reset)
    }

    /// Up to this point, then nothing until the client disconnects.
    pub fn stall_at(self, point: Point) -> Reply {
        self.acting(point, Act::Stall)
    }

    /// Up to this point, then the rest once the gate is open.
    pub fn hold_at(self, point: Point, gate: &Gate) -> Reply {
        self.acting(point, Act::Hold(gate.clone()))
    }

    fn acting(mut self, point: Point, act: Act) -> Reply {
        self.act = Some((point, act));
        self
    }

    /// The body for this request.
    pub(super) fn render(&self, captured: &CapturedRequest) -> Rendered {
        let format = Format::of_path(&captured.path);
        let rendered = match &self.content {
            Content::Answer(answer) => answer.render(format, captured),
            Content::Error(message) => {
                let error = match format {
                    Format::Chat | Format::Responses | Format::Google => {
                        json!({"error": {"message": message, "type": "scripted"}})
                    }
                    Format::Anthropic => {
                        json!({"type": "error", "error": {"type": "scripted", "message": message}})
                    }
                };
                Rendered::document(error.to_string().into_bytes())
            }
            Content::Bytes(body) => Rendered::bytes(body.clone()),
            Content::Stream(body) => Rendered::stream(body.clone()),
        };
        match self.chunk {
            Some(bytes) => rendered.in_pieces_of(bytes),
            None => rendered,
        }
    }
}

/// A string is used as it is, for invalid arguments.
fn raw_arguments(arguments: Value) -> String {
    match arguments {
        Value::String(raw) => raw,
        arguments => arguments.to_string(),
    }
}
