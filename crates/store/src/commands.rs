//! Background commands: their start, their end, and that their agent is notified of the end once.
//!
//! The row of a command and the result that names it are one commit, and so are the mark on its end
//! and the message that reports it. An end that is not reported wakes the agent like mail does. A
//! rewind repeats nothing: what a command did cannot be rewound.

use std::time::Duration;

use ikigai_conversation::{AgentId, CommandId, Message, MessageId, NewMessage, SessionId};

use crate::agents::AgentRow;
use crate::error::StoreError;
use crate::leases::{Lease, fence};
use crate::log::{AppendOutcome, Next, append};
use crate::refusal::Refusal;
use crate::sessions;
use crate::sql::{Row, params};
use crate::store::Store;
use crate::unit::Unit;
use crate::waits::AwaitedCommand;

/// How many may run in a session. An agent may have fewer; its process counts those.
const MOST_RUNNING: i64 = 64;

/// A command that has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedCommand {
    /// Its first line.
    pub line: String,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEnd {
    /// Its exit code.
    pub exit_code: i32,
    /// The last lines of its output.
    pub tail: String,
}

/// A command that has ended, and that its agent has not been notified of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedCommand {
    /// Its number.
    pub id: CommandId,
    /// Its first line.
    pub line: String,
    /// Its exit code.
    pub exit_code: i32,
    /// How long it ran.
    pub elapsed: Duration,
    /// The last lines of its output.
    pub tail: String,
}

/// A condition on agent `a`: a command of it has ended, and it was not told.
macro_rules! untold_end {
    () => {
        "EXISTS (SELECT 1 FROM commands c
            WHERE c.agent = a.key AND c.told_by IS NULL AND c.state = 'ended')"
    };
}
pub(crate) use untold_end;

/// A condition on agent `a`: a command of it has printed the line that it waits for, and it does
/// not know.
macro_rules! untold_match {
    () => {
        "EXISTS (SELECT 1 FROM commands c
            WHERE c.agent = a.key AND c.matched IS NOT NULL AND c.matched_told_by IS NULL)"
    };
}
pub(crate) use untold_match;

/// A line that a command has printed, and that its agent wants to be notified of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedLine {
    /// The number of the command.
    pub id: CommandId,
    /// The line.
    pub line: String,
}

impl Store {
    /// Notes that a command of `agent` runs in the background, and appends the message that
    /// `render` makes of its number, in one commit. A refusal is rendered too: then there is no
    /// such command.
    pub async fn start_command(
        &self,
        lease: Lease,
        agent: AgentId,
        command: StartedCommand,
        render: impl FnOnce(Result<CommandId, Refusal>) -> NewMessage + Send + 'static,
        next: Next,
    ) -> Result<(Option<CommandId>, AppendOutcome), StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            let sql = "SELECT coalesce(max(c.number), 0) + 1,
                    coalesce(sum(CASE WHEN c.state = 'running' THEN 1 ELSE 0 END), 0)
                FROM commands c JOIN agents a ON a.key = c.agent WHERE a.session = ?1";
            let found = unit.row(sql, params![agent.session], |row| {
                Ok((row.get::<CommandId>(0)?, row.get::<i64>(1)?))
            })?;
            let (id, running) = found.ok_or_else(|| StoreError::internal("no commands at all"))?;
            if running >= MOST_RUNNING {
                let refused = render(Err(Refusal::TooManyCommands(MOST_RUNNING)));
                let message = append(unit, &agent, refused)?;
                return Ok((None, next.note_after(unit, &agent, vec![message])?));
            }
            let message = append(unit, &agent, render(Ok(id)))?;
            let sql = "INSERT INTO commands (agent, number, line, started_at, started_by)
                VALUES (?1, ?2, ?3, ?4, ?5)";
            let started_at = unit.now().as_millis();
            let started_by = message.id.value();
            unit.run(sql, params![agent.key, id.value(), command.line, started_at, started_by])?;
            Ok((Some(id), next.note_after(unit, &agent, vec![message])?))
        })
        .await
    }

    /// Notes the end of a command.
    pub async fn end_command(
        &self,
        lease: Lease,
        agent: AgentId,
        id: CommandId,
        end: CommandEnd,
    ) -> Result<(), StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            unit.touch(agent.session);
            let sql =
                "UPDATE commands SET state = 'ended', exit_code = ?3, tail = ?4, ended_at = ?5
                WHERE agent = ?1 AND number = ?2 AND state = 'running'";
            let CommandEnd { exit_code, tail } = end;
            let ended_at = unit.now().as_millis();
            unit.run(sql, params![agent.key, id.value(), i64::from(exit_code), tail, ended_at])
        })
        .await
    }

    /// Notes that a command has printed the line that its agent wants to be notified of.
    pub async fn note_matched_line(
        &self,
        lease: Lease,
        agent: AgentId,
        matched: MatchedLine,
    ) -> Result<(), StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            unit.touch(agent.session);
            let MatchedLine { id, line } = matched;
            let sql = "UPDATE commands SET matched = ?3
                WHERE agent = ?1 AND number = ?2 AND matched IS NULL";
            unit.run(sql, params![agent.key, id.value(), line])
        })
        .await
    }

    /// Tells an agent that commands were ended with the process that ran them, if there are any
    /// that it has not been notified of.
    pub async fn tell_lost_commands(
        &self,
        lease: Lease,
        agent: AgentId,
    ) -> Result<Option<Message>, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            let lost = lost(unit, &agent)?;
            if lost.is_empty() {
                return Ok(None);
            }
            let message = append(unit, &agent, NewMessage::lost_commands(lost.clone()))?;
            mark_told(unit, &agent, &lost, message.id)?;
            Ok(Some(message))
        })
        .await
    }

    /// Whether there are commands for [`tell_lost_commands`](Store::tell_lost_commands).
    pub async fn has_lost_commands(
        &self,
        session: SessionId,
        agent: AgentId,
    ) -> Result<bool, StoreError> {
        self.read(move |unit| {
            let sql = "SELECT 1 FROM commands c JOIN agents a ON a.key = c.agent
                WHERE a.session = ?1 AND a.id = ?2 AND c.told_by IS NULL AND c.state = 'lost'
                LIMIT 1";
            let session = sessions::key_of(unit, &session)?;
            Ok(unit.row(sql, params![session, agent.to_string()], |_| Ok(()))?.is_some())
        })
        .await
    }
}

/// The ends that an agent has not been notified of, the earliest first.
pub(crate) fn untold_ends(
    unit: &Unit<'_>,
    agent: &AgentRow,
) -> Result<Vec<EndedCommand>, StoreError> {
    let sql = "SELECT number, line, exit_code, coalesce(ended_at, 0) - started_at, tail
        FROM commands WHERE agent = ?1 AND told_by IS NULL AND state = 'ended'
        ORDER BY ended_at, number";
    unit.rows(sql, params![agent.key], read_ended)
}

/// The lines that an agent has not been notified of.
pub(crate) fn untold_lines(
    unit: &Unit<'_>,
    agent: &AgentRow,
) -> Result<Vec<MatchedLine>, StoreError> {
    let sql = "SELECT number, matched FROM commands
        WHERE agent = ?1 AND matched IS NOT NULL AND matched_told_by IS NULL ORDER BY number";
    unit.rows(sql, params![agent.key], |row| Ok(MatchedLine { id: row.get(0)?, line: row.get(1)? }))
}

/// Notes which message notified an agent of these lines.
pub(crate) fn mark_lines_told(
    unit: &Unit<'_>,
    agent: &AgentRow,
    lines: &[MatchedLine],
    by: MessageId,
) -> Result<(), StoreError> {
    for matched in lines {
        let sql = "UPDATE commands SET matched_told_by = ?3
            WHERE agent = ?1 AND number = ?2 AND matched_told_by IS NULL";
        unit.run(sql, params![agent.key, matched.id.value(), by.value()])?;
    }
    Ok(())
}

/// The status of these commands of an agent, in the order of their numbers.
pub(crate) fn awaited(
    unit: &Unit<'_>,
    agent: &AgentRow,
    ids: &[CommandId],
) -> Result<Vec<AwaitedCommand>, StoreError> {
    let mut awaited = Vec::new();
    for id in ids {
        let sql = "SELECT state, exit_code FROM commands WHERE agent = ?1 AND number = ?2";
        awaited.extend(unit.row(sql, params![agent.key, id.value()], |row| {
            let exit_code: Option<i64> = row.get(1)?;
            let exit_code = exit_code.map(i32::try_from).transpose();
            Ok(AwaitedCommand {
                id: *id,
                is_running: row.text(0)? == "running",
                exit_code: exit_code.map_err(StoreError::internal)?,
            })
        })?);
    }
    Ok(awaited)
}

/// The first of these that is no command of the agent.
pub(crate) fn first_unknown(
    unit: &Unit<'_>,
    agent: &AgentRow,
    ids: &[CommandId],
) -> Result<Option<CommandId>, StoreError> {
    let known = awaited(unit, agent, ids)?;
    Ok(ids.iter().find(|id| !known.iter().any(|command| command.id == **id)).copied())
}

fn read_ended(row: &Row<'_>) -> Result<EndedCommand, StoreError> {
    let millis: i64 = row.get(3)?;
    Ok(EndedCommand {
        id: row.get(0)?,
        line: row.get(1)?,
        exit_code: row.get::<i64>(2)?.try_into().map_err(StoreError::internal)?,
        elapsed: Duration::from_millis(millis.try_into().unwrap_or(0)),
        tail: row.get(4)?,
    })
}

fn lost(unit: &Unit<'_>, agent: &AgentRow) -> Result<Vec<CommandId>, StoreError> {
    let sql = "SELECT number FROM commands WHERE agent = ?1 AND told_by IS NULL AND state = 'lost'
        ORDER BY number";
    unit.rows(sql, params![agent.key], |row| row.get(0))
}

/// Notes which message told an agent that its commands have ended. Commands that run are left out.
pub(crate) fn mark_told(
    unit: &Unit<'_>,
    agent: &AgentRow,
    commands: &[CommandId],
    by: MessageId,
) -> Result<(), StoreError> {
    for id in commands {
        let sql = "UPDATE commands SET told_by = ?3,
                matched_told_by = coalesce(matched_told_by, ?3)
            WHERE agent = ?1 AND number = ?2 AND told_by IS NULL AND state <> 'running'";
        unit.run(sql, params![agent.key, id.value(), by.value()])?;
    }
    Ok(())
}

/// The commands in the tree of a top-level agent were ended with the process that ran them.
pub(crate) fn lose_in_tree(unit: &Unit<'_>, top: &AgentRow) -> Result<(), StoreError> {
    let sql = "UPDATE commands SET state = 'lost', ended_at = ?3
        WHERE told_by IS NULL AND state = 'running' AND agent IN
            (SELECT key FROM agents WHERE session = ?1 AND id LIKE ?2 || '%')";
    unit.run(sql, params![top.session, top.id.to_string(), unit.now().as_millis()])
}

/// The commands of a killed agent end with it.
pub(crate) fn lose(unit: &Unit<'_>, agent: i64) -> Result<(), StoreError> {
    let sql = "UPDATE commands SET state = 'lost', ended_at = ?2
        WHERE agent = ?1 AND told_by IS NULL AND state = 'running'";
    unit.run(sql, params![agent, unit.now().as_millis()])
}
