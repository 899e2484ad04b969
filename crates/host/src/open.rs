//! The only way to open a session: claim an agent, prepare what it needs, run it.

use std::sync::Arc;

use ikigai_agents::{
    CommandsAtEnd, Costs, FreeAgents, Limits, Model, Models, Order, Permissions, Seat,
    SessionChoice, Surroundings, TeamSetup, Toolbox, User, serve, system_prompt,
};
use ikigai_conversation::{AgentId, SessionId};
use ikigai_protocol::EventSink;
use ikigai_store::{Opening, Process, Store, StoreError};
use ikigai_tools::{Commands, Mode, NoSandbox, SandboxKind};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::clock::now;
use crate::commands::UserShell;
use crate::database;
use crate::environment::{AGENT_VARIABLE, Environment};
use crate::model::context_settings;
use crate::permissions::permissions;
use crate::selection::{find_agent, find_session, place};
use crate::settings;
use crate::temporary::TemporaryFolder;

/// The queue of orders. Agents accept them immediately, even while they work.
const ORDERS: usize = 16;

/// How a front end uses a session.
#[derive(Debug, Clone, Copy)]
pub struct SessionOptions {
    /// Whether the user can answer questions.
    pub user: User,
    /// What to do with agents that have work but no process to run them.
    pub free_agents: FreeAgents,
    /// What becomes of background commands when the agents are idle and no one can say more.
    pub commands_at_end: CommandsAtEnd,
    /// What to open when no session was named.
    pub default: DefaultSession,
}

/// What to open when no session was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultSession {
    /// A new session.
    New,
    /// Join the session that runs in this directory as another agent. If there is none, create one
    /// at once.
    Join,
}

impl SessionOptions {
    /// For a front end whose user can answer approval requests.
    pub const INTERACTIVE: SessionOptions = SessionOptions {
        user: User::Present,
        free_agents: FreeAgents::TakenUpLater,
        commands_at_end: CommandsAtEnd::Ended,
        default: DefaultSession::Join,
    };

    /// For a task that runs without a user: calls that need approval are refused.
    pub const UNATTENDED: SessionOptions = SessionOptions {
        user: User::Absent,
        free_agents: FreeAgents::TakenUp,
        commands_at_end: CommandsAtEnd::Ended,
        default: DefaultSession::New,
    };
}

/// The mode and model of an agent. If the agent is lost, its replacement keeps them.
#[derive(Debug, Clone)]
pub struct AgentChoice {
    /// The mode.
    pub mode: Mode,
    /// The model.
    pub model: Model,
}

impl AgentChoice {
    /// The configured mode with `model`.
    pub fn new(environment: &Environment, model: Model) -> AgentChoice {
        AgentChoice { mode: settings::mode(&environment.settings), model }
    }
}

/// An agent that this process may run: its own top-level agent of a session, or a child of it.
#[derive(Clone)]
pub struct AgentSlot {
    environment: Arc<Environment>,
    options: SessionOptions,
    seat: Seat,
    /// Why it is not agent 0/, if the user did not name it.
    note: Option<String>,
}

impl AgentSlot {
    /// Claims the agent selected in the environment.
    ///
    /// # Errors
    /// When there is no such session or agent, another process runs it, or the database refuses.
    pub async fn claim(
        environment: &Arc<Environment>,
        options: SessionOptions,
    ) -> anyhow::Result<AgentSlot> {
        let store = Arc::new(database::open(environment)?);
        let selection = &environment.selection;
        // Inside an agent's command, the variables name a session that another process runs.
        let named = selection.session.as_deref().filter(|_| !selection.inside_agent);
        let which = match named {
            Some(named) => SessionChoice::Named(find_session(&store, named).await?),
            None if selection.continues => SessionChoice::Newest,
            None => match options.default {
                DefaultSession::New => SessionChoice::New,
                DefaultSession::Join if selection.new => SessionChoice::NewAtOnce,
                DefaultSession::Join => SessionChoice::Running,
            },
        };
        let agent = match selection.agent.as_deref().filter(|_| !selection.inside_agent) {
            Some(named) => {
                let session = Seat::session_of(&store, &place(environment), which).await?;
                Some(find_agent(&store, session, named).await?)
            }
            None => None,
        };
        let mut slot = AgentSlot::claim_in(environment, options, store, which, agent).await?;
        slot.note = slot.substitute().await?;
        Ok(slot)
    }

    /// Claims an agent of a session: `agent` if given, else the lowest that no process runs.
    ///
    /// # Errors
    /// When another process runs it, or the database refuses.
    pub async fn claim_in(
        environment: &Arc<Environment>,
        options: SessionOptions,
        store: Arc<Store>,
        which: SessionChoice,
        agent: Option<AgentId>,
    ) -> anyhow::Result<AgentSlot> {
        let opening = Opening {
            location: place(environment),
            process: Process::current(),
            roots: environment.roots()?.folders().to_vec(),
            budget: settings::budget(&environment.settings),
            limits: settings::agent_limits(&environment.settings),
        };
        let seat = Seat::take(store, opening, which, agent).await?;
        Ok(AgentSlot { environment: Arc::clone(environment), options, seat, note: None })
    }

    /// Claims another agent of the same session.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn claim_another(&self) -> anyhow::Result<AgentSlot> {
        let (store, beside) = (self.store(), SessionChoice::Beside(self.session()));
        AgentSlot::claim_in(&self.environment, self.options, store, beside, None).await
    }

    /// Why this is not agent 0/, unless the user named the agent.
    async fn substitute(&self) -> anyhow::Result<Option<String>> {
        let (agent, first) = (self.agent(), AgentId::top_level(0));
        if *agent == first || self.environment.selection.agent.is_some() {
            return Ok(None);
        }
        let (store, session) = (self.store(), self.session());
        let why = match store.holder(session, first.clone()).await {
            // It was never used, and its terminal has closed.
            Err(StoreError::AgentNotFound(_)) => "gone",
            Ok(None) if !store.dead_among(session, vec![first.clone()]).await?.is_empty() => "dead",
            found => found.map(|_| "run by another process")?,
        };
        Ok(Some(format!("agent {first} is {why}, so you talk to agent {agent}")))
    }

    /// What the user should know about the claim, if anything.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The session. A new one is created with its first message.
    pub fn session(&self) -> SessionId {
        self.seat.session()
    }

    /// The agent.
    pub fn agent(&self) -> &AgentId {
        self.seat.agent()
    }

    /// Whether the session is in the database.
    pub fn is_session_started(&self) -> bool {
        self.seat.is_made()
    }

    /// The environment that it was claimed with.
    pub fn environment(&self) -> &Arc<Environment> {
        &self.environment
    }

    /// Claims an agent of another session, or of a new one in the same directory.
    ///
    /// # Errors
    /// When the session is gone, or the database refuses.
    pub async fn claim_session(&self, session: Option<SessionId>) -> anyhow::Result<AgentSlot> {
        let which = session.map_or(SessionChoice::NewAtOnce, SessionChoice::Named);
        AgentSlot::claim_in(&self.environment, self.options, self.store(), which, None).await
    }

    /// The title of the session; empty until the user has said something.
    pub async fn title(&self) -> String {
        self.store().session_title(self.session()).await.unwrap_or_default()
    }

    /// Whether a user can answer questions.
    pub(crate) fn user(&self) -> User {
        self.options.user
    }

    pub(crate) fn store(&self) -> Arc<Store> {
        self.seat.store()
    }

    pub(crate) fn seat(&self) -> &Seat {
        &self.seat
    }

    /// Opens the session: prepares tools, permissions and sandbox. Nothing runs until the service
    /// runs.
    ///
    /// # Errors
    /// When a folder cannot be opened, or a rule of the settings is wrong.
    pub async fn open(
        self,
        choice: AgentChoice,
        events: EventSink,
    ) -> anyhow::Result<(OpenSession, AgentService)> {
        let temporary = TemporaryFolder::of_session(&self.environment, self.session())?;
        let toolbox = self.toolbox(&temporary)?;
        let permissions = Arc::clone(&toolbox.permissions);
        let commands = Arc::clone(&toolbox.commands);
        permissions.set_mode(choice.mode);
        let sandbox = toolbox.commands.sandbox_kind().await;
        let models =
            Arc::new(Models::new(choice.model, settings::effort(&self.environment.settings)));
        let setup = TeamSetup {
            models: Arc::clone(&models),
            toolbox,
            limits: self.limits(),
            context: context_settings(&self.environment)?,
            costs: Costs::new(settings::cost_limits(&self.environment.settings)),
            prompt: prompt(&self.environment),
            events,
        };
        let (orders, received) = mpsc::channel(ORDERS);
        let service = AgentService { slot: self.clone(), setup, orders: received, temporary };
        Ok((
            OpenSession {
                slot: self,
                permissions,
                models,
                commands,
                sandbox,
                orders,
                shell: UserShell::default(),
            },
            service,
        ))
    }

    /// The agents' tools and permissions.
    fn toolbox(&self, temporary: &TemporaryFolder) -> anyhow::Result<Toolbox> {
        let (environment, temporary) = (&self.environment, temporary.path());
        let variables = environment.for_commands_of(self.session(), temporary);
        Ok(Toolbox {
            dispatcher: settings::tools(&environment.settings),
            commands: Arc::new(environment.agents_commands(variables)?),
            directory: environment.directory.clone(),
            output_size: settings::output_size(&environment.settings),
            permissions: permissions(environment, Some(temporary), self.options.user)?,
            agent_variable: AGENT_VARIABLE.into(),
        })
    }

    fn limits(&self) -> Limits {
        let settings = &self.environment.settings;
        Limits {
            budget: settings::budget(settings),
            tool_turns: settings.number("max_tool_turns"),
            user: self.options.user,
            notify: settings::notify(settings),
            free_agents: self.options.free_agents,
            commands_at_end: self.options.commands_at_end,
            agents: settings::agent_limits(settings),
            answers_from: settings::answers_from(settings),
        }
    }
}

/// A session that a front end sends requests to. Once it is dropped, the service ends as soon as
/// the agents are idle.
pub struct OpenSession {
    pub(crate) slot: AgentSlot,
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) models: Arc<Models>,
    pub(crate) commands: Arc<Commands>,
    sandbox: Result<SandboxKind, NoSandbox>,
    pub(crate) orders: mpsc::Sender<Order>,
    pub(crate) shell: UserShell,
}

impl OpenSession {
    /// The agent that this process runs, with its session.
    pub fn slot(&self) -> &AgentSlot {
        &self.slot
    }

    /// The sandbox of commands, or why there is none.
    pub fn sandbox(&self) -> &Result<SandboxKind, NoSandbox> {
        &self.sandbox
    }

    /// The current mode and model.
    pub fn choice(&self) -> AgentChoice {
        let model = self.models.of(self.slot.agent());
        AgentChoice { mode: self.permissions.mode(), model }
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.slot.environment
    }
}

/// Runs the agents of a session.
pub struct AgentService {
    slot: AgentSlot,
    setup: TeamSetup,
    orders: mpsc::Receiver<Order>,
    /// Removed with the service, unless it is still needed.
    temporary: TemporaryFolder,
}

/// Why a service ended.
#[derive(Debug)]
pub enum ServiceEnd {
    /// It was stopped, or had nothing left to do.
    Finished,
    /// Another process took over the agent, or the agent was killed; the error says which. Continue
    /// with [`AgentSlot::claim_another`].
    AgentLost(StoreError),
}

impl AgentService {
    /// Runs the agents until `stop` is cancelled, which interrupts their turns, or until the
    /// service ends for another reason.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn run(self, stop: CancellationToken) -> Result<ServiceEnd, StoreError> {
        let AgentService { slot, setup, orders, temporary } = self;
        let _until_the_end = temporary;
        match serve(slot.seat, setup, orders, stop).await {
            Ok(()) => Ok(ServiceEnd::Finished),
            Err(lost @ (StoreError::LeaseLost { .. } | StoreError::AgentDead(_))) => {
                Ok(ServiceEnd::AgentLost(lost))
            }
            Err(error) => Err(error),
        }
    }
}

/// The system prompt of a new session.
pub fn prompt(environment: &Environment) -> String {
    let date = now().to_seconds_text();
    system_prompt(&Surroundings {
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        directory: environment.directory.clone(),
        date: date.chars().take_while(|c| *c != 'T').collect(),
    })
}
