//! The result of a step, as the model gets it.

use ikigai_store::{InboxPage, Outcome};
use ikigai_tools::ToolResult;
use serde_json::{Value, json};

use crate::error::MailError;
use crate::preview::preview;

/// The bare result of a `mail` call. Without an outcome the database has refused the step.
pub fn render_result(outcome: Option<&Outcome>) -> ToolResult {
    let Some(outcome) = outcome else {
        return MailError::Database.into();
    };
    if let Some(error) = MailError::of(outcome) {
        return error.into();
    }
    match outcome {
        Outcome::Inbox(page) => {
            let line = format!("{} unread, {} shown", page.unread, page.mail.len());
            bare(inbox(page)).summed_up(line)
        }
        Outcome::Read(mail) | Outcome::Peeked(mail) => bare(json!({
            "id": mail.id.value(),
            "from": mail.from.to_string(),
            "timestamp": mail.sent_at.to_seconds_text(),
            "body": mail.body,
        }))
        .summed_up(format!("#{} from {}", mail.id.value(), mail.from)),
        Outcome::MadeUnread(id) => bare(json!({"id": id.value(), "unread": true})),
        Outcome::Sent { id, to } => {
            bare(json!({"sent": true, "to": to.to_string(), "id": id.value()}))
                .summed_up(format!("sent #{} to {to}", id.value()))
        }
        Outcome::NoMail(_)
        | Outcome::NoAgent(_)
        | Outcome::Dead(_)
        | Outcome::Full(_)
        | Outcome::Forked(_)
        | Outcome::Killed(_)
        | Outcome::Agents(_)
        | Outcome::WaitEnded(_)
        | Outcome::Abandoned
        | Outcome::Refused(_) => {
            unreachable!("a failure was told above")
        }
    }
}

fn inbox(page: &InboxPage) -> Value {
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

fn bare(fields: Value) -> ToolResult {
    match fields {
        Value::Object(fields) => ToolResult::bare(fields),
        other => unreachable!("a result is an object, not {other}"),
    }
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::{AgentId, Correspondent, MailId, Time};
    use ikigai_store::{InboxEntry, Mail};

    use super::*;

    #[track_caller]
    fn check(outcome: &Outcome, expected: &str) {
        assert_eq!(render_result(Some(outcome)).to_string(), expected);
    }

    fn id(number: i64) -> MailId {
        MailId::new(number).unwrap()
    }

    fn listed(number: i64, unread: bool, body: &str) -> InboxEntry {
        InboxEntry {
            id: id(number),
            from: AgentId::top_level(1).into(),
            unread,
            body: body.to_owned(),
        }
    }

    #[test]
    fn an_inbox_has_its_messages_and_the_count_of_unread_ones() {
        let page = |mail, unread, more| Outcome::Inbox(InboxPage { mail, unread, more });
        check(&page(vec![], 0, 0), r#"{"messages":[],"unread_count":0}"#);
        let mail = vec![listed(5, true, "a\nb"), listed(4, false, "c")];
        check(
            &page(mail, 2, 1),
            concat!(
                r#"{"messages":[{"id":5,"from":"1/","unread":true,"preview":"a b"},"#,
                r#"{"id":4,"from":"1/","unread":false,"preview":"c"}],"unread_count":2,"more":1}"#
            ),
        );
    }

    #[test]
    fn a_message_has_its_sender_its_time_to_the_second_and_its_whole_body() {
        let mail = Mail {
            id: id(5),
            from: AgentId::parse("0/1/").unwrap().into(),
            sent_at: Time::from_millis(1_705_314_600_999),
            body: "a\n\"b\"".to_owned(),
        };
        let expected =
            r#"{"id":5,"from":"0/1/","timestamp":"2024-01-15T10:30:00Z","body":"a\n\"b\""}"#;
        check(&Outcome::Read(mail), expected);
    }

    #[test]
    fn the_result_of_sending_names_recipient_and_message() {
        let to = AgentId::top_level(1);
        check(&Outcome::Sent { id: id(7), to: to.into() }, r#"{"sent":true,"to":"1/","id":7}"#);
        let to_user = Outcome::Sent { id: id(7), to: Correspondent::User };
        check(&to_user, r#"{"sent":true,"to":"user","id":7}"#);
        check(&Outcome::MadeUnread(id(7)), r#"{"id":7,"unread":true}"#);
    }

    #[test]
    fn a_failure_has_the_single_field_error() {
        let agent = AgentId::top_level(1);
        check(&Outcome::NoMail(-3), r#"{"error":"Message #-3 not found"}"#);
        check(&Outcome::NoAgent("99/".to_owned()), r#"{"error":"Agent 99/ not found"}"#);
        let long = format!(r#"{{"error":"Agent {} not found"}}"#, "ä".repeat(64));
        check(&Outcome::NoAgent("ä".repeat(65)), &long);
        check(&Outcome::Dead(agent.clone()), r#"{"error":"Agent 1/ is dead"}"#);
        check(
            &Outcome::Full(agent.into()),
            r#"{"error":"Mailbox of agent 1/ is full (1000 unread)"}"#,
        );
        check(
            &Outcome::Full(Correspondent::User),
            r#"{"error":"Mailbox of user is full (1000 unread)"}"#,
        );
        assert_eq!(render_result(None).to_string(), r#"{"error":"Database error"}"#);
    }
}
