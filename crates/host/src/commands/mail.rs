//! `/mail`: mailboxes.

use ikigai_conversation::{AgentId, Correspondent, Time};
use ikigai_mail::{Command, MailError, Owner, preview, relative_time};
use ikigai_protocol::{CommandError, Inbox, MailSummary, Reply};
use ikigai_store::{InboxEntry, InboxPage, Mail, Outcome};

use super::refusal;
use crate::clock::now;
use crate::open::OpenSession;
use crate::settings;

impl OpenSession {
    pub(super) async fn mail(&self, agent: AgentId, line: &str) -> Result<Reply, CommandError> {
        let command = Command::parse(line).map_err(CommandError::Usage)?;
        let budget = Some(settings::budget(&self.environment().settings));
        let (store, session) = (self.slot.store(), self.slot.session());
        let owner = match command.owner {
            Owner::Agent => Correspondent::Agent(agent),
            Owner::User => Correspondent::User,
        };
        let outcome = store.perform(session, owner.clone(), command.step, budget).await;
        mail_reply(&owner, outcome.map_err(refusal)?, now())
    }
}

/// Converts the outcome of a mail command into a reply.
///
/// # Errors
/// When the command was refused.
pub fn mail_reply(
    owner: &Correspondent,
    outcome: Outcome,
    now: Time,
) -> Result<Reply, CommandError> {
    if let Some(error) = MailError::of(&outcome) {
        return Err(CommandError::Refused(error.to_string()));
    }
    Ok(match outcome {
        Outcome::Inbox(InboxPage { mail, more, unread: _ }) => {
            let mail = mail.into_iter().map(summary).collect();
            Reply::Inbox(Inbox { owner: owner.clone(), mail, more })
        }
        Outcome::Read(mail) => Reply::Mail(shown(mail, Some(owner), now)),
        Outcome::Peeked(mail) => Reply::Mail(shown(mail, None, now)),
        Outcome::Sent { to, .. } => Reply::MailSent { to },
        Outcome::MadeUnread(id) => Reply::MailUnread(id),
        Outcome::NoMail(_)
        | Outcome::NoAgent(_)
        | Outcome::Dead(_)
        | Outcome::Full(_)
        | Outcome::Forked(_)
        | Outcome::Killed(_)
        | Outcome::Agents(_)
        | Outcome::WaitEnded(_)
        | Outcome::Abandoned
        | Outcome::Refused(_) => Reply::Done,
    })
}

fn shown(mail: Mail, read_for: Option<&Correspondent>, now: Time) -> ikigai_protocol::Mail {
    let Mail { from, sent_at, body, .. } = mail;
    let age = relative_time(sent_at, now);
    ikigai_protocol::Mail { from, age, body, read_for: read_for.cloned() }
}

fn summary(mail: InboxEntry) -> MailSummary {
    let InboxEntry { id, from, unread, body } = mail;
    MailSummary { id, unread, from, preview: preview(&body) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ikigai_conversation::MailId;
    use ikigai_protocol::render_reply;

    use super::*;

    fn agent(id: &str) -> AgentId {
        AgentId::parse(id).unwrap()
    }

    #[track_caller]
    fn check(outcome: Outcome, expected: Result<&str, &str>) {
        let reply = mail_reply(&agent("0/").into(), outcome, Time::from_millis(180_000));
        let render = |reply| render_reply(&reply, &agent("0/"), Path::new("/")).unwrap();
        let shown = reply.map(render).map_err(|error| error.to_string());
        assert_eq!(shown, expected.map(str::to_owned).map_err(str::to_owned));
    }

    fn listed(id: i64, from: &str, unread: bool, body: &str) -> InboxEntry {
        InboxEntry {
            id: MailId::new(id).unwrap(),
            from: agent(from).into(),
            unread,
            body: body.to_owned(),
        }
    }

    #[test]
    fn an_inbox_is_a_line_per_message() {
        let page = |mail, more| Outcome::Inbox(InboxPage { mail, unread: 1, more });
        check(page(vec![], 0), Ok("Inbox for agent 0/:\n  (no messages)"));
        let mail = vec![listed(5, "1/", true, "one\ntwo"), listed(3, "2/", false, "three")];
        let lines =
            "Inbox for agent 0/:\n  #5 [unread] from 1/ - \"one two\"\n  #3 from 2/ - \"three\"";
        check(page(mail.clone(), 0), Ok(lines));
        check(page(mail, 7), Ok(&format!("{lines}\n  (7 more)")));
    }

    #[test]
    fn a_message_is_shown_whole() {
        let mail = Mail {
            id: MailId::new(5).unwrap(),
            from: agent("1/").into(),
            sent_at: Time::from_millis(60_000),
            body: "one\n\ntwo".to_owned(),
        };
        let text = "From: 1/\nTime: 2 minutes ago\n\none\n\ntwo";
        check(Outcome::Peeked(mail.clone()), Ok(text));
        check(Outcome::Read(mail), Ok(&format!("{text}\n\n(marked read for 0/)")));
    }

    #[test]
    fn other_outcomes_are_one_line() {
        let id = MailId::new(5).unwrap();
        check(Outcome::Sent { id, to: agent("1/").into() }, Ok("Mail sent to agent 1/"));
        check(Outcome::Sent { id, to: Correspondent::User }, Ok("Mail sent to user"));
        check(Outcome::MadeUnread(id), Ok("Message #5 is unread again"));
        check(Outcome::NoMail(5), Err("Message #5 not found"));
        check(Outcome::NoAgent("99/".to_owned()), Err("Agent 99/ not found"));
        check(Outcome::Dead(agent("1/")), Err("Agent 1/ is dead"));
        check(Outcome::Full(agent("1/").into()), Err("Mailbox of agent 1/ is full (1000 unread)"));
    }
}
