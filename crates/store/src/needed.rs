//! Reading the part of a conversation that the next request depends on: after a summary, that is
//! not the whole log, however long it is.

use ikigai_conversation::{AgentId, Log, Message, MessageId, Reduction, SessionId};

use crate::agents::agent_by_id;
use crate::error::StoreError;
use crate::log::{Ancestor, part, read_message};
use crate::sql::params;
use crate::store::Store;
use crate::unit::Unit;

/// How many messages are read at first, from the end. What a model sees usually has fewer, and the
/// summary comes close behind. Then the log is read in larger parts, and finally as a whole.
const ENDS: [u32; 2] = [1_024, 16_384];

impl Store {
    /// The part of an agent's conversation that its view and its turn depend on; without a summary
    /// or a clear, the whole. For a full fork, it starts with the inherited part.
    pub async fn needed_log(
        &self,
        session: SessionId,
        agent: AgentId,
    ) -> Result<Vec<Message>, StoreError> {
        self.read(move |unit| {
            let agent = agent_by_id(unit, &session, &agent)?;
            needed(unit, &Ancestor { key: agent.key, id: agent.id, up_to: i64::MAX })
        })
        .await
    }
}

fn needed(unit: &Unit<'_>, agent: &Ancestor) -> Result<Vec<Message>, StoreError> {
    for most in ENDS {
        let end = end_of(unit, agent, most)?;
        if let Some(Reduction { start, kept }) = Log::new(&end).reduction() {
            let first = end[start].id;
            let mut messages = earlier(unit, agent, first, &kept)?;
            messages.extend(end.into_iter().skip(start));
            return Ok(messages);
        }
        if end.len() < most as usize {
            break;
        }
    }
    let mut messages = match agent.parent(unit)? {
        Some(parent) => needed(unit, &parent)?,
        None => Vec::new(),
    };
    messages.extend(part(unit, agent.key, &agent.id, 0, agent.up_to)?);
    Ok(messages)
}

/// The latest messages of an agent, at most `most`.
fn end_of(unit: &Unit<'_>, agent: &Ancestor, most: u32) -> Result<Vec<Message>, StoreError> {
    let sql = "SELECT min(id) FROM (SELECT id FROM messages
        WHERE agent = ?1 AND id <= ?3 ORDER BY id DESC LIMIT ?2) latest";
    let first =
        unit.row(sql, params![agent.key, most, agent.up_to], |row| row.get::<Option<i64>>(0))?;
    let before = first.flatten().map_or(i64::MAX, |first| first - 1);
    part(unit, agent.key, &agent.id, before, agent.up_to)
}

/// What is needed of the conversation before a message: the system prompts, and what a summary
/// keeps.
fn earlier(
    unit: &Unit<'_>,
    agent: &Ancestor,
    before: MessageId,
    kept: &[MessageId],
) -> Result<Vec<Message>, StoreError> {
    // Two queries, so that each finds its few rows by an index. A log gets its prompt right before
    // its first user message, so none comes later.
    let mut conditions = vec![
        "kind = 'system' AND id < coalesce((SELECT id FROM messages
            WHERE agent = ?1 AND kind = 'user' ORDER BY id LIMIT 1), ?2)"
            .to_owned(),
    ];
    if !kept.is_empty() {
        let listed: Vec<String> = kept.iter().map(MessageId::to_string).collect();
        conditions.push(format!("id IN ({})", listed.join(", ")));
    }
    let mut messages = Vec::new();
    let mut next = Some(agent.clone());
    while let Some(agent) = next {
        for condition in &conditions {
            let sql = format!(
                "SELECT id, kind, content, data, created_at FROM messages
                    WHERE agent = ?1 AND id < ?2 AND id <= ?3 AND {condition}"
            );
            let params = params![agent.key, before.value(), agent.up_to];
            let found = unit.rows(&sql, params, |row| Ok(read_message(row, &agent.id)))?;
            messages.extend(found.into_iter().collect::<Result<Vec<_>, _>>()?);
        }
        next = agent.parent(unit)?;
    }
    messages.sort_by_key(|message| message.id);
    Ok(messages)
}
