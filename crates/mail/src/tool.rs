//! The `mail` tool: its declaration, and its own parser with the texts of the contract.

use std::sync::Arc;

use ikigai_conversation::EffectKind;
use ikigai_store::{InboxFilter, Step};
use ikigai_tools::{
    Arguments, BuiltIn, Call, Declaration, Parameter, ParameterType, Tool, ToolResult,
};
use serde_json::Value;

use crate::address::{parse_correspondent, send};
use crate::body;
use crate::error::MailError;

/// The tool, for a dispatcher whose steps the store performs.
pub fn tool() -> Arc<dyn Tool<Step>> {
    let description = "Send and receive messages to/from other agents";
    let declaration = Declaration::new("mail", description, PARAMETERS);
    BuiltIn::new(declaration, &[EffectKind::Database], prepare).shared()
}

/// Only `action` is required: what else a call needs depends on it, and is checked here.
const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "action",
        description: "Operation to perform",
        value: ParameterType::Choice(&["inbox", "read", "send"]),
        required: true,
    },
    optional("to", ParameterType::Text, "Recipient agent ID (required for send)"),
    optional("body", ParameterType::Text, "Message body (required for send)"),
    optional("id", ParameterType::Integer, "Message ID (required for read)"),
    optional("unread", ParameterType::Boolean, "Inbox: only unread"),
    optional("from", ParameterType::Text, "Inbox: only from it"),
    optional("limit", ParameterType::Integer, "Inbox: 1-200, default 50"),
    optional("offset", ParameterType::Integer, "Inbox: skip"),
    optional("end_turn", ParameterType::Boolean, "Send: end turn; mail wakes you"),
];

const fn optional(
    name: &'static str,
    value: ParameterType,
    description: &'static str,
) -> Parameter {
    Parameter { name, description, value, required: false }
}

fn prepare(arguments: &Arguments) -> Result<Call<Step>, ToolResult> {
    let step = parse(arguments)?;
    let is_send = matches!(step, Step::Send { .. });
    let ends_turn = is_send && optional_value(arguments, "end_turn", Value::as_bool)? == Some(true);
    let subject = subject(&step, arguments);
    let call = Call::step(step).shown_as("Mail", &subject);
    Ok(if ends_turn { call.ending_turn() } else { call })
}

/// What a call is about: the inbox, a message by its number, or to whom and how a message begins.
fn subject(step: &Step, arguments: &Arguments) -> String {
    let text = |name| arguments.value(name).and_then(Value::as_str).unwrap_or_default();
    match step {
        Step::Read(id) | Step::Peek(id) | Step::Unread(id) => format!("#{id}"),
        Step::Send { .. } => {
            let first_line = text("body").trim().lines().next().unwrap_or_default();
            format!("to {}: {first_line}", text("to").trim())
        }
        Step::Inbox(_)
        | Step::Fork(_)
        | Step::Kill(_)
        | Step::Agents
        | Step::Wait(_)
        | Step::EndWait(_)
        | Step::AbandonWait => "inbox".to_owned(),
    }
}

fn parse(arguments: &Arguments) -> Result<Step, MailError> {
    match arguments.value("action") {
        None => Err(MailError::Missing("action")),
        Some(Value::String(action)) => match action.as_str() {
            "inbox" => parse_filter(arguments).map(Step::Inbox),
            "read" => parse_id(arguments).map(Step::Read),
            "send" => parse_send(arguments),
            _ => Err(MailError::UnknownAction(action.clone())),
        },
        Some(_) => Err(MailError::ActionType),
    }
}

/// The default number of messages in an inbox.
pub(crate) const DEFAULT_LIMIT: u32 = 50;
const LARGEST_LIMIT: u64 = 200;

fn parse_filter(arguments: &Arguments) -> Result<InboxFilter, MailError> {
    let unread = optional_value(arguments, "unread", Value::as_bool)?;
    let from =
        optional_value(arguments, "from", |value| value.as_str().and_then(parse_correspondent))?;
    let limit = optional_value(arguments, "limit", |value| {
        whole(value).filter(|limit| (1..=LARGEST_LIMIT).contains(limit))
    })?;
    let offset = optional_value(arguments, "offset", whole)?;
    Ok(InboxFilter {
        unread,
        from,
        limit: limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(DEFAULT_LIMIT),
        offset: offset.unwrap_or(0),
    })
}

fn optional_value<T>(
    arguments: &Arguments,
    name: &'static str,
    parse: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, MailError> {
    let value = arguments.value(name).filter(|value| !value.is_null());
    value.map(|value| parse(value).ok_or(MailError::InvalidParameter(name))).transpose()
}

fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn parse_id(arguments: &Arguments) -> Result<i64, MailError> {
    match arguments.value("id") {
        None => Err(MailError::Missing("id")),
        Some(Value::String(text)) => parse_id_text(text),
        Some(Value::Number(number)) => {
            let id = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
            storable(id.ok_or(MailError::IdType)?)
        }
        Some(_) => Err(MailError::IdType),
    }
}

/// A positive number.
pub(crate) fn parse_id_text(text: &str) -> Result<i64, MailError> {
    match text.trim().parse() {
        Ok(id) if id > 0 => storable(id),
        _ => Err(MailError::InvalidId),
    }
}

/// A number that no database can have as an id does not match any message.
fn storable(id: i128) -> Result<i64, MailError> {
    i64::try_from(id).map_err(|_| MailError::NoMail(id))
}

fn parse_send(arguments: &Arguments) -> Result<Step, MailError> {
    let text = |name| arguments.value(name).and_then(Value::as_str).ok_or(MailError::Missing(name));
    let to = text("to")?;
    let body = body::checked(text("body")?)?;
    Ok(send(to, body))
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::{AgentId, Correspondent};
    use ikigai_store::{AgentAddress, MailAddress};
    use ikigai_tools::{Dispatcher, Work};

    use super::*;

    /// The step that a call prepares, or its error.
    #[track_caller]
    fn check(arguments: &str, expected: Result<Step, &str>) {
        let call = Dispatcher::new(vec![tool()]).dispatch("mail", arguments.as_bytes());
        let step = match call.as_ref().map(Call::work) {
            Ok(Work::Step(step)) => Ok(step.clone()),
            Ok(Work::Executor(_)) => panic!("mail is a step"),
            Err(refusal) => Err(refusal.to_string()),
        };
        let expected = expected.map_err(|text| ToolResult::error(text).to_string());
        assert_eq!(step, expected, "{arguments}");
    }

    #[track_caller]
    fn check_read(id: &str, expected: Result<i64, &str>) {
        check(&format!(r#"{{"action":"read","id":{id}}}"#), expected.map(Step::Read));
    }

    #[track_caller]
    fn check_filter(filter: &str, expected: Result<InboxFilter, &str>) {
        check(&format!(r#"{{"action":"inbox",{filter}}}"#), expected.map(Step::Inbox));
    }

    const ALL: InboxFilter = InboxFilter { unread: None, from: None, limit: 50, offset: 0 };

    #[test]
    fn arguments_are_a_json_object() {
        for arguments in ["not valid json", "[]", "null", r#"{"action":"inbox""#] {
            check(arguments, Err("Invalid JSON arguments"));
        }
    }

    #[test]
    fn an_action_is_required_and_is_one_of_three() {
        check("", Err("Missing required parameter: action"));
        check("{}", Err("Missing required parameter: action"));
        check(r#"{"id":5,"to":"1/","body":"x"}"#, Err("Missing required parameter: action"));
        for action in ["123", "null", "true", "[]", "{}", r#"["inbox"]"#] {
            check(&format!(r#"{{"action":{action}}}"#), Err("Invalid action type"));
        }
        for action in ["delete", "", "Inbox", " inbox", "unread"] {
            let arguments = format!(r#"{{"action":"{action}"}}"#);
            check(&arguments, Err(&format!("Unknown action: {action}")));
        }
        let long = format!(r#"{{"action":"{}"}}"#, "ä".repeat(65));
        check(&long, Err(&format!("Unknown action: {}", "ä".repeat(64))));
        check(r#"{"action":"inbox"}"#, Ok(Step::Inbox(ALL)));
    }

    #[test]
    fn filters_can_be_combined() {
        check_filter(r#""unread":true"#, Ok(InboxFilter { unread: Some(true), ..ALL }));
        check_filter(r#""unread":false"#, Ok(InboxFilter { unread: Some(false), ..ALL }));
        let child = AgentId::parse("0/1/").ok().map(Correspondent::Agent);
        for from in ["0/1/", "0/1", " 0/1/ "] {
            let filter = InboxFilter { from: child.clone(), ..ALL };
            check_filter(&format!(r#""from":"{from}""#), Ok(filter));
        }
        let user = InboxFilter { from: Some(Correspondent::User), ..ALL };
        check_filter(r#""from":"user""#, Ok(user));
        for (limit, expected) in [("1", 1), ("200", 200), (r#""7""#, 7)] {
            let filter = InboxFilter { limit: expected, ..ALL };
            check_filter(&format!(r#""limit":{limit}"#), Ok(filter));
        }
        for (offset, expected) in
            [("0", 0), (r#""3""#, 3), ("18446744073709551615", 18_446_744_073_709_551_615)]
        {
            let filter = InboxFilter { offset: expected, ..ALL };
            check_filter(&format!(r#""offset":{offset}"#), Ok(filter));
        }
        let together =
            r#""unread":true,"from":"0/1/","limit":2,"offset":3,"id":"no","to":7,"body":{}"#;
        let filter = InboxFilter { unread: Some(true), from: child, limit: 2, offset: 3 };
        check_filter(together, Ok(filter));
        let nothing = r#""unread":null,"from":null,"limit":null,"offset":null"#;
        check_filter(nothing, Ok(ALL));
    }

    #[test]
    fn the_first_wrong_filter_is_named() {
        let names = ["unread", "from", "limit", "offset"];
        let wrong: [&[&str]; 4] = [
            &[r#""true""#, "1", "[]"],
            &["1", r#""reviewer""#, r#""parent""#, r#""""#, "{}"],
            &["0", "201", "-1", "1.5", r#""x""#, r#""0""#, "true"],
            &["-1", "0.5", r#""x""#, r#""-1""#, "[]"],
        ];
        for (name, values) in names.iter().zip(wrong) {
            for value in values {
                let error = format!("Invalid parameter: {name}");
                check_filter(&format!(r#""{name}":{value}"#), Err(&error));
            }
        }
        for first in 0..names.len() {
            let filters: Vec<String> =
                names[first..].iter().rev().map(|name| format!(r#""{name}":{{}}"#)).collect();
            let error = format!("Invalid parameter: {}", names[first]);
            check_filter(&filters.join(","), Err(&error));
        }
    }

    #[test]
    fn filters_are_only_checked_for_an_inbox() {
        check(r#"{"action":"read","id":5,"limit":0,"unread":7}"#, Ok(Step::Read(5)));
    }

    #[test]
    fn an_id_is_an_integer_or_a_numeric_string() {
        check_read("5", Ok(5));
        check_read("0", Ok(0));
        check_read("-5", Ok(-5));
        check_read("9223372036854775807", Ok(i64::MAX));
        for text in ["5", " 5 ", "005"] {
            check_read(&format!(r#""{text}""#), Ok(5));
        }
    }

    #[test]
    fn an_invalid_id_is_refused() {
        check(r#"{"action":"read"}"#, Err("Missing required parameter: id"));
        for text in ["", "x", "0", "-5", "5x", "1.5", "#5", "5 6", "0x5"] {
            check_read(&format!(r#""{text}""#), Err("Invalid message ID"));
        }
        for id in ["null", "1.5", "5.0", "true", "[5]", "{}", "1e3"] {
            check_read(id, Err("Invalid id type"));
        }
    }

    /// It was reported as the largest number that the database can hold.
    #[test]
    fn an_id_that_is_too_large_is_reported_as_given() {
        for id in ["9223372036854775808", "18446744073709551615"] {
            let error = format!("Message #{id} not found");
            check_read(id, Err(&error));
            check_read(&format!(r#""{id}""#), Err(&error));
        }
    }

    #[test]
    fn mail_is_sent_trimmed_to_its_recipient() {
        let step = |to, given: &str, body: &str| Step::Send {
            to: MailAddress::Agent(to),
            given: given.to_owned(),
            body: body.to_owned(),
        };
        let one = AgentAddress::Id(AgentId::top_level(1));
        check(
            r#"{"action":"send","to":"1/","body":" a\nb\n"}"#,
            Ok(step(one.clone(), "1/", "a\nb")),
        );
        check(
            r#"{"action":"send","to":"1","body":"x","from":"9/","timestamp":"1970","id":1}"#,
            Ok(step(one, "1/", "x")),
        );
        let parent = step(AgentAddress::Parent, "parent", "x");
        check(r#"{"action":"send","to":"parent","body":"x"}"#, Ok(parent));
        let name = step(AgentAddress::Name("reviewer".to_owned()), "reviewer", "x");
        check(r#"{"action":"send","to":"reviewer","body":"x"}"#, Ok(name));
        let user =
            Step::Send { to: MailAddress::User, given: "user".to_owned(), body: "x".to_owned() };
        check(r#"{"action":"send","to":"user","body":"x"}"#, Ok(user));
    }

    #[track_caller]
    fn check_end(action: &str, end_turn: &str, expected: Result<bool, &str>) {
        let arguments = format!(r#"{{{action},"end_turn":{end_turn}}}"#);
        let call = Dispatcher::new(vec![tool()]).dispatch("mail", arguments.as_bytes());
        let ends = call.map(|call| call.ends_turn()).map_err(|refusal| refusal.to_string());
        let expected = expected.map_err(|text| ToolResult::error(text).to_string());
        assert_eq!(ends, expected, "{arguments}");
    }

    #[test]
    fn only_sending_may_end_the_turn() {
        let send = r#""action":"send","to":"1/","body":"x""#;
        check_end(send, "true", Ok(true));
        for end_turn in ["false", "null"] {
            check_end(send, end_turn, Ok(false));
        }
        for end_turn in [r#""true""#, "1", "[]"] {
            check_end(send, end_turn, Err("Invalid parameter: end_turn"));
        }
        check_end(
            r#""action":"send","to":"1/","body":" ""#,
            "1",
            Err("Message body cannot be empty"),
        );
        for end_turn in ["true", "7"] {
            check_end(r#""action":"read","id":5"#, end_turn, Ok(false));
            check_end(r#""action":"inbox""#, end_turn, Ok(false));
        }
    }

    #[test]
    fn recipient_body_and_its_length_are_checked_in_this_order() {
        for to in ["", r#""to":null,"#, r#""to":1,"#, r#""to":["1/"],"#] {
            let arguments = format!(r#"{{"action":"send",{to}"body":""}}"#);
            check(&arguments, Err("Missing required parameter: to"));
        }
        for body in ["", r#","body":null"#, r#","body":7"#, r#","body":{}"#] {
            let arguments = format!(r#"{{"action":"send","to":"nobody"{body}}}"#);
            check(&arguments, Err("Missing required parameter: body"));
        }
        for body in ["", " ", r"\n\t\r\n", r"\u00a0\u2003"] {
            let arguments = format!(r#"{{"action":"send","to":"nobody","body":"{body}"}}"#);
            check(&arguments, Err("Message body cannot be empty"));
        }
        let arguments =
            format!(r#"{{"action":"send","to":"nobody","body":"{}"}}"#, "x".repeat(16_385));
        let error = "Message body too large (16385 bytes, at most 16384): put it in a file and send its path";
        check(&arguments, Err(error));
    }
}
