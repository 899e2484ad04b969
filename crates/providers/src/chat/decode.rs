//! Decodes a response.

use serde_json::Value;
use serde_json::value::RawValue;

use super::calls::Calls;
use super::chunk::{Choice, Chunk, Part, content_of, no_chat, text_of};
use super::extras::ChatExtras;
use super::reasoning::Reasoning;
use crate::bounds::Bounds;
use crate::fault::{Category, Fault};
use crate::provider::{Decode, Delta};
use crate::response::{Response, Stop, Tokens};
use crate::stream::OnDelta;

/// Assembles one response.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    progress: Progress,
    end: End,
    text: String,
    calls: Calls,
    reasoning: Reasoning,
    tokens: Option<Tokens>,
    bounds: Bounds,
}

/// How far the response has come.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    #[default]
    Nothing,
    /// Something arrived, but not in this format.
    Strange,
    /// Something in this format arrived, but no part of an answer.
    Begun,
    Answered,
}

/// What the server has said about the end of the response.
#[derive(Debug, Default)]
struct End {
    /// From a `finish_reason`.
    stop: Option<Stop>,
    /// The last choice has an empty `finish_reason`. Some servers end responses like that; others
    /// have it in every chunk.
    is_hinted: bool,
    /// `[DONE]` arrived, or the response was not streamed.
    is_done: bool,
}

impl Decode for Decoder {
    fn event(
        &mut self,
        event: Option<&str>,
        data: &str,
        on_delta: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), Fault> {
        let data = data.trim();
        if self.end.is_done || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            self.end.is_done = true;
            return Ok(());
        }
        if event == Some("error") {
            return Err(error_of(data));
        }
        let chunk = Chunk::parse(data)?;
        if chunk.is_error() {
            return Err(error_of(data));
        }
        self.chunk(&chunk, on_delta)
    }

    fn whole(&mut self, body: &[u8], on_delta: &mut dyn FnMut(Delta<'_>)) -> Result<(), Fault> {
        let body = String::from_utf8_lossy(body);
        let chunk = Chunk::parse(&body)?;
        if chunk.is_error() {
            return Err(error_of(&body));
        }
        self.chunk(&chunk, on_delta)?;
        self.end.is_done = true;
        if self.progress == Progress::Answered { Ok(()) } else { Err(no_chat()) }
    }

    fn is_over(&self) -> bool {
        self.end.is_done
    }

    fn finish(self: Box<Self>) -> Result<Response, Fault> {
        match self.progress {
            Progress::Nothing => Err(Fault::no_answer()),
            Progress::Strange => Err(no_chat()),
            Progress::Begun if self.end.is_done => Err(Fault::no_answer()),
            Progress::Begun => Err(Fault::broke_off()),
            Progress::Answered => {
                let stop = self.stop().ok_or_else(Fault::broke_off)?;
                Ok(self.into_response(stop))
            }
        }
    }

    fn finish_broken(mut self: Box<Self>) -> Result<Response, Fault> {
        self.end.is_hinted = false;
        self.finish()
    }
}

impl Decoder {
    fn chunk(&mut self, chunk: &Chunk<'_>, on_delta: &mut OnDelta<'_>) -> Result<(), Fault> {
        self.count(chunk.usage);
        let Some(choices) = &chunk.choices else {
            let is_known = chunk.usage.is_some();
            self.advance(if is_known { Progress::Begun } else { Progress::Strange });
            return Ok(());
        };
        self.advance(Progress::Begun);
        // Requests only ask for one.
        match choices.first() {
            Some(choice) => self.choice(choice, on_delta),
            None => Ok(()),
        }
    }

    fn advance(&mut self, progress: Progress) {
        self.progress = self.progress.max(progress);
    }

    fn choice(&mut self, choice: &Choice<'_>, on_delta: &mut OnDelta<'_>) -> Result<(), Fault> {
        self.advance(Progress::Answered);
        self.count(choice.usage);
        if let Some(error) = choice.error {
            return Err(error_of(error.get()));
        }
        if let Some(part) = choice.part() {
            self.part(part, on_delta)?;
        }
        let reason = choice.finish_reason.and_then(text_of);
        self.end.is_hinted = reason.as_deref() == Some("");
        match reason {
            Some(reason) if !reason.is_empty() => self.end_because(&reason),
            Some(_) | None => Ok(()),
        }
    }

    fn part(&mut self, part: &Part<'_>, on_delta: &mut OnDelta<'_>) -> Result<(), Fault> {
        for json in [part.content, part.refusal].into_iter().flatten() {
            self.add_text(&content_of(json).unwrap_or_default(), on_delta)?;
        }
        if let Some(text) = part.reasoning_content.and_then(text_of) {
            self.reasoning.add_content(&text);
        }
        if let Some(text) = part.reasoning.and_then(text_of) {
            self.reasoning.add_plain(&text);
        }
        if let Some(json) = part.reasoning_details {
            self.reasoning.add_details(json);
        }
        if let Some(thinking) = part.thinking() {
            on_delta(Delta::Thinking(&thinking));
        }
        for call in part.tool_calls.iter().flatten() {
            self.calls.add(call, &mut self.bounds, on_delta)?;
        }
        match part.function_call() {
            Some(function) => self.calls.add_legacy(&function, &mut self.bounds, on_delta),
            None => Ok(()),
        }
    }

    fn add_text(&mut self, text: &str, on_delta: &mut OnDelta<'_>) -> Result<(), Fault> {
        if text.is_empty() {
            return Ok(());
        }
        self.bounds.add_bytes(text.len())?;
        self.text.push_str(text);
        on_delta(Delta::Text(text));
        Ok(())
    }

    fn end_because(&mut self, reason: &str) -> Result<(), Fault> {
        self.end.stop = Some(match reason.to_ascii_lowercase().as_str() {
            "length" | "max_tokens" | "model_length" => Stop::Length,
            "content_filter" | "safety" | "prohibited_content" | "recitation" => Stop::Blocked,
            "error" | "insufficient_system_resource" => {
                let message = "the server ended its answer with an error";
                return Err(Fault::new(Category::Server, message));
            }
            // `stop`, `tool_calls`, `function_call`, `eos`, and whatever a server invents: the
            // response ended.
            _ => Stop::Complete,
        });
        Ok(())
    }

    /// Servers that report usage more than once report growing numbers.
    fn count(&mut self, usage: Option<&RawValue>) {
        let usage = usage.and_then(|json| serde_json::from_str::<Value>(json.get()).ok());
        self.tokens = usage.as_ref().and_then(tokens_of).or(self.tokens);
    }

    /// Why the response ended; `None` if it did not.
    fn stop(&self) -> Option<Stop> {
        let is_over = self.end.is_done || (self.end.is_hinted && self.calls.are_readable());
        self.end.stop.or(is_over.then_some(Stop::Complete))
    }

    fn into_response(self, stop: Stop) -> Response {
        let mut kept = ChatExtras::default();
        if !self.calls.is_empty() {
            self.reasoning.move_into(&mut kept);
        }
        let (calls, wanted_calls) = self.calls.finish(stop);
        kept.calls = wanted_calls;
        let Decoder { text, tokens, .. } = self;
        Response { text, calls, extras: kept.into_extras(), stop, tokens }
    }
}

/// An error in place of an answer.
fn error_of(data: &str) -> Fault {
    let error = serde_json::from_str(data).unwrap_or_else(|_| Value::from(data));
    Fault::from_error(None, &error)
}

fn tokens_of(usage: &Value) -> Option<Tokens> {
    let (input, output) = (usage["prompt_tokens"].as_u64(), usage["completion_tokens"].as_u64());
    input.or(output)?;
    let details = &usage["prompt_tokens_details"];
    Some(Tokens {
        input: input.unwrap_or_default(),
        output: output.unwrap_or_default(),
        // The second name is DeepSeek's.
        cache_read: details["cached_tokens"]
            .as_u64()
            .or_else(|| usage["prompt_cache_hit_tokens"].as_u64()),
        cache_write: details["cache_write_tokens"].as_u64(),
        reasoning: usage["completion_tokens_details"]["reasoning_tokens"].as_u64(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::ChatCompletions;
    use crate::testing::{extras, received, received_whole, thought};

    fn said(text: &str) -> String {
        json!({"choices": [{"delta": {"content": text}, "finish_reason": null}]}).to_string()
    }

    fn ended(reason: &str) -> String {
        json!({"choices": [{"delta": {}, "finish_reason": reason}]}).to_string()
    }

    fn called(arguments: &str) -> String {
        let call =
            json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}});
        json!({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": ""}]}).to_string()
    }

    fn receive(events: &[String]) -> Result<Response, Fault> {
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let (response, text) = received(&ChatCompletions, &events);
        if let Ok(response) = &response {
            assert_eq!(text, response.text, "the text that was passed on is the response's");
        }
        response
    }

    #[test]
    fn thinking_is_passed_on_once_whatever_its_field_is_called() {
        let delta = |delta: serde_json::Value| json!({"choices": [{"delta": delta}]}).to_string();
        let details =
            json!([{"type": "reasoning.text", "text": "b"}, {"summary": "c"}, {"data": "x"}]);
        let parts = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "d"}]}]);
        let events = [
            delta(json!({"reasoning_content": "a", "content": null})),
            delta(json!({"reasoning": "b", "reasoning_details": details})),
            delta(json!({"reasoning": "", "reasoning_details": details})),
            delta(json!({"content": parts})),
            delta(json!({"content": "hi", "reasoning_content": 7})),
        ];
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        assert_eq!(thought(&ChatCompletions, &events), "abbcd7");
    }

    #[track_caller]
    fn check(events: &[String], text: &str, calls: usize, stop: Stop) {
        let response = receive(events).unwrap();
        assert_eq!(
            (response.text.as_str(), response.calls.len(), response.stop),
            (text, calls, stop)
        );
    }

    #[track_caller]
    fn check_fault(events: &[&str], category: Category, message: &str) {
        let events: Vec<String> = events.iter().map(|event| (*event).to_owned()).collect();
        assert_eq!(receive(&events), Err(Fault::new(category, message)));
    }

    #[test]
    fn a_response_ends_with_its_reason_or_the_last_event() {
        let done = "[DONE]".to_owned();
        check(&[said("a"), said("b"), ended("stop"), done.clone()], "ab", 0, Stop::Complete);
        check(&[said("a"), ended("stop")], "a", 0, Stop::Complete);
        check(&[said("a"), done.clone()], "a", 0, Stop::Complete);
        check(&[called("{}"), ended("stop")], "", 1, Stop::Complete);
        check(&[called("{"), ended("length")], "", 1, Stop::Length);
        // Cut off before its arguments, it must not become a call without arguments.
        let cut = receive(&[called(""), ended("length")]).unwrap();
        assert_eq!(cut.calls[0].arguments, "");
        check(&[said("a"), ended("content_filter")], "a", 0, Stop::Blocked);
        check(&[said("a"), ended("eos")], "a", 0, Stop::Complete);
        check(&[ended("stop"), done, said("late")], "", 0, Stop::Complete);
    }

    #[test]
    fn an_empty_reason_ends_a_response_with_complete_calls() {
        check(&[said("a"), ended("")], "a", 0, Stop::Complete);
        check(&[called("{}")], "", 1, Stop::Complete);
        for events in [vec![called("{")], vec![called("")], vec![ended(""), said("a")]] {
            assert_eq!(receive(&events), Err(Fault::broke_off()));
        }
    }

    #[test]
    fn a_response_without_an_end_broke_off() {
        assert_eq!(receive(&[said("a")]), Err(Fault::broke_off()));
        assert_eq!(receive(&[r#"{"choices":[]}"#.to_owned()]), Err(Fault::broke_off()));
    }

    #[test]
    fn an_empty_stream_is_no_answer() {
        for events in [&[][..], &["[DONE]"], &["", " "], &[r#"{"choices":[]}"#, "[DONE]"]] {
            let message = "the server ended its stream without an answer";
            check_fault(events, Category::Server, message);
        }
    }

    #[test]
    fn another_format_is_unreadable() {
        let wrong = "the server's response is not in the Chat Completions format";
        for event in ["{}", "7", "[]", r#"{"choices":"a"}"#, r#"{"type":"message_start"}"#] {
            check_fault(&[event], Category::Unreadable, wrong);
        }
        let message = "the server did not send JSON: expected value at line 1 column 1";
        check_fault(&["<html>"], Category::Unreadable, message);
        let message = "the server did not send JSON: EOF while parsing a list at line 1 column 12";
        check_fault(&[r#"{"choices":["#], Category::Unreadable, message);
    }

    #[test]
    fn an_error_inside_a_stream_is_classified() {
        let overloaded = r#"{"error":{"message":"Overloaded","code":503}}"#;
        check_fault(&[&said("a"), overloaded], Category::Server, "Overloaded");
        let limit =
            r#"{"error":{"message":"Slow down","code":429},"choices":[{"finish_reason":"error"}]}"#;
        check_fault(&[limit], Category::RateLimit, "Slow down");
        let old = r#"{"object":"error","message":"The model `x` does not exist.","code":404}"#;
        check_fault(&[old], Category::ModelUnknown, "The model `x` does not exist.");
        let inside =
            r#"{"choices":[{"error":{"message":"gone","code":502},"finish_reason":"error"}]}"#;
        check_fault(&[inside], Category::Server, "gone");
        let message = "the server ended its answer with an error";
        check_fault(&[&ended("error")], Category::Server, message);

        let mut decoder = Decoder::default();
        let fault = decoder.event(Some("error"), "went wrong", &mut |_| {});
        assert_eq!(fault, Err(Fault::new(Category::Server, "went wrong")));
    }

    #[test]
    fn all_forms_of_content_are_text_and_reasoning_is_not() {
        let delta = |delta: Value| json!({"choices": [{"delta": delta}]}).to_string();
        let events = [
            delta(json!({"role": "assistant", "content": null})),
            delta(json!({"content": [{"type": "text", "text": "a"}]})),
            delta(json!({"content": "", "reasoning_content": "hm"})),
            delta(json!({"reasoning": "hm", "reasoning_details": []})),
            delta(json!({"content": "b", "tool_calls": [], "function_call": ""})),
            json!({"choices": [{"delta": null, "finish_reason": null}]}).to_string(),
            delta(json!({"refusal": "c"})),
            ended("stop"),
        ];
        let response = receive(&events).unwrap();
        assert_eq!((response.text.as_str(), response.extras), ("abc", None));
    }

    #[test]
    fn extras_are_kept_with_calls() {
        let call = |id: &str| {
            let extra = json!({"google": {"thought_signature": id}});
            json!({"id": id, "function": {"name": "f", "arguments": "{}"}, "extra_content": extra})
        };
        let events = [
            json!({"choices": [{"delta": {"reasoning_content": "h"}}]}).to_string(),
            json!({"choices": [{"delta": {"reasoning_content": "m"}}]}).to_string(),
            json!({"choices": [{"delta": {"tool_calls": [call("a"), call("a")]}}]}).to_string(),
            ended("tool_calls"),
        ];
        let kept = r#"{"chat_completions":{"reasoning_content":"hm","calls":{"a":{"extra_content":{"google":{"thought_signature":"a"}}},"call_2":{"extra_content":{"google":{"thought_signature":"a"}}}}}}"#;
        assert_eq!(receive(&events).unwrap().extras, Some(extras(kept)));
    }

    #[test]
    fn token_counts_are_found_in_all_positions() {
        let usage = json!({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11,
            "prompt_tokens_details": {"cached_tokens": 4}});
        let tokens = Tokens { input: 9, output: 2, cache_read: Some(4), ..Tokens::default() };
        let alone = json!({"choices": [], "usage": usage}).to_string();
        let with = json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage});
        let within = json!({"choices": [{"delta": {}, "finish_reason": "stop", "usage": usage}]});
        for events in [vec![ended("stop"), alone], vec![with.to_string()], vec![within.to_string()]]
        {
            assert_eq!(receive(&events).unwrap().tokens, Some(tokens));
        }
        let first = json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 0}});
        let last = json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5,
            "prompt_cache_hit_tokens": 1}});
        let events = [
            first.to_string(),
            ended("stop"),
            last.to_string(),
            r#"{"choices":[],"usage":null}"#.to_owned(),
        ];
        let tokens = Tokens { input: 9, output: 5, cache_read: Some(1), ..Tokens::default() };
        assert_eq!(receive(&events).unwrap().tokens, Some(tokens));
        for usage in [json!({}), json!(null), json!(7), json!({"prompt_tokens": -1})] {
            let events = [ended("stop"), json!({"choices": [], "usage": usage}).to_string()];
            assert_eq!(receive(&events).unwrap().tokens, None);
        }
    }

    #[test]
    fn a_response_that_was_not_streamed_is_decoded() {
        let call =
            json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let body = json!({"choices": [{"finish_reason": "length", "message": {"content": "t", "tool_calls": [call]}}]});
        let response = received_whole(&ChatCompletions, &body.to_string()).unwrap();
        assert_eq!(
            (response.text.as_str(), response.calls.len(), response.stop),
            ("t", 1, Stop::Length)
        );
        let body = json!({"choices": [{"message": {"content": "t"}}]});
        let response = received_whole(&ChatCompletions, &body.to_string()).unwrap();
        assert_eq!(response.stop, Stop::Complete);
        for body in [r#"{"status":"ok"}"#, r#"{"choices":[]}"#, "7"] {
            assert_eq!(received_whole(&ChatCompletions, body), Err(no_chat()));
        }
        let error = received_whole(&ChatCompletions, r#"{"error":{"message":"no","code":400}}"#);
        assert_eq!(error, Err(Fault::new(Category::Refused, "no")));
        let page = received_whole(&ChatCompletions, "<html>").unwrap_err();
        assert_eq!(page.category, Category::Unreadable);
    }

    #[test]
    fn a_response_has_limits() {
        let many: Vec<String> = (0..33).map(|_| said(&"x".repeat(1024 * 1024))).collect();
        let refs: Vec<&str> = many.iter().map(String::as_str).collect();
        check_fault(&refs, Category::Unreadable, "the response is longer than 32 MiB");
        let call = |n: u32| json!({"index": n, "id": n.to_string(), "function": {"name": "f"}});
        let calls: Vec<Value> = (0..1001).map(call).collect();
        let event = json!({"choices": [{"delta": {"tool_calls": calls}}]}).to_string();
        check_fault(&[&event], Category::Unreadable, "the response has more than 1000 parts");
    }
}
