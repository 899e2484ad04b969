//! Messages and logs for tests.

use ikigai_conversation::{
    AgentId, Approval, Assistant, Body, CallSummary, Command, CommandId, Decision, DiffLine,
    EffectKind, Extras, FileDiff, Fork, Hunk, Interrupted, Kill, MailId, Mark, Message, MessageId,
    NewMessage, Notification, ResponseId, ResultState, ResultSummary, Rewind, Summary, Time,
    ToolCall, ToolCallId, ToolResult, Trim, Usage,
};
use proptest::option;
use proptest::prelude::*;

pub(super) fn id(value: i64) -> MessageId {
    MessageId::new(value).unwrap()
}

pub(super) fn agent(text: &str) -> AgentId {
    AgentId::parse(text).unwrap()
}

pub(super) fn call(name: &str, call_id: &str, response: &str) -> NewMessage {
    NewMessage::tool_call(ToolCallId::new(call_id), name, "{}", ResponseId::new(response))
}

pub(super) fn result(name: &str, call_id: &str, output: &str) -> NewMessage {
    match call(name, call_id, "").body {
        Body::ToolCall(call) => NewMessage::tool_result(&call, output),
        other => unreachable!("{other:?}"),
    }
}

/// A summary that keeps nothing.
pub(super) fn summary(text: &str, up_to: MessageId) -> NewMessage {
    keeping(text, up_to, &[])
}

/// A summary that keeps messages of the user.
pub(super) fn keeping(text: &str, up_to: MessageId, kept: &[MessageId]) -> NewMessage {
    let (kept, obligations) = (kept.to_vec(), String::new());
    let data = Summary { up_to, kept, cut: None, obligations, before: 0, after: 0, elapsed_ms: 0 };
    NewMessage::summary(text, data)
}

pub(super) fn answer(text: &str, response: &str) -> NewMessage {
    NewMessage::assistant(text, ResponseId::new(response))
}

/// Messages of one agent, numbered from `first`.
pub(super) fn numbered(
    who: &str,
    first: i64,
    news: impl IntoIterator<Item = NewMessage>,
) -> Vec<Message> {
    let number = |(new, value): (NewMessage, i64)| {
        new.into_message(id(value), agent(who), Time::from_millis(value))
    };
    news.into_iter().zip(first..).map(number).collect()
}

fn any_text() -> impl Strategy<Value = String> {
    let hostile = "\0\n\r\t\u{1b}\u{7f}\u{85}\u{2028}\u{feff}\u{fffd}\\\"/{}é👩‍👩‍👧‍👦\u{202e}";
    let hostile: Vec<char> = hostile.chars().collect();
    let character = prop_oneof![any::<char>(), prop::sample::select(hostile)];
    prop::collection::vec(character, 0..12).prop_map(|text| text.into_iter().collect())
}

fn any_id() -> impl Strategy<Value = MessageId> {
    (1..=i64::MAX).prop_map(id)
}

fn any_agent() -> impl Strategy<Value = AgentId> {
    prop::collection::vec(any::<u32>(), 1..5).prop_map(|numbers| {
        let path: String = numbers.iter().map(|number| format!("{number}/")).collect();
        agent(&path)
    })
}

fn any_response() -> impl Strategy<Value = ResponseId> {
    any_text().prop_map(ResponseId::new)
}

fn any_call_id() -> impl Strategy<Value = ToolCallId> {
    any_text().prop_map(ToolCallId::new)
}

fn any_extras() -> impl Strategy<Value = Option<Extras>> {
    let string = |text: String| serde_json::Value::from(text).to_string();
    option::of((any_text(), any_text(), any::<f64>()).prop_map(move |(key, value, number)| {
        let json = format!("{{ {}: [ {},\n {number:e} ] }}", string(key), string(value));
        Extras::parse(&json).unwrap_or_else(|_| Extras::parse("null").unwrap())
    }))
}

pub(super) fn any_body() -> impl Strategy<Value = Body> {
    prop_oneof![any_visible_body(), any_usage_body(), any_hidden_body()]
}

fn any_visible_body() -> impl Strategy<Value = Body> {
    let thinking = || option::of((any_text(), any::<u64>()));
    let assistant =
        (any_response(), any_extras(), thinking()).prop_map(|(response, extras, thinking)| {
            let (thinking, thinking_ms) = thinking.unzip();
            Body::Assistant(Assistant { response, extras, thinking, thinking_ms })
        });
    let shown = option::of((any_text(), any_text()));
    let call = (any_call_id(), any_text(), any_text(), any_response(), any_extras(), shown);
    let call = (call, thinking()).prop_map(
        |((tool_call_id, name, arguments, response, extras, shown), thinking)| {
            let (thinking, thinking_ms) = thinking.unzip();
            let effects = shown.as_ref().map(|_| vec![EffectKind::Read, EffectKind::Unknown]);
            let shown = shown.map(|(verb, subject)| CallSummary::new(&verb, &subject));
            Body::ToolCall(ToolCall {
                tool_call_id,
                name,
                arguments,
                response,
                extras,
                thinking,
                thinking_ms,
                effects,
                shown,
            })
        },
    );
    let flags = (any::<bool>(), any::<bool>());
    let result = (any_call_id(), any_text(), any_text(), flags, option::of(any_shown())).prop_map(
        |(tool_call_id, name, output, (success, ends_turn), shown)| {
            let result = ToolResult { tool_call_id, name, output, success, ends_turn, shown };
            Body::ToolResult(result)
        },
    );
    let mail = prop::collection::vec((1..=i64::MAX).prop_map(|n| MailId::new(n).unwrap()), 0..4);
    let command = (1..=i64::MAX).prop_map(|n| CommandId::new(n).unwrap());
    let commands = prop::collection::vec(command, 0..4);
    prop_oneof![
        Just(Body::System),
        Just(Body::User),
        assistant,
        call,
        result,
        (mail, commands)
            .prop_map(|(mail, commands)| { Body::Notification(Notification { mail, commands }) }),
        any_summary(),
        (any_agent(), option::of(any_id()))
            .prop_map(|(parent, up_to)| Body::Fork(Fork { parent, up_to })),
    ]
}

fn any_summary() -> impl Strategy<Value = Body> {
    let kept = prop::collection::vec(any_id(), 0..4);
    let tokens = (any::<u64>(), any::<u64>(), option::of(any::<u64>()));
    (any_id(), kept, any_text(), tokens).prop_map(
        |(up_to, kept, obligations, (before, after, cut))| {
            Body::Summary(Summary { up_to, kept, cut, obligations, before, after, elapsed_ms: 7 })
        },
    )
}

fn any_shown() -> impl Strategy<Value = ResultSummary> {
    let states = vec![ResultState::Succeeded, ResultState::Failed, ResultState::Refused];
    let state = prop::sample::select(states);
    let line = (any::<u8>(), any_text()).prop_map(|(sign, text)| match sign % 3 {
        0 => DiffLine::Context(text),
        1 => DiffLine::Added(text),
        _ => DiffLine::Removed(text),
    });
    let hunk = (any::<u64>(), any::<u64>(), prop::collection::vec(line, 0..4))
        .prop_map(|(old, new, lines)| Hunk { old, new, lines });
    let diff = (any_text(), any::<u64>(), prop::collection::vec(hunk, 0..3)).prop_map(
        |(path, added, hunks)| FileDiff { path, added, removed: added, hunks, omitted: added },
    );
    (any_text(), state, option::of(diff), option::of(any_text()))
        .prop_map(|(outcome, state, diff, rule)| ResultSummary { outcome, state, diff, rule })
}

fn any_usage_body() -> impl Strategy<Value = Body> {
    let some = || option::of(any::<u64>());
    let tokens = (any::<u64>(), any::<u64>(), some(), some(), some());
    let rest = (some(), option::of(any::<u32>()));
    (tokens, rest, any_text(), any_response()).prop_map(|(tokens, rest, model, response)| {
        let (input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, _) = tokens;
        let (reasoning_tokens, (cost, unreported)) = (tokens.4, rest);
        Body::Usage(Usage {
            input_tokens,
            output_tokens,
            cache_read_tokens,
            cache_write_tokens,
            reasoning_tokens,
            cost,
            unreported,
            model,
            response,
        })
    })
}

fn any_hidden_body() -> impl Strategy<Value = Body> {
    let decision = prop::sample::select(vec![Decision::Once, Decision::Always, Decision::No]);
    prop_oneof![
        option::of(any_text()).prop_map(|label| Body::Mark(Mark { label })),
        (any_id(), option::of(any_text()))
            .prop_map(|(to, label)| Body::Rewind(Rewind { to, label })),
        Just(Body::Clear),
        any_id().prop_map(|up_to| Body::Trim(Trim { up_to })),
        prop::collection::vec(any_agent(), 0..4).prop_map(|killed| Body::Kill(Kill { killed })),
        option::of(any_response()).prop_map(|response| Body::Interrupted(Interrupted { response })),
        any_text().prop_map(|command| Body::Command(Command { command })),
        (any_call_id(), decision, option::of(any_text())).prop_map(
            |(tool_call_id, decision, reason)| {
                Body::Approval(Approval { tool_call_id, decision, reason })
            }
        ),
    ]
}

pub(super) fn any_message() -> impl Strategy<Value = Message> {
    (any_id(), any_agent(), any_text(), any_body(), any::<i64>()).prop_map(
        |(id, agent, content, body, millis)| {
            NewMessage { content, body }.into_message(id, agent, Time::from_millis(millis))
        },
    )
}
