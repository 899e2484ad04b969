//! Killing an agent and its descendants in one commit.

use ikigai_conversation::{AgentId, NewMessage};

use crate::agents::{AgentRow, State};
use crate::commands;
use crate::error::StoreError;
use crate::refusal::Refusal;
use crate::spending;
use crate::sql::params;
use crate::steps::{Actor, NamedAgent, Outcome, PerformedStep, resolve};
use crate::unit::Unit;

/// Kills an agent and its descendants: from this commit on nothing writes to their logs, and they
/// get no mail (M9). Returns the dead, children first.
pub(crate) fn kill(
    unit: &Unit<'_>,
    killer: &AgentRow,
    victim: &NamedAgent,
    actor: Actor,
) -> Result<PerformedStep, StoreError> {
    let Some(found) = resolve(unit, killer.session, Some(&killer.id), &victim.address)? else {
        return Ok(PerformedStep::refused(Refusal::NoAgent(victim.given.clone())));
    };
    if let Some(refusal) = refusal(unit, killer, &found, actor)? {
        return Ok(PerformedStep::refused(refusal));
    }
    let dead = end_tree(unit, &found)?;
    unit.touch(killer.session);
    Ok(PerformedStep::new(Outcome::Killed(dead.clone())).noting(NewMessage::kill(dead)))
}

fn refusal(
    unit: &Unit<'_>,
    killer: &AgentRow,
    victim: &AgentRow,
    actor: Actor,
) -> Result<Option<Refusal>, StoreError> {
    let id = || victim.id.clone();
    if victim.is_dead {
        return Ok(Some(Refusal::Dead(id())));
    }
    if actor.is_user() {
        return Ok(is_last_top_level(unit, victim)?.then(|| Refusal::LastTopLevel(id())));
    }
    Ok(match () {
        // Commands that a killed agent left running cannot kill on its behalf.
        () if killer.is_dead => Some(Refusal::Dead(killer.id.clone())),
        () if killer.key == victim.key => Some(Refusal::KillsItself(id())),
        () if victim.id.is_ancestor_of(&killer.id) => Some(Refusal::KillsAncestor(id())),
        () if victim.id.depth() == 1 => Some(Refusal::TopLevel(id())),
        () => None,
    })
}

/// Whether it is the only living top-level agent. One that a terminal has made and not used yet is
/// another.
fn is_last_top_level(unit: &Unit<'_>, victim: &AgentRow) -> Result<bool, StoreError> {
    if victim.id.depth() > 1 {
        return Ok(false);
    }
    // Such an id has one slash.
    let sql = format!(
        "SELECT 1 FROM agents WHERE session = ?1 AND key <> ?2 AND {} AND id NOT LIKE '%/%/' LIMIT 1",
        State::ALIVE
    );
    Ok(unit.row(&sql, params![victim.session, victim.key], |_| Ok(()))?.is_none())
}

/// Marks an agent and its descendants dead, and removes what only the living have. Deeper agents
/// come first in the list.
fn end_tree(unit: &Unit<'_>, victim: &AgentRow) -> Result<Vec<AgentId>, StoreError> {
    spending::lose_open(unit, victim)?;
    // Ids consist of digits and slashes, so they contain no special characters of a pattern.
    let sql =
        "UPDATE agents SET state = 'dead', notification_pending = 0, owes_report = 0, in_turn = 0
        WHERE session = ?1 AND id LIKE ?2 || '%' AND state <> 'dead' RETURNING key, id";
    let params = params![victim.session, victim.id.to_string()];
    let found = unit.rows(sql, params, |row| Ok((row.get::<i64>(0)?, row.get(1)?)))?;
    let mut dead: Vec<AgentId> = Vec::new();
    for (key, id) in found {
        unit.run("DELETE FROM waits WHERE waiter = ?1 OR awaited = ?1", params![key])?;
        unit.run("DELETE FROM queued_inputs WHERE agent = ?1", params![key])?;
        commands::lose(unit, key)?;
        dead.push(id);
    }
    dead.sort_by(|a, b| b.depth().cmp(&a.depth()).then_with(|| a.cmp(b)));
    Ok(dead)
}
