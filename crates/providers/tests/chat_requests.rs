//! Properties of all Chat Completions requests, whatever the log contains.

use ikigai_conversation::{Log, Seen};
use ikigai_providers::{ChatCompletions, Provider, Request, Tool, ToolUse};
use ikigai_testkit::strict;
use proptest::prelude::*;
use serde_json::json;

use crate::logs::{any_damaged_log, any_growth, any_log};

fn send(view: &[Seen<'_>], tool_use: ToolUse) -> String {
    let tools = [Tool {
        name: "glob".to_owned(),
        description: "Find files".to_owned(),
        parameters: json!({"type": "object"}),
    }];
    let request = Request { tools: &tools, tool_use, ..Request::without_tools("m", "", view) };
    String::from_utf8(ChatCompletions.encode(&request)).unwrap()
}

fn check(view: &[Seen<'_>]) -> Result<(), TestCaseError> {
    let body = send(view, ToolUse::Auto);
    let judged = strict::chat::check(&serde_json::from_str(&body).unwrap());
    judged.map_err(|rule| TestCaseError::fail(format!("{rule}: {body}")))
}

/// A request up to the end of the last message from the log.
fn up_to_last_message(body: &str) -> &str {
    let body = &body[..body.rfind(']').unwrap()];
    // Added if the log leaves nothing to answer.
    let made_up = r#"{"role":"user","content":"Go on."}"#;
    body.strip_suffix(made_up).map_or(body, |body| body.trim_end_matches(','))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_log_is_a_request_that_servers_take(log in prop_oneof![any_log(), any_damaged_log()]) {
        check(&Log::new(&log).view())?;
    }

    #[test]
    fn a_request_is_a_prefix_of_the_next_one(
        growth in any_growth(), tool_use in prop::sample::select(vec![ToolUse::Auto, ToolUse::None]),
    ) {
        let before = send(&growth.before(), tool_use);
        let after = growth.with_after(|view| check(view).map(|()| send(view, ToolUse::Auto)))?;
        let before = up_to_last_message(&before);
        prop_assert!(after.starts_with(before), "\nbefore {before}\nafter  {after}");
    }
}
