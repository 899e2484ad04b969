//! Mail: the steps that read or change a mailbox, with their marks.

use ikigai_conversation::{AgentId, Correspondent, MailId, SessionId, Time};

use crate::agents::{AgentRow, State, find_agent};
use crate::causes;
use crate::error::StoreError;
use crate::reports;
use crate::sessions;
use crate::sql::params;
use crate::steps::{Actor, MailAddress, Mark, Outcome, PerformedStep, resolve};
use crate::store::Store;
use crate::unit::Unit;

/// The maximum number of unread messages in a mailbox, so that an agent that never reads stops
/// getting mail. Only a rewind can exceed it.
pub const MAILBOX_LIMIT: u32 = 1_000;
/// The maximum length of a body in bytes after trimming. A mailbox is read by a model: longer texts
/// belong in a file.
pub const BODY_LIMIT: usize = 16_384;
/// The limit for counting messages after a page.
const MORE_LIMIT: u32 = 1_000;

/// The part of a mailbox to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxFilter {
    /// Only unread messages, or only read ones.
    pub unread: Option<bool>,
    /// Only from this sender.
    pub from: Option<Correspondent>,
    /// At most this many.
    pub limit: u32,
    /// After skipping this many.
    pub offset: u64,
}

/// A page of a mailbox: unread messages first, then the latest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxPage {
    /// The messages of the page.
    pub mail: Vec<InboxEntry>,
    /// How many unread messages the whole mailbox has.
    pub unread: u32,
    /// How many more messages match the filter, counted up to 1,000.
    pub more: u32,
}

/// A message in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxEntry {
    /// Its id.
    pub id: MailId,
    /// Who sent it.
    pub from: Correspondent,
    /// Whether it is unread.
    pub unread: bool,
    /// Its text. A list shows the start of it.
    pub body: String,
}

/// A whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// Its id.
    pub id: MailId,
    /// Who sent it.
    pub from: Correspondent,
    /// When it was sent.
    pub sent_at: Time,
    /// Its text.
    pub body: String,
}

/// A mailbox as a unit finds it.
pub(crate) struct Mailbox {
    /// The key of its row in the table of agents; 0 for the user before there is any mail.
    pub(crate) key: i64,
    pub(crate) session: i64,
    pub(crate) owner: Correspondent,
    pub(crate) is_dead: bool,
    pub(crate) unread: u32,
    /// The cause that its owner works for.
    pub(crate) cause: Option<i64>,
}

impl Mailbox {
    /// The mailbox of an agent.
    pub(crate) fn of(agent: &AgentRow) -> Mailbox {
        let AgentRow { key, session, id, is_dead, unread, cause } = agent;
        let (key, session, is_dead, unread, cause) = (*key, *session, *is_dead, *unread, *cause);
        Mailbox { key, session, owner: id.clone().into(), is_dead, unread, cause }
    }

    /// The mailbox of the user. Its row in the table of agents is made with the first mail that is
    /// from the user or to the user: it has no number, no log and no lease, and does not count as
    /// an agent.
    pub(crate) fn of_user(unit: &Unit<'_>, session: i64) -> Result<Mailbox, StoreError> {
        let sql = "SELECT key, unread FROM agents WHERE session = ?1 AND id = ?2";
        let found = unit.row(sql, params![session, Correspondent::USER], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        let (key, unread) = found.unwrap_or((0, 0));
        let (owner, is_dead, cause) = (Correspondent::User, false, None);
        Ok(Mailbox { key, session, owner, is_dead, unread, cause })
    }

    /// The outcome of mail from or to a dead agent.
    fn dead(&self) -> Option<Outcome> {
        self.owner.agent().filter(|_| self.is_dead).cloned().map(Outcome::Dead)
    }

    /// The key of its row, which mail refers to.
    fn row(&self, unit: &Unit<'_>) -> Result<i64, StoreError> {
        if self.key != 0 {
            return Ok(self.key);
        }
        // The same mailbox may be sender and recipient.
        let made = Mailbox::of_user(unit, self.session)?.key;
        if made != 0 {
            return Ok(made);
        }
        let sql = "INSERT INTO agents (session, id, state, machine, directory, created_at)
            VALUES (?1, ?2, ?3, '', '', ?4) RETURNING key";
        let now = unit.now().as_millis();
        unit.insert(sql, params![self.session, Correspondent::USER, State::USER, now])
    }
}

impl Store {
    /// How much unread mail the user has.
    pub async fn unread_of_user(&self, session: SessionId) -> Result<u32, StoreError> {
        self.read(move |unit| Ok(Mailbox::of_user(unit, sessions::key_of(unit, &session)?)?.unread))
            .await
    }
}

pub(crate) fn inbox(
    unit: &Unit<'_>,
    mailbox: &Mailbox,
    filter: &InboxFilter,
) -> Result<PerformedStep, StoreError> {
    let page = page(unit, mailbox, filter)?;
    clear_pending(unit, mailbox)?;
    let marks: Vec<_> = page.mail.iter().map(|listed| (Mark::Told, listed.id.value())).collect();
    Ok(PerformedStep::new(Outcome::Inbox(page)).marking(marks))
}

fn page(unit: &Unit<'_>, mailbox: &Mailbox, filter: &InboxFilter) -> Result<InboxPage, StoreError> {
    let sender = match &filter.from {
        Some(Correspondent::User) => Some(Mailbox::of_user(unit, mailbox.session)?.key),
        Some(Correspondent::Agent(from)) => {
            find_agent(unit, mailbox.session, from)?.map(|sender| sender.key).or(Some(0))
        }
        None => None,
    };
    // Without a filter this is one scan along the mailbox's index.
    let wanted = match (filter.unread.is_some(), sender.is_some()) {
        (false, false) => "?2 IS NULL AND ?3 IS NULL",
        (true, false) => "m.unread = ?2 AND ?3 IS NULL",
        (false, true) => "?2 IS NULL AND m.sender = ?3",
        (true, true) => "m.unread = ?2 AND m.sender = ?3",
    };
    let found = format!("FROM mail m WHERE m.recipient = ?1 AND {wanted}");
    let sql = format!(
        "SELECT m.id, s.id, m.unread, m.body FROM
            (SELECT m.id {found} ORDER BY m.unread DESC, m.id DESC LIMIT ?4 OFFSET ?5) p
            JOIN mail m ON m.id = p.id JOIN agents s ON s.key = m.sender
            ORDER BY m.unread DESC, m.id DESC"
    );
    let offset = i64::try_from(filter.offset).unwrap_or(i64::MAX);
    let params = params![mailbox.key, filter.unread, sender, filter.limit, offset];
    let mail = unit.rows(&sql, params, |row| {
        let (id, from, unread, body) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(InboxEntry { id, from, unread, body })
    })?;
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 {found} ORDER BY m.unread DESC, m.id DESC
        LIMIT ?4 OFFSET ?5) behind"
    );
    let behind = offset.saturating_add(i64::from(filter.limit));
    let params = params![mailbox.key, filter.unread, sender, MORE_LIMIT, behind];
    let more = unit.row(&sql, params, |row| row.get(0))?.unwrap_or(0);
    Ok(InboxPage { mail, unread: mailbox.unread, more })
}

pub(crate) fn read(
    unit: &Unit<'_>,
    mailbox: &Mailbox,
    id: i64,
    actor: Actor,
) -> Result<PerformedStep, StoreError> {
    let Some(mail) = find(unit, mailbox, id)? else {
        return Ok(PerformedStep::new(Outcome::NoMail(id)));
    };
    unit.run("UPDATE mail SET unread = 0 WHERE id = ?1 AND unread = 1", params![id])?;
    if actor != Actor::Model {
        // Even if the model has read it: when that is rewound, the message stays read by the user.
        let sql = "UPDATE mail SET read_by_person = 1 WHERE id = ?1 AND read_by_person = 0";
        unit.run(sql, params![id])?;
    }
    clear_pending(unit, mailbox)?;
    Ok(PerformedStep::new(Outcome::Read(mail)).marking([(Mark::Told, id), (Mark::Read, id)]))
}

pub(crate) fn peek(
    unit: &Unit<'_>,
    mailbox: &Mailbox,
    id: i64,
) -> Result<PerformedStep, StoreError> {
    let found = find(unit, mailbox, id)?;
    Ok(PerformedStep::new(found.map_or(Outcome::NoMail(id), Outcome::Peeked)))
}

/// A message in a mailbox.
fn find(unit: &Unit<'_>, mailbox: &Mailbox, id: i64) -> Result<Option<Mail>, StoreError> {
    let sql = "SELECT m.id, s.id, m.sent_at, m.body FROM mail m JOIN agents s ON s.key = m.sender
        WHERE m.id = ?1 AND m.recipient = ?2";
    unit.row(sql, params![id, mailbox.key], |row| {
        let (mail, from) = (row.get(0)?, row.get(1)?);
        Ok(Mail { id: mail, from, sent_at: row.get(2)?, body: row.get(3)? })
    })
}

pub(crate) fn make_unread(
    unit: &Unit<'_>,
    mailbox: &Mailbox,
    id: i64,
) -> Result<PerformedStep, StoreError> {
    let sql = "SELECT unread FROM mail WHERE id = ?1 AND recipient = ?2";
    let is_unread = unit.row(sql, params![id, mailbox.key], |row| row.get(0))?;
    if is_unread == Some(false) && mailbox.unread >= MAILBOX_LIMIT {
        return Ok(PerformedStep::new(Outcome::Full(mailbox.owner.clone())));
    }
    let sql = "UPDATE mail SET unread = 1, told_by = NULL, read_by = NULL, read_by_person = 0
        WHERE id = ?1 AND recipient = ?2";
    Ok(PerformedStep::new(match unit.execute(sql, params![id, mailbox.key])? {
        0 => Outcome::NoMail(id),
        _ => Outcome::MadeUnread(mail_id(id)?),
    }))
}

/// Sends mail. `postgres/posting.rs` repeats the conditions and effects for letters.
pub(crate) fn send(
    unit: &Unit<'_>,
    sender: &Mailbox,
    to: &MailAddress,
    given: String,
    body: &str,
    actor: Actor,
) -> Result<PerformedStep, StoreError> {
    // Commands that a killed agent left running cannot send mail on its behalf.
    if let Some(dead) = sender.dead() {
        return Ok(PerformedStep::new(dead));
    }
    let Some(recipient) = find_recipient(unit, sender, to)? else {
        return Ok(PerformedStep::new(Outcome::NoAgent(given)));
    };
    if let Some(dead) = recipient.dead() {
        return Ok(PerformedStep::new(dead));
    }
    if recipient.unread >= MAILBOX_LIMIT {
        return Ok(PerformedStep::new(Outcome::Full(recipient.owner)));
    }
    let cause = causes::of_mail(unit, sender, &recipient.owner, body, actor)?;
    let (to_row, from_row) = (recipient.row(unit)?, sender.row(unit)?);
    let sql = "INSERT INTO mail (recipient, sender, body, sent_at, cause)
        VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id";
    let sent_at = unit.now().as_millis();
    let id = unit.insert(sql, params![to_row, from_row, body, sent_at, cause])?;
    unit.touch(sender.session);
    let parent = sender.owner.agent().and_then(AgentId::parent);
    match actor {
        Actor::User(budget) => sessions::refill_wakes(unit, sender.session, budget)?,
        // Any mail to the parent counts as the report.
        Actor::Model | Actor::Command
            if parent.is_some() && parent.as_ref() == recipient.owner.agent() =>
        {
            reports::cancel(unit, sender.key)?;
        }
        Actor::Model | Actor::Command => {}
    }
    let outcome = Outcome::Sent { id: mail_id(id)?, to: recipient.owner };
    Ok(PerformedStep::new(outcome).marking([(Mark::Sent, id)]))
}

/// Finds the mailbox of the recipient. From here to the commit an agent neither goes idle nor dies.
fn find_recipient(
    unit: &Unit<'_>,
    sender: &Mailbox,
    to: &MailAddress,
) -> Result<Option<Mailbox>, StoreError> {
    match to {
        MailAddress::User => Mailbox::of_user(unit, sender.session).map(Some),
        MailAddress::Agent(address) => {
            let found = resolve(unit, sender.session, sender.owner.agent(), address)?;
            Ok(found.as_ref().map(Mailbox::of))
        }
    }
}

/// The owner has looked at the mailbox.
fn clear_pending(unit: &Unit<'_>, mailbox: &Mailbox) -> Result<(), StoreError> {
    let sql =
        "UPDATE agents SET notification_pending = 0 WHERE key = ?1 AND notification_pending = 1";
    unit.run(sql, params![mailbox.key])
}

pub(crate) fn mail_id(id: i64) -> Result<MailId, StoreError> {
    MailId::new(id).ok_or_else(|| StoreError::internal("the id of a mail is not positive"))
}
