//! Logs: appending to them and reading them.

use ikigai_conversation::{AgentId, Body, Message, MessageId, NewMessage, SessionId};

use crate::agents::{AgentRow, State, agent_by_id, set_state};
use crate::causes;
use crate::error::StoreError;
use crate::forks::start_turn;
use crate::leases::{Lease, fence};
use crate::sessions::{self, Budget};
use crate::spending;
use crate::sql::{Row, params};
use crate::store::Store;
use crate::unit::Unit;
use crate::waking::{self, Ending, Sleep};

impl Store {
    /// Appends messages to an agent's log in one commit, and notes what the agent does next.
    pub async fn append(
        &self,
        lease: Lease,
        agent: AgentId,
        messages: Vec<NewMessage>,
        next: Next,
    ) -> Result<AppendOutcome, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            let messages = append_all(unit, &agent, messages)?;
            next.note_after(unit, &agent, messages)
        })
        .await
    }

    /// Appends user input, preceded by the first messages of a new log. It starts a turn: budgets
    /// are refilled, held mail is released, and a request follows.
    pub async fn append_user_input(
        &self,
        lease: Lease,
        agent: AgentId,
        input: Input,
    ) -> Result<AppendOutcome, StoreError> {
        self.commit(lease.scope(), move |unit| input.append(unit, &fence(unit, &lease, &agent)?))
            .await
    }

    /// Rewinds to a message: what follows it is hidden from the model, and mail that the hidden
    /// part showed is unread and unannounced again, in the same commit (M10). Mail that the user
    /// has read stays read. Rewinding to before an earlier rewind shows the hidden part again. Mail
    /// that was read in it stays unread: announcing it twice is better than never.
    ///
    /// # Errors
    /// If `to` is not in the agent's own log: such a rewind would hide nothing.
    pub async fn rewind(
        &self,
        lease: Lease,
        agent: AgentId,
        to: MessageId,
        message: NewMessage,
    ) -> Result<Message, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            require_own(unit, &agent, to)?;
            let rewind = append(unit, &agent, message)?;
            let hidden = params![agent.key, to.value(), rewind.id.value()];
            let sql = "UPDATE mail SET read_by = NULL, told_by = NULL, 
                    unread = CASE read_by_person WHEN 0 THEN 1 ELSE 0 END
                WHERE recipient = ?1 AND read_by > ?2 AND read_by < ?3";
            unit.run(sql, hidden)?;
            let sql = "UPDATE mail SET told_by = NULL
                WHERE recipient = ?1 AND told_by > ?2 AND told_by < ?3";
            unit.run(sql, hidden)?;
            Ok(rewind)
        })
        .await
    }

    /// An agent's own messages; only those after `after` if it is given.
    pub async fn own_log(
        &self,
        session: SessionId,
        agent: AgentId,
        after: Option<MessageId>,
    ) -> Result<Vec<Message>, StoreError> {
        self.read(move |unit| {
            let agent = agent_by_id(unit, &session, &agent)?;
            part(unit, agent.key, &agent.id, after.map_or(0, MessageId::value), i64::MAX)
        })
        .await
    }

    /// The latest of an agent's own messages, at most `most`.
    pub async fn latest_messages(
        &self,
        session: SessionId,
        agent: AgentId,
        most: u32,
    ) -> Result<Vec<Message>, StoreError> {
        self.read(move |unit| {
            let agent = agent_by_id(unit, &session, &agent)?;
            let sql = "SELECT min(id) FROM
                (SELECT id FROM messages WHERE agent = ?1 ORDER BY id DESC LIMIT ?2) newest";
            let first = unit.row(sql, params![agent.key, most], |row| row.get::<Option<i64>>(0))?;
            let before = first.flatten().unwrap_or(i64::MAX) - 1;
            part(unit, agent.key, &agent.id, before, i64::MAX)
        })
        .await
    }

    /// The whole conversation of an agent. For a full fork, it starts with the inherited part.
    pub async fn whole_log(
        &self,
        session: SessionId,
        agent: AgentId,
    ) -> Result<Vec<Message>, StoreError> {
        self.read(move |unit| whole(unit, &agent_by_id(unit, &session, &agent)?)).await
    }
}

/// Input that starts a turn.
#[derive(Debug, Clone)]
pub struct Input {
    /// The user's message, preceded by the first messages of a new log. The last one is the task.
    pub messages: Vec<NewMessage>,
    /// The budget for it.
    pub budget: Budget,
    /// The model for the next request.
    pub model: String,
}

impl Input {
    pub(crate) fn append(
        self,
        unit: &Unit<'_>,
        agent: &AgentRow,
    ) -> Result<AppendOutcome, StoreError> {
        sessions::refill(unit, agent.session, self.budget)?;
        let task = &self.messages.last().map_or_else(String::new, |last| task_of(&last.content));
        let sql = "UPDATE sessions SET title = ?2 WHERE key = ?1 AND title = ''";
        unit.run(sql, params![agent.session, task])?;
        let sql = "UPDATE agents SET mail_held = 0, task = ?2, model = ?3 WHERE key = ?1";
        unit.run(sql, params![agent.key, task, self.model])?;
        causes::start(unit, agent, task)?;
        let messages = append_all(unit, agent, self.messages)?;
        // The first messages of a log are not part of its first turn.
        if let Some(first) = messages.iter().find(|message| message.body != Body::System) {
            start_turn(unit, agent, first.id)?;
        }
        Next::Request.note_after(unit, agent, messages)
    }
}

/// What an agent does after a commit, unless a result in it ends the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It runs a tool.
    Tool,
    /// It waits for approval.
    Permission,
    /// It sends a request to a model, which takes one from the session's budget.
    Request,
    /// It sends a request to a model that was taken from the budget before.
    GrantedRequest,
}

impl Next {
    /// Notes what the agent does after `messages` were appended. A result that ends the turn ends
    /// it in its own commit: after a crash, the log and the registry agree about it.
    pub(crate) fn note_after(
        self,
        unit: &Unit<'_>,
        agent: &AgentRow,
        messages: Vec<Message>,
    ) -> Result<AppendOutcome, StoreError> {
        if messages.iter().any(Message::ends_turn) {
            let (sleep, is_held) = waking::end_turn(unit, agent, &Ending::Answered)?;
            return Ok(AppendOutcome { messages, requests: Requests::NotNeeded(sleep), is_held });
        }
        Ok(AppendOutcome { messages, requests: self.note(unit, agent)?, is_held: false })
    }

    pub(crate) fn note(self, unit: &Unit<'_>, agent: &AgentRow) -> Result<Requests, StoreError> {
        match self {
            Next::Tool => set_state(unit, agent, State::Tool).map(|()| Requests::Granted),
            Next::Permission => set_state(unit, agent, State::Asking).map(|()| Requests::Granted),
            Next::Request => {
                set_state(unit, agent, State::Waiting)?;
                let requests = sessions::take_request(unit, agent.session)?;
                if requests == Requests::Granted {
                    spending::open(unit, agent)?;
                }
                Ok(requests)
            }
            Next::GrantedRequest => {
                set_state(unit, agent, State::Waiting).map(|()| Requests::Granted)
            }
        }
    }
}

/// What was appended, and whether the next request is within the budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendOutcome {
    /// In the order in which they were given.
    pub messages: Vec<Message>,
    /// Always granted if the turn continues without a request.
    pub requests: Requests,
    /// Whether to tell the user that mail is held, as when a turn [ends](Store::end_turn).
    pub is_held: bool,
}

/// Whether a request to a model is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requests {
    /// One is allowed, and was taken from the budget.
    Granted,
    /// None until the user sends the next message.
    UsedUp,
    /// None follows: the turn has ended.
    NotNeeded(Sleep),
}

/// The first line that is not blank, for lists.
pub(crate) fn task_of(text: &str) -> String {
    const LONGEST: usize = 200;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(LONGEST).collect()
}

pub(crate) fn append_all(
    unit: &Unit<'_>,
    agent: &AgentRow,
    messages: Vec<NewMessage>,
) -> Result<Vec<Message>, StoreError> {
    messages.into_iter().map(|message| append(unit, agent, message)).collect()
}

/// Appends a message to the log of an agent whose lease was checked.
pub(crate) fn append(
    unit: &Unit<'_>,
    agent: &AgentRow,
    message: NewMessage,
) -> Result<Message, StoreError> {
    let NewMessage { content, body } = message;
    let id = unit.insert(
        "INSERT INTO messages (agent, kind, content, data, created_at) VALUES (?1, ?2, ?3, ?4, ?5)
            RETURNING id",
        params![agent.key, body.kind().name(), content, body.data_json(), unit.now().as_millis()],
    )?;
    unit.touch(agent.session);
    if let Body::Usage(usage) = &body {
        spending::report(unit, agent, usage)?;
    }
    Ok(Message {
        id: message_id(id)?,
        agent: agent.id.clone(),
        content,
        body,
        created_at: unit.now(),
    })
}

/// Refuses a message that is not in the agent's own log.
fn require_own(unit: &Unit<'_>, agent: &AgentRow, id: MessageId) -> Result<(), StoreError> {
    let sql = "SELECT 1 FROM messages WHERE agent = ?1 AND id = ?2";
    let found = unit.row(sql, params![agent.key, id.value()], |_| Ok(()))?;
    let none = || StoreError::internal(format!("agent {} has no message {id}", agent.id));
    found.ok_or_else(none)
}

/// Follows the chain of full forks to its start.
fn whole(unit: &Unit<'_>, agent: &AgentRow) -> Result<Vec<Message>, StoreError> {
    let mut parts = Vec::new();
    let own = Ancestor { key: agent.key, id: agent.id.clone(), up_to: i64::MAX };
    let mut next = Some(own);
    while let Some(agent) = next {
        parts.push(part(unit, agent.key, &agent.id, 0, agent.up_to)?);
        next = agent.parent(unit)?;
    }
    Ok(parts.into_iter().rev().flatten().collect())
}

/// An agent with the part of its log that another inherits.
#[derive(Debug, Clone)]
pub(crate) struct Ancestor {
    pub(crate) key: i64,
    pub(crate) id: AgentId,
    /// The last message of the part.
    pub(crate) up_to: i64,
}

impl Ancestor {
    /// The agent whose log this one continues, if it is a full fork.
    pub(crate) fn parent(&self, unit: &Unit<'_>) -> Result<Option<Ancestor>, StoreError> {
        let sql =
            "SELECT p.key, p.id, a.inherits_up_to FROM agents a JOIN agents p ON p.key = a.inherits
            WHERE a.key = ?1";
        unit.row(sql, params![self.key], |row| {
            let last = row.get::<Option<i64>>(2)?.unwrap_or(0);
            Ok(Ancestor { key: row.get(0)?, id: row.get(1)?, up_to: self.up_to.min(last) })
        })
    }
}

/// The own messages of an agent with `after < id <= up_to`.
pub(crate) fn part(
    unit: &Unit<'_>,
    agent: i64,
    id: &AgentId,
    after: i64,
    up_to: i64,
) -> Result<Vec<Message>, StoreError> {
    let sql = "SELECT id, kind, content, data, created_at FROM messages
        WHERE agent = ?1 AND id > ?2 AND id <= ?3 ORDER BY id";
    unit.rows(sql, params![agent, after, up_to], |row| Ok(read_message(row, id)))?
        .into_iter()
        .collect()
}

pub(crate) fn read_message(row: &Row<'_>, agent: &AgentId) -> Result<Message, StoreError> {
    let body = Body::from_parts(&row.text(1)?, &row.text(3)?).map_err(StoreError::internal)?;
    Ok(Message {
        id: message_id(row.get(0)?)?,
        agent: agent.clone(),
        content: row.get(2)?,
        body,
        created_at: row.get(4)?,
    })
}

pub(crate) fn message_id(id: i64) -> Result<MessageId, StoreError> {
    MessageId::new(id).ok_or_else(|| StoreError::internal("the id of a message is not positive"))
}
