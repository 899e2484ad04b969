//! Decodes the events of a Responses stream.

use serde_json::Value;

use super::content::{Content, written};
use super::items::{FORMAT, Mark};
use crate::bounds::Bounds;
use crate::fault::Fault;
use crate::json::parse;
use crate::provider::{Decode, Delta};
use crate::response::{Call, Response, Stop, Tokens};
use crate::stored_blocks::{PlacedBlock, StoredBlocks};
use crate::stream::{OnDelta, Progress, read_event, wrong_format};
use crate::unique_ids::UniqueIds;

/// The name of the format in errors.
const FORMAT_NAME: &str = "the Responses format";

/// Assembles one response.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    progress: Progress,
    model: Option<String>,
    /// In the order in which they started.
    items: Vec<Item>,
    /// Set by the final event.
    stop: Option<Stop>,
    tokens: Option<Tokens>,
    /// The item and the part of it that the last thinking belongs to.
    thinking: Option<(Option<u64>, Option<u64>)>,
    bounds: Bounds,
}

/// An item of the response's output.
#[derive(Debug)]
struct Item {
    /// Its position in the output. Some servers omit it, and others give an item a new id with
    /// every event.
    index: Option<u64>,
    id: Option<String>,
    content: Content,
    /// Whether its final event has arrived.
    is_done: bool,
}

impl Decode for Decoder {
    fn event(
        &mut self,
        event: Option<&str>,
        data: &str,
        on_delta: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Fault> {
        let Some((name, data)) = read_event(event, data)? else { return Ok(()) };
        self.progress.advance(name.starts_with("response."));
        self.known_event(&name, &data, on_delta)
    }

    fn whole(&mut self, body: &[u8], on_delta: &mut dyn FnMut(Delta<'_>)) -> Result<(), Fault> {
        let response = parse(body)?;
        if !response["output"].is_array() {
            let is_error = !response["error"].is_null();
            return Err(if is_error {
                Fault::from_error(None, &response)
            } else {
                wrong_format(FORMAT_NAME)
            });
        }
        self.progress = Progress::Started;
        self.end("", &response, on_delta)
    }

    fn finish(self: Box<Self>) -> Result<Response, Fault> {
        let stop = self.progress.finish(self.stop, FORMAT_NAME)?;
        Ok(self.into_response(stop))
    }
}

impl Decoder {
    fn known_event(
        &mut self,
        name: &str,
        data: &Value,
        on_delta: &mut OnDelta<'_>,
    ) -> Result<(), Fault> {
        match name {
            "response.created" => {
                self.model = data["response"]["model"].as_str().map(str::to_owned);
                Ok(())
            }
            "response.output_item.added" => self.begin_item(data, on_delta),
            "response.output_text.delta" | "response.refusal.delta" => {
                self.grow_text(data, on_delta)
            }
            // Some models show a summary of their reasoning, others the reasoning itself.
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.think(data, on_delta);
                Ok(())
            }
            "response.function_call_arguments.delta" => self.grow_arguments(data, on_delta),
            "response.function_call_arguments.done" => self.set_arguments(data),
            "response.output_item.done" => self.end_item(data, on_delta),
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.end(name, &data["response"], on_delta)
            }
            _ => Ok(()),
        }
    }

    fn begin_item(&mut self, data: &Value, on_delta: &mut OnDelta<'_>) -> Result<(), Fault> {
        self.bounds.add_part()?;
        let is_done = data["type"] != "response.output_item.added";
        let item = &data["item"];
        let content = Content::of(item);
        self.bounds.add_bytes(content.bytes())?;
        if let Content::Message { text, .. } = &content
            && !text.is_empty()
        {
            on_delta(Delta::Text(text));
        }
        let id = item["id"].as_str().map(str::to_owned);
        let index = data["output_index"].as_u64();
        if is_done {
            self.think_at_once(&content, index, on_delta);
        }
        self.items.push(Item { index, id, content, is_done });
        Ok(())
    }

    /// Passes on a piece of thinking. Parts of it are separated by a blank line.
    fn think(&mut self, data: &Value, on_delta: &mut OnDelta<'_>) {
        let Some(piece) = data["delta"].as_str().filter(|piece| !piece.is_empty()) else { return };
        let part = data["summary_index"].as_u64().or(data["content_index"].as_u64());
        let place = (data["output_index"].as_u64(), part);
        if self.thinking.replace(place).is_some_and(|last| last != place) {
            on_delta(Delta::Thinking("\n\n"));
        }
        on_delta(Delta::Thinking(piece));
    }

    /// Passes on the whole summary of an item that did not stream it.
    fn think_at_once(&mut self, item: &Content, index: Option<u64>, on_delta: &mut OnDelta<'_>) {
        let Content::Reasoning(reasoning) = item else { return };
        if self.thinking.is_some_and(|(streamed, _)| streamed == index) {
            return;
        }
        for part in reasoning.summary.iter().filter(|part| !part.text.is_empty()) {
            if self.thinking.replace((index, None)).is_some() {
                on_delta(Delta::Thinking("\n\n"));
            }
            on_delta(Delta::Thinking(&part.text));
        }
    }

    /// The item that an event is about. If the event does not say, the last open one of its type.
    fn position(&self, data: &Value, is_of_sort: fn(&Content) -> bool) -> Option<usize> {
        let index = data["output_index"].as_u64();
        let id = data["item_id"].as_str().or(data["item"]["id"].as_str());
        let is_meant = |item: &Item| match (index, item.index, id, item.id.as_deref()) {
            (Some(meant), Some(index), _, _) => meant == index,
            (_, _, Some(meant), Some(id)) => meant == id,
            _ => !item.is_done,
        };
        self.items.iter().rposition(|item| is_of_sort(&item.content) && is_meant(item))
    }

    fn grow_text(&mut self, data: &Value, on_delta: &mut OnDelta<'_>) -> Result<(), Fault> {
        let Some(delta) = data["delta"].as_str().filter(|delta| !delta.is_empty()) else {
            return Ok(());
        };
        self.bounds.add_bytes(delta.len())?;
        let position = match self.position(data, Content::is_message) {
            Some(position) => position,
            // It was not announced, but it is a message.
            None => {
                let id = data["item_id"].as_str().map(str::to_owned);
                let index = data["output_index"].as_u64();
                let content = Content::Message { phase: None, text: String::new() };
                self.bounds.add_part()?;
                self.items.push(Item { index, id, content, is_done: false });
                self.items.len() - 1
            }
        };
        if let Content::Message { text, .. } = &mut self.items[position].content {
            text.push_str(delta);
            on_delta(Delta::Text(delta));
        }
        Ok(())
    }

    fn grow_arguments(&mut self, data: &Value, on_delta: &mut OnDelta<'_>) -> Result<(), Fault> {
        let delta = data["delta"].as_str().unwrap_or_default();
        self.bounds.add_bytes(delta.len())?;
        if let Some(position) = self.position(data, Content::is_call)
            && let Content::Call { name, arguments, .. } = &mut self.items[position].content
        {
            arguments.push_str(delta);
            on_delta(Delta::Call { number: position, name, arguments: delta });
        }
        Ok(())
    }

    /// Handles complete arguments, which follow their pieces.
    fn set_arguments(&mut self, data: &Value) -> Result<(), Fault> {
        let whole = written(&data["arguments"]);
        if let Some(position) = self.position(data, Content::is_call)
            && let Content::Call { arguments, .. } = &mut self.items[position].content
            && !whole.is_empty()
        {
            self.bounds.add_bytes(whole.len().saturating_sub(arguments.len()))?;
            *arguments = whole;
        }
        Ok(())
    }

    /// Handles the final state of an item, which contains more than its pieces.
    fn end_item(&mut self, data: &Value, on_delta: &mut OnDelta<'_>) -> Result<(), Fault> {
        let done = Content::of(&data["item"]);
        let Some(position) = self.position(data, done.sort()) else {
            return self.begin_item(data, on_delta);
        };
        self.think_at_once(&done, self.items[position].index, on_delta);
        self.items[position].is_done = true;
        let so_far = &mut self.items[position].content;
        self.bounds.add_bytes(done.bytes().saturating_sub(so_far.bytes()))?;
        if let Some(text) = so_far.complete(done) {
            on_delta(Delta::Text(text));
        }
        Ok(())
    }

    /// Handles the final event, which describes the whole response.
    fn end(
        &mut self,
        event: &str,
        response: &Value,
        on_delta: &mut OnDelta<'_>,
    ) -> Result<(), Fault> {
        let status = response["status"].as_str().unwrap_or_default();
        if event == "response.failed" || status == "failed" || response["error"].is_object() {
            return Err(Fault::from_error(None, &failure(response)));
        }
        if let Some(model) = response["model"].as_str() {
            self.model = Some(model.to_owned());
        }
        // Some servers do not stream items, and send all of them at the end.
        if self.items.is_empty()
            && let Some(output) = response["output"].as_array()
        {
            for item in output {
                self.begin_item(&serde_json::json!({ "item": item }), on_delta)?;
            }
        }
        self.tokens = tokens(&response["usage"]).or(self.tokens);
        let reason = response["incomplete_details"]["reason"].as_str();
        let is_incomplete = event == "response.incomplete" || status == "incomplete";
        self.stop = Some(match reason {
            Some("content_filter") => Stop::Blocked,
            Some(_) | None if is_incomplete => Stop::Length,
            Some(_) | None => Stop::Complete,
        });
        Ok(())
    }

    fn into_response(self, stop: Stop) -> Response {
        let mut response = Response {
            text: String::new(),
            calls: Vec::new(),
            extras: None,
            stop,
            tokens: self.tokens,
        };
        let mut ids = UniqueIds::default();
        let mut blocks = Vec::new();
        for item in self.items {
            let (text, calls) = (response.text.len(), response.calls.len());
            let mark = match item.content {
                Content::Message { phase, text } => {
                    response.text.push_str(&text);
                    phase.map(|phase| Mark::Message { phase })
                }
                Content::Call { call_id, name, arguments } => {
                    let id = ids.next(call_id.as_deref().or(item.id.as_deref()));
                    let arguments =
                        if arguments.is_empty() { stop.no_arguments() } else { arguments };
                    response.calls.push(Call { id, name, arguments });
                    None
                }
                Content::Reasoning(reasoning) => Some(Mark::Reasoning(reasoning)),
                Content::Ignored => None,
            };
            let mark = mark.filter(Mark::is_complete);
            blocks.extend(mark.map(|block| PlacedBlock { text, calls, block }));
        }
        response.extras = StoredBlocks { model: self.model, blocks }.into_extras(FORMAT);
        response
    }
}

/// The error in a failed response, if there is one.
fn failure(response: &Value) -> Value {
    match &response["error"] {
        Value::Null => Value::Null,
        error => serde_json::json!({ "error": error }),
    }
}

fn tokens(usage: &Value) -> Option<Tokens> {
    usage.is_object().then(|| Tokens {
        input: usage["input_tokens"].as_u64().unwrap_or_default(),
        output: usage["output_tokens"].as_u64().unwrap_or_default(),
        cache_read: usage["input_tokens_details"]["cached_tokens"].as_u64(),
        cache_write: None,
        reasoning: usage["output_tokens_details"]["reasoning_tokens"].as_u64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Category;
    use crate::responses::Responses;
    use crate::testing::{
        check_fault, check_response, complete, extras, received_call, received_whole, thought,
    };

    const CREATED: &str = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","model":"gpt-5-2025-08-07","output":[]}}"#;
    const MESSAGE: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"}}"#;
    const HI: &str = r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"hi"}"#;
    const MESSAGE_DONE: &str = r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"text":"hi"}],"role":"assistant"}}"#;
    const COMPLETED: &str = r#"{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"total_tokens":14}}}"#;

    fn plain(text: &str) -> Response {
        let tokens = Tokens { input: 9, output: 5, cache_read: Some(4), ..Tokens::default() };
        complete(text, Some(tokens))
    }

    #[test]
    fn text_may_be_in_pieces_or_at_the_end_of_its_item() {
        check_response(&Responses, &[CREATED, MESSAGE, HI, MESSAGE_DONE, COMPLETED], &plain("hi"));
        check_response(&Responses, &[CREATED, MESSAGE, MESSAGE_DONE, COMPLETED], &plain("hi"));
        check_response(&Responses, &[CREATED, MESSAGE_DONE, COMPLETED], &plain("hi"));
        check_response(&Responses, &[CREATED, HI, HI, COMPLETED, "[DONE]"], &plain("hihi"));
    }

    #[test]
    fn a_summary_is_thinking_streamed_or_not() {
        let delta = |part: u64, text: &str| {
            format!(
                r#"{{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":{part},"delta":"{text}"}}"#
            )
        };
        let done = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","encrypted_content":"x","summary":[{"type":"summary_text","text":"ab"},{"type":"summary_text","text":"c"}]}}"#;
        let streamed = [delta(0, "a"), delta(0, "b"), delta(1, "c")];
        let events: Vec<&str> = streamed.iter().map(String::as_str).chain([done]).collect();
        assert_eq!(thought(&Responses, &events), "ab\n\nc");
        assert_eq!(thought(&Responses, &[CREATED, done]), "ab\n\nc");
        let plain = r#"{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"hm"}"#;
        assert_eq!(thought(&Responses, &[CREATED, plain]), "hm");
    }

    #[test]
    fn items_that_were_not_streamed_are_in_the_final_event() {
        let completed = COMPLETED.replace(
            r#""status":"completed","#,
            r#""status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]},{"type":"function_call","call_id":"c","name":"glob","arguments":{"a":1}}],"#,
        );
        let calls = vec![received_call("c", "glob", r#"{"a":1}"#)];
        check_response(&Responses, &[CREATED, &completed], &Response { calls, ..plain("no") });
        check_response(&Responses, &[CREATED, HI, &completed], &plain("hi"));
    }

    fn call_added(index: u64, fields: &str) -> String {
        format!(
            r#"{{"type":"response.output_item.added","output_index":{index},"item":{{"type":"function_call",{fields}}}}}"#
        )
    }

    fn arguments(index: u64, piece: &str) -> String {
        let piece = Value::from(piece);
        format!(
            r#"{{"type":"response.function_call_arguments.delta","output_index":{index},"delta":{piece}}}"#
        )
    }

    #[test]
    fn interleaved_calls_are_distinguished() {
        let events = [
            call_added(0, r#""id":"fc_1","call_id":"c1","name":"glob","arguments":"""#),
            call_added(1, r#""id":"fc_2","call_id":"c1","name":"bash","arguments":"""#),
            call_added(2, r#""name":"wait""#),
            arguments(0, "{\"a\""),
            arguments(1, "{\"b\""),
            arguments(0, ":1}"),
            arguments(1, ":2}"),
            r#"{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{\"b\":3}"}"#.to_owned(),
            COMPLETED.to_owned(),
        ];
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let calls = vec![
            received_call("c1", "glob", r#"{"a":1}"#),
            received_call("call_2", "bash", r#"{"b":3}"#),
            received_call("call_3", "wait", "{}"),
        ];
        check_response(&Responses, &events, &Response { calls, ..plain("") });
    }

    #[test]
    fn items_without_ids_are_distinguished_by_their_ends() {
        let done = |name: &str| {
            format!(
                r#"{{"type":"response.output_item.done","item":{{"type":"function_call","name":"{name}","arguments":"{{}}"}}}}"#
            )
        };
        let calls =
            vec![received_call("call_1", "glob", "{}"), received_call("call_2", "bash", "{}")];
        let expected = Response { calls, ..plain("") };
        check_response(&Responses, &[&done("glob"), &done("bash"), COMPLETED], &expected);
        let output = r#"{"status":"completed","output":[{"type":"function_call","name":"glob","arguments":"{}"},{"type":"function_call","name":"bash","arguments":"{}"}],"#;
        let whole = COMPLETED.replace(r#"{"status":"completed","#, output);
        check_response(&Responses, &[&whole], &expected);
    }

    #[test]
    fn unknown_events_are_ignored() {
        let events = [
            CREATED,
            r#"{"type":"response.output_item.added","output_index":5,"item":{"type":"web_search_call","id":"ws"}}"#,
            r#"{"type":"response.reasoning_summary_text.delta","delta":"hm"}"#,
            r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#,
            r#"{"type":"keepalive"}"#,
            MESSAGE,
            HI,
            r#"{"type":"response.output_text.done","text":"hi"}"#,
            COMPLETED,
        ];
        check_response(&Responses, &events, &plain("hi"));
    }

    #[test]
    fn the_final_reasoning_is_kept_with_its_position() {
        let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"half"}}"#;
        let done = r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gA=="}}"#;
        let unreadable = r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"rs_2","type":"reasoning","summary":[]}}"#;
        let message = r#"{"type":"response.output_item.done","output_index":2,"item":{"id":"msg_1","type":"message","phase":"commentary","content":[{"type":"output_text","text":"hi"}]}}"#;
        let call = call_added(3, r#""id":"fc_1","call_id":"c1","name":"glob","arguments":"{}""#);
        let kept = r#"{"responses":{"model":"gpt-5-2025-08-07","blocks":[{"text":0,"calls":0,"block":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gA=="}},{"text":0,"calls":0,"block":{"type":"message","phase":"commentary"}}]}}"#;
        let expected = Response {
            calls: vec![received_call("c1", "glob", "{}")],
            extras: Some(extras(kept)),
            ..plain("hi")
        };
        check_response(
            &Responses,
            &[CREATED, added, done, unreadable, message, &call, COMPLETED],
            &expected,
        );
    }

    #[test]
    fn an_incomplete_response_says_why() {
        for (reason, stop) in
            [("max_output_tokens", Stop::Length), ("content_filter", Stop::Blocked)]
        {
            let end = format!(
                r#"{{"type":"response.incomplete","response":{{"status":"incomplete","incomplete_details":{{"reason":"{reason}"}}}}}}"#
            );
            let call = call_added(1, r#""call_id":"c","name":"glob","arguments":"""#);
            let calls = vec![received_call("c", "glob", "")];
            let expected = Response { stop, calls, tokens: None, ..plain("hi") };
            check_response(&Responses, &[CREATED, MESSAGE, HI, &call, &end], &expected);
        }
        let bare = r#"{"type":"response.incomplete","response":{}}"#;
        check_response(
            &Responses,
            &[HI, bare],
            &Response { stop: Stop::Length, tokens: None, ..plain("hi") },
        );
    }

    #[test]
    fn an_incomplete_stream_is_a_fault() {
        check_fault(
            &Responses,
            &[CREATED, MESSAGE, HI, MESSAGE_DONE],
            Category::Network,
            "the stream was interrupted",
        );
        let nothing = "the server ended its stream without an answer";
        check_fault(&Responses, &[], Category::Server, nothing);
        let wrong = "the server's response is not in the Responses format";
        let chat = r#"{"object":"chat.completion.chunk","choices":[]}"#;
        check_fault(&Responses, &[chat, "[1]"], Category::Unreadable, wrong);
    }

    #[test]
    fn a_failed_response_reports_the_servers_error() {
        let failed = r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"Slow down"}}}"#;
        check_fault(&Responses, &[CREATED, failed], Category::RateLimit, "Slow down");
        let silent = r#"{"type":"response.failed","response":{"error":null}}"#;
        check_fault(&Responses, &[CREATED, silent], Category::Server, "the server did not say why");
        let error = r#"{"type":"error","code":"server_error","message":"Sorry","param":null}"#;
        check_fault(&Responses, &[CREATED, error], Category::Server, "Sorry");
        let too_long = r#"{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Too long"}}"#;
        check_fault(&Responses, &[CREATED, too_long], Category::ContextTooLong, "Too long");
        let refused = r#"{"error":{"type":"invalid_request_error","message":"No"}}"#;
        let fault = Fault::new(Category::Refused, "No");
        assert_eq!(received_whole(&Responses, refused), Err(fault));
    }

    #[test]
    fn a_response_that_was_not_streamed_is_decoded() {
        let body = r#"{"id":"resp_1","object":"response","status":"completed","error":null,"model":"m","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]},{"type":"function_call","id":"fc","call_id":"c","name":"glob","arguments":"{}"}],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":5}}"#;
        let expected = Response { calls: vec![received_call("c", "glob", "{}")], ..plain("hi") };
        assert_eq!(received_whole(&Responses, body), Ok(expected));
        let wrong = "the server's response is not in the Responses format";
        let fault = Fault::new(Category::Unreadable, wrong);
        assert_eq!(received_whole(&Responses, "{}"), Err(fault));
    }

    #[test]
    fn a_response_has_limits() {
        let many = vec![MESSAGE; 1_001];
        check_fault(
            &Responses,
            &many,
            Category::Unreadable,
            "the response has more than 1000 parts",
        );
        let delta = HI.replace("\"hi\"", &format!("\"{}\"", "x".repeat(4 * 1024 * 1024)));
        let long = vec![delta.as_str(); 9];
        check_fault(&Responses, &long, Category::Unreadable, "the response is longer than 32 MiB");
    }
}
