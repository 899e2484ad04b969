//! `mail`: its declaration. The mailboxes it needs are not built yet, so a call is refused.

use crate::declaration::{Declaration, Kind, Parameter};
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
            kind: Kind::Choice(&["inbox", "read", "send"]),
            required: true,
        },
        optional("to", Kind::Text, "Recipient agent ID (required for send)"),
        optional("body", Kind::Text, "Message body (required for send)"),
        optional("id", Kind::Integer, "Message ID (required for read)"),
        optional("unread", Kind::Boolean, "Inbox: only unread"),
        optional("from", Kind::Text, "Inbox: only from it"),
        optional("limit", Kind::Integer, "Inbox: 1-200, default 50"),
        optional("offset", Kind::Integer, "Inbox: skip"),
    ],
};

const fn optional(name: &'static str, kind: Kind, description: &'static str) -> Parameter {
    Parameter { name, description, kind, required: false }
}
