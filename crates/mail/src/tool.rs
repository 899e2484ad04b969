//! The `mail` tool: its declaration, and its own parser with the contract's texts.

use ikigai_store::{InboxFilter, Step};
use ikigai_tools::{Arguments, Declaration, Parameter, ParameterType, StepTool, ToolResult};
use serde_json::Value;

use crate::address::{parse_agent, send};
use crate::body;
use crate::error::MailError;

/// The tool, for a dispatcher whose steps the store performs.
pub const TOOL: StepTool<Step> = StepTool { declaration: &DECLARATION, prepare };

/// Only `action` is required: what else a call needs depends on it, and is checked here.
const DECLARATION: Declaration = Declaration {
    name: "mail",
    description: "Send and receive messages to/from other agents",
    parameters: &[
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
    ],
};

const fn optional(
    name: &'static str,
    value: ParameterType,
    description: &'static str,
) -> Parameter {
    Parameter { name, description, value, required: false }
}

fn prepare(arguments: &Arguments) -> Result<Step, ToolResult> {
    Ok(parse(arguments)?)
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

/// What an inbox shows unless it is asked for more.
pub(crate) const DEFAULT_LIMIT: u32 = 50;
const LARGEST_LIMIT: u64 = 200;

fn parse_filter(arguments: &Arguments) -> Result<InboxFilter, MailError> {
    let unread = filter(arguments, "unread", Value::as_bool)?;
    let from = filter(arguments, "from", |value| value.as_str().and_then(parse_agent))?;
    let limit = filter(arguments, "limit", |value| {
        whole(value).filter(|limit| (1..=LARGEST_LIMIT).contains(limit))
    })?;
    let offset = filter(arguments, "offset", whole)?;
    Ok(InboxFilter {
        unread,
        from,
        limit: limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(DEFAULT_LIMIT),
        offset: offset.unwrap_or(0),
    })
}

fn filter<T>(
    arguments: &Arguments,
    name: &'static str,
    parse: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, MailError> {
    let value = arguments.value(name).filter(|value| !value.is_null());
    value.map(|value| parse(value).ok_or(MailError::InvalidFilter(name))).transpose()
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

/// What no database can give as an id is the id of no message.
fn storable(id: i128) -> Result<i64, MailError> {
    i64::try_from(id).map_err(|_| MailError::NoMail(id))
}

fn parse_send(arguments: &Arguments) -> Result<Step, MailError> {
    let text = |name| arguments.value(name).and_then(Value::as_str).ok_or(MailError::Missing(name));
    let to = text("to")?;
    let body = body::checked(text("body")?)?;
    Ok(send(to, body))
}
