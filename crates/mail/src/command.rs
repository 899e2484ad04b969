//! The `/mail` command: the same mailbox for the user.

use ikigai_conversation::{AgentId, Time};
use ikigai_store::{InboxFilter, Outcome, Step};

use crate::address::send;
use crate::body;
use crate::error::MailError;
use crate::preview::preview;
use crate::relative_time::relative_time;
use crate::tool::{DEFAULT_LIMIT, parse_id_text};

/// One line per form.
pub const USAGE: &str = "\
Usage: /mail [inbox]
       /mail read ID
       /mail send AGENT TEXT
       /mail unread ID";

/// A parsed command, ready for the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub step: Step,
}

impl Command {
    /// Parses the arguments of `/mail`.
    ///
    /// # Errors
    /// The text to show: the usage, or `Error: …`.
    pub fn parse(line: &str) -> Result<Command, String> {
        let (word, rest) = split_word(line);
        match (word, rest) {
            ("" | "inbox", "") => Ok(Command::inbox()),
            ("read" | "unread" | "send", "") => Err(missing(word)),
            ("read", id) => Command::read(id),
            ("unread", id) => Command::unread(id),
            ("send", rest) => match split_word(rest) {
                (_, "") => Err(missing(word)),
                (to, text) => Command::send(to, without_quotes(text)),
            },
            _ => Err(USAGE.to_owned()),
        }
    }

    /// Lists the mailbox.
    pub fn inbox() -> Command {
        let filter = InboxFilter { unread: None, from: None, limit: DEFAULT_LIMIT, offset: 0 };
        Command { step: Step::Inbox(filter) }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// The text to show, as for all of these: `Error: …`.
    pub fn read(id: &str) -> Result<Command, String> {
        Command::checked(parse_id_text(id).map(Step::Read))
    }

    /// Marks a message unread.
    #[allow(clippy::missing_errors_doc, reason = "as with read")]
    pub fn unread(id: &str) -> Result<Command, String> {
        Command::checked(parse_id_text(id).map(Step::Unread))
    }

    /// Sends `text` to an agent.
    #[allow(clippy::missing_errors_doc, reason = "as with read")]
    pub fn send(to: &str, text: &str) -> Result<Command, String> {
        Command::checked(body::checked(text).map(|body| send(to, body)))
    }

    fn checked(step: Result<Step, MailError>) -> Result<Command, String> {
        step.map(|step| Command { step }).map_err(|error| format!("Error: {error}"))
    }

    /// The text for the user.
    ///
    /// # Errors
    /// The text to show if nothing was done: `Error: …`.
    pub fn render(agent: &AgentId, outcome: &Outcome, now: Time) -> Result<String, String> {
        if let Some(error) = MailError::of(outcome) {
            return Err(format!("Error: {error}"));
        }
        Ok(match outcome {
            Outcome::Inbox(page) => {
                let mut text = format!("Inbox for agent {agent}:");
                for mail in &page.mail {
                    let unread = if mail.unread { "[unread] " } else { "" };
                    let (id, from, preview) = (mail.id, &mail.from, preview(&mail.body));
                    text.push_str(&format!("\n  #{id} {unread}from {from} - \"{preview}\""));
                }
                match (page.mail.is_empty(), page.more) {
                    (true, _) => text.push_str("\n  (no messages)"),
                    (false, 0) => {}
                    (false, more) => text.push_str(&format!("\n  ({more} more)")),
                }
                text
            }
            Outcome::Read(mail) => {
                let time = relative_time(mail.sent_at, now);
                format!("From: {}\nTime: {time}\n\n{}", mail.from, mail.body)
            }
            Outcome::Sent { to, .. } => format!("Mail sent to agent {to}"),
            Outcome::MadeUnread(id) => format!("Message #{id} is unread again"),
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
        })
    }
}

fn missing(word: &str) -> String {
    let form = USAGE.lines().find(|line| line.contains(&format!("/mail {word} ")));
    format!("Error: missing argument, use {}", form.unwrap_or(USAGE).trim())
}

fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim_start()),
        None => (text, ""),
    }
}

/// Removes one pair of quotes.
fn without_quotes(text: &str) -> &str {
    let text = text.trim();
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::MailId;
    use ikigai_store::{AgentAddress, InboxEntry, InboxPage, Mail};

    use super::*;

    fn agent(id: &str) -> AgentId {
        AgentId::parse(id).unwrap()
    }

    fn sent(to: &str, body: &str) -> Step {
        Step::Send { to: AgentAddress::Id(agent(to)), given: to.to_owned(), body: body.to_owned() }
    }

    #[track_caller]
    fn check(line: &str, expected: Result<Step, &str>) {
        let parsed = Command::parse(line).map(|command| command.step);
        assert_eq!(parsed, expected.map_err(str::to_owned), "/mail {line}");
    }

    #[test]
    fn every_form_is_parsed() {
        let all = InboxFilter { unread: None, from: None, limit: 50, offset: 0 };
        for line in ["", " ", "inbox", "  inbox  "] {
            check(line, Ok(Step::Inbox(all.clone())));
        }
        check("read 5", Ok(Step::Read(5)));
        check("  read\t 5 ", Ok(Step::Read(5)));
        check("unread 5", Ok(Step::Unread(5)));
        check("send 1/ text to the  end", Ok(sent("1/", "text to the  end")));
        check("send 0/1 x", Ok(sent("0/1/", "x")));
        check("send   1/   first\nsecond  ", Ok(sent("1/", "first\nsecond")));
    }

    #[test]
    fn one_pair_of_quotes_is_removed() {
        check("send 1/ \"a b\"", Ok(sent("1/", "a b")));
        check("send 1/ 'a b'", Ok(sent("1/", "a b")));
        check("send 1/ \"\"a\"\"", Ok(sent("1/", "\"a\"")));
        check("send 1/ \"a", Ok(sent("1/", "\"a")));
        check("send 1/ \"", Ok(sent("1/", "\"")));
        check("send 1/ \"a'", Ok(sent("1/", "\"a'")));
        check("send 1/ say \"a\"", Ok(sent("1/", "say \"a\"")));
        check("send 1/ \"\"", Err("Error: Message body cannot be empty"));
        check("send 1/ ' '", Err("Error: Message body cannot be empty"));
    }

    #[test]
    fn a_missing_argument_shows_the_usage() {
        check("read", Err("Error: missing argument, use /mail read ID"));
        check("unread ", Err("Error: missing argument, use /mail unread ID"));
        for line in ["send", "send 1/", "send 1/  "] {
            check(line, Err("Error: missing argument, use /mail send AGENT TEXT"));
        }
    }

    #[test]
    fn anything_else_shows_the_usage_with_one_line_per_form() {
        for line in ["help", "Inbox", "inbox 5", "delete 5", "5", "reads 5", "--help"] {
            check(line, Err(USAGE));
        }
        let forms = ["[inbox]", "read ID", "send AGENT TEXT", "unread ID"];
        let lines: Vec<&str> =
            USAGE.lines().map(|line| line.trim_start_matches("Usage:").trim()).collect();
        assert_eq!(lines, forms.map(|form| format!("/mail {form}")));
    }

    #[test]
    fn errors_use_the_texts_of_the_tool() {
        for id in ["x", "0", "-5", "5 6", "#5", "1.5"] {
            check(&format!("read {id}"), Err("Error: Invalid message ID"));
            check(&format!("unread {id}"), Err("Error: Invalid message ID"));
        }
        check("read 9223372036854775808", Err("Error: Message #9223372036854775808 not found"));
        let long = format!("send 1/ {}", "x".repeat(16_385));
        check(
            &long,
            Err(
                "Error: Message body too large (16385 bytes, at most 16384): put it in a file and send its path",
            ),
        );
    }

    #[track_caller]
    fn check_shown(outcome: &Outcome, expected: Result<&str, &str>) {
        let shown = Command::render(&agent("0/"), outcome, Time::from_millis(180_000));
        assert_eq!(shown, expected.map(str::to_owned).map_err(str::to_owned));
    }

    fn listed(id: i64, from: &str, unread: bool, body: &str) -> InboxEntry {
        InboxEntry {
            id: MailId::new(id).unwrap(),
            from: agent(from),
            unread,
            body: body.to_owned(),
        }
    }

    #[test]
    fn an_inbox_is_a_line_per_message() {
        let page = |mail, more| Outcome::Inbox(InboxPage { mail, unread: 1, more });
        check_shown(&page(vec![], 0), Ok("Inbox for agent 0/:\n  (no messages)"));
        let mail = vec![listed(5, "1/", true, "one\ntwo"), listed(3, "2/", false, "three")];
        let lines =
            "Inbox for agent 0/:\n  #5 [unread] from 1/ - \"one two\"\n  #3 from 2/ - \"three\"";
        check_shown(&page(mail.clone(), 0), Ok(lines));
        check_shown(&page(mail, 7), Ok(&format!("{lines}\n  (7 more)")));
    }

    #[test]
    fn a_whole_message_is_shown() {
        let mail = Mail {
            id: MailId::new(5).unwrap(),
            from: agent("1/"),
            sent_at: Time::from_millis(60_000),
            body: "one\n\ntwo".to_owned(),
        };
        check_shown(&Outcome::Read(mail), Ok("From: 1/\nTime: 2 minutes ago\n\none\n\ntwo"));
    }

    #[test]
    fn other_outcomes_are_one_line() {
        let id = MailId::new(5).unwrap();
        check_shown(&Outcome::Sent { id, to: agent("1/") }, Ok("Mail sent to agent 1/"));
        check_shown(&Outcome::MadeUnread(id), Ok("Message #5 is unread again"));
        check_shown(&Outcome::NoMail(5), Err("Error: Message #5 not found"));
        check_shown(&Outcome::NoAgent("99/".to_owned()), Err("Error: Agent 99/ not found"));
        check_shown(&Outcome::Dead(agent("1/")), Err("Error: Agent 1/ is dead"));
        check_shown(
            &Outcome::Full(agent("1/")),
            Err("Error: Mailbox of agent 1/ is full (1000 unread)"),
        );
    }
}
