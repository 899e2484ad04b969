//! `/mail`: the same mailbox, typed and shown as a person likes it.

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

/// A typed command, ready for the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What is to be done.
    pub step: Step,
}

impl Command {
    /// Reads what stands behind `/mail`.
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
    /// The text to show, as with all of these: `Error: …`.
    pub fn read(id: &str) -> Result<Command, String> {
        Command::checked(parse_id_text(id).map(Step::Read))
    }

    /// Makes a message unread.
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

    /// What the person sees.
    ///
    /// # Errors
    /// The text to show when nothing was done: `Error: …`.
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
            Outcome::NoMail(_) | Outcome::NoAgent(_) | Outcome::Dead(_) | Outcome::Full(_) => {
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

/// Takes one pair of quotes off.
fn without_quotes(text: &str) -> &str {
    let text = text.trim();
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(text)
}
