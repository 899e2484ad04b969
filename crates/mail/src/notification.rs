//! What an agent is told when mail has come.

use ikigai_conversation::{Body, NewMessage, Notification};
use ikigai_store::Unread;

use crate::preview::preview;

/// The message that wakes an agent: how much is unread, and the beginning of what is new.
pub fn notification(unread: &Unread) -> NewMessage {
    let count = unread.count;
    let messages = if count == 1 { "message" } else { "messages" };
    let mut content = format!("[Notification: You have {count} unread {messages} in your inbox]");
    for mail in &unread.new {
        // As a JSON string, so that no text of a sender can pass for a line of ours.
        let preview = serde_json::Value::from(preview(&mail.body));
        content.push_str(&format!("\n#{} from {}: {preview}", mail.id, mail.from));
    }
    NewMessage { content, body: Body::Notification(Notification { mail: unread.all_new.clone() }) }
}
