//! Streams of servers that do what no scripted answer does: the bytes of events, in both formats.

use ikigai_testkit::Reply;
use serde_json::{Value, json};

use super::model::Format;

impl Format {
    /// A stream that ends behind this event, without saying so.
    pub(crate) fn cut_stream(self, event: &str) -> Reply {
        Reply::sse(self.start() + event).in_chunks(1 << 16)
    }

    /// A stream of these events, with its end.
    pub(crate) fn stream(self, events: &[String]) -> Reply {
        Reply::sse(self.start() + &events.concat() + &self.end()).in_chunks(1 << 16)
    }

    /// A whole call whose id, name and arguments are JSON strings, with their quotes, as they are to be sent.
    pub(crate) fn call_event(self, index: usize, [id, name, arguments]: [&str; 3]) -> String {
        match self {
            Format::Chat => format!(
                r#"data: {{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":{index},"id":{id},"type":"function","function":{{"name":{name},"arguments":{arguments}}}}}]}},"finish_reason":null}}]}}{BREAK}"#
            ),
            Format::Anthropic => [
                format!(
                    r#"event: content_block_start{N}data: {{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use","id":{id},"name":{name},"input":{{}}}}}}{BREAK}"#
                ),
                format!(
                    r#"event: content_block_delta{N}data: {{"type":"content_block_delta","index":{index},"delta":{{"type":"input_json_delta","partial_json":{arguments}}}}}{BREAK}"#
                ),
                event(&json!({"type": "content_block_stop", "index": index})),
            ]
            .concat(),
        }
    }

    /// A text, given as a JSON string with its quotes.
    pub(crate) fn text_event(self, text: &str) -> String {
        match self {
            Format::Chat => format!(
                r#"data: {{"choices":[{{"index":0,"delta":{{"content":{text}}},"finish_reason":null}}]}}{BREAK}"#
            ),
            Format::Anthropic => [
                r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                BREAK,
                r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"#,
                text,
                "}}",
                BREAK,
                r#"data: {"type":"content_block_stop","index":0}"#,
                BREAK,
            ]
            .concat(),
        }
    }

    fn start(self) -> String {
        match self {
            Format::Chat => String::new(),
            Format::Anthropic => {
                let usage = json!({"input_tokens": 1, "output_tokens": 1});
                let message = json!({"id": "msg_1", "type": "message", "role": "assistant",
                    "model": "scripted", "content": [], "usage": usage});
                event(&json!({"type": "message_start", "message": message}))
            }
        }
    }

    fn end(self) -> String {
        match self {
            Format::Chat => {
                let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
                format!("data: {end}{BREAK}data: [DONE]{BREAK}")
            }
            Format::Anthropic => {
                let delta = json!({"stop_reason": "end_turn", "stop_sequence": null});
                let usage = json!({"output_tokens": 1});
                event(&json!({"type": "message_delta", "delta": delta, "usage": usage}))
                    + &event(&json!({"type": "message_stop"}))
            }
        }
    }
}

const N: &str = "\n";
const BREAK: &str = "\n\n";

fn event(data: &Value) -> String {
    format!("event: {}{N}data: {data}{BREAK}", data["type"].as_str().unwrap())
}
