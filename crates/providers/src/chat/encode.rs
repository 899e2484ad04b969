//! Encodes a request.
//!
//! The body is written from front to back, one message after another, and written bytes never
//! change. So a request is a prefix of the next one, and a long log costs no more than its bytes.
//! Whatever can change between two requests comes after the messages.

use ikigai_conversation::{Effort, ToolCall};
use serde::Serialize;
use serde_json::json;

use super::extras::ChatExtras;
use crate::call_ids::{CallIds, IdRule};
use crate::entries::{Answer, Entry, entries, is_blank, prompt};
use crate::request::{Request, Tool, ToolUse};
use crate::wire_call::{wire_arguments, wire_name};

/// Used where a user message is required and the log has none: between two answers, since servers
/// refuse two in a row, and at the end.
const GO_ON: &str = "Go on.";

/// Replaces an empty result, which some servers refuse.
const EMPTY: &str = "(empty)";

pub(super) fn encode(request: &Request<'_>) -> Vec<u8> {
    let mut body = Body::default();
    body.raw(r#"{"model":"#);
    body.json(request.model);
    body.raw(r#","stream":true,"stream_options":{"include_usage":true}"#);
    if !request.tools.is_empty() {
        body.raw(r#","tools":"#);
        body.json(&request.tools.iter().map(describe).collect::<Vec<_>>());
    }
    body.raw(r#","messages":["#);
    Messages::new(&mut body).write(request);
    body.raw("]");
    if request.tool_use == ToolUse::None && !request.tools.is_empty() {
        body.raw(r#","tool_choice":"none""#);
    }
    if let Some(effort) = request.effort {
        body.field("reasoning_effort", &format!("{:?}", openai_effort(effort)));
    }
    if let Some(limit) = request.max_output_tokens {
        body.field(limit_name(request.model), &limit.to_string());
    }
    body.raw("}");
    body.bytes
}

/// The name that OpenAI gave an effort.
pub(crate) fn openai_effort(effort: Effort) -> &'static str {
    match effort {
        Effort::Off => "none",
        Effort::Low | Effort::Medium | Effort::High => effort.word(),
    }
}

/// The field for the maximum length of a response. OpenAI's reasoning models refuse the name that
/// every other server knows.
fn limit_name(model: &str) -> &'static str {
    let is_reasoning = ["gpt-5", "o1", "o3", "o4"].iter().any(|start| model.starts_with(start));
    if is_reasoning { "max_completion_tokens" } else { "max_tokens" }
}

fn describe(tool: &Tool) -> serde_json::Value {
    json!({"type": "function", "function": {
        "name": tool.name, "description": tool.description, "parameters": tool.parameters,
    }})
}

/// The bytes so far.
#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
}

impl Body {
    fn raw(&mut self, json: &str) {
        self.bytes.extend_from_slice(json.as_bytes());
    }

    fn json(&mut self, value: &(impl Serialize + ?Sized)) {
        serde_json::to_writer(&mut self.bytes, value).expect("texts and lists always become JSON");
    }

    /// Another field of an object, whose value is already JSON.
    fn field(&mut self, name: &str, json: &str) {
        self.raw(",");
        self.json(name);
        self.raw(":");
        self.raw(json);
    }
}

/// The role of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    System,
    User,
    Assistant,
    Tool,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// Writes the messages.
struct Messages<'b> {
    body: &'b mut Body,
    /// The role of the last message.
    last: Option<Role>,
    ids: CallIds,
}

impl<'b> Messages<'b> {
    fn new(body: &'b mut Body) -> Messages<'b> {
        Messages { body, last: None, ids: CallIds::new(IdRule::CHAT) }
    }

    fn write(mut self, request: &Request<'_>) {
        if let Some(prompt) = prompt(request.view) {
            self.say(Role::System, &prompt);
        }
        for entry in entries(request) {
            match entry {
                Entry::Said(text) => self.say(Role::User, &text),
                Entry::Answer(answer) => self.answer(&answer),
                Entry::Result { output, .. } => self.result(output),
            }
        }
        // A model always answers a user.
        if !matches!(self.last, Some(Role::User | Role::Tool)) {
            self.say(Role::User, GO_ON);
        }
    }

    /// Writes a response. Blank text becomes a message only if there are calls.
    fn answer(&mut self, answer: &Answer<'_>) {
        let has_calls = !answer.calls.is_empty();
        if !has_calls && is_blank(answer.text) {
            return;
        }
        if self.last == Some(Role::Assistant) {
            self.say(Role::User, GO_ON);
        }
        if has_calls {
            self.calls(answer);
        } else {
            self.say(Role::Assistant, answer.text);
        }
    }

    fn calls(&mut self, answer: &Answer<'_>) {
        self.begin(Role::Assistant);
        // Not null if there is no text: llama-cpp-python, for example, refuses that.
        self.body.raw(r#","content":"#);
        self.body.json(answer.text);
        let kept = answer.extras.map(ChatExtras::read).unwrap_or_default();
        kept.message_fields().for_each(|(field, json)| self.body.field(field, json));
        self.body.raw(r#","tool_calls":["#);
        for (position, call) in answer.calls.iter().enumerate() {
            self.body.raw(if position > 0 { "," } else { "" });
            self.call(call, &kept);
        }
        self.body.raw("]}");
    }

    fn call(&mut self, call: &ToolCall, kept: &ChatExtras) {
        self.body.raw(r#"{"id":"#);
        self.body.json(self.ids.call(call.tool_call_id.as_str()));
        self.body.raw(r#","type":"function","function":{"name":"#);
        self.body.json(&*wire_name(&call.name));
        self.body.raw(r#","arguments":"#);
        self.body.json(&*wire_arguments(&call.arguments));
        self.body.raw("}");
        kept.call_fields(&call.tool_call_id).for_each(|(field, json)| self.body.field(field, json));
        self.body.raw("}");
    }

    fn result(&mut self, output: &str) {
        let Some(id) = self.ids.result() else { return };
        self.begin(Role::Tool);
        self.body.raw(r#","tool_call_id":"#);
        self.body.json(&id);
        self.body.raw(r#","content":"#);
        self.body.json(if is_blank(output) { EMPTY } else { output });
        self.body.raw("}");
    }

    /// Writes a message that is only text.
    fn say(&mut self, role: Role, text: &str) {
        self.begin(role);
        self.body.raw(r#","content":"#);
        self.body.json(text);
        self.body.raw("}");
    }

    fn begin(&mut self, role: Role) {
        self.body.raw(if self.last.is_some() { "," } else { "" });
        self.body.raw(r#"{"role":"#);
        self.body.json(role.name());
        self.last = Some(role);
    }
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::NewMessage;

    use super::*;
    use crate::chat::ChatCompletions;
    use crate::testing::{
        answer, call, extras, from_field, glob_tool, messages, result, sent, sent_for,
        sent_for_effort,
    };

    /// The messages that are sent for a log, one per line.
    #[track_caller]
    fn check(news: impl IntoIterator<Item = NewMessage>, expected: &[&str]) {
        let body = sent(&ChatCompletions, "m", &[], news);
        let messages = from_field(&body, "messages");
        assert_eq!(messages, format!(r#""messages":[{}]}}"#, expected.join(",")));
    }

    #[test]
    fn fields_that_may_change_follow_the_messages() {
        let log = messages("0/", 1, [NewMessage::system("p"), NewMessage::user("u")]);
        let send =
            |tools: &[Tool], tool_use| sent_for(&ChatCompletions, "m", tools, tool_use, &log);
        let head = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"#;
        let tools = r#""tools":[{"type":"function","function":{"name":"glob","description":"Find files","parameters":{"type":"object","properties":{"pattern":{"type":"string"}}}}}],"#;
        let messages = r#""messages":[{"role":"system","content":"p"},{"role":"user","content":"[You are agent 0/]\n\nu"}]"#;
        assert_eq!(send(&[], ToolUse::Auto), format!("{head}{messages}}}"));
        assert_eq!(send(&[], ToolUse::None), format!("{head}{messages}}}"));
        assert_eq!(send(&[glob_tool()], ToolUse::Auto), format!("{head}{tools}{messages}}}"));
        assert_eq!(
            send(&[glob_tool()], ToolUse::None),
            format!(r#"{head}{tools}{messages},"tool_choice":"none"}}"#)
        );
    }

    #[test]
    fn an_effort_is_the_last_field() {
        for (effort, name) in Effort::ALL.into_iter().zip(["none", "low", "medium", "high"]) {
            let expected = format!(r#","reasoning_effort":"{name}""#);
            assert_eq!(sent_for_effort(&ChatCompletions, "m", effort), expected);
        }
    }

    #[test]
    fn text_and_calls_of_a_response_are_one_message() {
        check(
            [
                NewMessage::user("u"),
                answer("t", "r"),
                call("glob", "a", r#"{"pattern":"*"}"#, "r"),
                result("glob", "a", r#"{"output":"x"}"#),
                call("glob", "b", "", "r"),
                result("glob", "b", r#"{"error":"y"}"#),
                call("glob", "c", "{}", "r2"),
                result("glob", "c", "{}"),
                answer("done", "r3"),
                NewMessage::notification("mail", Vec::new()),
                NewMessage::user("v"),
            ],
            &[
                r#"{"role":"user","content":"[You are agent 0/]\n\nu"}"#,
                r#"{"role":"assistant","content":"t","tool_calls":[{"id":"a","type":"function","function":{"name":"glob","arguments":"{\"pattern\":\"*\"}"}},{"id":"b","type":"function","function":{"name":"glob","arguments":"{}"}}]}"#,
                r#"{"role":"tool","tool_call_id":"a","content":"{\"output\":\"x\"}"}"#,
                r#"{"role":"tool","tool_call_id":"b","content":"{\"error\":\"y\"}"}"#,
                r#"{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"glob","arguments":"{}"}}]}"#,
                r#"{"role":"tool","tool_call_id":"c","content":"{}"}"#,
                r#"{"role":"assistant","content":"done"}"#,
                r#"{"role":"user","content":"mail"}"#,
                r#"{"role":"user","content":"v"}"#,
            ],
        );
    }

    #[test]
    fn no_two_answers_are_adjacent_and_none_is_last() {
        check(
            [NewMessage::user("u"), answer("a", "r1"), answer("b", "r2")],
            &[
                r#"{"role":"user","content":"[You are agent 0/]\n\nu"}"#,
                r#"{"role":"assistant","content":"a"}"#,
                r#"{"role":"user","content":"Go on."}"#,
                r#"{"role":"assistant","content":"b"}"#,
                r#"{"role":"user","content":"Go on."}"#,
            ],
        );
        check([], &[r#"{"role":"user","content":"Go on."}"#]);
    }

    #[test]
    fn blank_text_is_omitted_where_possible() {
        check(
            [
                NewMessage::system(" "),
                answer(" \n", "r1"),
                NewMessage::user(" "),
                answer("", "r2"),
                call("glob", "a", "{}", "r2"),
                result("glob", "a", ""),
            ],
            &[
                r#"{"role":"user","content":"[You are agent 0/]"}"#,
                r#"{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"glob","arguments":"{}"}}]}"#,
                r#"{"role":"tool","tool_call_id":"a","content":"(empty)"}"#,
            ],
        );
    }

    /// The identity line that precedes a text used to move into the next text.
    #[test]
    fn an_identity_stays_in_its_position() {
        let identity = r#"{"role":"user","content":"[You are agent 0/]"}"#;
        check([NewMessage::user(" ")], &[identity]);
        let next = r#"{"role":"user","content":"u"}"#;
        check([NewMessage::user(" "), NewMessage::user("u")], &[identity, next]);
    }

    #[test]
    fn a_prompt_is_only_at_the_start() {
        check(
            [NewMessage::system("p"), NewMessage::user("u"), NewMessage::system("q")],
            &[
                r#"{"role":"system","content":"p\n\nq"}"#,
                r#"{"role":"user","content":"[You are agent 0/]\n\nu"}"#,
            ],
        );
    }

    #[test]
    fn names_ids_and_arguments_are_valid() {
        check(
            [
                NewMessage::user("u"),
                call("a b", "x", "{", "r"),
                result("a b", "x", "{}"),
                call("", "x", "{}", "r"),
                result("", "x", "{}"),
            ],
            &[
                r#"{"role":"user","content":"[You are agent 0/]\n\nu"}"#,
                r#"{"role":"assistant","content":"","tool_calls":[{"id":"x","type":"function","function":{"name":"a_b","arguments":"{\"not_json\":\"{\"}"}},{"id":"x_2","type":"function","function":{"name":"unknown","arguments":"{}"}}]}"#,
                r#"{"role":"tool","tool_call_id":"x","content":"{}"}"#,
                r#"{"role":"tool","tool_call_id":"x_2","content":"{}"}"#,
            ],
        );
    }

    #[test]
    fn extras_of_this_format_are_sent_back_with_calls() {
        let own = extras(
            r#"{"chat_completions":{"reasoning_content":"h\u006d","calls":{"a":{"extra_content":{"n":1.0}}}}}"#,
        );
        let other = extras(r#"{"anthropic":{"thinking":[]}}"#);
        check(
            [
                NewMessage::user("u"),
                answer("t", "r1").with_extras(own.clone()),
                call("f", "a", "{}", "r1"),
                result("f", "a", "{}"),
                call("f", "b", "{}", "r2").with_extras(other),
                result("f", "b", "{}"),
                answer("done", "r3").with_extras(own),
                NewMessage::user("v"),
            ],
            &[
                r#"{"role":"user","content":"[You are agent 0/]\n\nu"}"#,
                r#"{"role":"assistant","content":"t","reasoning_content":"h\u006d","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"n":1.0}}]}"#,
                r#"{"role":"tool","tool_call_id":"a","content":"{}"}"#,
                r#"{"role":"assistant","content":"","tool_calls":[{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
                r#"{"role":"tool","tool_call_id":"b","content":"{}"}"#,
                r#"{"role":"assistant","content":"done"}"#,
                r#"{"role":"user","content":"v"}"#,
            ],
        );
    }
}
