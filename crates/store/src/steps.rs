//! The steps that a tool call, a typed command or the command line takes on the database, and what came of
//! them. Each is performed inside one unit of work; what it does is told by subject in `mailbox.rs`, `forks.rs`,
//! `kills.rs` and `waits.rs`.

use ikigai_conversation::{AgentId, MailId, Message, MessageId, NewMessage, SessionId};

use crate::agents::{self, Agent, AgentLimits, AgentRow, agent_by_id, find_agent};
use crate::error::StoreError;
use crate::forks::{self, NewFork};
use crate::kills;
use crate::leases::{Lease, fence};
use crate::letters::Letter;
use crate::log::append_all;
use crate::mailbox::{self, InboxFilter, InboxPage, Mail};
use crate::refusal::Refusal;
use crate::sessions::{self, Budget};
use crate::sql::params;
use crate::store::Store;
use crate::unit::Unit;
use crate::waits::{self, Wait, Waited, Waiting};
use crate::writer::Scope;

/// What is to be done in the name of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// List its mailbox.
    Inbox(InboxFilter),
    /// Read a message, and mark it read.
    Read(i64),
    /// Make a message unread again, so that the agent is told of it once more.
    Unread(i64),
    /// Write to an agent. The body was checked and trimmed.
    Send {
        /// To whom.
        to: Address,
        /// The address as it was given, for messages.
        given: String,
        /// The text.
        body: String,
    },
    /// Make a child.
    Fork(NewFork),
    /// End an agent and its descendants.
    Kill(Named),
    /// List the living agents.
    Agents,
    /// Look at agents that are waited for. Waiting takes more than one step: whoever can wait
    /// [begins](Store::begin_wait), looks again and again, and ends by [`EndWait`](Step::EndWait).
    Wait(Wait),
    /// End a wait, and tell how those that were waited for are.
    EndWait(Waiting),
    /// End a wait of which nobody is told anything: it was interrupted.
    AbandonWait,
}

impl Step {
    /// The same step by somebody who allows this much. A child whose session has no prompt yet begins with
    /// what `system` makes.
    pub fn within(self, limits: AgentLimits, system: impl FnOnce() -> String) -> Step {
        match self {
            Step::Fork(fork) => Step::Fork(NewFork { limits, system: Some(system()), ..fork }),
            other => other,
        }
    }
}

/// Who is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// By id.
    Id(AgentId),
    /// The parent of who acts.
    Parent,
    /// By name, if exactly one living agent has it.
    Name(String),
}

/// An agent as somebody named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Who is meant.
    pub address: Address,
    /// As it was given, for messages.
    pub given: String,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A page of the mailbox.
    Inbox(InboxPage),
    /// A message, read.
    Read(Mail),
    /// A message is unread again.
    MadeUnread(MailId),
    /// A message is in the recipient's mailbox.
    Sent {
        /// Its id.
        id: MailId,
        /// Whose mailbox it is.
        to: AgentId,
    },
    /// There is no such message in this mailbox.
    NoMail(i64),
    /// There is no such agent to write to.
    NoAgent(String),
    /// The recipient is dead.
    Dead(AgentId),
    /// The recipient has too much unread mail.
    Full(AgentId),
    /// The child that was made.
    Forked(AgentId),
    /// Who was ended, children first.
    Killed(Vec<AgentId>),
    /// The living agents, parents before children.
    Agents(Vec<Agent>),
    /// How those that were waited for are.
    Waited(Waited),
    /// A wait is over, and nobody was told anything.
    Abandoned,
    /// Nothing was forked, killed or waited for.
    Refused(Refusal),
}

/// Who performs a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    /// The agent's model, by a call that is in its log.
    Model,
    /// A command that the agent runs. It acts as the agent, but no call in the log tells the model of it.
    Command,
    /// A person, on the screen or the command line. What only a person saw does not count as told to the
    /// model. Sending refills the budget of wakes.
    Person(Budget),
}

impl Actor {
    fn of_hand(refill: Option<Budget>) -> Actor {
        refill.map_or(Actor::Command, Actor::Person)
    }

    /// Whether it is somebody who may do more than an agent.
    pub(crate) fn is_person(self) -> bool {
        matches!(self, Actor::Person(_))
    }
}

/// What a person did in view of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acted {
    /// What came of the step.
    pub outcome: Outcome,
    /// What was appended to the agent's log.
    pub messages: Vec<Message>,
}

impl Store {
    /// Performs a step by hand, in the name of `agent`: it needs no lease and writes nothing to its log.
    /// Without `refill` it is a command that the agent itself runs, which may do no more than its model.
    pub async fn perform(
        &self,
        session: SessionId,
        agent: AgentId,
        step: Step,
        refill: Option<Budget>,
    ) -> Result<Outcome, StoreError> {
        let step = match step {
            Step::Send { to: Address::Id(to), given, body }
                if refill.is_none() && Letter::is_all(&agent, &to) =>
            {
                return self.post(Letter { session, from: agent, to, given, body }).await;
            }
            step => step,
        };
        self.commit(Scope::Session(session), move |unit| {
            let agent = agent_by_id(unit, &session, &agent)?;
            Ok(perform(unit, &agent, step, Actor::of_hand(refill))?.outcome)
        })
        .await
    }

    /// Performs a step for the person at the process that runs `agent`. Its log says so where a log has to: a
    /// `kill` is in it.
    pub async fn act(
        &self,
        lease: Lease,
        agent: AgentId,
        step: Step,
        budget: Budget,
    ) -> Result<Acted, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            let done = perform(unit, &agent, step, Actor::Person(budget))?;
            Ok(Acted { messages: append_all(unit, &agent, done.notes)?, outcome: done.outcome })
        })
        .await
    }
}

/// A step that was performed, not yet traced to the log message that tells of it.
pub(crate) struct Performed {
    pub(crate) outcome: Outcome,
    /// What the log says of it beside the result.
    pub(crate) notes: Vec<NewMessage>,
    marks: Vec<(Mark, i64)>,
}

/// Which column of a mail names the log message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mark {
    Sent,
    Told,
    Read,
}

impl Performed {
    pub(crate) fn new(outcome: Outcome) -> Performed {
        Performed { outcome, notes: Vec::new(), marks: Vec::new() }
    }

    pub(crate) fn refused(refusal: Refusal) -> Performed {
        Performed::new(Outcome::Refused(refusal))
    }

    pub(crate) fn marking(mut self, marks: impl IntoIterator<Item = (Mark, i64)>) -> Performed {
        self.marks.extend(marks);
        self
    }

    pub(crate) fn noting(mut self, note: NewMessage) -> Performed {
        self.notes.push(note);
        self
    }

    /// Writes into every mail that the step touched which log message tells of it.
    pub(crate) fn trace_to(&self, unit: &Unit<'_>, message: MessageId) -> Result<(), StoreError> {
        for (mark, mail) in &self.marks {
            let sql = match mark {
                Mark::Sent => "UPDATE mail SET sent_by = ?2 WHERE id = ?1",
                Mark::Told => "UPDATE mail SET told_by = ?2 WHERE id = ?1 AND told_by IS NULL",
                Mark::Read => "UPDATE mail SET read_by = ?2 WHERE id = ?1 AND read_by IS NULL",
            };
            unit.run(sql, params![*mail, message.value()])?;
        }
        Ok(())
    }
}

pub(crate) fn perform(
    unit: &Unit<'_>,
    agent: &AgentRow,
    step: Step,
    actor: Actor,
) -> Result<Performed, StoreError> {
    match step {
        Step::Inbox(filter) => mailbox::inbox(unit, agent, &filter),
        Step::Read(id) => mailbox::read(unit, agent, id, actor),
        Step::Unread(id) => mailbox::make_unread(unit, agent, id),
        Step::Send { to, given, body } => mailbox::send(unit, agent, &to, given, &body, actor),
        Step::Fork(fork) => forks::fork(unit, agent, &fork, actor),
        Step::Kill(victim) => kills::kill(unit, agent, &victim, actor),
        Step::Agents => Ok(Performed::new(Outcome::Agents(agents::living(unit, agent.session)?))),
        Step::Wait(wait) => match waits::find_awaited(unit, agent, &wait)? {
            Ok(waiting) => waits::end(unit, agent, &waiting, actor),
            Err(refusal) => Ok(Performed::refused(refusal)),
        },
        Step::EndWait(waiting) => waits::end(unit, agent, &waiting, actor),
        Step::AbandonWait => {
            waits::abandon(unit, agent)?;
            Ok(Performed::new(Outcome::Abandoned))
        }
    }
}

/// Finds who is meant and locks the row: from here to the commit that agent neither goes idle nor dies.
pub(crate) fn resolve(
    unit: &Unit<'_>,
    actor: &AgentRow,
    address: &Address,
) -> Result<Option<AgentRow>, StoreError> {
    match address {
        Address::Id(id) => find_agent(unit, actor.session, id),
        Address::Parent => match actor.id.parent() {
            Some(parent) => find_agent(unit, actor.session, &parent),
            None => Ok(None),
        },
        Address::Name(name) => {
            let sql = "SELECT id FROM agents WHERE session = ?1 AND name = ?2 AND state <> 'dead' LIMIT 2";
            let named: Vec<String> =
                unit.rows(sql, params![actor.session, name], |row| row.get(0))?;
            match named.as_slice() {
                [one] => find_agent(unit, actor.session, &sessions::parse_agent(one)?),
                _ => Ok(None),
            }
        }
    }
}
