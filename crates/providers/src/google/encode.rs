//! Encodes a `generateContent` request.

use ikigai_conversation::{Effort, ToolCall};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::signatures::{Mark, marks};
use crate::call_ids::{CallIds, IdRule, is_word_byte};
use crate::entries::{Answer, Entry, entries, is_blank, prompt};
use crate::json::{body, raw};
use crate::request::{Request, Tool, ToolUse};
use crate::stored_blocks::Piece;
use crate::wire_call::{is_json, wire_arguments, wire_name};

const ID_RULE: IdRule = IdRule { max_bytes: 64, allows: is_word_byte };

/// Used where the API requires a user message and the log has none.
const GO_ON: &str = "Go on.";

/// Google's official placeholder for the signature of a call that another model made. Models since
/// Gemini 3 refuse requests with unsigned calls.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) fn encode(request: &Request<'_>) -> Vec<u8> {
    let mut contents = Contents::new(request.model);
    entries(request).into_iter().for_each(|entry| contents.add(entry));
    let has_tools = !request.tools.is_empty();
    body(&Body {
        system_instruction: prompt(request.view)
            .map(|text| Instruction { parts: [Part::text(text, None)] }),
        tools: has_tools
            .then(|| Tools {
                function_declarations: request.tools.iter().map(Function::of).collect(),
            })
            .into_iter()
            .collect(),
        contents: contents.finish(),
        tool_config: match request.tool_use {
            ToolUse::None if has_tools => {
                Some(json!({ "functionCallingConfig": { "mode": "NONE" } }))
            }
            ToolUse::None | ToolUse::Auto => None,
        },
        generation_config: generation_config(request),
    })
}

/// How the model answers, where that is not left to it.
fn generation_config(request: &Request<'_>) -> Option<Value> {
    let mut config = serde_json::Map::new();
    if let Some(effort) = request.effort {
        config.insert("thinkingConfig".to_owned(), thinking_config(request.model, effort));
    }
    if let Some(limit) = request.max_output_tokens {
        config.insert("maxOutputTokens".to_owned(), limit.into());
    }
    (!config.is_empty()).then_some(Value::Object(config))
}

/// Models since Gemini 3 have levels, older ones a number of tokens. Requests with the other field
/// are refused.
fn thinking_config(model: &str, effort: Effort) -> Value {
    let is_shown = effort != Effort::Off;
    if is_since_3(model) {
        let level = match effort {
            Effort::Off => "minimal",
            Effort::Low | Effort::Medium | Effort::High => effort.word(),
        };
        return json!({ "thinkingLevel": level, "includeThoughts": is_shown });
    }
    let budget = match effort {
        Effort::Off => 0,
        Effort::Low => 2_048,
        Effort::Medium => 8_192,
        // The most that all of them accept.
        Effort::High => 24_576,
    };
    json!({ "thinkingBudget": budget, "includeThoughts": is_shown })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tools<'a>>,
    contents: Vec<Content>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<Value>,
}

#[derive(Serialize)]
struct Instruction {
    parts: [Part; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Function<'a>>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a Value>,
}

impl Function<'_> {
    fn of(tool: &Tool) -> Function<'_> {
        // The API refuses an object schema without properties.
        let has_any = tool.parameters["properties"].as_object().is_some_and(|all| !all.is_empty());
        Function {
            name: &tool.name,
            description: &tool.description,
            parameters: has_any.then_some(&tool.parameters),
        }
    }
}

#[derive(Serialize)]
struct Content {
    role: &'static str,
    parts: Vec<Part>,
    #[serde(skip)]
    kind: Kind,
}

/// The kind of a content. Results are separate: the API compares their number with that of the
/// calls before them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Said,
    Results,
    Answer,
}

impl Kind {
    fn role(self) -> &'static str {
        match self {
            Kind::Said | Kind::Results => "user",
            Kind::Answer => "model",
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(flatten)]
    data: Data,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Data {
    Text(String),
    FunctionCall { id: String, name: String, args: Box<RawValue> },
    FunctionResponse { id: String, name: String, response: Box<RawValue> },
}

impl Part {
    fn text(text: String, thought_signature: Option<String>) -> Part {
        Part { data: Data::Text(text), thought_signature }
    }
}

/// Assembles the contents: consecutive ones of the same kind are merged.
struct Contents<'a> {
    model: &'a str,
    contents: Vec<Content>,
    ids: CallIds,
}

impl<'a> Contents<'a> {
    fn new(model: &'a str) -> Contents<'a> {
        Contents { model, contents: Vec::new(), ids: CallIds::new(ID_RULE) }
    }

    fn add(&mut self, entry: Entry<'a>) {
        match entry {
            Entry::Said(text) => self.push(Kind::Said, Part::text(text, None)),
            Entry::Answer(answer) => self.answer(&answer),
            Entry::Result { call, output, .. } => {
                let Some(id) = self.ids.result() else { return };
                let (name, response) = (wire_name(&call.name).into_owned(), object(output));
                let data = Data::FunctionResponse { id, name, response };
                self.push(Kind::Results, Part { data, thought_signature: None });
            }
        }
    }

    fn finish(mut self) -> Vec<Content> {
        if self.contents.last().is_none_or(|last| last.kind == Kind::Answer) {
            self.push(Kind::Said, Part::text(GO_ON.to_owned(), None));
        }
        self.contents
    }

    fn answer(&mut self, answer: &Answer<'a>) {
        let pieces = marks(answer.extras).and_then(|marks| answer.split(marks));
        let pieces = pieces.or_else(|| answer.split(Vec::new())).unwrap_or_default();
        let parts = self.parts_of(pieces);
        if self.contents.is_empty() && !parts.is_empty() {
            self.push(Kind::Said, Part::text(GO_ON.to_owned(), None));
        }
        parts.into_iter().for_each(|part| self.push(Kind::Answer, part));
    }

    fn parts_of(&mut self, pieces: Vec<Piece<'a, Mark>>) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut for_call = None;
        // The signature of the current text, and the text so far.
        let mut signed: Option<(String, String)> = None;
        let mut is_first_call = true;
        for piece in pieces {
            match piece {
                Piece::Block(Mark::Call { signature }) => for_call = Some(signature),
                Piece::Block(Mark::Text { signature }) => signed = Some((signature, String::new())),
                Piece::Block(Mark::End) => {
                    let part =
                        signed.take().map(|(signature, text)| Part::text(text, Some(signature)));
                    parts.extend(part);
                }
                Piece::Text(text) => match &mut signed {
                    Some((_, so_far)) => so_far.push_str(text),
                    None if is_blank(text) => {}
                    None => parts.push(Part::text(text.to_owned(), None)),
                },
                Piece::Call(call) => {
                    let signature = for_call.take().or_else(|| self.stand_in(is_first_call));
                    is_first_call = false;
                    parts.push(self.call(call, signature));
                }
            }
        }
        parts
    }

    /// The placeholder for a missing signature. Only the first call of a response needs one.
    fn stand_in(&self, is_first_call: bool) -> Option<String> {
        (is_first_call && is_since_3(self.model)).then(|| NO_SIGNATURE.to_owned())
    }

    fn call(&mut self, call: &ToolCall, thought_signature: Option<String>) -> Part {
        let data = Data::FunctionCall {
            id: self.ids.call(call.tool_call_id.as_str()).to_owned(),
            name: wire_name(&call.name).into_owned(),
            args: raw(wire_arguments(&call.arguments).into_owned()),
        };
        Part { data, thought_signature }
    }

    fn push(&mut self, kind: Kind, part: Part) {
        match self.contents.last_mut() {
            Some(last) if last.kind == kind => last.parts.push(part),
            Some(_) | None => {
                self.contents.push(Content { role: kind.role(), parts: vec![part], kind });
            }
        }
    }
}

/// Whether a model is a Gemini since version 3, which refuses calls without a signature. A name
/// without a number stands for the latest.
fn is_since_3(model: &str) -> bool {
    let Some((_, version)) = model.rsplit_once("gemini-") else { return false };
    !version.starts_with(['1', '2'])
}

/// The result as an object, which the API requires.
fn object(output: &str) -> Box<RawValue> {
    if output.trim_ascii_start().starts_with('{') && is_json(output) {
        return raw(output.to_owned());
    }
    raw(json!({ "output": output }).to_string())
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::NewMessage;

    use super::*;
    use crate::google::Google;
    use crate::testing::{
        answer, call, extras, from_field, glob_tool, messages, result, sent, sent_for,
        sent_for_effort,
    };

    #[track_caller]
    fn check(model: &str, news: impl IntoIterator<Item = NewMessage>, expected: &str) {
        let body = sent(&Google, model, &[], news);
        assert_eq!(from_field(&body, "contents"), format!("{expected}}}"));
    }

    const IDENTITY: &str =
        r#""contents":[{"role":"user","parts":[{"text":"[You are agent 0/]\n\nhi"}"#;

    fn hi() -> NewMessage {
        NewMessage::user("hi")
    }

    #[test]
    fn the_fields_of_a_request_are_in_this_order() {
        let bare = Tool {
            name: "agents".to_owned(),
            description: "Who is there".to_owned(),
            parameters: json!({"type": "object", "properties": {}}),
        };
        let news = [NewMessage::system("Be brief."), hi()];
        let body = sent(&Google, "gemini-3.8-flash", &[glob_tool(), bare], news);
        assert_eq!(
            body,
            r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"tools":[{"functionDeclarations":[{"name":"glob","description":"Find files","parameters":{"type":"object","properties":{"pattern":{"type":"string"}}}},{"name":"agents","description":"Who is there"}]}],"contents":[{"role":"user","parts":[{"text":"[You are agent 0/]\n\nhi"}]}]}"#
        );
    }

    #[test]
    fn fields_that_may_change_follow_the_contents() {
        let log = messages("0/", 1, [hi()]);
        let tools = [glob_tool()];
        let auto = sent_for(&Google, "m", &tools, ToolUse::Auto, &log);
        let none = sent_for(&Google, "m", &tools, ToolUse::None, &log);
        let common = auto.strip_suffix('}').unwrap();
        let config = r#""toolConfig":{"functionCallingConfig":{"mode":"NONE"}}"#;
        assert_eq!(none, format!("{common},{config}}}"));
        assert!(!sent_for(&Google, "m", &[], ToolUse::None, &log).contains("toolConfig"));
    }

    #[test]
    fn results_are_in_a_content_after_their_calls() {
        check(
            "gemini-2.5-pro",
            [
                hi(),
                NewMessage::user("there"),
                answer("I look.", "r1"),
                call("glob", "c1", r#"{ "pattern": "*" }"#, "r1"),
                result("glob", "c1", r#"{"success":true}"#),
                call("bash", "c1", "{", "r1"),
                result("bash", "c1", "no object"),
                NewMessage::user("and?"),
            ],
            &[
                IDENTITY,
                r#",{"text":"there"}]},{"role":"model","parts":[{"text":"I look."},{"functionCall":{"id":"c1","name":"glob","args":{ "pattern": "*" }}},{"functionCall":{"id":"c1_2","name":"bash","args":{"not_json":"{"}}}]}"#,
                r#",{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"glob","response":{"success":true}}},{"functionResponse":{"id":"c1_2","name":"bash","response":{"output":"no object"}}}]}"#,
                r#",{"role":"user","parts":[{"text":"and?"}]}]"#,
            ]
            .concat(),
        );
    }

    #[test]
    fn a_request_starts_and_ends_with_the_user() {
        check(
            "m",
            [hi(), answer("a", "r1")],
            &format!(
                r#"{IDENTITY}]}},{{"role":"model","parts":[{{"text":"a"}}]}},{{"role":"user","parts":[{{"text":"Go on."}}]}}]"#
            ),
        );
    }

    #[test]
    fn signatures_are_sent_back_on_their_parts() {
        let signed = r#"{"google":{"blocks":[{"text":2,"calls":0,"block":{"on":"text","signature":"t"}},{"text":5,"calls":0,"block":{"on":"end"}},{"text":6,"calls":0,"block":{"on":"call","signature":"c"}},{"text":6,"calls":2,"block":{"on":"text","signature":"e"}},{"text":6,"calls":2,"block":{"on":"end"}}]}}"#;
        check(
            "gemini-3.8-flash",
            [
                hi(),
                answer("abcdef", "r1").with_extras(extras(signed)),
                call("glob", "c1", "{}", "r1"),
                result("glob", "c1", "{}"),
                call("glob", "c2", "{}", "r1"),
                result("glob", "c2", "{}"),
            ],
            &[
                IDENTITY,
                r#"]},{"role":"model","parts":[{"text":"ab"},{"text":"cde","thoughtSignature":"t"},{"text":"f"}"#,
                r#",{"functionCall":{"id":"c1","name":"glob","args":{}},"thoughtSignature":"c"},{"functionCall":{"id":"c2","name":"glob","args":{}}},{"text":"","thoughtSignature":"e"}]}"#,
                r#",{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"glob","response":{}}},{"functionResponse":{"id":"c2","name":"glob","response":{}}}]}]"#,
            ]
            .concat(),
        );
    }

    #[test]
    fn calls_of_other_models_have_a_placeholder_signature() {
        let log = || {
            [
                hi(),
                call("glob", "c1", "{}", "r1").with_extras(extras(r#"{"anthropic":{}}"#)),
                result("glob", "c1", "{}"),
                call("glob", "c2", "{}", "r1"),
                result("glob", "c2", "{}"),
            ]
        };
        let stand_in = r#"{"functionCall":{"id":"c1","name":"glob","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"c2","name":"glob","args":{}}}"#;
        for (model, wants) in [
            ("gemini-3-pro-preview", true),
            ("gemini-4-argon", true),
            ("gemini-flash-latest", true),
            ("gemini-2.5-pro", false),
            ("gemma-4-27b", false),
        ] {
            let body = sent(&Google, model, &[], log());
            assert_eq!(body.contains(stand_in), wants, "{model}");
            assert_eq!(body.matches("thoughtSignature").count(), usize::from(wants));
        }
    }

    #[test]
    fn signatures_that_do_not_fit_are_omitted() {
        let plain = [hi(), answer("ok", "r1"), NewMessage::user("so?")];
        let expected = sent(&Google, "m", &[], plain);
        for signed in [
            r#"{"google":{"blocks":[{"text":3,"calls":0,"block":{"on":"text","signature":"t"}}]}}"#,
            r#"{"google":{"blocks":[{"text":0,"calls":0,"block":{"on":"call","signature":"t"}}]}}"#,
            r#"{"google":{"blocks":[{"text":2,"calls":0,"block":{"on":"text","signature":"t"}}]}}"#,
            r#"{"google":7}"#,
        ] {
            let news =
                [hi(), answer("ok", "r1").with_extras(extras(signed)), NewMessage::user("so?")];
            assert_eq!(sent(&Google, "m", &[], news), expected, "{signed}");
        }
    }

    #[test]
    fn an_effort_is_a_budget_or_a_level_at_the_end() {
        let sent = |model, effort| sent_for_effort(&Google, model, effort);
        let config = |field: &str, value: &str, is_shown: bool| {
            let config = format!(r#"{{"{field}":{value},"includeThoughts":{is_shown}}}"#);
            format!(r#","generationConfig":{{"thinkingConfig":{config}}}"#)
        };
        for (effort, budget, level) in [
            (Effort::Off, "0", r#""minimal""#),
            (Effort::Low, "2048", r#""low""#),
            (Effort::Medium, "8192", r#""medium""#),
            (Effort::High, "24576", r#""high""#),
        ] {
            let is_shown = effort != Effort::Off;
            let budget = config("thinkingBudget", budget, is_shown);
            assert_eq!(sent("gemini-2.5-flash", effort), budget);
            let level = config("thinkingLevel", level, is_shown);
            assert_eq!(sent("gemini-3-pro-preview", effort), level);
        }
    }
}
