//! Bringing an agent to its seat: the session that was asked for, its model, its tools.

use std::sync::Arc;

use ikigai_agents::{
    Equipment, FreeAgents, Limits, Model, Models, Person, Seat, Surroundings, Toolbox, Which,
    system_prompt,
};
use ikigai_conversation::{AgentId, SessionId};
use ikigai_protocol::EventSink;
use ikigai_store::Store;

use crate::command::now;
use crate::database;
use crate::environment::{self, Environment};
use crate::permissions::permissions;
use crate::print;
use crate::session::{find_agent, find_session, place};
use crate::settings;
use crate::temporary::TemporaryFolder;

/// What happens when no session is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Otherwise {
    /// A new one is begun.
    New,
    /// One that runs here is joined.
    Join,
}

/// Takes the seat that the command line asks for.
pub(crate) async fn take_seat(
    environment: &Environment,
    otherwise: Otherwise,
) -> anyhow::Result<Seat> {
    let store = Arc::new(database::open(environment)?);
    let chosen = &environment.chosen;
    // Inside a command of an agent the variables name a session that somebody else runs.
    let named = chosen.session.as_deref().filter(|_| !chosen.inside_agent);
    let which = match named {
        Some(named) => Which::Named(find_session(&store, named).await?),
        None if chosen.continues => Which::Newest,
        None if chosen.new || otherwise == Otherwise::New => Which::New,
        None => Which::Running,
    };
    let place = place(environment);
    let agent = match chosen.agent.as_deref().filter(|_| !chosen.inside_agent) {
        Some(named) => {
            let session = Seat::session_of(&store, &place, which).await?;
            Some(find_agent(&store, session, named).await?)
        }
        None => None,
    };
    let (roots, limits) =
        (environment.roots()?.folders(), settings::agent_limits(&environment.settings));
    let seat = Seat::take(store, place, roots, which, agent, limits).await?;
    let (agent, first) = (seat.agent(), AgentId::top_level(0));
    if *agent != first && chosen.agent.is_none() {
        let dead = seat.store().dead_among(seat.session(), vec![first.clone()]).await?;
        let why = if dead.is_empty() { "run by another process" } else { "dead" };
        print::note(&format!("ikigai: agent {first} is {why}, so this is agent {agent}"));
    }
    Ok(seat)
}

/// Waits until a session runs here that could be joined. A seat that was taken before anybody had spoken anywhere has none
/// of its own yet.
pub(crate) async fn session_to_join(environment: &Environment, seat: &Seat) -> SessionId {
    match environment.chosen.new {
        true => std::future::pending().await,
        false => seat.overtaken().await,
    }
}

/// Joins such a session, unless somebody has spoken here in this very moment.
pub(crate) async fn join(
    environment: &Environment,
    seat: &Seat,
    other: SessionId,
) -> anyhow::Result<Seat> {
    let which = if seat.is_made() { Which::Named(seat.session()) } else { Which::Beside(other) };
    let (roots, limits) =
        (environment.roots()?.folders(), settings::agent_limits(&environment.settings));
    Ok(Seat::take(seat.store(), place(environment), roots, which, None, limits).await?)
}

/// Takes a seat as a further agent of a session.
pub(crate) async fn take_seat_beside(
    environment: &Environment,
    store: Arc<Store>,
    session: SessionId,
) -> anyhow::Result<Seat> {
    let (roots, limits) =
        (environment.roots()?.folders(), settings::agent_limits(&environment.settings));
    Ok(Seat::take(store, place(environment), roots, Which::Beside(session), None, limits).await?)
}

/// What the agents of this process have in common.
pub(crate) fn equip(
    environment: &Environment,
    model: Model,
    toolbox: Toolbox,
    events: EventSink,
) -> Equipment {
    let settings = &environment.settings;
    let limits = Limits {
        budget: settings::budget(settings),
        tool_turns: settings.number("max_tool_turns"),
        notify: settings::notify(settings),
        free_agents: match toolbox.permissions.person() {
            Person::Absent => FreeAgents::TakenUp,
            Person::Present => FreeAgents::TakenUpLater,
        },
        agents: settings::agent_limits(settings),
    };
    let models = Arc::new(Models::new(model));
    Equipment { models, toolbox, limits, prompt: prompt(environment), events }
}

/// The tools of agents, and what they may touch. The folder for temporary files must outlive them.
pub(crate) fn toolbox(
    environment: &Environment,
    seat: &Seat,
    temporary: &TemporaryFolder,
    person: Person,
) -> anyhow::Result<Toolbox> {
    let temporary = temporary.path();
    let variables = environment.for_commands_of(seat.session(), temporary);
    Ok(Toolbox {
        dispatcher: settings::tools(&environment.settings),
        commands: Arc::new(environment.agents_commands(variables)?),
        directory: environment.directory.clone(),
        output_size: settings::output_size(&environment.settings),
        permissions: permissions(environment, Some(temporary), person)?,
        agent_variable: environment::AGENT.into(),
    })
}

/// What a session that begins now is told first.
pub(crate) fn prompt(environment: &Environment) -> String {
    let date = now().to_seconds_text();
    system_prompt(&Surroundings {
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        directory: environment.directory.clone(),
        date: date.chars().take_while(|c| *c != 'T').collect(),
    })
}
