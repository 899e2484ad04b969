//! Letters are posted in a single statement, which inserts those that can be sent. With the lock
//! before it and the commit after it, that is one round trip. A single letter takes the lock in the
//! same statement, which is its own transaction.

use ikigai_conversation::{SessionId, Time};
use ikigai_postgres::{Client, Error, Value};

use crate::letters::Letter;
use crate::mailbox::MAILBOX_LIMIT;

use super::transaction::{CLOCK, Transaction};

/// The number of parameters per letter, and of those before the first letter.
const WIDTH: usize = 3;
const BEFORE: usize = 4;

impl Transaction<'_> {
    /// Queues letters of a session together with the key of the commit, which later tells which
    /// were posted.
    pub(crate) fn post(&self, key: &str, session: &SessionId, letters: &[Letter]) {
        self.queue_lock();
        let session = session.to_string();
        let named = letters.iter().flat_map(|letter| [&letter.from, &letter.to]);
        let ids: Vec<String> = named.map(ToString::to_string).collect();
        let all = ids.join(" ");
        let mut inner = self.inner.borrow_mut();
        let now = Value::Integer(inner.now.map(Time::as_millis));
        inner.has_written = true;
        inner.posted_at = Some(inner.queued);
        drop(inner);
        let text = |text| Value::Text(Some(text));
        let mut values = vec![text(&session), text(key), now, text(&all)];
        for (ids, letter) in ids.chunks(2).zip(letters) {
            values.extend(ids.iter().map(|id| text(id)).chain([text(&letter.body)]));
        }
        // Few distinct statements can be prepared, so the number of places is rounded up. Unused
        // places are NULL.
        let places = letters.len().next_power_of_two();
        values.resize(BEFORE + places * WIDTH, Value::Text(None));
        self.queue_now(&statement(places), &values);
    }
}

/// Posts one letter in its own transaction, and returns the value under the key of the commit;
/// `None` if there is no such session.
pub(super) fn post_alone(
    client: &mut Client,
    key: &str,
    letter: &Letter,
    now: Option<Time>,
) -> Result<Option<String>, Error> {
    let session = letter.session.to_string();
    let (from, to) = (letter.from.to_string(), letter.to.to_string());
    let [session, key, from, to, body] =
        [&session, key, &from, &to, &letter.body].map(|text| Value::Text(Some(text)));
    let now = Value::Integer(now.map(Time::as_millis));
    let reply = client.ask(&alone(), &[session, key, now, from, to, body])?;
    let posted = reply.rows.first().map(|row| row.text(0)).transpose()?.flatten();
    Ok(posted.map(String::from))
}

/// Locks the session and does the same as [`statement`]. The lock may have to be waited for, and
/// the snapshot does not show commits made meanwhile. So the statement locks the sender and updates
/// the recipient before it checks them: both operations see the current row.
fn alone() -> String {
    format!(
        "WITH locked AS MATERIALIZED (
            SELECT key FROM sessions WHERE id = ?1 FOR NO KEY UPDATE),
        clock AS MATERIALIZED (
            SELECT key AS session, coalesce(?3, {CLOCK}) AS now FROM locked
            WHERE set_config('ikigai.counts_mail', 'yes', true) = 'yes'),
        living AS MATERIALIZED (
            SELECT f.key, f.cause, c.session, c.now FROM clock c JOIN agents f ON f.session = c.session
            WHERE f.id = ?4 AND f.state <> 'dead' FOR NO KEY UPDATE OF f),
        counted AS (
            UPDATE agents t SET unread = t.unread + 1, untold = t.untold + 1 FROM living f
            WHERE t.session = f.session AND t.id = ?5 AND t.state <> 'dead' AND t.unread < {MAILBOX_LIMIT}
            RETURNING t.key AS recipient, f.key AS sender, f.cause, f.session, f.now),
        arrived AS (
            INSERT INTO mail (recipient, sender, body, sent_at, cause)
            SELECT recipient, sender, ?6, now, cause FROM counted RETURNING id),
        noted AS (
            UPDATE sessions SET updated_at = now FROM counted WHERE key = session AND updated_at < now),
        told AS (SELECT coalesce((SELECT '0 ' || id FROM arrived), '') AS posted)
        INSERT INTO units (key, outcome, created_at, posted)
        SELECT ?2, {}, now, posted FROM clock, told RETURNING posted",
        super::COMMITTED
    )
}

/// The ids of the mail from the value under the key of a commit of `count` letters; `None` if the
/// value is malformed.
pub(super) fn ids_of(posted: &str, count: usize) -> Option<Vec<Option<i64>>> {
    let mut ids = vec![None; count];
    let mut words = posted.split_whitespace();
    while let Some(number) = words.next() {
        let place = ids.get_mut(number.parse::<usize>().ok()?)?;
        *place = Some(words.next()?.parse().ok()?);
    }
    Some(ids)
}

/// Inserts the letters whose sender and recipient are alive, unless the mailbox is full, and
/// records under the key the number and the id of each.
fn statement(places: usize) -> String {
    let place = |number: usize| {
        let value = |value: usize| format!("?{}", BEFORE + number * WIDTH + value);
        format!("({number}, {}, {}, {})", value(1), value(2), value(3))
    };
    let letters = Vec::from_iter((0..places).map(place)).join(", ");
    format!(
        "WITH letters (number, sender, recipient, body) AS (VALUES {letters}),
        clock AS MATERIALIZED (
            SELECT coalesce(?3, {CLOCK}) AS now
            WHERE set_config('ikigai.counts_mail', 'yes', true) = 'yes'),
        living AS MATERIALIZED (
            SELECT a.key, a.id, a.unread, a.cause FROM agents a JOIN sessions s ON s.key = a.session
            WHERE s.id = ?1 AND a.state <> 'dead' AND a.id = ANY (string_to_array(?4, ' '))),
        posted AS MATERIALIZED (
            SELECT number, nextval('mail_id_seq') AS id, recipient, sender, body, cause FROM (
                SELECT l.number, t.key AS recipient, f.key AS sender, l.body, f.cause,
                    t.unread + row_number() OVER (PARTITION BY t.key ORDER BY l.number) AS unread
                FROM letters l JOIN living f ON f.id = l.sender JOIN living t ON t.id = l.recipient
            ) wanted WHERE unread <= {MAILBOX_LIMIT} ORDER BY number),
        arrived AS (
            INSERT INTO mail (id, recipient, sender, body, sent_at, cause)
            SELECT id, recipient, sender, body, now, cause FROM posted, clock),
        counted AS (
            UPDATE agents SET unread = unread + more, untold = untold + more
            FROM (SELECT recipient, count(*) AS more FROM posted GROUP BY recipient) p
            WHERE key = recipient),
        noted AS (
            UPDATE sessions SET updated_at = now FROM clock
            WHERE id = ?1 AND updated_at < now AND EXISTS (SELECT FROM posted)),
        told AS MATERIALIZED (
            SELECT coalesce(string_agg(number || ' ' || id, ' '), '') AS posted FROM posted),
        kept AS (
            INSERT INTO units (key, outcome, created_at, posted)
            SELECT ?2, {}, now, posted FROM told, clock)
        SELECT posted FROM told",
        super::COMMITTED
    )
}
