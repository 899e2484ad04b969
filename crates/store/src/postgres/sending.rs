//! Mail that the units of a transaction send: what they need to know is asked for once, together with the lock, and what
//! they send goes to the server in few statements.

use std::collections::{HashMap, VecDeque};

use ikigai_conversation::{AgentId, SessionId, Time};
use ikigai_postgres::{Reply, Value};

use crate::agents::AgentRow;
use crate::error::StoreError;
use crate::mailbox::MAILBOX_LIMIT;
use crate::sessions::parse_agent;
use crate::sql::Row;
use crate::writer::{Scope, Sending};

use super::transaction::{CLOCK, Transaction};

const COLUMNS: usize = 6;

/// A mail that has its id already.
pub(crate) struct NewMail {
    pub(crate) id: i64,
    pub(crate) recipient: i64,
    pub(crate) sender: i64,
    pub(crate) body: String,
    pub(crate) sent_at: i64,
    pub(crate) cause: Option<i64>,
}

impl NewMail {
    fn values(&self) -> [Value<'_>; COLUMNS] {
        let number = |number| Value::Integer(Some(number));
        let [id, to, from, at] = [self.id, self.recipient, self.sender, self.sent_at].map(number);
        [id, to, from, Value::Text(Some(&self.body)), at, Value::Integer(self.cause)]
    }
}

/// What a transaction knows of the mail that its units send.
#[derive(Default)]
pub(super) struct Sendings {
    /// Which of the queued statements asks for agents and ids.
    asked_at: Option<usize>,
    /// As they are now: behind the lock of the session nobody else changes them.
    agents: HashMap<AgentId, AgentRow>,
    ids: VecDeque<i64>,
    /// What goes to the server before the next statement.
    outbox: Vec<NewMail>,
    /// How much of it is of units that are done.
    settled: usize,
    /// The lock was taken by noting that the session was written to.
    has_touched: bool,
}

impl Sendings {
    /// Takes the reply to what was asked, if it is among these. It also tells the time.
    pub(super) fn hear(&mut self, replies: &[Reply]) -> Result<Option<Time>, StoreError> {
        let Some(reply) = self.asked_at.take().and_then(|at| replies.get(at)) else {
            return Ok(None);
        };
        let mut now = None;
        for row in reply.rows.iter().map(Row::Postgres) {
            let id = parse_agent(&row.text(AgentRow::WIDTH)?)?;
            self.agents.insert(id.clone(), AgentRow::read(&row, &id)?);
            // These are the same in every row.
            if now.is_none() {
                now = Some(Time::from_millis(row.get(AgentRow::WIDTH + 1)?));
                let ids = row.text(AgentRow::WIDTH + 2)?;
                let ids: Result<Vec<i64>, _> = ids.split_whitespace().map(str::parse).collect();
                self.ids.extend(ids.map_err(StoreError::internal)?);
            }
        }
        Ok(now)
    }

    /// Something else was written: the agents may not be as they were.
    pub(super) fn forget_agents(&mut self) {
        self.agents.clear();
    }

    /// What was sent so far is nobody's to take back.
    pub(super) fn settle(&mut self) {
        self.settled = self.outbox.len();
    }

    pub(super) fn drop_unsettled(&mut self) {
        self.split_unsettled();
        self.forget_agents();
    }

    pub(super) fn split_unsettled(&mut self) -> Vec<NewMail> {
        self.outbox.split_off(self.settled.min(self.outbox.len()))
    }

    pub(super) fn post_all(&mut self, mails: Vec<NewMail>) {
        self.outbox.extend(mails);
    }
}

impl Transaction<'_> {
    /// Asks for what units that send mail will want to know.
    pub(crate) fn expect<'s>(
        &self,
        session: &SessionId,
        sendings: impl Iterator<Item = &'s Sending>,
    ) {
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for sending in sendings {
            from.push(sending.from.to_string());
            to.push(sending.to.to_string());
        }
        if from.is_empty() || self.require_sound().is_err() {
            return;
        }
        let session = session.to_string();
        self.lock_and_touch(&session);
        self.send_out();
        let at = self.inner.borrow().queued;
        self.inner.borrow_mut().sendings.asked_at = Some(at);
        let texts = [session, from.join(" "), to.join(" ")];
        let values = texts.each_ref().map(|text| Value::Text(Some(text)));
        self.queue_quietly(&question(), &values);
    }

    /// Takes the lock of the session, if it is due, by what a unit that sends mail does in the end anyway: it notes that
    /// the session was written to.
    fn lock_and_touch(&self, session: &str) {
        let mut inner = self.inner.borrow_mut();
        if inner.unlocked.take_if(|scope| matches!(scope, Scope::Session(_))).is_none() {
            return;
        }
        inner.sendings.has_touched = true;
        let now = Value::Integer(inner.now.map(Time::as_millis));
        drop(inner);
        let sql = format!(
            "UPDATE sessions SET updated_at = greatest(updated_at, coalesce(?2, {CLOCK})) WHERE id = ?1"
        );
        self.queue_now(&sql, &[Value::Text(Some(session)), now]);
    }

    /// Whether it is noted already that the session was written to that the transaction is about.
    pub(crate) fn has_touched(&self) -> bool {
        self.inner.borrow().sendings.has_touched
    }

    /// An agent that was expected, as it is now.
    pub(crate) fn expected(&self, id: &AgentId) -> Option<AgentRow> {
        if self.inner.borrow().sendings.asked_at.is_some() {
            // What is wrong is said by whatever follows.
            let _ = self.run();
        }
        self.inner.borrow().sendings.agents.get(id).cloned()
    }

    /// An id for mail that was drawn beforehand.
    pub(crate) fn draw_mail_id(&self) -> Option<i64> {
        self.inner.borrow_mut().sendings.ids.pop_front()
    }

    /// Sends a mail with the next statement. It cannot fail by its content, so nobody waits for it alone.
    pub(crate) fn post(&self, mail: NewMail) -> Result<(), StoreError> {
        self.require_sound()?;
        let mut inner = self.inner.borrow_mut();
        (inner.has_written, inner.has_news) = (true, true);
        let agents = &mut inner.sendings.agents;
        if let Some(agent) = agents.values_mut().find(|agent| agent.key == mail.recipient) {
            agent.unread += 1;
        }
        inner.sendings.outbox.push(mail);
        Ok(())
    }

    /// Queues the mail that waits.
    pub(super) fn send_out(&self) {
        let mut inner = self.inner.borrow_mut();
        inner.sendings.settled = 0;
        let mails = std::mem::take(&mut inner.sendings.outbox);
        if mails.is_empty() {
            return;
        }
        // Without one, nobody could take back a unit alone: its fate is that of the commit.
        inner.is_doubtful |= inner.has_savepoint;
        drop(inner);
        let mut rest = &*mails;
        while let Some(size) = rest.len().checked_ilog2() {
            // Powers of two, so that the server has to know few statements.
            let (some, others) = rest.split_at(1 << size);
            rest = others;
            let values: Vec<Value<'_>> = some.iter().flat_map(NewMail::values).collect();
            self.queue_now(&insertion(some.len()), &values);
        }
    }
}

/// Asks for the agents of a session that send, the second value, and are sent to, the third; for the time; and for an
/// id for each mail that nothing is against. Ids between spaces are arrays.
fn question() -> String {
    format!(
        "WITH a AS MATERIALIZED (
            SELECT a.* FROM agents a JOIN sessions s ON s.key = a.session
            WHERE s.id = ?1 AND a.id = ANY(string_to_array(?2, ' ') || string_to_array(?3, ' ')))
        SELECT {}, a.id, {CLOCK}, array_to_string(ARRAY(
            SELECT nextval('mail_id_seq')
            FROM unnest(string_to_array(?2, ' '), string_to_array(?3, ' ')) AS p (sender, recipient)
            JOIN a f ON f.id = p.sender AND f.state <> 'dead'
            JOIN a t ON t.id = p.recipient AND t.state <> 'dead' AND t.unread < {MAILBOX_LIMIT}), ' ')
        FROM a",
        AgentRow::COLUMNS
    )
}

/// The statement that inserts so many mails.
fn insertion(count: usize) -> String {
    let row = |row: usize| {
        let places = (1..=COLUMNS).map(|column| format!("?{}", row * COLUMNS + column));
        format!("({})", Vec::from_iter(places).join(", "))
    };
    let rows = Vec::from_iter((0..count).map(row)).join(", ");
    format!("INSERT INTO mail (id, recipient, sender, body, sent_at, cause) VALUES {rows}")
}
