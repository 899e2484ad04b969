//! How a transaction on the server ends: by a commit under a key, or by a rollback.

use ikigai_postgres::Value;

use crate::error::StoreError;

use super::transaction::{CLOCK, Transaction};

/// What became of a commit.
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

    /// Ends a transaction that only read. Nobody waits for that.
    ///
    /// # Errors
    /// When something in it failed: then the connection is not to be used again.
    pub(crate) fn end(&self) -> Result<(), StoreError> {
        self.require_sound()?;
        self.queue_quietly("COMMIT", &[]);
        let mut inner = self.inner.borrow_mut();
        inner.queued = 0;
        inner.client.tell().map_err(|error| self.server.error(&error))
    }

    /// Commits under a key by which it can be found again, unless the units have `finished` with an error.
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
        // Without anything written, the lock may have left a trace.
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

/// Forgets the keys of old commits. What another process is about to forget is left to it.
pub(super) fn cleaning() -> String {
    format!(
        "DELETE FROM units WHERE key IN (SELECT key FROM units
            WHERE created_at < {CLOCK} - 3600000 LIMIT 2000 FOR UPDATE SKIP LOCKED)"
    )
}
