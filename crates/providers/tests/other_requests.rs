//! Properties of all requests in Anthropic's, Google's and the Responses format, whatever the log
//! contains.

use ikigai_conversation::{Effort, Log, Message, Seen};
use ikigai_providers::{
    Anthropic, ChatCompletions, Google, Provider, Request, Responses, Tool, ToolUse,
};
use ikigai_testkit::strict;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::logs::{Growth, any_damaged_log, any_growth, any_log};

/// A format, and what a test has to know about its bytes.
struct Format {
    provider: &'static dyn Provider,
    model: &'static str,
    judge: fn(&Value) -> Result<(), String>,
    /// What follows the last block from the log.
    end: &'static str,
    /// The message that is added if a log leaves nothing to answer, up to `end`.
    made_up: &'static str,
}

const ANTHROPIC: Format = Format {
    provider: &Anthropic,
    model: "claude-opus-5-5",
    judge: strict::anthropic::check,
    end: "]}]",
    made_up: r#"{"role":"user","content":[{"type":"text","text":"Go on."}"#,
};

const GOOGLE: Format = Format {
    provider: &Google,
    model: "gemini-3.8-flash",
    judge: strict::google::check,
    end: "]}]",
    made_up: r#"{"role":"user","parts":[{"text":"Go on."}"#,
};

const RESPONSES: Format = Format {
    provider: &Responses,
    model: "gpt-5",
    judge: strict::responses::check,
    end: "]",
    made_up: r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}"#,
};

impl Format {
    fn send(&self, view: &[Seen<'_>], tool_use: ToolUse) -> String {
        let tools = [Tool {
            name: "glob".to_owned(),
            description: "Find files".to_owned(),
            parameters: json!({"type": "object", "properties": {"pattern": {"type": "string"}}}),
        }];
        let request =
            Request { tools: &tools, tool_use, ..Request::without_tools(self.model, "", view) };
        String::from_utf8(self.provider.encode(&request)).unwrap()
    }

    fn check(&self, view: &[Seen<'_>]) -> Result<String, TestCaseError> {
        let body = self.send(view, ToolUse::Auto);
        let judged = (self.judge)(&serde_json::from_str(&body).unwrap());
        judged.map_err(|rule| TestCaseError::fail(format!("{rule}: {body}"))).map(|()| body)
    }

    fn check_log(&self, log: &[Message]) -> Result<(), TestCaseError> {
        self.check(&Log::new(log).view()).map(drop)
    }

    fn check_growth(&self, growth: &Growth, tool_use: ToolUse) -> Result<(), TestCaseError> {
        let before = self.send(&growth.before(), tool_use);
        let after = growth.with_after(|view| self.check(view))?;
        let before = self.up_to_last_block(&before);
        prop_assert!(after.starts_with(before), "\nbefore {before}\nafter  {after}");
        Ok(())
    }

    /// A request up to the end of the last block from the log.
    fn up_to_last_block<'a>(&self, body: &'a str) -> &'a str {
        let body = &body[..body.rfind(self.end).unwrap()];
        let Some(body) = body.strip_suffix(self.made_up) else { return body };
        // Before it there is nothing, or an answer, which may get more blocks.
        let body = body.trim_end_matches(',');
        self.end.strip_suffix(']').and_then(|end| body.strip_suffix(end)).unwrap_or(body)
    }
}

fn any_tool_use() -> impl Strategy<Value = ToolUse> {
    select(vec![ToolUse::Auto, ToolUse::None])
}

#[test]
fn a_request_with_an_effort_is_one_that_servers_take() {
    for format in [ANTHROPIC, GOOGLE, RESPONSES] {
        for model in [format.model, "claude-sonnet-4-5", "gemini-2.5-pro"] {
            for effort in Effort::ALL.map(Some) {
                let request = Request {
                    effort,
                    ..Request::without_tools(model, "", &[Seen::System("p"), Seen::User("hi")])
                };
                let body = serde_json::from_slice(&format.provider.encode(&request)).unwrap();
                assert_eq!((format.judge)(&body), Ok(()), "{body}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn anthropic_takes_every_log(log in prop_oneof![any_log(), any_damaged_log()]) {
        ANTHROPIC.check_log(&log)?;
    }

    #[test]
    fn google_takes_every_log(log in prop_oneof![any_log(), any_damaged_log()]) {
        GOOGLE.check_log(&log)?;
    }

    #[test]
    fn responses_takes_every_log(log in prop_oneof![any_log(), any_damaged_log()]) {
        RESPONSES.check_log(&log)?;
    }

    #[test]
    fn an_anthropic_request_is_a_prefix_of_the_next_one(
        growth in any_growth(), tool_use in any_tool_use(),
    ) {
        ANTHROPIC.check_growth(&growth, tool_use)?;
    }

    #[test]
    fn a_google_request_is_a_prefix_of_the_next_one(
        growth in any_growth(), tool_use in any_tool_use(),
    ) {
        GOOGLE.check_growth(&growth, tool_use)?;
    }

    #[test]
    fn a_responses_request_is_a_prefix_of_the_next_one(
        growth in any_growth(), tool_use in any_tool_use(),
    ) {
        RESPONSES.check_growth(&growth, tool_use)?;
    }
}

/// A limit of the response is a field that each API knows by another name.
#[test]
fn the_length_of_a_response_is_limited_where_that_is_asked_for() {
    let view = [Seen::User("hi")];
    let chat = |model| (&ChatCompletions as &dyn Provider, model);
    for ((provider, model), field, judge) in [
        ((ANTHROPIC.provider, ANTHROPIC.model), "/max_tokens", ANTHROPIC.judge),
        ((GOOGLE.provider, GOOGLE.model), "/generationConfig/maxOutputTokens", GOOGLE.judge),
        ((RESPONSES.provider, RESPONSES.model), "/max_output_tokens", RESPONSES.judge),
        (chat("llama"), "/max_tokens", strict::chat::check as fn(&Value) -> Result<(), String>),
        (chat("gpt-5-mini"), "/max_completion_tokens", strict::chat::check),
    ] {
        let body = |max_output_tokens| {
            let request = Request { max_output_tokens, ..Request::without_tools(model, "", &view) };
            let body: Value = serde_json::from_slice(&provider.encode(&request)).unwrap();
            judge(&body).unwrap();
            body
        };
        assert_eq!(body(Some(400)).pointer(field), Some(&json!(400)), "{field}");
        assert_ne!(body(None).pointer(field), Some(&json!(400)), "{field}");
    }
}
