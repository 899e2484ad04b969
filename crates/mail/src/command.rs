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
        let step = match (word, rest) {
            ("" | "inbox", "") => Ok(Step::Inbox(whole_inbox())),
            ("read" | "unread" | "send", "") => return Err(missing(word)),
            ("read", id) => parse_id_text(id).map(Step::Read),
            ("unread", id) => parse_id_text(id).map(Step::Unread),
            ("send", rest) => match split_word(rest) {
                (_, "") => return Err(missing(word)),
                (to, text) => body::checked(without_quotes(text)).map(|body| send(to, body)),
            },
            _ => return Err(USAGE.to_owned()),
        };
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

/// The list that a person gets.
fn whole_inbox() -> InboxFilter {
    InboxFilter { unread: None, from: None, limit: DEFAULT_LIMIT, offset: 0 }
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
