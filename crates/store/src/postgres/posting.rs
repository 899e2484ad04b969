//! Letters go to the server in one statement, which inserts what nothing is against: with the lock before it and the
//! commit behind it, that is one question and one answer.

use ikigai_conversation::{SessionId, Time};
use ikigai_postgres::Value;

use crate::letters::Letter;
use crate::mailbox::MAILBOX_LIMIT;

use super::transaction::{CLOCK, Transaction};

/// The values of a letter, and those before the first one.
const WIDTH: usize = 3;
const BEFORE: usize = 4;

impl Transaction<'_> {
    /// Queues letters of a session, and the key of the commit with them: it tells later which were posted.
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
        // The server has to know few statements: the places that are left are nobody's letters.
        let places = letters.len().next_power_of_two();
        values.resize(BEFORE + places * WIDTH, Value::Text(None));
        self.queue_now(&statement(places), &values);
    }
}

/// The ids of the mail of so many letters, from what stands under the key of their commit; nothing if that is not it.
pub(super) fn ids_of(posted: &str, count: usize) -> Option<Vec<Option<i64>>> {
    let mut ids = vec![None; count];
    let mut words = posted.split_whitespace();
    while let Some(number) = words.next() {
        let place = ids.get_mut(number.parse::<usize>().ok()?)?;
        *place = Some(words.next()?.parse().ok()?);
    }
    Some(ids)
}

/// Inserts the letters in so many places whose sender and recipient live, unless the mailbox is full, all under one key;
/// and says which they are: the number and the id of each.
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
