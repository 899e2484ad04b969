//! Encodes a Responses request.

use ikigai_conversation::{Effort, ToolCall};
use serde::Serialize;
use serde_json::Value;

use super::items::{Mark, Reasoning, marks};
use crate::call_ids::{CallIds, IdRule};
use crate::chat::openai_effort;
use crate::entries::{Answer, Entry, entries, is_blank, prompt};
use crate::json::body;
use crate::request::{Request, Tool, ToolUse};
use crate::stored_blocks::Piece;
use crate::wire_call::{wire_arguments, wire_name};

const ID_RULE: IdRule = IdRule { max_bytes: 64, allows: |byte| byte.is_ascii_graphic() };

/// Used if the log leaves nothing to answer.
const GO_ON: &str = "Go on.";

pub(super) fn encode(request: &Request<'_>) -> Vec<u8> {
    let mut input = Input::new(request.model);
    entries(request).into_iter().for_each(|entry| input.add(entry));
    body(&Body {
        model: request.model,
        store: false,
        stream: true,
        include: if reasons(request.model) { &["reasoning.encrypted_content"] } else { &[] },
        instructions: prompt(request.view),
        tools: request.tools.iter().map(Function::of).collect(),
        input: input.finish(),
        tool_choice: match request.tool_use {
            ToolUse::None if !request.tools.is_empty() => Some("none"),
            ToolUse::None | ToolUse::Auto => None,
        },
        reasoning: request.effort.map(Thinking::of),
        // The API refuses a smaller number.
        max_output_tokens: request.max_output_tokens.map(|limit| limit.max(16)),
    })
}

/// Whether to ask for a model's encrypted reasoning. A model without reasoning refuses such a
/// request. A model with reasoning that is not asked for it only has to think again.
fn reasons(model: &str) -> bool {
    let model = model.rsplit('/').next().unwrap_or(model);
    let number = |rest: &str| -> Option<u32> {
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let is_o = model.strip_prefix('o').and_then(number).is_some();
    let is_new_gpt = model.strip_prefix("gpt-").and_then(number).is_some_and(|major| major >= 5);
    is_o || (is_new_gpt && !model.contains("-chat"))
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    store: bool,
    stream: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'a [&'a str],
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Function<'a>>,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
}

#[derive(Serialize)]
struct Thinking {
    effort: &'static str,
    /// Without it the API shows nothing of the reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

impl Thinking {
    fn of(effort: Effort) -> Thinking {
        let summary = match effort {
            Effort::Off => None,
            Effort::Low | Effort::Medium | Effort::High => Some("auto"),
        };
        Thinking { effort: openai_effort(effort), summary }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// By default the API makes a schema strict, and then refuses optional parameters.
    strict: bool,
}

impl Function<'_> {
    fn of(tool: &Tool) -> Function<'_> {
        Function {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
            strict: false,
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'a str,
        content: [Content; 1],
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
    },
    Reasoning(Reasoning),
    FunctionCall {
        call_id: String,
        name: String,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: String,
        output: &'a str,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content {
    InputText { text: String },
    OutputText { text: String },
}

/// Assembles the items.
struct Input<'a> {
    model: &'a str,
    items: Vec<Item<'a>>,
    ids: CallIds,
}

impl<'a> Input<'a> {
    fn new(model: &'a str) -> Input<'a> {
        Input { model, items: Vec::new(), ids: CallIds::new(ID_RULE) }
    }

    fn add(&mut self, entry: Entry<'a>) {
        match entry {
            Entry::Said(text) => self.say(text),
            Entry::Answer(answer) => self.answer(&answer),
            Entry::Result { output, .. } => {
                let result = self.ids.result();
                let item = result.map(|call_id| Item::FunctionCallOutput { call_id, output });
                self.items.extend(item);
            }
        }
    }

    fn finish(mut self) -> Vec<Item<'a>> {
        let leaves_nothing_to_answer =
            |last: &Item<'_>| matches!(last, Item::Message { role: "assistant", .. });
        if self.items.last().is_none_or(leaves_nothing_to_answer) {
            self.say(GO_ON.to_owned());
        }
        self.items
    }

    fn say(&mut self, text: String) {
        let content = [Content::InputText { text }];
        self.items.push(Item::Message { role: "user", content, phase: None });
    }

    fn answer(&mut self, answer: &Answer<'a>) {
        let pieces = marks(answer.extras, self.model).and_then(|marks| answer.split(marks));
        let pieces = pieces.or_else(|| answer.split(Vec::new())).unwrap_or_default();
        let mut phase = None;
        for piece in pieces {
            match piece {
                Piece::Text(text) if is_blank(text) => {}
                Piece::Text(text) => self.items.push(Item::Message {
                    role: "assistant",
                    content: [Content::OutputText { text: text.to_owned() }],
                    phase: phase.take(),
                }),
                Piece::Call(call) => self.call(call),
                Piece::Block(Mark::Message { phase: next }) => phase = Some(next),
                Piece::Block(Mark::Reasoning(reasoning)) => {
                    self.items.push(Item::Reasoning(reasoning));
                }
            }
        }
        // The API refuses reasoning that no item of its response follows.
        while matches!(self.items.last(), Some(Item::Reasoning(_))) {
            self.items.pop();
        }
    }

    fn call(&mut self, call: &ToolCall) {
        self.items.push(Item::FunctionCall {
            call_id: self.ids.call(call.tool_call_id.as_str()).to_owned(),
            name: wire_name(&call.name).into_owned(),
            arguments: wire_arguments(&call.arguments).into_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::NewMessage;

    use super::*;
    use crate::responses::Responses;
    use crate::testing::{
        answer, call, extras, from_field, glob_tool, messages, result, sent, sent_for,
        sent_for_effort,
    };

    #[track_caller]
    fn check(news: impl IntoIterator<Item = NewMessage>, expected: &str) {
        let body = sent(&Responses, "gpt-5", &[], news);
        assert_eq!(from_field(&body, "input"), format!("{expected}}}"));
    }

    const IDENTITY: &str = r#""input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"[You are agent 0/]\n\nhi"}]}"#;

    fn hi() -> NewMessage {
        NewMessage::user("hi")
    }

    #[test]
    fn the_fields_of_a_request_are_in_this_order() {
        let body =
            sent(&Responses, "gpt-5", &[glob_tool()], [NewMessage::system("Be brief."), hi()]);
        assert_eq!(
            body,
            r#"{"model":"gpt-5","store":false,"stream":true,"include":["reasoning.encrypted_content"],"instructions":"Be brief.","tools":[{"type":"function","name":"glob","description":"Find files","parameters":{"type":"object","properties":{"pattern":{"type":"string"}}},"strict":false}],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"[You are agent 0/]\n\nhi"}]}]}"#
        );
    }

    #[test]
    fn an_effort_is_the_last_field() {
        let sent = |effort| sent_for_effort(&Responses, "gpt-5", effort);
        assert_eq!(sent(Effort::Off), r#","reasoning":{"effort":"none"}"#);
        for (effort, name) in
            [(Effort::Low, "low"), (Effort::Medium, "medium"), (Effort::High, "high")]
        {
            let expected = format!(r#","reasoning":{{"effort":"{name}","summary":"auto"}}"#);
            assert_eq!(sent(effort), expected);
        }
    }

    #[test]
    fn fields_that_may_change_follow_the_items() {
        let log = messages("0/", 1, [hi()]);
        let tools = [glob_tool()];
        let auto = sent_for(&Responses, "m", &tools, ToolUse::Auto, &log);
        let none = sent_for(&Responses, "m", &tools, ToolUse::None, &log);
        let common = auto.strip_suffix('}').unwrap();
        assert_eq!(none, format!(r#"{common},"tool_choice":"none"}}"#));
        assert!(!sent_for(&Responses, "m", &[], ToolUse::None, &log).contains("tool_choice"));
    }

    #[test]
    fn only_reasoning_models_are_asked_for_reasoning() {
        for (model, expected) in [
            ("o3", true),
            ("o4-mini-2025-04-16", true),
            ("gpt-5", true),
            ("gpt-5.6-sol", true),
            ("openai/gpt-10-mini", true),
            ("gpt-5-chat-latest", false),
            ("gpt-5.3-chat-latest", false),
            ("gpt-4o", false),
            ("gpt-4.1", false),
            ("gpt-oss-20b", false),
            ("ollama", false),
            ("", false),
        ] {
            assert_eq!(reasons(model), expected, "{model}");
        }
    }

    #[test]
    fn calls_follow_their_text_and_results_their_calls() {
        check(
            [
                hi(),
                answer("I look.", "r1"),
                call("glob", "c1", r#"{ "pattern": "*" }"#, "r1"),
                result("glob", "c1", r#"{"success":true}"#),
                call("bash", "c1", "{", "r1"),
                result("bash", "c1", r#"{"error":"no"}"#),
                answer("\n", "r2"),
                NewMessage::user("and?"),
            ],
            &[
                IDENTITY,
                r#",{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]}"#,
                r#",{"type":"function_call","call_id":"c1","name":"glob","arguments":"{ \"pattern\": \"*\" }"}"#,
                r#",{"type":"function_call","call_id":"c1_2","name":"bash","arguments":"{\"not_json\":\"{\"}"}"#,
                r#",{"type":"function_call_output","call_id":"c1","output":"{\"success\":true}"}"#,
                r#",{"type":"function_call_output","call_id":"c1_2","output":"{\"error\":\"no\"}"}"#,
                r#",{"type":"message","role":"user","content":[{"type":"input_text","text":"and?"}]}]"#,
            ]
            .concat(),
        );
    }

    const ITEMS: &str = r#"{"responses":{"model":"gpt-5-2025-08-07","blocks":[{"text":0,"calls":0,"block":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gA=="}},{"text":0,"calls":0,"block":{"type":"message","phase":"commentary"}},{"text":2,"calls":0,"block":{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gB=="}}]}}"#;

    #[test]
    fn reasoning_is_sent_back_before_its_result() {
        check(
            [
                hi(),
                answer("ok", "r1").with_extras(extras(ITEMS)),
                call("glob", "c1", "{}", "r1"),
                result("glob", "c1", "{}"),
            ],
            &[
                IDENTITY,
                r#",{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gA=="}"#,
                r#",{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}],"phase":"commentary"}"#,
                r#",{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gB=="}"#,
                r#",{"type":"function_call","call_id":"c1","name":"glob","arguments":"{}"}"#,
                r#",{"type":"function_call_output","call_id":"c1","output":"{}"}]"#,
            ]
            .concat(),
        );
    }

    #[test]
    fn reasoning_that_would_be_refused_is_omitted() {
        let with = |text: &str, json: &str| {
            let answer = answer(text, "r1").with_extras(extras(json));
            sent(&Responses, "gpt-5", &[], [hi(), answer, NewMessage::user("so?")])
        };
        let plain =
            sent(&Responses, "gpt-5", &[], [hi(), answer("ok", "r1"), NewMessage::user("so?")]);
        let foreign = ITEMS.replace("gpt-5-2025-08-07", "o3");
        let misplaced = ITEMS.replace(r#""text":2"#, r#""text":3"#);
        let empty = ITEMS.replace("gB==", "");
        let others = r#"{"anthropic":{"blocks":[]}}"#;
        for json in [&foreign, &misplaced, &empty, others] {
            assert_eq!(with("ok", json), plain, "{json}");
        }
        assert!(!with("ok", ITEMS).contains("rs_2"), "nothing follows it");
        let only_thought = ITEMS.replace(r#""text":2"#, r#""text":0"#);
        assert!(!with("", &only_thought).contains("rs_"));
    }
}
