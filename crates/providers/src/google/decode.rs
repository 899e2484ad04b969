//! Decodes the chunks of a `streamGenerateContent` stream.

use serde_json::{Value, json};

use super::signatures::{FORMAT, Mark};
use crate::bounds::Bounds;
use crate::entries::is_blank;
use crate::fault::{Category, Fault};
use crate::json::parse;
use crate::provider::{Decode, Delta};
use crate::response::{Call, Response, Stop, Tokens};
use crate::stored_blocks::{PlacedBlock, StoredBlocks};
use crate::stream::{OnDelta, Progress, read_data};
use crate::unique_ids::UniqueIds;

/// Assembles one response.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    progress: Progress,
    text: String,
    calls: Vec<Call>,
    ids: UniqueIds,
    marks: Vec<PlacedBlock<Mark>>,
    stop: Option<Stop>,
    tokens: Option<Tokens>,
    bounds: Bounds,
}

impl Decode for Decoder {
    fn event(
        &mut self,
        _: Option<&str>,
        data: &str,
        on_delta: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Fault> {
        match read_data(data)? {
            Some(chunk) => self.chunk(&chunk, on_delta),
            None => Ok(()),
        }
    }

    fn whole(&mut self, body: &[u8], on_delta: &mut dyn FnMut(Delta<'_>)) -> Result<(), Fault> {
        match parse(body)? {
            // The form of a stream without `alt=sse`.
            Value::Array(chunks) => chunks.iter().try_for_each(|chunk| self.chunk(chunk, on_delta)),
            chunk => self.chunk(&chunk, on_delta),
        }
    }

    fn finish(self: Box<Self>) -> Result<Response, Fault> {
        let stop = self.progress.finish(self.stop, "Google's format")?;
        Ok(self.into_response(stop))
    }
}

impl Decoder {
    fn chunk(&mut self, chunk: &Value, on_delta: &mut OnDelta<'_>) -> Result<(), Fault> {
        if !chunk["error"].is_null() {
            return Err(Fault::from_error(None, chunk));
        }
        if let Some(reason) = chunk["promptFeedback"]["blockReason"].as_str() {
            return Err(blocked(reason, &chunk["promptFeedback"]["blockReasonMessage"]));
        }
        let fields = ["candidates", "usageMetadata", "promptFeedback", "modelVersion"];
        self.progress.advance(fields.iter().any(|field| !chunk[field].is_null()));
        self.tokens = tokens(&chunk["usageMetadata"]).or(self.tokens);
        let candidate = &chunk["candidates"][0];
        let parts = candidate["content"]["parts"].as_array();
        for part in parts.map(Vec::as_slice).unwrap_or_default() {
            self.part(part, on_delta)?;
        }
        self.stop_because(candidate)
    }

    fn part(&mut self, part: &Value, on_delta: &mut OnDelta<'_>) -> Result<(), Fault> {
        // A summary of the model's thoughts, which is not part of the answer.
        if part["thought"] == true {
            let thinking = part["text"].as_str().filter(|text| !text.is_empty());
            thinking.into_iter().for_each(|text| on_delta(Delta::Thinking(text)));
            return Ok(());
        }
        let signature = part["thoughtSignature"].as_str().filter(|text| !is_blank(text));
        if part["functionCall"].is_object() {
            self.call(&part["functionCall"], signature)
        } else if let Some(text) = part["text"].as_str() {
            self.say(text, signature, on_delta)
        } else {
            Ok(())
        }
    }

    fn say(
        &mut self,
        text: &str,
        signature: Option<&str>,
        on_delta: &mut OnDelta<'_>,
    ) -> Result<(), Fault> {
        self.bounds.add_bytes(text.len())?;
        if let Some(signature) = signature {
            self.mark(Mark::Text { signature: signature.to_owned() }, signature.len())?;
        }
        self.text.push_str(text);
        if !text.is_empty() {
            on_delta(Delta::Text(text));
        }
        if signature.is_some() {
            self.mark(Mark::End, 0)?;
        }
        Ok(())
    }

    fn call(&mut self, call: &Value, signature: Option<&str>) -> Result<(), Fault> {
        if let Some(signature) = signature {
            self.mark(Mark::Call { signature: signature.to_owned() }, signature.len())?;
        }
        let name = call["name"].as_str().unwrap_or_default().to_owned();
        // Calls arrive whole, so a call without arguments has none.
        let arguments = match &call["args"] {
            Value::Null => "{}".to_owned(),
            arguments => arguments.to_string(),
        };
        self.bounds.add_part()?;
        self.bounds.add_bytes(name.len() + arguments.len())?;
        let id = self.ids.next(call["id"].as_str());
        self.calls.push(Call { id, name, arguments });
        Ok(())
    }

    fn mark(&mut self, block: Mark, bytes: usize) -> Result<(), Fault> {
        self.bounds.add_part()?;
        self.bounds.add_bytes(bytes)?;
        self.marks.push(PlacedBlock { text: self.text.len(), calls: self.calls.len(), block });
        Ok(())
    }

    fn stop_because(&mut self, candidate: &Value) -> Result<(), Fault> {
        let Some(reason) = candidate["finishReason"].as_str() else { return Ok(()) };
        self.stop = Some(match reason {
            "STOP" => Stop::Complete,
            "MAX_TOKENS" => Stop::Length,
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
                Stop::Blocked
            }
            // The model wrote a call that the server could not parse. A retry may succeed.
            "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" => {
                return Err(failed(reason, candidate));
            }
            _ if self.text.is_empty() && self.calls.is_empty() => {
                return Err(failed(reason, candidate));
            }
            _ => Stop::Complete,
        });
        Ok(())
    }

    fn into_response(self, stop: Stop) -> Response {
        Response {
            text: self.text,
            calls: self.calls,
            extras: StoredBlocks { model: None, blocks: self.marks }.into_extras(FORMAT),
            stop,
            tokens: self.tokens,
        }
    }
}

fn tokens(usage: &Value) -> Option<Tokens> {
    let number = |name: &str| usage[name].as_u64();
    let output = ["candidatesTokenCount", "thoughtsTokenCount"].into_iter().filter_map(number);
    usage.is_object().then(|| Tokens {
        input: number("promptTokenCount").unwrap_or_default(),
        output: output.fold(0, u64::saturating_add),
        cache_read: number("cachedContentTokenCount"),
        cache_write: None,
        reasoning: number("thoughtsTokenCount"),
    })
}

/// The fault for a prompt that was blocked.
fn blocked(reason: &str, message: &Value) -> Fault {
    let words = message.as_str().unwrap_or("the prompt was not let through");
    let message = format!("{words} ({reason})");
    Fault::from_error(None, &json!({ "error": { "code": "content_filter", "message": message } }))
}

/// The response ended for a reason that neither the model nor the user has caused.
fn failed(reason: &str, candidate: &Value) -> Fault {
    let words = candidate["finishMessage"].as_str().unwrap_or("the server ended the answer");
    let message = format!("{words} ({reason})");
    Fault { category: Category::Server, ..Fault::from_error(None, &json!({ "message": message })) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::google::Google;
    use crate::testing::{
        check_fault, check_response, complete, extras, received_call, received_whole,
    };

    const HI: &str = r#"{"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9},"modelVersion":"gemini-3.8-flash","responseId":"x"}"#;
    const STOP: &str = r#"{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"thoughtsTokenCount":3,"cachedContentTokenCount":4,"totalTokenCount":14}}"#;

    fn plain(text: &str) -> Response {
        let tokens = Tokens {
            input: 9,
            output: 5,
            cache_read: Some(4),
            reasoning: Some(3),
            ..Tokens::default()
        };
        complete(text, Some(tokens))
    }

    fn chunk(parts: &str) -> String {
        format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}],"role":"model"}}}}]}}"#)
    }

    #[test]
    fn a_text_comes_with_token_counts_and_without_thoughts() {
        check_response(&Google, &[HI, HI, STOP], &plain("hihi"));
        let thought = chunk(r#"{"text":"**Thinking**","thought":true},{"inlineData":{}}"#);
        check_response(&Google, &[&thought, HI, STOP, "[DONE]"], &plain("hi"));
    }

    #[test]
    fn calls_are_decoded_with_and_without_ids() {
        let calls = chunk(
            r#"{"functionCall":{"id":"f1","name":"glob","args":{"z":1,"a":[1.5]}}},{"functionCall":{"name":"wait"}},{"functionCall":{"id":"f1","name":"x","args":{}}}"#,
        );
        let expected = vec![
            received_call("f1", "glob", r#"{"z":1,"a":[1.5]}"#),
            received_call("call_2", "wait", "{}"),
            received_call("call_3", "x", "{}"),
        ];
        check_response(&Google, &[&calls, STOP], &Response { calls: expected, ..plain("") });
    }

    #[test]
    fn signatures_are_kept_with_their_positions() {
        let signed = chunk(
            r#"{"text":"cde","thoughtSignature":"t"},{"functionCall":{"name":"glob","args":{}},"thoughtSignature":"c"}"#,
        );
        let last = chunk(r#"{"text":"","thoughtSignature":"e"}"#);
        let kept = r#"{"google":{"blocks":[{"text":2,"calls":0,"block":{"on":"text","signature":"t"}},{"text":5,"calls":0,"block":{"on":"end"}},{"text":5,"calls":0,"block":{"on":"call","signature":"c"}},{"text":5,"calls":1,"block":{"on":"text","signature":"e"}},{"text":5,"calls":1,"block":{"on":"end"}}]}}"#;
        let expected = Response {
            calls: vec![received_call("call_1", "glob", "{}")],
            extras: Some(extras(kept)),
            ..plain("hicde")
        };
        check_response(&Google, &[HI, &signed, &last, STOP], &expected);
    }

    #[test]
    fn each_reason_to_finish_has_its_meaning() {
        for (reason, stop) in [
            ("STOP", Stop::Complete),
            ("MAX_TOKENS", Stop::Length),
            ("SAFETY", Stop::Blocked),
            ("RECITATION", Stop::Blocked),
            ("PROHIBITED_CONTENT", Stop::Blocked),
            ("OTHER", Stop::Complete),
        ] {
            let end = STOP.replace("STOP", reason);
            check_response(&Google, &[HI, &end], &Response { stop, ..plain("hi") });
        }
        let malformed = r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: print("}]}"#;
        let words = "Malformed function call: print( (MALFORMED_FUNCTION_CALL)";
        check_fault(&Google, &[HI, malformed], Category::Server, words);
        let other = STOP.replace("STOP", "OTHER");
        check_fault(&Google, &[&other], Category::Server, "the server ended the answer (OTHER)");
    }

    #[test]
    fn a_prompt_that_was_blocked_is_a_fault() {
        let blocked = r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":9}}"#;
        let words = "the prompt was not let through (PROHIBITED_CONTENT)";
        check_fault(&Google, &[blocked], Category::Blocked, words);
    }

    #[test]
    fn an_incomplete_stream_is_a_fault() {
        check_fault(&Google, &[HI], Category::Network, "the stream was interrupted");
        let nothing = "the server ended its stream without an answer";
        check_fault(&Google, &[], Category::Server, nothing);
        let wrong = "the server's response is not in Google's format";
        check_fault(&Google, &[r#"{"choices":[]}"#, "[1]"], Category::Unreadable, wrong);
        let error = r#"{"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}"#;
        check_fault(&Google, &[HI, error], Category::Server, "Overloaded");
    }

    #[test]
    fn a_response_that_was_not_streamed_is_decoded() {
        let list = format!("[{HI},{STOP}]");
        assert_eq!(received_whole(&Google, &list), Ok(plain("hi")));
        let one = STOP.replace(r#"{"text":""}"#, r#"{"text":"hi"}"#);
        assert_eq!(received_whole(&Google, &one), Ok(plain("hi")));
        let error = r#"[{"error":{"code":400,"message":"No","status":"INVALID_ARGUMENT"}}]"#;
        let fault = Fault::new(Category::Refused, "No");
        assert_eq!(received_whole(&Google, error), Err(fault));
    }

    #[test]
    fn a_response_has_limits() {
        let call = chunk(r#"{"functionCall":{"name":"x"}}"#);
        let many = vec![call.as_str(); 1_001];
        check_fault(&Google, &many, Category::Unreadable, "the response has more than 1000 parts");
        let long = chunk(&format!(r#"{{"text":"{}"}}"#, "x".repeat(4 * 1024 * 1024)));
        let long = vec![long.as_str(); 9];
        check_fault(&Google, &long, Category::Unreadable, "the response is longer than 32 MiB");
    }
}
