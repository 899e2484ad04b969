//! The shared database: a PostgreSQL server for processes on many machines.
//!
//! A transaction first locks the row of its session. So all writers of a session run one after
//! another, on whatever machine they are: what a unit reads stays true until its commit (M5), and
//! the ids in a mailbox are in the order of the commits (M7). Transactions cannot deadlock, because
//! each locks one session and takes that lock first.
//!
//! Each commit writes its own key. If the connection is lost between a commit and its answer, the
//! key tells whether the commit happened (M11).

mod commit;
mod listener;
mod migrate;
mod notifier;
mod posting;
mod readers;
mod server;
mod transaction;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_conversation::SessionId;
use ikigai_postgres::{Client, Value};
use tokio::sync::watch;
use uuid::Uuid;

use crate::clock::Clock;
use crate::error::StoreError;
use crate::letters::Letter;
use crate::unit::{Connection, Unit};
use crate::writer::{Database, Scope, Sharing};

use commit::{Committed, cleaning};
use notifier::Notifier;
use posting::{ids_of, post_alone};
use transaction::CLOCK;

pub(crate) use listener::Listener;
pub(crate) use readers::Readers;
pub(crate) use server::Server;
pub(crate) use transaction::Transaction;

/// How long to wait for a server that became unreachable during a commit. Only the server knows
/// whether the commit happened, so it must not be repeated before.
const UNCERTAINTY: Duration = Duration::from_secs(300);
/// Stored under the key of a commit.
const COMMITTED: i64 = 0;
/// Stored under the key of a commit that had not happened when it was looked up, and now never can.
const NEVER_COMMITTED: i64 = -1;
/// How many commits there are between deletions of old keys.
const CLEANING: u64 = 512;

/// Whether units take locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locks {
    /// Always. Only a test that shows the need for them turns them off.
    Taken,
    /// Never.
    LeftOut,
}

/// Why a transaction was not committed, if that is known.
enum NotCommitted {
    /// The server refused it.
    Refused(StoreError),
    /// The connection was lost.
    Lost(StoreError),
}

impl NotCommitted {
    fn into_error(self) -> StoreError {
        match self {
            NotCommitted::Refused(error) | NotCommitted::Lost(error) => error,
        }
    }
}

/// What the writer's thread uses.
pub(crate) struct Postgres {
    server: Arc<Server>,
    clock: Clock,
    locks: Locks,
    /// `None` after it was lost, until it is needed again.
    client: Option<Client>,
    commits: u64,
    notifier: Notifier,
    /// Changes that other processes have not been notified of.
    payload: Option<String>,
    /// Reports that a commit is in doubt.
    doubt: watch::Sender<Option<StoreError>>,
}

impl Postgres {
    /// Connects, and migrates the tables.
    pub(crate) fn open(
        server: Arc<Server>,
        clock: Clock,
        locks: Locks,
        doubt: watch::Sender<Option<StoreError>>,
    ) -> Result<Postgres, StoreError> {
        let mut client = server.connect_writer()?;
        migrate::migrate(&mut client, &server)?;
        let notifier = Notifier::new(Arc::clone(&server));
        let client = Some(client);
        // Start at a random count: many processes end before they have made so many commits, and
        // then one in many cleans up.
        let commits = Uuid::now_v7().as_u128() as u64 % CLEANING;
        Ok(Postgres { server, clock, locks, client, commits, notifier, payload: None, doubt })
    }

    /// The connection, reopened if the old one was lost.
    fn connected(&mut self) -> Result<Client, StoreError> {
        match Server::still_good(self.client.take()) {
            Some(client) => Ok(client),
            None => self.server.connect_writer(),
        }
    }

    /// Commits what `work` does in a transaction about `scope`, and returns which letters were
    /// posted in it.
    fn commit(
        &mut self,
        mut client: Client,
        scope: &Scope,
        key: &str,
        work: impl for<'a> FnOnce(&'a Transaction<'a>) -> Result<(), StoreError>,
    ) -> Result<Option<String>, NotCommitted> {
        let transaction = Transaction::begin(&mut client, &self.server, &self.clock);
        if self.locks == Locks::Taken {
            transaction.lock(scope);
        }
        let finished = work(&transaction);
        if self.is_time_to_clean() {
            transaction.clean_up();
        }
        let committed = transaction.commit(key, finished);
        let (has_changes, posted) = (transaction.has_changes(), transaction.posted());
        self.commits += 1;
        let posted = match committed {
            Committed::Yes => {
                self.client = Some(client);
                posted
            }
            Committed::No(error) => {
                self.client = Some(client);
                return Err(NotCommitted::Refused(error));
            }
            Committed::NotAndLost(error) => return Err(NotCommitted::Lost(error)),
            Committed::Unknown(error) => {
                drop(client);
                Some(self.find_out(key, error).map_err(NotCommitted::Lost)?)
            }
        };
        if has_changes {
            self.payload = Some(notifier::payload_of(scope));
        }
        Ok(posted)
    }

    fn is_time_to_clean(&self) -> bool {
        self.commits % CLEANING == CLEANING - 1
    }

    /// Posts letters of one session, and returns the value under the key of their commit.
    fn commit_letters(
        &mut self,
        client: Client,
        session: &SessionId,
        letters: &[Letter],
    ) -> Result<Option<String>, NotCommitted> {
        let key = Uuid::now_v7().to_string();
        // Behind a pooler, settings must be made in each transaction.
        let needs_transaction = client.is_behind_pooler() || self.locks == Locks::LeftOut;
        match letters {
            [letter] if !needs_transaction => self.commit_alone(client, &key, letter),
            letters => self.commit(client, &Scope::Session(*session), &key, |transaction| {
                transaction.post(&key, session, letters);
                Ok(())
            }),
        }
    }

    /// The same for one letter, with a statement that is its own transaction.
    fn commit_alone(
        &mut self,
        mut client: Client,
        key: &str,
        letter: &Letter,
    ) -> Result<Option<String>, NotCommitted> {
        let cleaned = match self.is_time_to_clean() {
            true => client.queue(&cleaning(), &[]),
            false => Ok(()),
        };
        self.commits += 1;
        let now = self.clock.manual_time();
        let failed = match cleaned.and_then(|()| post_alone(&mut client, key, letter, now)) {
            Ok(posted) => {
                self.client = Some(client);
                return Ok(Some(posted.unwrap_or_default()));
            }
            Err(error) => error,
        };
        let error = self.server.error(&failed);
        if failed.is_final() {
            drop(client);
            return self.find_out(key, error).map(Some).map_err(NotCommitted::Lost);
        }
        self.client = Some(client);
        Err(NotCommitted::Refused(error))
    }

    /// Finds out whether a commit happened whose answer was lost, and which letters were posted in
    /// it. It inserts the key with another outcome. If the old transaction is still running, that
    /// waits for its end. Afterwards only one of the two rows can exist, even if this answer is
    /// lost too and the query is repeated.
    fn find_out(&mut self, key: &str, lost: StoreError) -> Result<String, StoreError> {
        let found = self.ask_until_known(key, lost);
        self.doubt.send_replace(None);
        found
    }

    fn ask_until_known(&mut self, key: &str, lost: StoreError) -> Result<String, StoreError> {
        let started = Instant::now();
        let mut pause = Duration::from_millis(20);
        loop {
            match self.ask_outcome(key) {
                Ok(Some((COMMITTED, posted))) => return Ok(posted),
                Ok(_) => return Err(lost),
                Err(_) if started.elapsed() > UNCERTAINTY => return Err(self.uncertain()),
                Err(error) => {
                    self.doubt.send_if_modified(|doubt| doubt.replace(error).is_none());
                    std::thread::sleep(pause);
                }
            }
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// The value under a key. It cannot change any more.
    fn ask_outcome(&mut self, key: &str) -> Result<Option<(i64, String)>, StoreError> {
        let sql = format!(
            "INSERT INTO units (key, outcome, created_at) VALUES (?1, ?2, {CLOCK})
                ON CONFLICT (key) DO UPDATE SET outcome = units.outcome RETURNING outcome, posted"
        );
        let failed = |error: ikigai_postgres::Error| self.server.error(&error);
        let mut client = self.server.connect_writer()?;
        let values = [Value::Text(Some(key)), Value::Integer(Some(NEVER_COMMITTED))];
        let reply = client.ask(&sql, &values).map_err(failed)?;
        let outcome = match reply.rows.first() {
            Some(row) => {
                let posted = row.text(1).map_err(failed)?.unwrap_or_default().into_owned();
                row.integer(0).map_err(failed)?.map(|outcome| (outcome, posted))
            }
            None => None,
        };
        self.client = Some(client);
        Ok(outcome)
    }

    fn uncertain(&self) -> StoreError {
        StoreError::Uncertain { server: self.server.shown() }
    }

    /// Notifies other processes that something changed.
    fn send_notification(&mut self, payload: String) {
        if let Some(client) = &mut self.client
            && self.notifier.notify(client, payload).is_err()
        {
            self.client = None;
        }
    }
}

impl Database for Postgres {
    fn transaction(
        &mut self,
        scope: &Scope,
        work: &mut dyn FnMut(&Unit<'_>),
    ) -> Result<(), StoreError> {
        let client = match self.connected() {
            Ok(client) => client,
            Err(error) => {
                work(&Unit::refused(error.clone()));
                return Err(error);
            }
        };
        let key = Uuid::now_v7().to_string();
        let commit = self.commit(client, scope, &key, |transaction| {
            let unit = Unit::new(Connection::Postgres(transaction));
            work(&unit);
            unit.finish()
        });
        commit.map(drop).map_err(NotCommitted::into_error)
    }

    fn sharing(&self) -> Sharing {
        Sharing::Session
    }

    fn post(
        &mut self,
        session: &SessionId,
        letters: &[Letter],
    ) -> Result<Vec<Option<i64>>, StoreError> {
        let client = self.connected()?;
        match self.commit_letters(client, session, letters) {
            Ok(posted) => {
                let posted = posted.and_then(|posted| ids_of(&posted, letters.len()));
                let ids = posted.ok_or_else(|| self.uncertain())?;
                if ids.iter().any(Option::is_some) {
                    self.payload = Some(notifier::payload_of(&Scope::Session(*session)));
                }
                Ok(ids)
            }
            // Units will find out which of them are refused, and why.
            Err(NotCommitted::Refused(error)) if !error.is_transient() => {
                Ok(vec![None; letters.len()])
            }
            Err(error) => Err(error.into_error()),
        }
    }

    fn notify(&mut self) {
        if let Some(payload) = self.payload.take() {
            self.send_notification(payload);
        }
    }

    fn close(self: Box<Self>) {}
}
