//! Going idle and being woken: two transactions between which no mail is ever missed.
//!
//! Mail *would wake* an agent if it is unread and has not been announced to its model, the agent
//! does not hold its mail (its last turn was interrupted or failed), and the session has wakes and
//! requests left. None of this is stored per message: releasing held mail changes a single number.
//!
//! The end of a background command wakes like mail does, and is held like it. `untold!` lists what
//! can wake an agent.

use ikigai_conversation::{AgentId, CommandId, Correspondent, MailId, Message, NewMessage};

use crate::agents::{AgentRow, State, set_state, state_of};
use crate::causes;
use crate::commands::{self, EndedCommand, MatchedLine};
use crate::error::StoreError;
use crate::forks::start_turn;
use crate::leases::{Lease, fence};
use crate::log::{append, append_all};
use crate::reports;
use crate::spending;
use crate::sql::params;
use crate::store::Store;
use crate::unit::Unit;

/// How a turn ended. After an interrupt or an error, mail is held until the next turn starts for
/// another reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// With an answer.
    Answered,
    /// By the user.
    Interrupted,
    /// With an error, described for agents that wait for this one.
    Failed(String),
}

impl Ending {
    /// What agents that wait for this one get instead of an answer.
    fn error(&self) -> Option<&str> {
        match self {
            Ending::Answered => None,
            Ending::Interrupted => Some("Interrupted"),
            Ending::Failed(error) => Some(error),
        }
    }
}

/// The result of ending a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedTurn {
    /// What was appended.
    pub messages: Vec<Message>,
    /// Whether the agent is idle now.
    pub sleep: Sleep,
    /// Whether to tell the user that mail is held because no wakes are left. That happens once
    /// until the user sends the next message.
    pub is_held: bool,
}

/// Whether an agent is idle now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sleep {
    /// It is idle.
    Asleep,
    /// There is mail that would wake it, so it stays awake to be notified.
    MailWaits,
}

/// The facts for a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The number of unread messages in the mailbox.
    pub count: u32,
    /// The latest messages that have not been announced, at most a few.
    pub new: Vec<Announcement>,
    /// The ids of all messages that have not been announced.
    pub all_new: Vec<MailId>,
    /// The lines of background commands that it wants to be notified of.
    pub matched: Vec<MatchedLine>,
    /// The background commands whose end has not been told.
    pub ended: Vec<EndedCommand>,
}

/// A message in a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// Its id.
    pub id: MailId,
    /// Who sent it.
    pub from: Correspondent,
    /// Its text.
    pub body: String,
}

impl Announcement {
    /// Whether the notification shows the whole text, which marks the message read. Otherwise it
    /// shows a preview.
    pub fn is_whole(&self) -> bool {
        self.body.len() <= WHOLE_LIMIT
    }
}

/// The sources of a wake, for the constants below.
macro_rules! untold {
    () => {
        concat!(
            "(a.untold > 0 OR ",
            commands::untold_end!(),
            " OR ",
            commands::untold_match!(),
            ")"
        )
    };
}

/// A notification shows this many messages. Of the others it only gives the number.
const SHOWN_LIMIT: u32 = 5;
/// The most bytes of a body that a notification shows whole. Reading a longer one costs a request,
/// but five of them unasked would cost more.
const WHOLE_LIMIT: usize = 1_000;

/// Whether there is something that agent `a` has not been notified of: mail, or the end of a command.
pub(crate) const UNTOLD: &str = untold!();

pub(crate) const WOULD_WAKE: &str =
    concat!(untold!(), " AND a.mail_held = 0 AND s.wakes_left > 0 AND s.requests_left > 0");

impl Store {
    /// Ends a turn: appends its last messages, and makes the agent idle unless there is mail that
    /// would wake it (M5). A child that goes idle for the first time reports to its parent.
    pub async fn end_turn(
        &self,
        lease: Lease,
        agent: AgentId,
        messages: Vec<NewMessage>,
        ending: Ending,
    ) -> Result<EndedTurn, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            let messages = append_all(unit, &agent, messages)?;
            let (sleep, is_held) = end_turn(unit, &agent, &ending)?;
            Ok(EndedTurn { messages, sleep, is_held })
        })
        .await
    }

    /// Makes an agent idle whose turn has ended, but which stayed awake for mail that no longer
    /// would wake it: the user has read it, or no wake is left. Does nothing if there is mail that
    /// would wake it.
    pub async fn rest(&self, lease: Lease, agent: AgentId) -> Result<Sleep, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            if state_of(unit, agent.key)? == State::Idle {
                return Ok(Sleep::Asleep);
            }
            if would_wake(unit, &agent)? {
                return Ok(Sleep::MailWaits);
            }
            set_state(unit, &agent, State::Idle)?;
            reports::send(unit, &agent)?;
            Ok(Sleep::Asleep)
        })
        .await
    }

    /// Notifies an agent of new mail, if there is mail that would wake it. The notification, the
    /// marks on all announced messages, the wake and the request that it takes are one commit (M4).
    /// Messages that it shows [whole](Announcement::is_whole) are read with it (M3). An agent whose
    /// log has no `system` prompt gets it first. Returns what was appended.
    pub async fn announce(
        &self,
        lease: Lease,
        agent: AgentId,
        system: Option<NewMessage>,
        render: impl FnOnce(&Unread) -> NewMessage + Send + 'static,
    ) -> Result<Vec<Message>, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            if !would_wake(unit, &agent)? {
                return Ok(Vec::new());
            }
            let mut messages = append_all(unit, &agent, system.into_iter().collect())?;
            let Some(message) = tell(unit, &agent, render)? else { return Ok(Vec::new()) };
            start_turn(unit, &agent, message.id)?;
            messages.push(message);
            set_state(unit, &agent, State::Waiting)?;
            spending::open(unit, &agent)?;
            let sql = "UPDATE sessions SET requests_left = requests_left - 1 WHERE key = ?1";
            unit.run(sql, params![agent.session])?;
            Ok(messages)
        })
        .await
    }

    /// The same in the middle of a turn, whose next request is already granted.
    pub async fn announce_in_turn(
        &self,
        lease: Lease,
        agent: AgentId,
        render: impl FnOnce(&Unread) -> NewMessage + Send + 'static,
    ) -> Result<Option<Message>, StoreError> {
        self.commit(lease.scope(), move |unit| tell(unit, &fence(unit, &lease, &agent)?, render))
            .await
    }
}

/// Ends a turn. Returns whether the agent is idle now, and whether to tell the user that mail is
/// held.
pub(crate) fn end_turn(
    unit: &Unit<'_>,
    agent: &AgentRow,
    ending: &Ending,
) -> Result<(Sleep, bool), StoreError> {
    note_end(unit, agent, ending)?;
    if would_wake(unit, agent)? {
        return Ok((Sleep::MailWaits, false));
    }
    set_state(unit, agent, State::Idle)?;
    match ending {
        Ending::Answered | Ending::Failed(_) => reports::send(unit, agent)?,
        Ending::Interrupted => reports::cancel(unit, agent.key)?,
    }
    Ok((Sleep::Asleep, note_held(unit, agent)?))
}

/// Announces new mail to an agent, if it would wake the agent, and takes one wake for it.
fn tell(
    unit: &Unit<'_>,
    agent: &AgentRow,
    render: impl FnOnce(&Unread) -> NewMessage,
) -> Result<Option<Message>, StoreError> {
    if !would_wake(unit, agent)? {
        return Ok(None);
    }
    causes::take_over_from_mail(unit, agent)?;
    let unread = unread(unit, agent)?;
    let message = append(unit, agent, render(&unread))?;
    let whole: Vec<MailId> =
        unread.new.iter().filter(|mail| mail.is_whole()).map(|mail| mail.id).collect();
    for mail in &whole {
        let sql = "UPDATE mail SET unread = 0, told_by = ?2, read_by = ?2 WHERE id = ?1";
        unit.run(sql, params![mail.value(), message.id.value()])?;
    }
    if whole.len() < unread.all_new.len() {
        let sql = "UPDATE mail SET told_by = ?2
            WHERE recipient = ?1 AND unread = 1 AND told_by IS NULL";
        unit.run(sql, params![agent.key, message.id.value()])?;
        unit.run("UPDATE agents SET notification_pending = 1 WHERE key = ?1", params![agent.key])?;
    }
    commands::mark_lines_told(unit, agent, &unread.matched, message.id)?;
    let ended: Vec<CommandId> = unread.ended.iter().map(|command| command.id).collect();
    commands::mark_told(unit, agent, &ended, message.id)?;
    unit.run(
        "UPDATE sessions SET wakes_left = wakes_left - 1 WHERE key = ?1",
        params![agent.session],
    )?;
    Ok(Some(message))
}

/// Notes how a turn ended.
fn note_end(unit: &Unit<'_>, agent: &AgentRow, ending: &Ending) -> Result<(), StoreError> {
    let sql = "UPDATE agents SET in_turn = 0, asked = 0, last_error = ?2,
            mail_held = CASE WHEN ?2 IS NULL THEN mail_held ELSE 1 END
        WHERE key = ?1";
    unit.run(sql, params![agent.key, ending.error()])
}

pub(crate) fn would_wake(unit: &Unit<'_>, agent: &AgentRow) -> Result<bool, StoreError> {
    let sql = format!(
        "SELECT 1 FROM agents a JOIN sessions s ON s.key = a.session WHERE a.key = ?1 AND {WOULD_WAKE}"
    );
    Ok(unit.row(&sql, params![agent.key], |_| Ok(()))?.is_some())
}

/// Notes that mail is held, if it is and that was not noted before. It does not matter whose mail
/// it is: the last turn of a session finds out.
fn note_held(unit: &Unit<'_>, agent: &AgentRow) -> Result<bool, StoreError> {
    let sql = format!(
        "UPDATE sessions SET held_told = 1
        WHERE key = ?1 AND held_told = 0 AND wakes_left = 0
        AND EXISTS (SELECT 1 FROM agents a
            WHERE session = ?1 AND state = 'idle' AND {UNTOLD} AND mail_held = 0)"
    );
    Ok(unit.execute(&sql, params![agent.session])? > 0)
}

fn unread(unit: &Unit<'_>, agent: &AgentRow) -> Result<Unread, StoreError> {
    let sql = "SELECT id FROM mail
        WHERE recipient = ?1 AND unread = 1 AND told_by IS NULL ORDER BY id DESC";
    let all_new = unit.rows(sql, params![agent.key], |row| row.get(0))?;
    let sql = "SELECT m.id, s.id, m.body FROM mail m JOIN agents s ON s.key = m.sender
        WHERE m.recipient = ?1 AND m.unread = 1 AND m.told_by IS NULL ORDER BY m.id DESC LIMIT ?2";
    let new = unit.rows(sql, params![agent.key, SHOWN_LIMIT], |row| {
        Ok(Announcement { id: row.get(0)?, from: row.get(1)?, body: row.get(2)? })
    })?;
    let matched = commands::untold_lines(unit, agent)?;
    let ended = commands::untold_ends(unit, agent)?;
    Ok(Unread { count: agent.unread, new, all_new, matched, ended })
}
