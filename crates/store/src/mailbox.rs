//! Mail: the steps that read or change a mailbox, with their marks.

use ikigai_conversation::{AgentId, MailId, Time};

use crate::agents::{AgentRow, find_agent};
use crate::causes;
use crate::error::StoreError;
use crate::reports;
use crate::sessions;
use crate::sql::params;
use crate::steps::{Actor, AgentAddress, Mark, Outcome, PerformedStep, resolve};
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
    /// Only from this agent.
    pub from: Option<AgentId>,
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
    pub from: AgentId,
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
    pub from: AgentId,
    /// When it was sent.
    pub sent_at: Time,
    /// Its text.
    pub body: String,
}

pub(crate) fn inbox(
    unit: &Unit<'_>,
    agent: &AgentRow,
    filter: &InboxFilter,
) -> Result<PerformedStep, StoreError> {
    let page = page(unit, agent, filter)?;
    clear_pending(unit, agent)?;
    let marks: Vec<_> = page.mail.iter().map(|listed| (Mark::Told, listed.id.value())).collect();
    Ok(PerformedStep::new(Outcome::Inbox(page)).marking(marks))
}

fn page(unit: &Unit<'_>, agent: &AgentRow, filter: &InboxFilter) -> Result<InboxPage, StoreError> {
    let sender = match &filter.from {
        Some(from) => find_agent(unit, agent.session, from)?.map(|sender| sender.key).or(Some(0)),
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
    let params = params![agent.key, filter.unread, sender, filter.limit, offset];
    let mail = unit.rows(&sql, params, |row| {
        let (id, from, unread, body) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(InboxEntry { id, from, unread, body })
    })?;
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 {found} ORDER BY m.unread DESC, m.id DESC
        LIMIT ?4 OFFSET ?5) behind"
    );
    let behind = offset.saturating_add(i64::from(filter.limit));
    let params = params![agent.key, filter.unread, sender, MORE_LIMIT, behind];
    let more = unit.row(&sql, params, |row| row.get(0))?.unwrap_or(0);
    Ok(InboxPage { mail, unread: agent.unread, more })
}

pub(crate) fn read(
    unit: &Unit<'_>,
    agent: &AgentRow,
    id: i64,
    actor: Actor,
) -> Result<PerformedStep, StoreError> {
    let Some(mail) = find(unit, agent, id)? else {
        return Ok(PerformedStep::new(Outcome::NoMail(id)));
    };
    unit.run("UPDATE mail SET unread = 0 WHERE id = ?1 AND unread = 1", params![id])?;
    if actor != Actor::Model {
        // Even if the model has read it: when that is rewound, the message stays read by the user.
        let sql = "UPDATE mail SET read_by_person = 1 WHERE id = ?1 AND read_by_person = 0";
        unit.run(sql, params![id])?;
    }
    clear_pending(unit, agent)?;
    Ok(PerformedStep::new(Outcome::Read(mail)).marking([(Mark::Told, id), (Mark::Read, id)]))
}

pub(crate) fn peek(
    unit: &Unit<'_>,
    agent: &AgentRow,
    id: i64,
) -> Result<PerformedStep, StoreError> {
    let found = find(unit, agent, id)?;
    Ok(PerformedStep::new(found.map_or(Outcome::NoMail(id), Outcome::Peeked)))
}

/// A message in the agent's mailbox.
fn find(unit: &Unit<'_>, agent: &AgentRow, id: i64) -> Result<Option<Mail>, StoreError> {
    let sql = "SELECT m.id, s.id, m.sent_at, m.body FROM mail m JOIN agents s ON s.key = m.sender
        WHERE m.id = ?1 AND m.recipient = ?2";
    unit.row(sql, params![id, agent.key], |row| {
        let (mail, from) = (row.get(0)?, row.get(1)?);
        Ok(Mail { id: mail, from, sent_at: row.get(2)?, body: row.get(3)? })
    })
}

pub(crate) fn make_unread(
    unit: &Unit<'_>,
    agent: &AgentRow,
    id: i64,
) -> Result<PerformedStep, StoreError> {
    let sql = "SELECT unread FROM mail WHERE id = ?1 AND recipient = ?2";
    let is_unread = unit.row(sql, params![id, agent.key], |row| row.get(0))?;
    if is_unread == Some(false) && agent.unread >= MAILBOX_LIMIT {
        return Ok(PerformedStep::new(Outcome::Full(agent.id.clone())));
    }
    let sql = "UPDATE mail SET unread = 1, told_by = NULL, read_by = NULL, read_by_person = 0
        WHERE id = ?1 AND recipient = ?2";
    Ok(PerformedStep::new(match unit.execute(sql, params![id, agent.key])? {
        0 => Outcome::NoMail(id),
        _ => Outcome::MadeUnread(mail_id(id)?),
    }))
}

/// Sends mail. `postgres/posting.rs` repeats the conditions and effects for letters.
pub(crate) fn send(
    unit: &Unit<'_>,
    sender: &AgentRow,
    to: &AgentAddress,
    given: String,
    body: &str,
    actor: Actor,
) -> Result<PerformedStep, StoreError> {
    // Commands that a killed agent left running cannot send mail on its behalf.
    if sender.is_dead {
        return Ok(PerformedStep::new(Outcome::Dead(sender.id.clone())));
    }
    let Some(recipient) = resolve(unit, sender, to)? else {
        return Ok(PerformedStep::new(Outcome::NoAgent(given)));
    };
    if recipient.is_dead {
        return Ok(PerformedStep::new(Outcome::Dead(recipient.id)));
    }
    if recipient.unread >= MAILBOX_LIMIT {
        return Ok(PerformedStep::new(Outcome::Full(recipient.id)));
    }
    let cause = causes::of_mail(unit, sender, &recipient.id, body, actor)?;
    let sql = "INSERT INTO mail (recipient, sender, body, sent_at, cause)
        VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id";
    let sent_at = unit.now().as_millis();
    let id = unit.insert(sql, params![recipient.key, sender.key, body, sent_at, cause])?;
    unit.touch(sender.session);
    match actor {
        Actor::User(budget) => sessions::refill_wakes(unit, sender.session, budget)?,
        // Any mail to the parent counts as the report.
        Actor::Model | Actor::Command if sender.id.parent().as_ref() == Some(&recipient.id) => {
            reports::cancel(unit, sender.key)?;
        }
        Actor::Model | Actor::Command => {}
    }
    let outcome = Outcome::Sent { id: mail_id(id)?, to: recipient.id };
    Ok(PerformedStep::new(outcome).marking([(Mark::Sent, id)]))
}

/// The agent has looked at its mailbox.
fn clear_pending(unit: &Unit<'_>, agent: &AgentRow) -> Result<(), StoreError> {
    let sql =
        "UPDATE agents SET notification_pending = 0 WHERE key = ?1 AND notification_pending = 1";
    unit.run(sql, params![agent.key])
}

pub(crate) fn mail_id(id: i64) -> Result<MailId, StoreError> {
    MailId::new(id).ok_or_else(|| StoreError::internal("the id of a mail is not positive"))
}
