//! `mail`: its declaration. The mailboxes it needs are not built yet, so a call is refused.

use crate::declaration::{Declaration, Parameter, ParameterType};
use crate::dispatcher::Tool;
use crate::result::Refusal;

pub(crate) const TOOL: Tool =
    Tool { declaration: &DECLARATION, prepare: |_| Err(Refusal::NotAvailable("Mail")) };

/// Only `action` is required: what else a call needs depends on it, and mail checks that itself.
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
