//! The report that a child owes its parent when it first goes idle, so that no result is lost.
//!
//! The debt is a column of the child. It is sent as mail when the child goes idle. It is cancelled
//! if the child has written to its parent itself, if a wait has reported the child's answer to the
//! parent, or if the child was interrupted or killed. While the parent waits for the child, or has
//! no room for mail, the debt stays.

use ikigai_conversation::AgentId;

use crate::agents::{AgentRow, find_agent};
use crate::error::StoreError;
use crate::mailbox::{BODY_LIMIT, MAILBOX_LIMIT};
use crate::sql::params;
use crate::unit::Unit;

/// How an agent's last turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LastResult {
    Answer(String),
    Error(String),
}

/// The last answer of an agent in its last turn. Answers that a rewind or a new context removed do
/// not count.
pub(crate) fn last_result(unit: &Unit<'_>, agent: i64) -> Result<LastResult, StoreError> {
    let sql = "SELECT last_error, coalesce(turn_start, 0) FROM agents WHERE key = ?1";
    let turn =
        unit.row(sql, params![agent], |row| Ok((row.get::<Option<String>>(0)?, row.get(1)?)))?;
    let (error, start): (_, i64) = turn.unwrap_or((None, 0));
    if let Some(error) = error {
        return Ok(LastResult::Error(error));
    }
    let sql = "SELECT kind, content FROM messages
        WHERE agent = ?1 AND id >= ?2 AND kind IN ('assistant', 'rewind', 'clear')
        ORDER BY id DESC LIMIT 1";
    let last = unit.row(sql, params![agent, start], |row| {
        Ok((row.get::<String>(0)?, row.get::<String>(1)?))
    })?;
    Ok(LastResult::Answer(match last {
        Some((kind, text)) if kind == "assistant" => text,
        Some(_) | None => String::new(),
    }))
}

/// Sends the report of an idle child to its parent, if that is possible now.
pub(crate) fn send(unit: &Unit<'_>, child: &AgentRow) -> Result<(), StoreError> {
    let sql = "SELECT 1 FROM agents WHERE key = ?1 AND owes_report = 1";
    let Some(parent) = child.id.parent().filter(|_| !child.is_dead) else { return Ok(()) };
    if unit.row(sql, params![child.key], |_| Ok(()))?.is_none() {
        return Ok(());
    }
    // A killed parent's children are killed too, so this one is alive.
    let Some(parent) = find_agent(unit, child.session, &parent)? else { return Ok(()) };
    let sql = "SELECT 1 FROM waits WHERE waiter = ?1 AND awaited = ?2";
    let is_awaited = unit.row(sql, params![parent.key, child.key], |_| Ok(()))?.is_some();
    // A wait will report it. A full mailbox may have room next time.
    if is_awaited || parent.unread >= MAILBOX_LIMIT {
        return Ok(());
    }
    let body = match last_result(unit, child.key)? {
        LastResult::Answer(text) => body_of(&text),
        LastResult::Error(error) => body_of(&format!("Error: {error}")),
    };
    unit.run(
        "INSERT INTO mail (recipient, sender, body, sent_at, sent_by, cause)
            VALUES (?1, ?2, ?3, ?4, (SELECT max(id) FROM messages WHERE agent = ?2),
                (SELECT cause FROM agents WHERE key = ?2))",
        params![parent.key, child.key, body, unit.now().as_millis()],
    )?;
    unit.touch(child.session);
    cancel(unit, child.key)
}

/// Sends the reports of all idle children in the tree of an agent.
pub(crate) fn send_in_tree(unit: &Unit<'_>, root: &AgentRow) -> Result<(), StoreError> {
    // There are rarely any, and then only the few rows of the session are read.
    let sql = "SELECT id FROM agents
        WHERE session = ?1 AND id LIKE ?2 || '_%' AND owes_report = 1 AND state = 'idle' ORDER BY key";
    let params = params![root.session, root.id.to_string()];
    let owing: Vec<AgentId> = unit.rows(sql, params, |row| row.get(0))?;
    for id in owing {
        if let Some(child) = find_agent(unit, root.session, &id)? {
            send(unit, &child)?;
        }
    }
    Ok(())
}

/// The child owes no report any more.
pub(crate) fn cancel(unit: &Unit<'_>, child: i64) -> Result<(), StoreError> {
    let sql = "UPDATE agents SET owes_report = 0 WHERE key = ?1 AND owes_report = 1";
    unit.run(sql, params![child])
}

/// The text as the body of mail: not empty, and truncated if it is too long.
fn body_of(text: &str) -> String {
    // Not every database can store NUL.
    let text = text.trim().replace('\0', "\u{FFFD}");
    match text.len() {
        0 => "(ended without an answer)".to_owned(),
        length if length <= BODY_LIMIT => text,
        length => {
            let marked = |kept: usize| format!("\n[Cut: showing first {kept} of {length} bytes]");
            // Leave room for the longest mark.
            let kept = text.floor_char_boundary(BODY_LIMIT - marked(BODY_LIMIT).len());
            format!("{}{}", &text[..kept], marked(kept))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_fits_into_mail_and_says_that_it_was_truncated() {
        assert_eq!(body_of("  done\n"), "done");
        assert_eq!(body_of(" \n"), "(ended without an answer)");
        assert_eq!(body_of("a\0b"), "a\u{fffd}b");
        let largest = "x".repeat(BODY_LIMIT);
        assert_eq!(body_of(&largest), largest);
        for text in ["x".repeat(BODY_LIMIT + 1), "ä€😀".repeat(20_000)] {
            let body = body_of(&text);
            assert!(body.len() <= BODY_LIMIT && body.len() > BODY_LIMIT - 64, "{}", body.len());
            let (kept, mark) = body.rsplit_once('\n').unwrap();
            assert!(text.starts_with(kept));
            let expected = format!("[Cut: showing first {} of {} bytes]", kept.len(), text.len());
            assert_eq!(mark, expected);
        }
    }
}
