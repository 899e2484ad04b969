//! `/mail`: mailboxes, as a user types it.

use ikigai_store::{InboxFilter, Step};

use crate::address::send;
use crate::body;
use crate::error::MailError;
use crate::tool::{DEFAULT_LIMIT, parse_id_text};

/// One line per form.
pub const USAGE: &str = "\
Usage: /mail [inbox]
       /mail read ID
       /mail peek ID
       /mail send AGENT TEXT
       /mail unread ID
       /mail user [ID]";

/// A parsed command, ready for the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub step: Step,
    /// In whose mailbox, or in whose name.
    pub owner: Owner,
}

/// Whose mailbox a command uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The agent that the user looks at, or that the command line selects.
    Agent,
    /// The user.
    User,
}

impl Command {
    /// Parses the arguments of `/mail`.
    ///
    /// # Errors
    /// The text to show: what is wrong, or the usage.
    pub fn parse(line: &str) -> Result<Command, String> {
        let (word, rest) = split_word(line);
        match (word, rest) {
            ("" | "inbox", "") => Ok(Command::inbox()),
            ("read" | "peek" | "unread" | "send", "") => Err(missing(word)),
            ("read", id) => Command::read(id),
            ("peek", id) => Command::peek(id),
            ("unread", id) => Command::unread(id),
            ("send", rest) => match split_word(rest) {
                (_, "") => Err(missing(word)),
                (to, text) => Command::send(to, without_quotes(text)),
            },
            ("user", "") => Ok(Command::inbox().of(Owner::User)),
            ("user", id) => Command::read(id).map(|command| command.of(Owner::User)),
            _ => Err(USAGE.to_owned()),
        }
    }

    /// Lists the mailbox.
    pub fn inbox() -> Command {
        let filter = InboxFilter { unread: None, from: None, limit: DEFAULT_LIMIT, offset: 0 };
        Command { step: Step::Inbox(filter), owner: Owner::Agent }
    }

    /// The same in the mailbox of `owner`.
    #[must_use]
    pub fn of(self, owner: Owner) -> Command {
        Command { owner, ..self }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// The text to show, as with all of these.
    pub fn read(id: &str) -> Result<Command, String> {
        Command::checked(parse_id_text(id).map(Step::Read))
    }

    /// Looks at a message, which marks nothing.
    #[allow(clippy::missing_errors_doc, reason = "as with read")]
    pub fn peek(id: &str) -> Result<Command, String> {
        Command::checked(parse_id_text(id).map(Step::Peek))
    }

    /// Marks a message unread.
    #[allow(clippy::missing_errors_doc, reason = "as with read")]
    pub fn unread(id: &str) -> Result<Command, String> {
        Command::checked(parse_id_text(id).map(Step::Unread))
    }

    /// Sends `text`, from the user.
    #[allow(clippy::missing_errors_doc, reason = "as with read")]
    pub fn send(to: &str, text: &str) -> Result<Command, String> {
        let sent = Command::checked(body::checked(text).map(|body| send(to, body)));
        sent.map(|command| command.of(Owner::User))
    }

    fn checked(step: Result<Step, MailError>) -> Result<Command, String> {
        let command = |step| Command { step, owner: Owner::Agent };
        step.map(command).map_err(|error| error.to_string())
    }
}

fn missing(word: &str) -> String {
    let form = USAGE.lines().find(|line| line.contains(&format!("/mail {word} ")));
    format!("Missing argument. Use {}", form.unwrap_or(USAGE).trim())
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
    use ikigai_conversation::AgentId;
    use ikigai_store::{AgentAddress, MailAddress};

    use super::*;

    fn agent(id: &str) -> AgentId {
        AgentId::parse(id).unwrap()
    }

    fn sent(to: &str, body: &str) -> Step {
        let address = MailAddress::Agent(AgentAddress::Id(agent(to)));
        Step::Send { to: address, given: to.to_owned(), body: body.to_owned() }
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
        check("peek 5", Ok(Step::Peek(5)));
        check("unread 5", Ok(Step::Unread(5)));
        check("send 1/ text to the  end", Ok(sent("1/", "text to the  end")));
        check("send 0/1 x", Ok(sent("0/1/", "x")));
        check("send   1/   first\nsecond  ", Ok(sent("1/", "first\nsecond")));
    }

    /// Regression: mail that the user sent was from the agent in view.
    #[test]
    fn mail_is_sent_by_the_user_and_the_user_has_a_mailbox() {
        let owner = |line| Command::parse(line).map(|command| command.owner);
        for line in ["send 1/ x", "send user x", "user", "user 5"] {
            assert_eq!(owner(line), Ok(Owner::User), "{line}");
        }
        for line in ["", "read 5", "peek 5", "unread 5"] {
            assert_eq!(owner(line), Ok(Owner::Agent), "{line}");
        }
        check("user 5", Ok(Step::Read(5)));
        check("user x", Err("Invalid message ID"));
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
        check("send 1/ \"\"", Err("Message body cannot be empty"));
        check("send 1/ ' '", Err("Message body cannot be empty"));
    }

    #[test]
    fn a_missing_argument_names_the_usage() {
        check("read", Err("Missing argument. Use /mail read ID"));
        check("peek", Err("Missing argument. Use /mail peek ID"));
        check("unread ", Err("Missing argument. Use /mail unread ID"));
        for line in ["send", "send 1/", "send 1/  "] {
            check(line, Err("Missing argument. Use /mail send AGENT TEXT"));
        }
    }

    #[test]
    fn anything_else_shows_the_usage_with_one_line_per_form() {
        for line in ["help", "Inbox", "inbox 5", "delete 5", "5", "reads 5", "--help"] {
            check(line, Err(USAGE));
        }
        let forms = ["[inbox]", "read ID", "peek ID", "send AGENT TEXT", "unread ID", "user [ID]"];
        let lines: Vec<&str> =
            USAGE.lines().map(|line| line.trim_start_matches("Usage:").trim()).collect();
        assert_eq!(lines, forms.map(|form| format!("/mail {form}")));
    }

    #[test]
    fn errors_use_the_texts_of_the_tool() {
        for id in ["x", "0", "-5", "5 6", "#5", "1.5"] {
            check(&format!("read {id}"), Err("Invalid message ID"));
            check(&format!("unread {id}"), Err("Invalid message ID"));
        }
        check("read 9223372036854775808", Err("Message #9223372036854775808 not found"));
        let long = format!("send 1/ {}", "x".repeat(16_385));
        check(
            &long,
            Err(
                "Message body too large (16385 bytes, at most 16384): put it in a file and send its path",
            ),
        );
    }
}
