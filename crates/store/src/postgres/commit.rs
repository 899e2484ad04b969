//! The end of a transaction on the server: a commit with a key, or a rollback.

use ikigai_postgres::Value;

use crate::error::StoreError;

use super::transaction::{CLOCK, Transaction};

/// The result of a commit.
pub(crate) enum Committed {
    Yes,
    /// It did not happen.
    No(StoreError),
    /// It did not happen, and the connection is lost.
    NotAndLost(StoreError),
    /// The connection was lost before the answer.
    Unknown(StoreError),
}

impl Transaction<'_> {
    /// Forgets the keys of old commits.
    pub(crate) fn clean_up(&self) {
        self.queue_quietly(&cleaning(), &[]);
    }

    /// Ends a transaction that only read, without waiting.
    ///
    /// # Errors
    /// If something in it failed. Then the connection must not be used again.
    pub(crate) fn end(&self) -> Result<(), StoreError> {
        self.require_sound()?;
        self.queue_quietly("COMMIT", &[]);
        let mut inner = self.inner.borrow_mut();
        inner.queued = 0;
        inner.client.tell().map_err(|error| self.server.error(&error))
    }

    /// Commits with a key that identifies the commit later, unless the units have `finished` with
    /// an error.
    pub(crate) fn commit(&self, key: &str, finished: Result<(), StoreError>) -> Committed {
        if let Err(error) = finished.and_then(|()| self.require_sound()) {
            return self.roll_back(error);
        }
        let inner = self.inner.borrow();
        let (has_written, has_key) = (inner.has_written, inner.posted_at.is_some());
        drop(inner);
        if has_written && !has_key {
            let now = Value::Integer(Some(self.now().as_millis()));
            let sql = "INSERT INTO units (key, outcome, created_at) VALUES (?1, ?2, ?3)";
            let committed = Value::Integer(Some(super::COMMITTED));
            self.queue_quietly(sql, &[Value::Text(Some(key)), committed, now]);
        }
        // Even if nothing was written, the lock may have changed the row's header.
        self.queue_quietly(if has_written { "COMMIT" } else { "ROLLBACK" }, &[]);
        match self.run() {
            Ok(_) => Committed::Yes,
            Err(error) if !self.is_lost() => self.roll_back(error),
            Err(error) if has_written => Committed::Unknown(error),
            Err(error) => Committed::NotAndLost(error),
        }
    }

    fn roll_back(&self, error: StoreError) -> Committed {
        if self.is_lost() {
            return Committed::NotAndLost(error);
        }
        for _ in 0..2 {
            self.inner.borrow_mut().failed = None;
            self.queue_quietly("ROLLBACK", &[]);
            if self.run().is_ok() {
                return Committed::No(error);
            }
        }
        Committed::NotAndLost(error)
    }
}

/// Deletes the keys of old commits, except those that another process is deleting.
pub(super) fn cleaning() -> String {
    format!(
        "DELETE FROM units WHERE key IN (SELECT key FROM units
            WHERE created_at < {CLOCK} - 3600000 LIMIT 2000 FOR UPDATE SKIP LOCKED)"
    )
}
