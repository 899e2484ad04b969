//! Decodes the events of a Messages stream.

use serde_json::Value;

use super::thinking::{FORMAT, ThinkingBlock};
use crate::bounds::Bounds;
use crate::fault::Fault;
use crate::json::parse;
use crate::provider::{Decode, Delta};
use crate::response::{Call, Response, Stop, Tokens};
use crate::stored_blocks::{PlacedBlock, StoredBlocks};
use crate::stream::{OnDelta, Progress, read_event, wrong_format};
use crate::unique_ids::UniqueIds;

/// The name of the format in errors.
const FORMAT_NAME: &str = "the Messages format";

/// Assembles one response.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    progress: Progress,
    model: Option<String>,
    /// In the order in which they started.
    blocks: Vec<Block>,
    stop: Option<Stop>,
    usage: Option<Usage>,
    bounds: Bounds,
}

/// A block of the response's content.
#[derive(Debug)]
struct Block {
    /// The index of the block in the stream.
    index: Option<u64>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Text(String),
    Call {
        id: Option<String>,
        name: String,
        /// The arguments in the block's first event, if any.
        whole: Option<String>,
        arguments: String,
    },
    Thinking(ThinkingBlock),
    /// For a tool that runs on the server, or from a later version of the API.
    Ignored,
}

/// The counts grow in the course of a stream, and some servers send zeros first or last.
#[derive(Debug, Default)]
struct Usage {
    input: u64,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    output: u64,
}

impl Decode for Decoder {
    fn event(
        &mut self,
        event: Option<&str>,
        data: &str,
        on_delta: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Fault> {
        let Some((name, data)) = read_event(event, data)? else { return Ok(()) };
        let is_known = self.known_event(&name, &data, on_delta)?;
        self.progress.advance(is_known);
        if name == "message_stop" {
            self.progress = Progress::Ended;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.progress == Progress::Ended
    }

    fn whole(&mut self, body: &[u8], on_delta: &mut dyn FnMut(Delta<'_>)) -> Result<(), Fault> {
        let message = parse(body)?;
        if message["error"].is_object() {
            return Err(Fault::from_error(None, &message));
        }
        let Some(content) = message["content"].as_array() else {
            return Err(wrong_format(FORMAT_NAME));
        };
        self.message(&message);
        for block in content {
            self.start_block(None, block, on_delta)?;
        }
        self.progress = Progress::Ended;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Response, Fault> {
        let stop = self.progress.finish(self.stop, FORMAT_NAME)?;
        Ok(self.into_response(stop))
    }
}

impl Decoder {
    /// Handles an event. Returns whether this format has it.
    fn known_event(
        &mut self,
        name: &str,
        data: &Value,
        on_delta: &mut OnDelta<'_>,
    ) -> Result<bool, Fault> {
        let index = data["index"].as_u64();
        match name {
            "message_start" => self.message(&data["message"]),
            "content_block_start" => self.start_block(index, &data["content_block"], on_delta)?,
            "content_block_delta" => self.grow_block(index, &data["delta"], on_delta)?,
            "message_delta" => {
                self.stop_because(&data["delta"]);
                self.count(&data["usage"]);
            }
            "content_block_stop" | "ping" | "message_stop" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the fields of a message.
    fn message(&mut self, message: &Value) {
        self.model = message["model"].as_str().map(str::to_owned);
        self.stop_because(message);
        self.count(&message["usage"]);
    }

    fn stop_because(&mut self, delta: &Value) {
        let Some(reason) = delta["stop_reason"].as_str() else { return };
        self.stop = Some(match reason {
            "max_tokens" | "model_context_window_exceeded" => Stop::Length,
            "refusal" => Stop::Blocked,
            // `end_turn`, `stop_sequence`, `tool_use`, and reasons of later versions.
            _ => Stop::Complete,
        });
    }

    fn count(&mut self, usage: &Value) {
        if !usage.is_object() {
            return;
        }
        let counted = self.usage.get_or_insert_default();
        let number = |name: &str| usage[name].as_u64();
        counted.input = counted.input.max(number("input_tokens").unwrap_or_default());
        counted.output = counted.output.max(number("output_tokens").unwrap_or_default());
        counted.cache_read = counted.cache_read.max(number("cache_read_input_tokens"));
        counted.cache_write = counted.cache_write.max(number("cache_creation_input_tokens"));
    }

    /// Handles the start of a block. If the server does not stream, that is the whole block.
    fn start_block(
        &mut self,
        index: Option<u64>,
        block: &Value,
        on_delta: &mut OnDelta<'_>,
    ) -> Result<(), Fault> {
        self.bounds.add_part()?;
        let content = Content::of(block);
        self.bounds.add_bytes(content.bytes())?;
        match &content {
            Content::Text(text) if !text.is_empty() => on_delta(Delta::Text(text)),
            Content::Thinking(ThinkingBlock::Thinking { thinking, .. }) if !thinking.is_empty() => {
                on_delta(Delta::Thinking(thinking));
            }
            Content::Text(_) | Content::Thinking(_) | Content::Call { .. } | Content::Ignored => {}
        }
        self.blocks.push(Block { index, content });
        Ok(())
    }

    fn grow_block(
        &mut self,
        index: Option<u64>,
        delta: &Value,
        on_delta: &mut OnDelta<'_>,
    ) -> Result<(), Fault> {
        let position = self.blocks.iter().rposition(|block| block.index == index);
        let Some(content) = position.map(|position| &mut self.blocks[position].content) else {
            return Ok(());
        };
        let (grown, piece) = match (delta["type"].as_str(), content) {
            (Some("text_delta"), Content::Text(text)) => {
                let piece = delta["text"].as_str().unwrap_or_default();
                if !piece.is_empty() {
                    on_delta(Delta::Text(piece));
                }
                (text, piece)
            }
            (Some("input_json_delta"), Content::Call { name, arguments, .. }) => {
                let piece = delta["partial_json"].as_str().unwrap_or_default();
                let number = position.unwrap_or_default();
                on_delta(Delta::Call { number, name, arguments: piece });
                (arguments, piece)
            }
            (
                Some("thinking_delta"),
                Content::Thinking(ThinkingBlock::Thinking { thinking, .. }),
            ) => {
                let piece = delta["thinking"].as_str().unwrap_or_default();
                if !piece.is_empty() {
                    on_delta(Delta::Thinking(piece));
                }
                (thinking, piece)
            }
            (
                Some("signature_delta"),
                Content::Thinking(ThinkingBlock::Thinking { signature, .. }),
            ) => (signature, delta["signature"].as_str().unwrap_or_default()),
            _ => return Ok(()),
        };
        self.bounds.add_bytes(piece.len())?;
        grown.push_str(piece);
        Ok(())
    }

    fn into_response(self, stop: Stop) -> Response {
        let mut response = Response {
            text: String::new(),
            calls: Vec::new(),
            extras: None,
            stop,
            tokens: self.usage.as_ref().map(Usage::tokens),
        };
        let mut ids = UniqueIds::default();
        let mut thinking = Vec::new();
        for block in self.blocks {
            match block.content {
                Content::Text(text) => response.text.push_str(&text),
                Content::Call { id, name, whole, arguments } => {
                    let arguments = if arguments.is_empty() { whole } else { Some(arguments) };
                    response.calls.push(Call {
                        id: ids.next(id.as_deref()),
                        name,
                        arguments: arguments.unwrap_or_else(|| stop.no_arguments()),
                    });
                }
                Content::Thinking(block) if block.is_complete() => {
                    let (text, calls) = (response.text.len(), response.calls.len());
                    thinking.push(PlacedBlock { text, calls, block });
                }
                Content::Thinking(_) | Content::Ignored => {}
            }
        }
        response.extras = StoredBlocks { model: self.model, blocks: thinking }.into_extras(FORMAT);
        response
    }
}

impl Content {
    fn of(block: &Value) -> Content {
        let string = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("text") => Content::Text(string("text")),
            Some("tool_use") => Content::Call {
                id: block["id"].as_str().map(str::to_owned),
                name: string("name"),
                whole: whole_input(&block["input"]),
                arguments: String::new(),
            },
            Some("thinking") => Content::Thinking(ThinkingBlock::Thinking {
                thinking: string("thinking"),
                signature: string("signature"),
            }),
            Some("redacted_thinking") => {
                Content::Thinking(ThinkingBlock::RedactedThinking { data: string("data") })
            }
            _ => Content::Ignored,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Content::Text(text) => text.len(),
            Content::Call { id, name, whole, arguments } => {
                let given = [id, whole].into_iter().flatten().map(String::len).sum::<usize>();
                given + name.len() + arguments.len()
            }
            Content::Thinking(ThinkingBlock::Thinking { thinking, signature }) => {
                thinking.len() + signature.len()
            }
            Content::Thinking(ThinkingBlock::RedactedThinking { data }) => data.len(),
            Content::Ignored => 0,
        }
    }
}

/// The input in a block's first event. In a stream it is empty, and the arguments follow.
fn whole_input(input: &Value) -> Option<String> {
    match input {
        Value::Null => None,
        Value::Object(fields) if fields.is_empty() => None,
        // Some servers send the arguments as a string, as other formats do.
        Value::String(arguments) => Some(arguments.clone()).filter(|text| !text.is_empty()),
        other => Some(other.to_string()),
    }
}

impl Usage {
    fn tokens(&self) -> Tokens {
        let cached = [self.cache_read, self.cache_write].into_iter().flatten();
        Tokens {
            input: cached.fold(self.input, u64::saturating_add),
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            // They are counted in the output, but not apart from it.
            reasoning: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anthropic::Anthropic;
    use crate::fault::Category;
    use crate::testing::{
        check_fault, check_response, complete, extras, received_call, received_whole,
    };

    const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":5,"cache_read_input_tokens":7,"output_tokens":1}}}"#;
    const TEXT: &str =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    const HI: &str =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}"#;
    const END: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}"#;
    const STOP: &str = r#"{"type":"message_stop"}"#;

    fn plain(text: &str) -> Response {
        complete(text, None)
    }

    #[test]
    fn a_text_comes_with_its_token_counts() {
        let tokens = Tokens {
            input: 15,
            output: 9,
            cache_read: Some(7),
            cache_write: Some(5),
            reasoning: None,
        };
        let expected = Response { tokens: Some(tokens), ..plain("hi") };
        check_response(&Anthropic, &[START, r#"{"type":"ping"}"#, TEXT, HI, END, STOP], &expected);
        check_response(&Anthropic, &[START, TEXT, HI, END], &expected);
    }

    #[test]
    fn late_counts_are_used() {
        let late = END.replace(r#""output_tokens":9"#, r#""input_tokens":4,"output_tokens":9"#);
        let early = r#"{"type":"message_start","message":{"usage":{"input_tokens":0}}}"#;
        let tokens = Tokens { input: 4, output: 9, ..Tokens::default() };
        check_response(
            &Anthropic,
            &[early, &late],
            &Response { tokens: Some(tokens), ..plain("") },
        );
    }

    #[test]
    fn unknown_events_are_ignored() {
        let server_tool = r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1}}}"#;
        let its_input = r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#;
        let citation = r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}"#;
        let nowhere =
            r#"{"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"x"}}"#;
        let later = r#"{"type":"message_thought_twice"}"#;
        let events = [TEXT, later, HI, citation, server_tool, its_input, nowhere, STOP, "[DONE]"];
        check_response(&Anthropic, &events, &plain("hi"));
    }

    #[test]
    fn each_reason_to_stop_has_its_meaning() {
        for (reason, stop) in [
            ("end_turn", Stop::Complete),
            ("stop_sequence", Stop::Complete),
            ("tool_use", Stop::Complete),
            ("pause_turn", Stop::Complete),
            ("max_tokens", Stop::Length),
            ("model_context_window_exceeded", Stop::Length),
            ("refusal", Stop::Blocked),
        ] {
            let end = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}}}}"#);
            check_response(&Anthropic, &[TEXT, HI, &end, STOP], &Response { stop, ..plain("hi") });
        }
    }

    fn tool_use(index: u64, fields: &str) -> String {
        format!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use",{fields}}}}}"#
        )
    }

    fn arguments(index: u64, piece: &str) -> String {
        let delta = serde_json::json!({"type": "input_json_delta", "partial_json": piece});
        format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
    }

    #[test]
    fn arguments_may_be_in_pieces_or_whole_or_missing() {
        let calls = [
            tool_use(0, r#""id":"a","name":"glob","input":{}"#),
            arguments(0, ""),
            arguments(0, r#"{"pat"#),
            arguments(0, r#"tern":"*"}"#),
            tool_use(1, r#""id":"a","name":"bash","input":{"n":1,"a":[2]}"#),
            tool_use(2, r#""name":"wait""#),
            tool_use(3, r#""id":"d","name":"x","input":"{\"a\": 1}""#),
            STOP.to_owned(),
        ];
        let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
        let expected = vec![
            received_call("a", "glob", r#"{"pattern":"*"}"#),
            received_call("call_2", "bash", r#"{"n":1,"a":[2]}"#),
            received_call("call_3", "wait", "{}"),
            received_call("d", "x", r#"{"a": 1}"#),
        ];
        check_response(&Anthropic, &calls, &Response { calls: expected, ..plain("") });
    }

    #[test]
    fn a_truncated_call_is_not_complete() {
        let end = r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#;
        let call = tool_use(0, r#""id":"a","name":"glob","input":{}"#);
        let expected = vec![received_call("a", "glob", "")];
        let stop = Stop::Length;
        check_response(
            &Anthropic,
            &[&call, end, STOP],
            &Response { calls: expected, stop, ..plain("") },
        );
    }

    #[test]
    fn thinking_is_kept_with_its_position_and_signature() {
        let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#;
        let think = r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h\u006d \"é"}}"#;
        let sign = r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Eq/+=="}}"#;
        let text = TEXT.replace("\"index\":0", "\"index\":1");
        let hi = HI.replace("\"index\":0", "\"index\":1");
        let redacted = r#"{"type":"content_block_start","index":2,"content_block":{"type":"redacted_thinking","data":"EmwK"}}"#;
        let unsigned = start.replace("\"index\":0", "\"index\":3");
        let call = tool_use(4, r#""id":"a","name":"glob","input":{}"#);
        let kept = r#"{"anthropic":{"model":"claude-opus-5-5","blocks":[{"text":0,"calls":0,"block":{"type":"thinking","thinking":"hm \"é","signature":"Eq/+=="}},{"text":2,"calls":0,"block":{"type":"redacted_thinking","data":"EmwK"}}]}}"#;
        let start_of_message = r#"{"type":"message_start","message":{"model":"claude-opus-5-5"}}"#;
        let expected = Response {
            calls: vec![received_call("a", "glob", "{}")],
            extras: Some(extras(kept)),
            ..plain("hi")
        };
        check_response(
            &Anthropic,
            &[start_of_message, start, think, sign, &text, &hi, redacted, &unsigned, &call, STOP],
            &expected,
        );
    }

    #[test]
    fn an_incomplete_stream_is_a_fault() {
        check_fault(
            &Anthropic,
            &[START, TEXT, HI],
            Category::Network,
            "the stream was \
            interrupted",
        );
        check_fault(
            &Anthropic,
            &[r#"{"type":"ping"}"#],
            Category::Network,
            "the stream was \
            interrupted",
        );
        let nothing = "the server ended its stream without an answer";
        check_fault(&Anthropic, &[], Category::Server, nothing);
        let chat = r#"{"object":"chat.completion.chunk","choices":[]}"#;
        let wrong = "the server's response is not in the Messages format";
        check_fault(&Anthropic, &[chat, "[1]", "7"], Category::Unreadable, wrong);
        let no_json = "the server did not send JSON: expected value at line 1 column 1";
        check_fault(&Anthropic, &["x"], Category::Unreadable, no_json);
    }

    #[test]
    fn an_error_in_the_stream_is_reported() {
        for (kind, category) in [
            ("overloaded_error", Category::Server),
            ("api_error", Category::Server),
            ("rate_limit_error", Category::RateLimit),
            ("authentication_error", Category::KeyRefused),
            ("invalid_request_error", Category::Refused),
        ] {
            let error =
                format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"Sorry"}}}}"#);
            check_fault(&Anthropic, &[START, TEXT, HI, &error], category, "Sorry");
            let whole = received_whole(&Anthropic, &error);
            assert_eq!(whole, Err(Fault::new(category, "Sorry")));
        }
    }

    #[test]
    fn a_message_that_was_not_streamed_is_decoded() {
        let body = r#"{"id":"msg_1","type":"message","model":"m","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"hi"},{"type":"tool_use","id":"a","name":"glob","input":{"pattern":"*"}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":9}}"#;
        let kept = r#"{"anthropic":{"model":"m","blocks":[{"text":0,"calls":0,"block":{"type":"thinking","thinking":"hm","signature":"s"}}]}}"#;
        let expected = Response {
            calls: vec![received_call("a", "glob", r#"{"pattern":"*"}"#)],
            extras: Some(extras(kept)),
            tokens: Some(Tokens { input: 3, output: 9, ..Tokens::default() }),
            ..plain("hi")
        };
        assert_eq!(received_whole(&Anthropic, body), Ok(expected));
        for (body, message) in [
            ("{}", "the server's response is not in the Messages format"),
            ("<html>", "the server did not send JSON: expected value at line 1 column 1"),
        ] {
            let fault = Fault::new(Category::Unreadable, message);
            assert_eq!(received_whole(&Anthropic, body), Err(fault));
        }
    }

    #[test]
    fn a_response_has_limits() {
        let block = TEXT.to_owned();
        let many = vec![block.as_str(); 1_001];
        check_fault(
            &Anthropic,
            &many,
            Category::Unreadable,
            "the response has more than 1000 parts",
        );
        let piece = "x".repeat(4 * 1024 * 1024);
        let delta = HI.replace("hi", &piece);
        let long: Vec<&str> = [TEXT].into_iter().chain([delta.as_str(); 9]).collect();
        check_fault(&Anthropic, &long, Category::Unreadable, "the response is longer than 32 MiB");
    }
}
