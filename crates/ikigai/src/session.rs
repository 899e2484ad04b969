//! The session and agent that a command works on.

use std::future::Future;
use std::sync::Arc;

use anyhow::Context;
use ikigai_agents::{SeatError, until_over};
use ikigai_conversation::{AgentId, Correspondent, SessionId};
use ikigai_host::{
    AgentSlot, Environment, SessionOptions, existing_session, explain, find_agent, find_folder,
    find_session, open_database, parse_agent, place, settings,
};
use ikigai_store::{Outcome, Process, Refusal, StartedWait, Step, Store, StoreError, Wait};
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::environment::HIDDEN;
use crate::print;
use crate::signals::Signals;

/// Claims the agent named on the command line.
pub(crate) async fn claim(
    environment: &Arc<Environment>,
    options: SessionOptions,
) -> anyhow::Result<AgentSlot> {
    let slot = AgentSlot::claim(environment, options).await?;
    if let Some(note) = slot.note() {
        print::note(&format!("ikigai: {note}"));
    }
    Ok(slot)
}

/// How to continue with an agent.
pub(crate) fn how_to_continue(session: SessionId, top: &AgentId) -> String {
    let agent = match *top == AgentId::top_level(0) {
        true => String::new(),
        false => format!(" --agent {top}"),
    };
    format!("Resume with: ikigai -c{agent}, or ikigai --session {session}{agent}")
}

/// A session in an open database, with the selected agent or the user.
pub(crate) struct StoredSession<'a> {
    database: Database,
    environment: &'a Environment,
    pub(crate) id: SessionId,
    /// On whose behalf steps are performed.
    pub(crate) actor: Correspondent,
}

impl<'a> StoredSession<'a> {
    /// Opens the named session or the latest in the directory. Creates one if there is none or
    /// `--new` was given. Fails if the directory is not the folder that the session knows.
    pub(crate) fn open(environment: &'a Environment) -> anyhow::Result<StoredSession<'a>> {
        let selection = &environment.selection;
        if selection.new && selection.inside_agent {
            anyhow::bail!("--new cannot be used inside an agent's command");
        }
        let (database, actor) = open_for_actor(environment)?;
        if let Some(agent) = actor.agent()
            && selection.new
            && *agent != AgentId::top_level(0)
        {
            return Err(SeatError::NotInNewSession(agent.clone()).into());
        }
        let (place, budget) = (place(environment), settings::budget(&environment.settings));
        let new = SessionId::new(Uuid::now_v7());
        let id = match &selection.session {
            Some(named) => database.find_session(named)?,
            None if selection.new => {
                database.wait(database.store.create_session(place, new, budget))?
            }
            None => {
                database.wait(database.store.session_at(place, new, budget, Process::current()))?
            }
        };
        // An agent's command may run anywhere.
        if !selection.inside_agent {
            let folders = environment.roots()?.folders().to_vec();
            database.wait(database.store.check_roots(id, Process::current(), folders))?;
        }
        Ok(StoredSession { database, environment, id, actor })
    }

    /// Like [`open`](Self::open), but creates nothing: `None` if the directory has no session yet.
    pub(crate) fn open_existing(
        environment: &'a Environment,
    ) -> anyhow::Result<Option<StoredSession<'a>>> {
        let (database, actor) = open_for_actor(environment)?;
        let id = database.wait(existing_session(&database.store, environment))?;
        Ok(id.map(|id| StoredSession { database, environment, id, actor }))
    }

    /// Like [`open_existing`](Self::open_existing), but fails if there is no session.
    pub(crate) fn require_existing(
        environment: &'a Environment,
    ) -> anyhow::Result<StoredSession<'a>> {
        StoredSession::open_existing(environment)?.ok_or_else(|| {
            anyhow::anyhow!("there is no session in {} yet", environment.directory.display())
        })
    }

    /// Fails if one of the session's paths now leads to another folder, wherever the user is.
    pub(crate) fn check_folders(&self) -> anyhow::Result<()> {
        self.wait(async {
            let (store, process) = (self.store(), Process::current());
            let paths = store.root_paths(self.id, process.clone()).await?;
            let found = paths.iter().filter_map(|path| find_folder(path)).collect();
            Ok(store.check_roots(self.id, process, found).await?)
        })
    }

    /// The selected agent.
    pub(crate) fn agent(&self) -> anyhow::Result<&AgentId> {
        self.actor.agent().context("the user is not an agent: 'ikigai agents' lists them")
    }

    pub(crate) fn store(&self) -> &Store {
        &self.database.store
    }

    /// Performs a step; `None` if the database failed, which is printed.
    pub(crate) fn perform(&self, step: Step) -> anyhow::Result<Option<Outcome>> {
        // Inside an agent's command the user is not the one acting.
        let refill = match self.environment.selection.inside_agent {
            true => None,
            false => Some(settings::budget(&self.environment.settings)),
        };
        let (session, actor) = (self.id, self.actor.clone());
        match self.wait(self.store().perform(session, actor, step, refill)) {
            Ok(outcome) => Ok(Some(outcome)),
            // The selection is wrong, not the step.
            Err(error @ (StoreError::AgentNotFound(_) | StoreError::SessionNotFound(_))) => {
                Err(explain(error))
            }
            Err(error) => {
                print::error(&error.into());
                Ok(None)
            }
        }
    }

    /// Waits for other agents on behalf of the agent; `None` if interrupted.
    pub(crate) fn wait_for_agents(
        &self,
        wait: Wait,
    ) -> anyhow::Result<Option<Result<StartedWait, Refusal>>> {
        let agent = self.agent()?;
        self.wait(async {
            let limit = wait.limit;
            let watched = self.store().watch(self.id, agent.clone(), wait).await;
            let waiting = match watched.map_err(explain)? {
                Ok(waiting) => waiting,
                Err(refusal) => return Ok(Some(Err(refusal))),
            };
            let mut signals = Signals::listen()?;
            tokio::select! {
                over = until_over(self.store(), self.id, agent, &waiting, limit) => over?,
                _ = signals.next() => return Ok(None),
            }
            Ok(Some(Ok(waiting)))
        })
    }

    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.database.wait(future)
    }
}

/// The configured database, with a runtime to wait for it.
pub(crate) struct Database {
    pub(crate) store: Store,
    runtime: Runtime,
}

impl Database {
    pub(crate) fn open(environment: &Environment) -> anyhow::Result<Database> {
        let store = open_database(environment).map_err(|error| {
            match environment.selection.inside_agent {
                true => anyhow::anyhow!("{HIDDEN}"),
                false => error,
            }
        })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Database { store, runtime })
    }

    /// Finds a session by the start of its ID.
    pub(crate) fn find_session(&self, named: &str) -> anyhow::Result<SessionId> {
        self.wait(find_session(&self.store, named))
    }

    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }
}

/// Opens the database and resolves the selected agent, or the user. A name is looked up in the existing session,
/// if any.
fn open_for_actor(environment: &Environment) -> anyhow::Result<(Database, Correspondent)> {
    let named = environment.selection.agent.as_deref().unwrap_or("0/");
    if named == Correspondent::USER && !environment.selection.inside_agent {
        return Ok((Database::open(environment)?, Correspondent::User));
    }
    // Report an invalid ID before anything is opened. An agent's command always has an ID.
    let parsed = parse_agent(named);
    if named.contains('/') || environment.selection.inside_agent {
        let agent = parsed?;
        return Ok((Database::open(environment)?, agent.into()));
    }
    let database = Database::open(environment)?;
    let agent = match parsed {
        Ok(agent) => agent,
        Err(_) => database.wait(async {
            let session = existing_session(&database.store, environment).await?;
            find_agent(&database.store, session, named).await
        })?,
    };
    Ok((database, agent.into()))
}
