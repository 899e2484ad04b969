//! Mail as the front ends show it: a card per message.

use ikigai_conversation::AgentId;

/// A message that an agent was notified of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailCard {
    /// Its number.
    pub id: u64,
    /// Who sent it.
    pub from: String,
    /// Who received it.
    pub to: String,
    /// Its text: all of it, or the start of a long one.
    pub body: String,
}

impl MailCard {
    /// The card on one line: `✉ 1/ → 0/   Looked at it.`
    pub fn line(&self) -> String {
        let first = self.body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        format!("{}   {}", self.title(), first.trim())
    }

    /// Who wrote to whom: `✉ 1/ → 0/`
    pub fn title(&self) -> String {
        format!("✉ {} → {}", self.from, self.to)
    }
}

/// The cards of a notification to `to`; `None` if it is not about mail.
///
/// Its text is a count of what is unread, and below it a line for each message, whose body is a JSON
/// string: no sender can imitate such a line.
pub(crate) fn mail_cards(to: &AgentId, notification: &str) -> Option<Vec<MailCard>> {
    let mut lines = notification.lines();
    let is_count = |line: &str| line.starts_with("[Notification: ") && line.ends_with(']');
    lines.next().filter(|line| is_count(line))?;
    let cards: Option<Vec<MailCard>> = lines.map(|line| mail_card(to, line)).collect();
    cards.filter(|cards| !cards.is_empty())
}

fn mail_card(to: &AgentId, line: &str) -> Option<MailCard> {
    let (id, rest) = line.strip_prefix('#')?.split_once(" from ")?;
    let (from, body) = rest.split_once(": ")?;
    let (from, to) = (from.to_owned(), to.to_string());
    Some(MailCard { id: id.parse().ok()?, from, to, body: serde_json::from_str(body).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_of_mail_is_a_card_for_each_message() {
        let text = "[Notification: You have 3 unread messages in your inbox]\n\
                    #9 from 1/: \"\\n Two remarks.\\nOne\"\n#8 from user: \"hi: there\"";
        let cards = mail_cards(&AgentId::top_level(0), text).unwrap();
        let lines: Vec<String> = cards.iter().map(MailCard::line).collect();
        assert_eq!(lines, ["✉ 1/ → 0/   Two remarks.", "✉ user → 0/   hi: there"]);
        assert_eq!((cards[0].id, &*cards[0].body), (9, "\n Two remarks.\nOne"));
    }

    #[test]
    fn any_other_notification_has_no_cards() {
        for text in ["[Notification: file changed]", "[Notification: x]\nmore", "#1 from 1/: \"x\""]
        {
            assert_eq!(mail_cards(&AgentId::top_level(0), text), None, "{text}");
        }
    }
}
