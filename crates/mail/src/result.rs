//! What a model is told of a step's outcome.

use ikigai_store::Outcome;
use ikigai_tools::ToolResult;
use serde_json::{Value, json};

use crate::error::MailError;
use crate::preview::preview;

/// The bare result of a `mail` call; without an outcome the database has refused the step.
pub fn render_result(outcome: Option<&Outcome>) -> ToolResult {
    let Some(outcome) = outcome else {
        return MailError::Database.into();
    };
    if let Some(error) = MailError::of(outcome) {
        return error.into();
    }
    let fields = match outcome {
        Outcome::Inbox(page) => {
            let messages: Vec<Value> = page
                .mail
                .iter()
                .map(|mail| {
                    json!({
                        "id": mail.id.value(),
                        "from": mail.from.to_string(),
                        "unread": mail.unread,
                        "preview": preview(&mail.body),
                    })
                })
                .collect();
            match page.more {
                0 => json!({"messages": messages, "unread_count": page.unread}),
                more => json!({"messages": messages, "unread_count": page.unread, "more": more}),
            }
        }
        Outcome::Read(mail) => json!({
            "id": mail.id.value(),
            "from": mail.from.to_string(),
            "timestamp": mail.sent_at.to_seconds_text(),
            "body": mail.body,
        }),
        Outcome::MadeUnread(id) => json!({"id": id.value(), "unread": true}),
        Outcome::Sent { id, to } => {
            json!({"sent": true, "to": to.to_string(), "id": id.value()})
        }
        Outcome::NoMail(_) | Outcome::NoAgent(_) | Outcome::Dead(_) | Outcome::Full(_) => {
            unreachable!("a failure was told above")
        }
    };
    match fields {
        Value::Object(fields) => ToolResult::bare(fields),
        other => unreachable!("a result is an object, not {other}"),
    }
}
