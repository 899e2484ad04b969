//! The work that is pending for a process: one query, whatever signals were lost (M6).

use ikigai_conversation::{AgentId, SessionId};

use crate::agents::{State, find_agent};
use crate::error::StoreError;
use crate::leases::decode;
use crate::process::Process;
use crate::sessions::{self, Location};
use crate::sql::params;
use crate::store::Store;
use crate::unit::Unit;
use crate::waking::WOULD_WAKE;

/// The agents of a session that need a process, each list in the order of ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingWork {
    /// Its idle agents with mail that would wake them.
    pub to_wake: Vec<AgentId>,
    /// Agents under its lease that are at work according to the registry. A child that another
    /// process forked has no task yet.
    pub at_work: Vec<AgentId>,
    /// Top-level agents of its machine and directory that no process runs, and whose trees have
    /// mail that would wake an agent, or an unfinished turn.
    pub to_take_up: Vec<AgentId>,
}

/// When to take over the agents of a process that has died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeoverPolicy {
    /// At once.
    Immediate,
    /// When its lease has expired. Until then they are left for the user to resume.
    AfterLease,
}

impl Store {
    /// The work that is pending for `process` in a session.
    pub async fn pending_work(
        &self,
        session: SessionId,
        location: Location,
        process: Process,
        patience: TakeoverPolicy,
    ) -> Result<PendingWork, StoreError> {
        self.read(move |unit| {
            let mut work = PendingWork::default();
            for due in due(unit, sessions::key_of(unit, &session)?)? {
                match (due.run_by(unit, &process, patience), due.state) {
                    (RunBy::This, State::Idle) => work.to_wake.push(due.id),
                    (RunBy::This, _) => work.at_work.push(due.id),
                    (RunBy::NoProcess, _) if due.location == location => {
                        work.to_take_up.push(due.id.top());
                    }
                    (RunBy::NoProcess | RunBy::Another, _) => {}
                }
            }
            for list in [&mut work.to_wake, &mut work.at_work, &mut work.to_take_up] {
                list.sort();
                list.dedup();
            }
            Ok(work)
        })
        .await
    }
}

impl Store {
    /// Which of these agents were killed.
    pub async fn dead_among(
        &self,
        session: SessionId,
        agents: Vec<AgentId>,
    ) -> Result<Vec<AgentId>, StoreError> {
        self.read(move |unit| {
            let session = sessions::key_of(unit, &session)?;
            let mut dead = Vec::new();
            for id in agents {
                if find_agent(unit, session, &id)?.is_some_and(|agent| agent.is_dead) {
                    dead.push(id);
                }
            }
            Ok(dead)
        })
        .await
    }
}

/// An agent with pending work, and what is known about the process that runs it.
struct Due {
    id: AgentId,
    state: State,
    /// The location of its top-level agent.
    location: Location,
    /// The latest holder of the lease, and when the lease ends.
    lease: Option<(Process, i64)>,
}

enum RunBy {
    This,
    Another,
    NoProcess,
}

impl Due {
    fn run_by(&self, unit: &Unit<'_>, process: &Process, patience: TakeoverPolicy) -> RunBy {
        match &self.lease {
            // Its own lease may have expired while the machine slept. Until another process takes
            // over the agent, it can be renewed.
            Some((holder, until)) if holder == process && *until > 0 => RunBy::This,
            Some((holder, until))
                if *until > unit.now().as_millis()
                    && (patience == TakeoverPolicy::AfterLease || !process.sees_dead(holder)) =>
            {
                RunBy::Another
            }
            Some(_) | None => RunBy::NoProcess,
        }
    }
}

/// All living agents of a session that are at work or have mail that would wake them.
fn due(unit: &Unit<'_>, session: i64) -> Result<Vec<Due>, StoreError> {
    let sql = format!(
        "SELECT a.id, a.state, t.machine, t.directory, l.holder, l.until
            FROM agents a JOIN sessions s ON s.key = a.session
            JOIN agents t ON t.session = a.session AND t.id = {}
            LEFT JOIN leases l ON l.agent = t.key
            WHERE a.session = ?1 AND (a.state NOT IN ('idle', 'dead', 'user') OR (a.state = 'idle' AND {WOULD_WAKE}))",
        unit.dialect().top_of("a.id")
    );
    unit.rows(&sql, params![session], |row| {
        let lease = match (row.get::<Option<String>>(4)?, row.get(5)?) {
            (Some(holder), Some(until)) => Some((decode(&holder)?, until)),
            _ => None,
        };
        let location = Location { machine: row.get(2)?, directory: row.get(3)? };
        Ok(Due { id: row.get(0)?, state: row.get(1)?, location, lease })
    })
}
