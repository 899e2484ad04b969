//! The session and the agent that a command of the person's hand works on.

use std::future::Future;

use ikigai_agents::{SeatError, until_over};
use ikigai_conversation::{AgentId, SessionId};
use ikigai_store::{
    Agent, Location, Outcome, Process, Refusal, StartedWait, State, Step, Store, StoreError, Wait,
};
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::database;
use crate::environment::{Environment, HIDDEN};
use crate::print;
use crate::roots::find_folder;
use crate::settings;
use crate::signals::Signals;

/// An open database, with the session and agent that were chosen.
pub(crate) struct OpenSession<'a> {
    database: Database,
    environment: &'a Environment,
    pub(crate) id: SessionId,
    pub(crate) agent: AgentId,
}

impl<'a> OpenSession<'a> {
    /// The session that was named, or the newest one of the directory; it is made when there is none, or when a new one
    /// was asked for. Refused where the directory is not the folder that the session knows.
    pub(crate) fn open(environment: &'a Environment) -> anyhow::Result<OpenSession<'a>> {
        let chosen = &environment.chosen;
        if chosen.new && chosen.inside_agent {
            anyhow::bail!("--new cannot be used inside an agent's command");
        }
        let (database, agent) = open_for_agent(environment)?;
        if chosen.new && agent != AgentId::top_level(0) {
            return Err(SeatError::NotInNewSession(agent).into());
        }
        let (place, budget) = (place(environment), settings::budget(&environment.settings));
        let new = SessionId::new(Uuid::now_v7());
        let id = match &chosen.session {
            Some(named) => database.find_session(named)?,
            None if chosen.new => {
                database.wait(database.store.create_session(place, new, budget))?
            }
            None => database.wait(database.store.session_at(place, new, budget))?,
        };
        // A command of an agent may run anywhere.
        if !chosen.inside_agent {
            let folders = environment.roots()?.folders().to_vec();
            database.wait(database.store.check_roots(id, Process::current(), folders))?;
        }
        Ok(OpenSession { database, environment, id, agent })
    }

    /// The same, but nothing is made: `None` when the directory has no session yet.
    pub(crate) fn open_existing(
        environment: &'a Environment,
    ) -> anyhow::Result<Option<OpenSession<'a>>> {
        let (database, agent) = open_for_agent(environment)?;
        let id = database.wait(existing_session(&database.store, environment))?;
        Ok(id.map(|id| OpenSession { database, environment, id, agent }))
    }

    /// The same for a command that only looks: without a session there is nothing to see.
    pub(crate) fn look(environment: &'a Environment) -> anyhow::Result<OpenSession<'a>> {
        OpenSession::open_existing(environment)?.ok_or_else(|| {
            anyhow::anyhow!("there is no session in {} yet", environment.directory.display())
        })
    }

    /// Refuses a session that knows another folder under one of its paths, wherever the user is.
    pub(crate) fn require_its_folders(&self) -> anyhow::Result<()> {
        self.wait(async {
            let (store, process) = (self.store(), Process::current());
            let paths = store.root_paths(self.id, process.clone()).await?;
            let found = paths.iter().filter_map(|path| find_folder(path)).collect();
            Ok(store.check_roots(self.id, process, found).await?)
        })
    }

    pub(crate) fn store(&self) -> &Store {
        &self.database.store
    }

    /// Performs a step in the agent's mailbox; `None` when the database refused it, which the person is told.
    pub(crate) fn perform(&self, step: Step) -> anyhow::Result<Option<Outcome>> {
        // Inside an agent's command it is not the person who speaks.
        let refill = match self.environment.chosen.inside_agent {
            true => None,
            false => Some(settings::budget(&self.environment.settings)),
        };
        let (session, agent) = (self.id, self.agent.clone());
        match self.wait(self.store().perform(session, agent, step, refill)) {
            Ok(outcome) => Ok(Some(outcome)),
            // What was named is wrong, not the step.
            Err(error @ (StoreError::AgentNotFound(_) | StoreError::SessionNotFound(_))) => {
                Err(explain(error))
            }
            Err(error) => {
                print::error(&error.into());
                Ok(None)
            }
        }
    }

    /// Waits for other agents in the name of the agent, as long as it takes; `None` when it was interrupted.
    pub(crate) fn wait_for_agents(
        &self,
        wait: Wait,
    ) -> anyhow::Result<Option<Result<StartedWait, Refusal>>> {
        self.wait(async {
            let limit = wait.limit;
            let watched = self.store().watch(self.id, self.agent.clone(), wait).await;
            let waiting = match watched.map_err(explain)? {
                Ok(waiting) => waiting,
                Err(refusal) => return Ok(Some(Err(refusal))),
            };
            let mut signals = Signals::listen()?;
            tokio::select! {
                over = until_over(self.store(), self.id, &self.agent, &waiting, limit) => over?,
                _ = signals.next() => return Ok(None),
            }
            Ok(Some(Ok(waiting)))
        })
    }

    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.database.wait(future)
    }
}

/// The database of the configuration.
pub(crate) struct Database {
    pub(crate) store: Store,
    runtime: Runtime,
}

impl Database {
    pub(crate) fn open(environment: &Environment) -> anyhow::Result<Database> {
        let store =
            database::open(environment).map_err(|error| match environment.chosen.inside_agent {
                true => anyhow::anyhow!("{HIDDEN}"),
                false => error,
            })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Database { store, runtime })
    }

    /// The session whose id begins so.
    pub(crate) fn find_session(&self, named: &str) -> anyhow::Result<SessionId> {
        self.wait(find_session(&self.store, named))
    }

    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }
}

/// The session whose id begins so.
pub(crate) async fn find_session(store: &Store, named: &str) -> anyhow::Result<SessionId> {
    if let Ok(id) = SessionId::parse(named) {
        return Ok(id);
    }
    let sessions = store.sessions().await?;
    let mut matching =
        sessions.iter().map(|session| session.id).filter(|id| id.to_string().starts_with(named));
    match (matching.next(), matching.next()) {
        (Some(id), None) if !named.is_empty() => Ok(id),
        (Some(_), Some(_)) => anyhow::bail!(
            "more than one session begins with '{named}': 'ikigai sessions' lists them"
        ),
        _ => anyhow::bail!("Session {named} not found: 'ikigai sessions' lists them"),
    }
}

/// Says what to do where the store, which does not know our commands, cannot.
pub(crate) fn explain(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::AgentNotFound(_) => {
            anyhow::anyhow!("{error} in this session: 'ikigai agents' lists them")
        }
        _ => error.into(),
    }
}

/// Where the person is.
pub(crate) fn place(environment: &Environment) -> Location {
    Location {
        machine: Process::current().machine,
        directory: environment.directory.to_string_lossy().into_owned(),
    }
}

/// The database, with the agent that was chosen. A name is looked for in a session that is there: none is made
/// for it.
fn open_for_agent(environment: &Environment) -> anyhow::Result<(Database, AgentId)> {
    let named = environment.chosen.agent.as_deref().unwrap_or("0/");
    // What can only be an id, and is none, is said before anything is opened. A command's variable is one.
    let parsed = parse_agent(named);
    if named.contains('/') || environment.chosen.inside_agent {
        let agent = parsed?;
        return Ok((Database::open(environment)?, agent));
    }
    let database = Database::open(environment)?;
    let agent = match parsed {
        Ok(agent) => agent,
        Err(_) => database.wait(async {
            let session = existing_session(&database.store, environment).await?;
            find_agent(&database.store, session, named).await
        })?,
    };
    Ok((database, agent))
}

/// The session that was named, or the newest one of the directory, unless a new one was asked for.
async fn existing_session(
    store: &Store,
    environment: &Environment,
) -> anyhow::Result<Option<SessionId>> {
    match &environment.chosen.session {
        Some(named) => find_session(store, named).await.map(Some),
        None if environment.chosen.new => Ok(None),
        None => Ok(store.latest_session(place(environment)).await?),
    }
}

/// The agent that is meant: an id, or the name of one that lives in the session.
pub(crate) async fn find_agent(
    store: &Store,
    session: Option<SessionId>,
    named: &str,
) -> anyhow::Result<AgentId> {
    let parsed = parse_agent(named);
    let (Err(_), Some(session)) = (&parsed, session) else { return parsed };
    let agents = store.agents(session).await?;
    let is_meant =
        |agent: &&Agent| agent.state != State::Dead && agent.name.as_deref() == Some(named);
    // A living agent's name means one.
    agents.iter().find(is_meant).map_or(parsed, |agent| Ok(agent.id.clone()))
}

/// The model that last answered in the session that is to go on, if one is and it had any.
pub(crate) async fn last_model(environment: &Environment) -> Option<String> {
    let chosen = &environment.chosen;
    if chosen.inside_agent || !(chosen.continues || chosen.session.is_some()) {
        return None;
    }
    // Whatever is wrong with it is said when the seat is taken.
    let store = database::open(environment).ok()?;
    let session = match chosen.session.as_deref() {
        Some(named) => find_session(&store, named).await.ok()?,
        None => store.latest_session(place(environment)).await.ok()??,
    };
    let named = match chosen.agent.as_deref() {
        Some(named) => Some(find_agent(&store, Some(session), named).await.ok()?),
        None => None,
    };
    let agents = store.agents(session).await.ok()?;
    let is_meant = |agent: &&Agent| named.as_ref().is_none_or(|named| agent.id == *named);
    agents.iter().filter(is_meant).find_map(|agent| agent.model.clone())
}

/// An agent's id as it is typed, with its last slash or without.
fn parse_agent(named: &str) -> anyhow::Result<AgentId> {
    let slashed = format!("{}/", named.trim_end_matches('/'));
    AgentId::parse(&slashed).map_err(|_| {
        anyhow::anyhow!(
            "'{named}' is no agent: they are called 0/, 1/, 0/2/ …; 'ikigai agents' lists them"
        )
    })
}
