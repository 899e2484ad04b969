//! The steps of tool calls, user commands and the command line on the database, and their outcomes.
//! Each is performed in one unit of work. They are implemented in `mailbox.rs`, `forks.rs`,
//! `kills.rs` and `waits.rs`.

use ikigai_conversation::{
    AgentId, CommandId, Correspondent, MailId, Message, MessageId, NewMessage, SessionId,
};

use crate::agents::{self, Agent, AgentLimits, AgentRow, agent_by_id, find_agent};
use crate::commands;
use crate::error::StoreError;
use crate::forks::{self, NewFork};
use crate::kills;
use crate::leases::{Lease, fence};
use crate::letters::Letter;
use crate::log::append_all;
use crate::mailbox::{self, InboxFilter, InboxPage, Mail, Mailbox};
use crate::refusal::Refusal;
use crate::sessions::{self, Budget};
use crate::sql::params;
use crate::store::Store;
use crate::unit::Unit;
use crate::waits::{self, StartedWait, Wait, WaitReport};
use crate::writer::Scope;

/// A step on behalf of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// List its mailbox.
    Inbox(InboxFilter),
    /// Read a message, which marks it read.
    Read(i64),
    /// Look at a message, which marks nothing.
    Peek(i64),
    /// Mark a message unread, so that the agent is notified again.
    Unread(i64),
    /// Send mail. The body was checked and trimmed.
    Send {
        /// The recipient.
        to: MailAddress,
        /// The address as given, for messages.
        given: String,
        /// The text.
        body: String,
    },
    /// Fork a child.
    Fork(NewFork),
    /// Kill an agent and its descendants.
    Kill(NamedAgent),
    /// List the living agents.
    Agents,
    /// Report the agents to wait for. Waiting takes more than one step: a caller that can wait
    /// [starts](Store::start_wait), checks repeatedly, and ends with [`EndWait`](Step::EndWait).
    Wait(Wait),
    /// End a wait, and report the awaited agents.
    EndWait(StartedWait),
    /// End an interrupted wait without a report.
    AbandonWait,
}

impl Step {
    /// The same step with these limits. If the session has no prompt yet, a child gets the one that
    /// `system` makes.
    pub fn within(self, limits: AgentLimits, system: impl FnOnce() -> String) -> Step {
        match self {
            Step::Fork(fork) => Step::Fork(NewFork { limits, system: Some(system()), ..fork }),
            other => other,
        }
    }
}

/// How the recipient of mail is addressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailAddress {
    /// The user.
    User,
    /// An agent.
    Agent(AgentAddress),
}

/// How an agent is addressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentAddress {
    /// By id.
    Id(AgentId),
    /// The parent of the acting agent.
    Parent,
    /// By name, if exactly one living agent has it.
    Name(String),
}

/// An agent as it was named in a call or command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedAgent {
    /// The agent.
    pub address: AgentAddress,
    /// The name as given, for messages.
    pub given: String,
}

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A page of the mailbox.
    Inbox(InboxPage),
    /// A message, now read.
    Read(Mail),
    /// A message, unchanged.
    Peeked(Mail),
    /// A message is marked unread.
    MadeUnread(MailId),
    /// A message is in the recipient's mailbox.
    Sent {
        /// Its id.
        id: MailId,
        /// The recipient.
        to: Correspondent,
    },
    /// There is no such message in this mailbox.
    NoMail(i64),
    /// There is no such recipient.
    NoAgent(String),
    /// The recipient is dead.
    Dead(AgentId),
    /// The recipient has too much unread mail.
    Full(Correspondent),
    /// The new child.
    Forked(AgentId),
    /// The killed agents, children first.
    Killed(Vec<AgentId>),
    /// The living agents, parents before children.
    Agents(Vec<Agent>),
    /// The report of a wait.
    WaitEnded(WaitReport),
    /// A wait was ended without a report.
    Abandoned,
    /// Nothing was forked, killed or waited for.
    Refused(Refusal),
}

/// The actor of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    /// The agent's model, by a call in its log.
    Model,
    /// A command that the agent runs. It acts as the agent, but the model does not see the call in
    /// its log.
    Command,
    /// The user, on the screen or the command line. Mail that only the user saw does not count as
    /// announced to the model. Sending mail refills the wake budget.
    User(Budget),
}

impl Actor {
    fn with_refill(refill: Option<Budget>) -> Actor {
        refill.map_or(Actor::Command, Actor::User)
    }

    /// Whether the actor may do more than an agent.
    pub(crate) fn is_user(self) -> bool {
        matches!(self, Actor::User(_))
    }
}

/// What a user command did in view of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRecord {
    /// The outcome of the step.
    pub outcome: Outcome,
    /// The messages that were appended to the agent's log.
    pub messages: Vec<Message>,
}

impl Store {
    /// Performs a step on behalf of an agent from another process, or one of the user on mail. It
    /// needs no lease and writes nothing to the log. Without `refill` the agent itself runs the
    /// command, which may do no more than its model.
    pub async fn perform(
        &self,
        session: SessionId,
        by: impl Into<Correspondent>,
        step: Step,
        refill: Option<Budget>,
    ) -> Result<Outcome, StoreError> {
        let (by, actor) = (by.into(), Actor::with_refill(refill));
        let step = match (step, &by) {
            // No commit: it only looks.
            (step @ Step::Peek(_), _) => {
                return self.read(move |unit| perform_by(unit, &session, &by, step, actor)).await;
            }
            (
                Step::Send { to: MailAddress::Agent(AgentAddress::Id(to)), given, body },
                Correspondent::Agent(from),
            ) if refill.is_none() && Letter::is_all(from, &to) => {
                return self.post(Letter { session, from: from.clone(), to, given, body }).await;
            }
            (step, _) => step,
        };
        let scope = Scope::Session(session);
        self.commit(scope, move |unit| perform_by(unit, &session, &by, step, actor)).await
    }

    /// Performs a step for the user in the process that runs `agent`. Its log records the steps
    /// that it has to: a `kill`, for example.
    pub async fn act(
        &self,
        lease: Lease,
        agent: AgentId,
        step: Step,
        budget: Budget,
    ) -> Result<StepRecord, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            let done = perform(unit, &agent, step, Actor::User(budget))?;
            Ok(StepRecord {
                messages: append_all(unit, &agent, done.notes)?,
                outcome: done.outcome,
            })
        })
        .await
    }
}

/// A performed step whose marks do not refer to a log message yet.
pub(crate) struct PerformedStep {
    pub(crate) outcome: Outcome,
    /// Further messages for the log besides the result.
    pub(crate) notes: Vec<NewMessage>,
    marks: Vec<(Mark, i64)>,
    /// Background commands whose end it tells.
    ended: Vec<CommandId>,
}

/// The column of a mail that refers to the log message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mark {
    Sent,
    Told,
    Read,
}

impl PerformedStep {
    pub(crate) fn new(outcome: Outcome) -> PerformedStep {
        PerformedStep { outcome, notes: Vec::new(), marks: Vec::new(), ended: Vec::new() }
    }

    pub(crate) fn refused(refusal: Refusal) -> PerformedStep {
        PerformedStep::new(Outcome::Refused(refusal))
    }

    pub(crate) fn marking(mut self, marks: impl IntoIterator<Item = (Mark, i64)>) -> PerformedStep {
        self.marks.extend(marks);
        self
    }

    pub(crate) fn telling(mut self, ended: Vec<CommandId>) -> PerformedStep {
        self.ended.extend(ended);
        self
    }

    pub(crate) fn noting(mut self, note: NewMessage) -> PerformedStep {
        self.notes.push(note);
        self
    }

    /// Stores in every mail that the step touched, and every end that it tells, which log message
    /// of `agent` caused it.
    pub(crate) fn trace_to(
        &self,
        unit: &Unit<'_>,
        agent: &AgentRow,
        message: MessageId,
    ) -> Result<(), StoreError> {
        commands::mark_told(unit, agent, &self.ended, message)?;
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

fn perform_by(
    unit: &Unit<'_>,
    session: &SessionId,
    by: &Correspondent,
    step: Step,
    actor: Actor,
) -> Result<Outcome, StoreError> {
    let performed = match by {
        Correspondent::Agent(agent) => {
            perform(unit, &agent_by_id(unit, session, agent)?, step, actor)
        }
        Correspondent::User => {
            let mailbox = Mailbox::of_user(unit, sessions::key_of(unit, session)?)?;
            perform_on_mail(unit, &mailbox, step, actor)
        }
    };
    Ok(performed?.outcome)
}

pub(crate) fn perform(
    unit: &Unit<'_>,
    agent: &AgentRow,
    step: Step,
    actor: Actor,
) -> Result<PerformedStep, StoreError> {
    match step {
        Step::Inbox(_) | Step::Read(_) | Step::Peek(_) | Step::Unread(_) | Step::Send { .. } => {
            perform_on_mail(unit, &Mailbox::of(agent), step, actor)
        }
        Step::Fork(fork) => forks::fork(unit, agent, &fork, actor),
        Step::Kill(victim) => kills::kill(unit, agent, &victim, actor),
        Step::Agents => {
            Ok(PerformedStep::new(Outcome::Agents(agents::living(unit, agent.session)?)))
        }
        Step::Wait(wait) => match waits::find_awaited(unit, agent, &wait)? {
            Ok(waiting) => waits::end(unit, agent, &waiting, actor),
            Err(refusal) => Ok(PerformedStep::refused(refusal)),
        },
        Step::EndWait(waiting) => waits::end(unit, agent, &waiting, actor),
        Step::AbandonWait => {
            waits::abandon(unit, agent)?;
            Ok(PerformedStep::new(Outcome::Abandoned))
        }
    }
}

/// Performs a step on a mailbox, which is all that the user does without an agent.
fn perform_on_mail(
    unit: &Unit<'_>,
    mailbox: &Mailbox,
    step: Step,
    actor: Actor,
) -> Result<PerformedStep, StoreError> {
    match step {
        Step::Inbox(filter) => mailbox::inbox(unit, mailbox, &filter),
        Step::Read(id) => mailbox::read(unit, mailbox, id, actor),
        Step::Peek(id) => mailbox::peek(unit, mailbox, id),
        Step::Unread(id) => mailbox::make_unread(unit, mailbox, id),
        Step::Send { to, given, body } => mailbox::send(unit, mailbox, &to, given, &body, actor),
        Step::Fork(_) | Step::Kill(_) | Step::Agents => Err(StoreError::internal(NO_AGENT)),
        Step::Wait(_) | Step::EndWait(_) | Step::AbandonWait => Err(StoreError::internal(NO_AGENT)),
    }
}

const NO_AGENT: &str = "only an agent can do this";

/// Finds the agent that `actor`, or the user, has addressed. From here to the commit it neither
/// goes idle nor dies.
pub(crate) fn resolve(
    unit: &Unit<'_>,
    session: i64,
    actor: Option<&AgentId>,
    address: &AgentAddress,
) -> Result<Option<AgentRow>, StoreError> {
    match address {
        AgentAddress::Id(id) => find_agent(unit, session, id),
        AgentAddress::Parent => match actor.and_then(AgentId::parent) {
            Some(parent) => find_agent(unit, session, &parent),
            None => Ok(None),
        },
        AgentAddress::Name(name) => {
            let sql = "SELECT id FROM agents WHERE session = ?1 AND name = ?2 AND state <> 'dead' LIMIT 2";
            let named: Vec<AgentId> = unit.rows(sql, params![session, name], |row| row.get(0))?;
            match named.as_slice() {
                [one] => find_agent(unit, session, one),
                _ => Ok(None),
            }
        }
    }
}
