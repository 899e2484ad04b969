//! What an agent must not forget when a summary replaces its conversation. It is read in the commit
//! of the summary, so it is exactly what was true at that moment. Reading it marks nothing.
//!
//! This is the one place for facts that a summary must not lose: a new kind of work that outlasts a
//! conversation gets a field here, and a section in the text that `agents` makes of it.

use std::path::PathBuf;

use ikigai_conversation::{AgentId, CommandId, NewMessage};

use crate::agents::{Agent, AgentRow, living};
use crate::error::StoreError;
use crate::files::path_from;
use crate::leases::{Lease, fence};
use crate::log::{AppendOutcome, Next, append_all};
use crate::sql::params;
use crate::store::Store;
use crate::unit::Unit;
use crate::waking::Announcement;

/// The maximum number of messages that are read. The text has room for fewer, and says how many
/// there are.
const MAIL_LIMIT: u32 = 100;
/// The same for changed files.
const FILES_LIMIT: u32 = 500;

/// What an agent must not forget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Obligations {
    /// Unread mail that was announced to it, the latest first, and how much there is in all.
    pub mail: (Vec<Announcement>, u32),
    /// Its living children.
    pub children: Vec<Agent>,
    /// Its commands that run in the background, with their first lines.
    pub commands: Vec<(CommandId, String)>,
    /// The files that it changed, the latest change first, and how many there are in all.
    pub files: (Vec<PathBuf>, u32),
}

impl Store {
    /// Appends the messages that `render` makes of what the agent must not forget: a summary.
    pub async fn append_summary(
        &self,
        lease: Lease,
        agent: AgentId,
        render: impl FnOnce(&Obligations) -> Vec<NewMessage> + Send + 'static,
        next: Next,
    ) -> Result<AppendOutcome, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            let messages = append_all(unit, &agent, render(&obligations(unit, &agent)?))?;
            next.note_after(unit, &agent, messages)
        })
        .await
    }
}

fn obligations(unit: &Unit<'_>, agent: &AgentRow) -> Result<Obligations, StoreError> {
    let mut children = living(unit, agent.session)?;
    children.retain(|child| child.id.parent().as_ref() == Some(&agent.id));
    let (mail, commands) = (announced(unit, agent)?, running(unit, agent)?);
    Ok(Obligations { mail, children, commands, files: changed(unit, agent)? })
}

/// Only a few can run at a time.
fn running(unit: &Unit<'_>, agent: &AgentRow) -> Result<Vec<(CommandId, String)>, StoreError> {
    let sql =
        "SELECT number, line FROM commands WHERE agent = ?1 AND state = 'running' ORDER BY number";
    unit.rows(sql, params![agent.key], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Mail that was announced and not read. Mail that was not announced yet will be.
fn announced(unit: &Unit<'_>, agent: &AgentRow) -> Result<(Vec<Announcement>, u32), StoreError> {
    let of_agent = "m.recipient = ?1 AND m.unread = 1 AND m.told_by IS NOT NULL";
    let sql = format!(
        "SELECT m.id, s.id, m.body FROM mail m JOIN agents s ON s.key = m.sender
            WHERE {of_agent} ORDER BY m.id DESC LIMIT ?2"
    );
    let mail = unit.rows(&sql, params![agent.key, MAIL_LIMIT], |row| {
        Ok(Announcement { id: row.get(0)?, from: row.get(1)?, body: row.get(2)? })
    })?;
    let sql = format!("SELECT count(*) FROM mail m WHERE {of_agent}");
    let all = unit.row(&sql, params![agent.key], |row| row.get(0))?.unwrap_or(0);
    Ok((mail, all))
}

fn changed(unit: &Unit<'_>, agent: &AgentRow) -> Result<(Vec<PathBuf>, u32), StoreError> {
    let sql = "SELECT path FROM changes WHERE agent = ?1 AND state <> 'undone'
        GROUP BY path ORDER BY max(key) DESC LIMIT ?2";
    let files =
        unit.rows(sql, params![agent.key, FILES_LIMIT], |row| Ok(path_from(row.get(0)?)))?;
    let sql = "SELECT count(DISTINCT path) FROM changes WHERE agent = ?1 AND state <> 'undone'";
    let all = unit.row(sql, params![agent.key], |row| row.get(0))?.unwrap_or(0);
    Ok((files, all))
}
