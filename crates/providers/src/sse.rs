//! Decodes server-sent events from chunks of bytes.
//!
//! Lines are found in the bytes and decoded whole, so a chunk may end anywhere, even inside a
//! character. Each byte is scanned once: a long line costs the same in many chunks as in one.

use memchr::memchr2;

use crate::fault::{Category, Fault};

/// The limit for a line and for the data of one event. At most, a server sends a whole response in
/// one event. Anything longer is not an event stream.
const MAX_BYTES: usize = 8 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// Its type, if the server sends one.
    pub name: Option<&'a str>,
    /// Its data. Several lines are joined.
    pub data: &'a str,
}

/// Handles an event. A fault ends the stream.
pub type OnEvent<'a> = dyn FnMut(SseEvent<'_>) -> Result<(), Fault> + 'a;

/// Decodes events.
///
/// ```
/// use ikigai_providers::SseDecoder;
///
/// let mut decoder = SseDecoder::default();
/// let mut events = Vec::new();
/// for chunk in ["data: caf", "é\r\n\r", "\ndata: [DONE]"] {
///     decoder.feed(chunk.as_bytes(), &mut |event| Ok(events.push(event.data.to_owned())))?;
/// }
/// decoder.finish(&mut |event| Ok(events.push(event.data.to_owned())))?;
/// assert_eq!(events, ["café", "[DONE]"]);
/// # Ok::<(), ikigai_providers::Fault>(())
/// ```
#[derive(Debug, Default)]
pub struct SseDecoder {
    /// The start of a line that has not ended. At most `MAX_BYTES`.
    open_line: Vec<u8>,
    /// The last line ended with a carriage return, so a line feed right after it belongs to the
    /// same line end.
    after_return: bool,
    /// A line has ended, so there can be no byte order mark any more.
    began: bool,
    event: OpenEvent,
}

impl SseDecoder {
    /// Decodes the next bytes, and passes on the events that they complete.
    ///
    /// # Errors
    /// Those of `on_event`, or if a line is too long. The stream is over then.
    pub fn feed(&mut self, mut bytes: &[u8], on_event: &mut OnEvent<'_>) -> Result<(), Fault> {
        while !bytes.is_empty() {
            if self.after_return {
                self.after_return = false;
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                return self.keep(bytes);
            };
            self.after_return = bytes[end] == b'\r';
            self.end_line(&bytes[..end], on_event)?;
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    /// Handles the end of the stream. A last event counts even if no empty line follows it: some
    /// servers omit that.
    ///
    /// # Errors
    /// Those of `on_event`. If it cannot parse a last line without a line end,
    /// the stream was interrupted there.
    pub fn finish(mut self, on_event: &mut OnEvent<'_>) -> Result<(), Fault> {
        let is_cut = !self.open_line.is_empty();
        if is_cut {
            self.end_line(b"", on_event)?;
        }
        self.event.end(on_event).map_err(|fault| match fault.category {
            Category::Unreadable if is_cut => Fault::broke_off(),
            _ => fault,
        })
    }

    /// Ends a line with its last bytes. Usually that is the whole line, and nothing is copied.
    fn end_line(&mut self, last: &[u8], on_event: &mut OnEvent<'_>) -> Result<(), Fault> {
        if self.open_line.is_empty() {
            check_length(last.len())?;
            return self.line(last, on_event);
        }
        self.keep(last)?;
        let mut line = std::mem::take(&mut self.open_line);
        let result = self.line(&line, on_event);
        line.clear();
        self.open_line = line;
        result
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        check_length(self.open_line.len() + bytes.len())?;
        self.open_line.extend_from_slice(bytes);
        Ok(())
    }

    fn line(&mut self, mut line: &[u8], on_event: &mut OnEvent<'_>) -> Result<(), Fault> {
        if !self.began {
            self.began = true;
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            return self.event.end(on_event);
        }
        self.event.field(line)
    }
}

/// The parts of the current event.
#[derive(Debug, Default)]
struct OpenEvent {
    name: Option<String>,
    /// The data lines so far, joined. Bounded by `MAX_BYTES`.
    data: String,
    data_lines: usize,
}

impl OpenEvent {
    fn field(&mut self, line: &[u8]) -> Result<(), Fault> {
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match field {
            b"data" => self.add_data(&value),
            b"event" => {
                self.name = Some(value.into_owned());
                Ok(())
            }
            // A comment has no name. `id` and `retry` are for resuming a stream, which no model
            // server supports.
            _ => Ok(()),
        }
    }

    fn add_data(&mut self, line: &str) -> Result<(), Fault> {
        check_length(self.data.len() + line.len())?;
        if self.data_lines > 0 {
            self.data.push('\n');
        }
        self.data.push_str(line);
        self.data_lines += 1;
        Ok(())
    }

    /// Passes the event on, if it has data.
    fn end(&mut self, on_event: &mut OnEvent<'_>) -> Result<(), Fault> {
        let name = self.name.take().filter(|name| !name.is_empty());
        if self.data_lines == 0 {
            return Ok(());
        }
        self.data_lines = 0;
        let result = on_event(SseEvent { name: name.as_deref(), data: &self.data });
        self.data.clear();
        result
    }
}

fn check_length(bytes: usize) -> Result<(), Fault> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let limit = MAX_BYTES / (1024 * 1024);
    Err(Fault::new(
        Category::Unreadable,
        format!("a line of the stream is longer than {limit} MiB"),
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Events = Vec<(Option<String>, String)>;

    fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Events, Fault> {
        let mut events = Vec::new();
        let mut on_event = |event: SseEvent<'_>| {
            events.push((event.name.map(str::to_owned), event.data.to_owned()));
            Ok(())
        };
        let mut decoder = SseDecoder::default();
        for chunk in chunks {
            decoder.feed(chunk, &mut on_event)?;
        }
        decoder.finish(&mut on_event)?;
        Ok(events)
    }

    #[track_caller]
    fn check(stream: &[u8], expected: &[(Option<&str>, &str)]) {
        let events = decode([stream]).unwrap();
        let events: Vec<_> =
            events.iter().map(|(name, data)| (name.as_deref(), data.as_str())).collect();
        assert_eq!(events, expected);
    }

    #[test]
    fn all_three_line_ends_are_recognized() {
        for end in ["\n", "\r\n", "\r"] {
            let stream = ["data: a", "", "data: b", "data: c", "", ""].join(end);
            check(stream.as_bytes(), &[(None, "a"), (None, "b\nc")]);
        }
    }

    #[test]
    fn fields_are_parsed_as_specified() {
        check(b"event: error\ndata:x\n\ndata: y\n\n", &[(Some("error"), "x"), (None, "y")]);
        check(b"data:  two spaces\n\n", &[(None, " two spaces")]);
        check(b"data\n\ndata:\n\n", &[(None, ""), (None, "")]);
        check(b"data: a\ndata:\ndata: b\n\n", &[(None, "a\n\nb")]);
        check(b"data: a: b\n\n", &[(None, "a: b")]);
        check(b": hello\n\n:\n\nid: 7\nretry: 10\nother: x\ndata: a\n\n", &[(None, "a")]);
        check(b"event: name alone\n\ndata: a\n\n", &[(None, "a")]);
        check(b" data: a\n\nDATA: b\n\n", &[]);
        check(b"", &[]);
    }

    #[test]
    fn a_byte_order_mark_is_only_skipped_at_the_start() {
        check("\u{feff}data: a\n\n".as_bytes(), &[(None, "a")]);
        check("data: \u{feff}a\n\n\u{feff}data: b\n\n".as_bytes(), &[(None, "\u{feff}a")]);
    }

    #[test]
    fn invalid_utf8_becomes_the_replacement_character() {
        check(b"data: a\xffb\xe2\x82\n\n", &[(None, "a\u{fffd}b\u{fffd}")]);
    }

    #[test]
    fn a_last_event_needs_neither_an_empty_line_nor_a_line_end() {
        check(b"data: a\n\ndata: b\n", &[(None, "a"), (None, "b")]);
        check(b"event: e\ndata: b", &[(Some("e"), "b")]);
    }

    #[test]
    fn an_unreadable_last_line_without_an_end_broke_off() {
        let unreadable = Fault::new(Category::Unreadable, "no JSON");
        for (stream, fault) in [("data: {", Fault::broke_off()), ("data: {\n", unreadable.clone())]
        {
            let mut refuse = |_: SseEvent<'_>| Err(unreadable.clone());
            let mut decoder = SseDecoder::default();
            decoder.feed(stream.as_bytes(), &mut refuse).unwrap();
            assert_eq!(decoder.finish(&mut refuse), Err(fault));
        }
    }

    #[test]
    fn a_line_and_an_event_have_a_limit() {
        let line = |length: usize| [b"data: ".as_slice(), &vec![b'x'; length - 6]].concat();
        let too_long =
            Fault::new(Category::Unreadable, "a line of the stream is longer than 8 MiB");
        let longest = decode([line(MAX_BYTES).as_slice(), b"\n\n"]).unwrap();
        assert_eq!(longest[0].1.len(), MAX_BYTES - 6);
        let longer = line(MAX_BYTES + 1);
        assert_eq!(decode([longer.as_slice()]), Err(too_long.clone()));
        assert_eq!(decode(longer.chunks(4096)), Err(too_long.clone()));
        let half = line(MAX_BYTES / 2 + 7);
        assert_eq!(decode([half.as_slice(), b"\n", &half, b"\n\n"]), Err(too_long));
    }

    #[test]
    fn a_fault_of_the_callback_ends_the_stream() {
        let mut seen = 0;
        let result = SseDecoder::default().feed(b"data: a\n\ndata: b\n\n", &mut |_| {
            seen += 1;
            Err(Fault::broke_off())
        });
        assert_eq!((result, seen), (Err(Fault::broke_off()), 1));
    }

    /// Streams of bytes that matter to the decoder, so that every split is interesting.
    fn any_stream() -> impl Strategy<Value = Vec<u8>> {
        let parts = prop::sample::select(vec![
            &b"data: "[..],
            b"data:",
            b"event: e",
            b":",
            b"id: 1",
            b"\n",
            b"\n\n",
            b"\r",
            b"\r\n",
            "é👩‍👧".as_bytes(),
            BYTE_ORDER_MARK,
            b"\xff",
            b"x",
        ]);
        prop::collection::vec(parts, 0..40).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            stream in any_stream(), sizes in prop::collection::vec(1..6_usize, 1..20),
        ) {
            let mut rest = stream.as_slice();
            let chunks = sizes.iter().cycle().map_while(|size| {
                let (chunk, behind) = rest.split_at((*size).min(rest.len()));
                rest = behind;
                (!chunk.is_empty()).then_some(chunk)
            });
            prop_assert_eq!(decode(chunks), decode([stream.as_slice()]));
        }
    }
}
