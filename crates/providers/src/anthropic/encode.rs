//! Encodes a Messages request.
//!
//! Messages are always sent again byte by byte. That keeps the prompt cache valid, and thinking
//! too, which is bound to everything before it. So whatever can change between two requests comes
//! after the messages, and no cache mark moves inside them: the mark at the top of the request
//! makes the API cache up to the last block, and the mark at the end of the prompt serves other
//! agents that only share the prompt.

use ikigai_conversation::Seen;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::effort::{OutputConfig, Thinking};
use super::thinking::{ThinkingBlock, thinking};
use crate::call_ids::{CallIds, IdRule};
use crate::entries::{Answer, Entry, entries, is_blank};
use crate::json::{body, raw};
use crate::request::{Request, Tool, ToolUse};
use crate::stored_blocks::Piece;
use crate::wire_call::{wire_arguments, wire_name};

/// Used where the API requires a user message and the log has none.
const GO_ON: &str = "Go on.";

pub(super) fn encode(request: &Request<'_>) -> Vec<u8> {
    let mut messages = Messages::new(request.model);
    entries(request).into_iter().for_each(|entry| messages.add(entry));
    let system = system_blocks(request.view);
    let mut tools: Vec<ToolBlock<'_>> = request.tools.iter().map(ToolBlock::of).collect();
    if let (true, Some(last)) = (system.is_empty(), tools.last_mut()) {
        last.cache_control = Some(CacheControl::Ephemeral);
    }
    body(&Body {
        model: request.model,
        max_tokens: match request.max_output_tokens.map(u32::try_from) {
            Some(Ok(limit)) => limit.min(max_tokens(request.model)),
            Some(Err(_)) | None => max_tokens(request.model),
        },
        stream: true,
        cache_control: CacheControl::Ephemeral,
        system,
        tools,
        messages: messages.finish(),
        tool_choice: match request.tool_use {
            // Without tools there is nothing to choose, and some servers refuse the field.
            ToolUse::None if !request.tools.is_empty() => Some(ToolChoice::None),
            ToolUse::None | ToolUse::Auto => None,
        },
        thinking: request.effort.map(|effort| Thinking::of(effort, request.model)),
        output_config: request.effort.and_then(|effort| OutputConfig::of(effort, request.model)),
    })
}

/// The maximum length of a response. The API requires the number, and
/// refuses one above the model's limit.
pub(super) fn max_tokens(model: &str) -> u32 {
    // Gateways write a dot where the API has a hyphen.
    let model = model.replace('.', "-");
    let is_one_of = |families: &[&str]| families.iter().any(|family| model.contains(family));
    if is_one_of(&[
        "claude-3-opus",
        "claude-3-sonnet",
        "claude-3-haiku",
        "claude-2",
        "claude-instant",
    ]) {
        4_096
    } else if is_one_of(&["claude-3-5"]) {
        8_192
    } else {
        32_000
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    cache_control: CacheControl,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<SystemBlock<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolBlock<'a>>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ToolChoice {
    None,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "text")]
struct SystemBlock<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct ToolBlock<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl ToolBlock<'_> {
    fn of(tool: &Tool) -> ToolBlock<'_> {
        ToolBlock {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.parameters,
            cache_control: None,
        }
    }
}

fn system_blocks<'a>(view: &[Seen<'a>]) -> Vec<SystemBlock<'a>> {
    let text = |seen: &Seen<'a>| match seen {
        Seen::System(text) if !is_blank(text) => Some(*text),
        _ => None,
    };
    let block = |text| SystemBlock { text, cache_control: None };
    let mut blocks: Vec<_> = view.iter().filter_map(text).map(block).collect();
    if let Some(last) = blocks.last_mut() {
        last.cache_control = Some(CacheControl::Ephemeral);
    }
    blocks
}

#[derive(Serialize)]
struct Message<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    #[serde(untagged)]
    Thinking(ThinkingBlock),
}

/// Assembles the messages: consecutive ones of the same role are merged.
struct Messages<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    ids: CallIds,
}

impl<'a> Messages<'a> {
    fn new(model: &'a str) -> Messages<'a> {
        Messages { model, messages: Vec::new(), ids: CallIds::new(IdRule::ANTHROPIC) }
    }

    fn add(&mut self, entry: Entry<'a>) {
        match entry {
            Entry::Said(text) => self.push(Role::User, Block::Text { text }),
            Entry::Answer(answer) => self.answer(&answer),
            Entry::Result { output, success, .. } => {
                let Some(tool_use_id) = self.ids.result() else { return };
                let content = Some(output).filter(|output| !is_blank(output));
                let result = Block::ToolResult { tool_use_id, content, is_error: !success };
                self.push(Role::User, result);
            }
        }
    }

    fn finish(mut self) -> Vec<Message<'a>> {
        if self.messages.is_empty() || self.ends_in_an_answer() {
            self.push(Role::User, text_block(GO_ON));
        }
        self.messages
    }

    fn answer(&mut self, answer: &Answer<'a>) {
        let blocks = self.blocks_of(answer);
        if self.messages.is_empty() && !blocks.is_empty() {
            self.push(Role::User, text_block(GO_ON));
        }
        blocks.into_iter().for_each(|block| self.push(Role::Assistant, block));
    }

    fn blocks_of(&mut self, answer: &Answer<'a>) -> Vec<Block<'a>> {
        // The API accepts no thinking after blocks of another response in the same message.
        let thinking =
            if self.ends_in_an_answer() { None } else { thinking(answer.extras, self.model) };
        let pieces = thinking.and_then(|thinking| answer.split(thinking));
        let pieces = pieces.or_else(|| answer.split(Vec::new())).unwrap_or_default();
        let mut blocks: Vec<Block<'a>> =
            pieces.into_iter().filter_map(|piece| self.block(piece)).collect();
        // The API refuses a message that ends in thinking. A response that was
        // cut off there has no content.
        while matches!(blocks.last(), Some(Block::Thinking(_))) {
            blocks.pop();
        }
        blocks
    }

    fn block(&mut self, piece: Piece<'a, ThinkingBlock>) -> Option<Block<'a>> {
        match piece {
            // The API refuses blank blocks.
            Piece::Text(text) => (!is_blank(text)).then(|| text_block(text)),
            Piece::Call(call) => Some(Block::ToolUse {
                id: self.ids.call(call.tool_call_id.as_str()).to_owned(),
                name: wire_name(&call.name).into_owned(),
                input: raw(wire_arguments(&call.arguments).into_owned()),
            }),
            Piece::Block(thinking) => Some(Block::Thinking(thinking)),
        }
    }

    fn ends_in_an_answer(&self) -> bool {
        self.messages.last().is_some_and(|last| last.role == Role::Assistant)
    }

    fn push(&mut self, role: Role, block: Block<'a>) {
        match self.messages.last_mut() {
            Some(last) if last.role == role => last.content.push(block),
            Some(_) | None => self.messages.push(Message { role, content: vec![block] }),
        }
    }
}

fn text_block<'a>(text: &str) -> Block<'a> {
    Block::Text { text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::NewMessage;

    use super::*;
    use crate::anthropic::Anthropic;
    use crate::testing::{
        answer, call, extras, from_field, glob_tool, messages, result, sent, sent_for,
    };

    #[track_caller]
    fn check(news: impl IntoIterator<Item = NewMessage>, expected: &str) {
        let body = sent(&Anthropic, "claude-opus-5-5", &[], news);
        assert_eq!(from_field(&body, "messages"), format!("{expected}}}"));
    }

    const IDENTITY: &str = r#""messages":[{"role":"user","content":[{"type":"text","text":"[You are agent 0/]\n\nhi"}"#;

    fn hi() -> NewMessage {
        NewMessage::user("hi")
    }

    #[test]
    fn the_fields_of_a_request_are_in_this_order() {
        let body = sent(
            &Anthropic,
            "claude-opus-5-5",
            &[glob_tool()],
            [NewMessage::system("Be brief."), hi()],
        );
        assert_eq!(
            body,
            r#"{"model":"claude-opus-5-5","max_tokens":32000,"stream":true,"cache_control":{"type":"ephemeral"},"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"glob","description":"Find files","input_schema":{"type":"object","properties":{"pattern":{"type":"string"}}}}],"messages":[{"role":"user","content":[{"type":"text","text":"[You are agent 0/]\n\nhi"}]}]}"#
        );
    }

    #[test]
    fn fields_that_may_change_follow_the_messages() {
        let log = messages("0/", 1, [hi()]);
        let tools = [glob_tool()];
        let auto = sent_for(&Anthropic, "m", &tools, ToolUse::Auto, &log);
        let none = sent_for(&Anthropic, "m", &tools, ToolUse::None, &log);
        let common = auto.strip_suffix('}').unwrap();
        assert_eq!(none, format!(r#"{common},"tool_choice":{{"type":"none"}}}}"#));
        let without_tools = sent_for(&Anthropic, "m", &[], ToolUse::None, &log);
        assert!(!without_tools.contains("tool_choice"));
    }

    #[test]
    fn without_a_prompt_the_last_tool_has_the_mark() {
        let body = sent(&Anthropic, "m", &[glob_tool(), glob_tool()], [hi()]);
        let marked = r#"}}},"cache_control":{"type":"ephemeral"}}],"messages":"#;
        assert!(body.contains(marked), "{body}");
        assert_eq!(body.matches("cache_control").count(), 2);
    }

    #[test]
    fn calls_follow_their_text_and_results_their_calls() {
        check(
            [
                hi(),
                answer("I look.", "r1"),
                call("glob", "c1", "{ \"pattern\": \"*\" }", "r1"),
                result("glob", "c1", r#"{"success":true}"#),
                call("bash", "c1", "{", "r1"),
                result("bash", "c1", r#"{"error":"no"}"#),
                NewMessage::user("and?"),
                NewMessage::notification("[mail]", Vec::new()),
            ],
            &[
                IDENTITY,
                r#"]},{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"glob","input":{ "pattern": "*" }},{"type":"tool_use","id":"c1_2","name":"bash","input":{"not_json":"{"}}]},"#,
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"{\"success\":true}"},{"type":"tool_result","tool_use_id":"c1_2","content":"{\"error\":\"no\"}","is_error":true},{"type":"text","text":"and?"},{"type":"text","text":"[mail]"}]}]"#,
            ]
            .concat(),
        );
    }

    #[test]
    fn blank_texts_are_omitted_and_the_others_joined() {
        check(
            [hi(), NewMessage::user(" \n"), answer("\n\n", "r1"), NewMessage::user("so?")],
            &format!(r#"{IDENTITY},{{"type":"text","text":"so?"}}]}}]"#),
        );
        check(
            [hi(), answer("a", "r1"), answer("b", "r2"), NewMessage::user("so?")],
            &format!(
                r#"{IDENTITY}]}},{{"role":"assistant","content":[{{"type":"text","text":"a"}},{{"type":"text","text":"b"}}]}},{{"role":"user","content":[{{"type":"text","text":"so?"}}]}}]"#
            ),
        );
    }

    #[test]
    fn a_request_starts_and_ends_with_the_user() {
        check(
            [call("glob", "c", "{}", "r1")],
            r#""messages":[{"role":"user","content":[{"type":"text","text":"[You are agent 0/]"}]},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"glob","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"{\"success\":false,\"error\":\"Interrupted: the program ended before the call did\"}","is_error":true}]}]"#,
        );
        check(
            [hi(), answer("a", "r1")],
            &format!(
                r#"{IDENTITY}]}},{{"role":"assistant","content":[{{"type":"text","text":"a"}}]}},{{"role":"user","content":[{{"type":"text","text":"Go on."}}]}}]"#
            ),
        );
    }

    #[test]
    fn a_fork_starts_with_its_parents_bytes() {
        let mut log = messages("0/", 1, [hi(), answer("a", "r1")]);
        let parent = sent_for(&Anthropic, "m", &[], ToolUse::Auto, &log);
        log.extend(messages("0/0/", 3, [NewMessage::user("do it")]));
        let fork = sent_for(&Anthropic, "m", &[], ToolUse::Auto, &log);
        let common = parent.strip_suffix(r#"Go on."}]}]}"#).unwrap();
        assert_eq!(
            fork.strip_prefix(common),
            Some(
                r#"[You are agent 0/0/, forked by 0/. What stands above is its conversation, not your task.]\n\ndo it"}]}]}"#
            )
        );
    }

    const THINKING: &str = r#"{"anthropic":{"model":"claude-opus-5-5","blocks":[{"text":0,"calls":0,"block":{"type":"thinking","thinking":"hm","signature":"s1"}},{"text":2,"calls":0,"block":{"type":"redacted_thinking","data":"d"}},{"text":2,"calls":1,"block":{"type":"thinking","thinking":"","signature":"s2"}}]}}"#;

    #[test]
    fn thinking_is_sent_back_in_its_position() {
        let tail = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"{}"},{"type":"tool_result","tool_use_id":"c2","content":"{}"}]}]"#;
        check(
            [
                hi(),
                answer("ok", "r1").with_extras(extras(THINKING)),
                call("glob", "c1", "{}", "r1"),
                result("glob", "c1", "{}"),
                call("glob", "c2", "{}", "r1"),
                result("glob", "c2", "{}"),
            ],
            &format!(
                r#"{IDENTITY}]}},{{"role":"assistant","content":[{{"type":"thinking","thinking":"hm","signature":"s1"}},{{"type":"text","text":"ok"}},{{"type":"redacted_thinking","data":"d"}},{{"type":"tool_use","id":"c1","name":"glob","input":{{}}}},{{"type":"thinking","thinking":"","signature":"s2"}},{{"type":"tool_use","id":"c2","name":"glob","input":{{}}}}]}},{tail}"#
            ),
        );
    }

    #[test]
    fn thinking_that_does_not_fit_is_omitted() {
        let plain = [hi(), answer("ok", "r1"), NewMessage::user("so?")];
        let with = |json: &str| {
            [hi(), answer("ok", "r1").with_extras(extras(json)), NewMessage::user("so?")]
        };
        let model = "claude-opus-5-5";
        let expected = sent(&Anthropic, model, &[], plain);
        let foreign = THINKING.replace(model, "claude-opus-5");
        let misplaced = THINKING.replace(r#""text":2"#, r#""text":3"#);
        let others = r#"{"google":{"parts":[{"call":0,"signature":"s"}]}}"#;
        for json in [&foreign, &misplaced, others, THINKING] {
            // The last block says that a call comes before it, but there is none.
            assert_eq!(sent(&Anthropic, model, &[], with(json)), expected, "{json}");
        }
    }

    #[test]
    fn a_response_with_only_thinking_is_omitted() {
        let thought = r#"{"anthropic":{"blocks":[{"text":0,"calls":0,"block":{"type":"thinking","thinking":"hm","signature":"s1"}}]}}"#;
        check(
            [hi(), answer("", "r1").with_extras(extras(thought)), NewMessage::user("so?")],
            &format!(r#"{IDENTITY},{{"type":"text","text":"so?"}}]}}]"#),
        );
    }

    #[test]
    fn the_maximum_length_is_that_of_the_model() {
        for (model, most) in [
            ("claude-3-haiku-20240307", 4_096),
            ("claude-3-opus-latest", 4_096),
            ("claude-3-5-sonnet-20241022", 8_192),
            ("anthropic/claude-3.5-haiku", 8_192),
            ("claude-3-7-sonnet-20250219", 32_000),
            ("claude-opus-5-5", 32_000),
            ("qwen3-coder", 32_000),
        ] {
            assert_eq!(max_tokens(model), most, "{model}");
        }
    }
}
