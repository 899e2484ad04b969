//! Selecting a session and an agent by ID, ID prefix or name.

use ikigai_conversation::{AgentId, SessionId};
use ikigai_store::{Agent, Location, Process, State, Store, StoreError};

use crate::database;
use crate::environment::Environment;

/// The session and agent named by options, or by the agent's command in which this process runs.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// The start of the session's ID.
    pub session: Option<String>,
    /// The agent's ID or name.
    pub agent: Option<String>,
    /// Continue the latest session.
    pub continues: bool,
    /// Start a new session even if one is running.
    pub new: bool,
    /// This process runs inside an agent's command and acts as that agent.
    pub inside_agent: bool,
}

/// The session whose ID starts like this.
///
/// # Errors
/// When there is none, or more than one.
pub async fn find_session(store: &Store, named: &str) -> anyhow::Result<SessionId> {
    if let Ok(id) = SessionId::parse(named) {
        return Ok(id);
    }
    let sessions = store.sessions().await?;
    let mut matching =
        sessions.iter().map(|session| session.id).filter(|id| id.to_string().starts_with(named));
    match (matching.next(), matching.next()) {
        (Some(id), None) if !named.is_empty() => Ok(id),
        (Some(_), Some(_)) => anyhow::bail!(
            "more than one session starts with '{named}': 'ikigai sessions' lists them"
        ),
        _ => anyhow::bail!("Session {named} not found: 'ikigai sessions' lists them"),
    }
}

/// Adds what to do to errors of the store, which does not know the program's commands.
pub fn explain(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::AgentNotFound(_) => {
            anyhow::anyhow!("{error} in this session: 'ikigai agents' lists them")
        }
        _ => error.into(),
    }
}

/// The machine and directory of this process.
pub fn place(environment: &Environment) -> Location {
    Location {
        machine: Process::current().machine,
        directory: environment.directory.to_string_lossy().into_owned(),
    }
}

/// The named session, or the latest in the directory, unless a new one is wanted.
///
/// # Errors
/// When the named one does not exist, or the database refuses.
pub async fn existing_session(
    store: &Store,
    environment: &Environment,
) -> anyhow::Result<Option<SessionId>> {
    match &environment.selection.session {
        Some(named) => find_session(store, named).await.map(Some),
        None if environment.selection.new => Ok(None),
        None => Ok(store.latest_session(place(environment)).await?),
    }
}

/// Finds an agent by its ID, or by the name of a living agent of the session.
///
/// # Errors
/// When it is neither, or the database refuses.
pub async fn find_agent(
    store: &Store,
    session: Option<SessionId>,
    named: &str,
) -> anyhow::Result<AgentId> {
    let parsed = parse_agent(named);
    let (Err(_), Some(session)) = (&parsed, session) else { return parsed };
    let agents = store.agents(session).await?;
    let is_meant =
        |agent: &&Agent| agent.state != State::Dead && agent.name.as_deref() == Some(named);
    // Names are unique among living agents.
    agents.iter().find(is_meant).map_or(parsed, |agent| Ok(agent.id.clone()))
}

/// The model last used in the session that is continued, if any.
pub(crate) async fn last_model(environment: &Environment) -> Option<String> {
    let chosen = &environment.selection;
    if chosen.inside_agent || !(chosen.continues || chosen.session.is_some()) {
        return None;
    }
    // Errors here are reported when the agent is claimed.
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

/// Parses an agent's ID, with or without its trailing slash.
///
/// # Errors
/// When it is not an agent's ID.
pub fn parse_agent(named: &str) -> anyhow::Result<AgentId> {
    let slashed = format!("{}/", named.trim_end_matches('/'));
    AgentId::parse(&slashed).map_err(|_| {
        anyhow::anyhow!(
            "'{named}' is not an agent ID such as 0/, 1/ or 0/2/; 'ikigai agents' lists the agents"
        )
    })
}
