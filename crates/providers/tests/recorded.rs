//! Decodes recorded streams of real servers: one test walks the tree of recordings.

use std::fs;
use std::path::{Path, PathBuf};

use ikigai_providers::{
    Anthropic, ChatCompletions, Delta, Fault, Google, Provider, Response, Responses, SseDecoder,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A recorded response.
struct Recorded {
    path: PathBuf,
    status: u16,
    is_stream: bool,
    body: Vec<u8>,
}

impl Recorded {
    fn read(path: PathBuf) -> Recorded {
        let bytes = fs::read(&path).unwrap();
        let end = bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
        let head = str::from_utf8(&bytes[..end]).unwrap().to_lowercase();
        let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
        let is_stream = head.contains("content-type: text/event-stream");
        Recorded { path, status, is_stream, body: bytes[end + 4..].to_vec() }
    }

    /// The number at the start of the name tells the format.
    fn provider(&self) -> &'static dyn Provider {
        match &self.path.file_name().unwrap().to_str().unwrap()[..3] {
            "60-" => &Responses,
            "61-" => &Anthropic,
            "62-" => &Google,
            _ => &ChatCompletions,
        }
    }

    /// The response to the recording if its body arrives in pieces of these sizes.
    fn outcome(&self, sizes: &[usize]) -> Value {
        match self.response(sizes) {
            Ok((response, thinking)) => {
                let mut shown = show(&response);
                if !thinking.is_empty() {
                    shown["thinking"] = Value::from(thinking);
                }
                shown
            }
            Err(fault) => {
                let category = format!("{:?}", fault.category);
                json!({"fault": {"category": category, "message": fault.message}})
            }
        }
    }

    /// The response, and the thinking that was passed on meanwhile.
    fn response(&self, sizes: &[usize]) -> Result<(Response, String), Fault> {
        if self.status != 200 {
            return Err(Fault::from_status(self.status, &self.body, None));
        }
        let mut decode = self.provider().decode();
        let (mut text, mut thinking) = (String::new(), String::new());
        let mut on_delta = |delta: Delta<'_>| match delta {
            Delta::Text(piece) => text.push_str(piece),
            Delta::Thinking(piece) => thinking.push_str(piece),
            Delta::Call { .. } => {}
        };
        if self.is_stream {
            let mut on_event = |event: ikigai_providers::SseEvent<'_>| {
                decode.event(event.name, event.data, &mut on_delta)
            };
            let mut events = SseDecoder::default();
            for chunk in chunks(&self.body, sizes) {
                events.feed(chunk, &mut on_event)?;
            }
            events.finish(&mut on_event)?;
        } else {
            decode.whole(&self.body, &mut on_delta)?;
        }
        let response = decode.finish()?;
        assert_eq!(text, response.text, "the text that was passed on is the response's");
        Ok((response, thinking))
    }

    fn expected(&self) -> Value {
        let name = self.path.to_str().unwrap().replace(".response.txt", ".expected.json");
        let text = fs::read_to_string(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
        serde_json::from_str(&text).unwrap()
    }
}

/// Splits `bytes` into pieces of these sizes, over and over.
fn chunks<'a>(bytes: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = bytes;
    sizes.iter().cycle().map_while(move |size| {
        let (chunk, behind) = rest.split_at((*size).min(rest.len()));
        rest = behind;
        (!chunk.is_empty()).then_some(chunk)
    })
}

fn show(response: &Response) -> Value {
    let call = |call: &ikigai_providers::Call| json!({"id": call.id, "name": call.name, "arguments": call.arguments});
    let tokens = response.tokens.map(|tokens| {
        json!({"input": tokens.input, "output": tokens.output,
            "cache_read": tokens.cache_read, "cache_write": tokens.cache_write})
    });
    let mut shown = json!({
        "text": response.text,
        "calls": response.calls.iter().map(call).collect::<Vec<_>>(),
        "stop": format!("{:?}", response.stop),
        "tokens": tokens,
    });
    if let Some(extras) = &response.extras {
        shown["extras"] = serde_json::from_str(extras.as_json()).unwrap();
    }
    shown
}

fn recordings() -> Vec<Recorded> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sse");
    let folders = fs::read_dir(tree).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = folders
        .filter(|path| path.is_dir())
        .flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()))
        .filter(|path| path.to_str().unwrap().ends_with(".response.txt"))
        .collect();
    paths.sort();
    paths.into_iter().map(Recorded::read).collect()
}

#[test]
fn every_recording_is_decoded_as_expected() {
    let recordings = recordings();
    assert!(recordings.len() >= 45, "{} recordings", recordings.len());
    for recorded in recordings {
        let outcome = recorded.outcome(&[usize::MAX]);
        assert_eq!(outcome, recorded.expected(), "{}", recorded.path.display());
    }
}

#[test]
fn every_recording_is_decoded_byte_by_byte() {
    for recorded in recordings() {
        assert_eq!(recorded.outcome(&[1]), recorded.expected(), "{}", recorded.path.display());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_size_of_chunks_does_not_matter(sizes in prop::collection::vec(1..400_usize, 1..20)) {
        for recorded in recordings() {
            prop_assert_eq!(recorded.outcome(&sizes), recorded.expected(), "{:?}", recorded.path);
        }
    }

    /// Wherever a stream is cut, it is complete or a transient fault. There is never half a call.
    #[test]
    fn a_stream_that_breaks_off_is_never_taken_for_a_whole_one(place in any::<prop::sample::Index>()) {
        for mut recorded in recordings() {
            if recorded.status != 200 || !recorded.is_stream || recorded.body.is_empty() {
                continue;
            }
            let Ok((whole, _)) = recorded.response(&[usize::MAX]) else { continue };
            recorded.body.truncate(place.index(recorded.body.len()));
            match recorded.response(&[usize::MAX]) {
                Ok((cut, _)) => {
                    prop_assert_eq!((cut.text, cut.calls, cut.stop), (whole.text, whole.calls, whole.stop));
                }
                Err(fault) => prop_assert!(fault.category.is_transient(), "{:?}: {fault}", recorded.path),
            }
        }
    }
}
