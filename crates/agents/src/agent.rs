//! An agent and everything it needs to run.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ikigai_conversation::{AgentId, Body, EffectKind, Effort, Log, Message, NewMessage, bytes_of};
use ikigai_providers::{Client, KnownFacts, Tool};
use ikigai_store::{AgentLimits, AnswersFrom, Budget, State, Step, StoreError};
use ikigai_tools::{Commands, Context, Declaration, Dispatcher, FileMemory, Mode, OutputSize};
use tokio_util::sync::CancellationToken;

use crate::compaction::{ContextSettings, Room};
use crate::costs::Costs;
use crate::models::Models;
use crate::permission::{Permissions, User};
use crate::seat::Seat;
use ikigai_protocol::{Event, EventKind, EventSink};

/// The model that an agent uses.
#[derive(Debug, Clone)]
pub struct Model {
    /// The client for its server.
    pub client: Arc<Client>,
    /// The provider's name for it.
    pub name: String,
    /// `provider/name`, as shown to the user.
    pub label: String,
    /// What is known about it.
    pub facts: KnownFacts,
}

impl Model {
    /// The provider.
    pub(crate) fn origin(&self) -> &str {
        self.label.split('/').next().unwrap_or_default()
    }
}

/// What an agent can do.
pub struct Toolbox {
    /// The available tools.
    pub dispatcher: Dispatcher<Step>,
    /// Starts commands.
    pub commands: Arc<Commands>,
    /// The absolute working directory.
    pub directory: PathBuf,
    /// How much of an output is sent to the model.
    pub output_size: OutputSize,
    /// What they may access.
    pub permissions: Arc<Permissions>,
    /// The environment variable that tells a command which agent runs it.
    pub agent_variable: OsString,
}

/// The declarations of the tools that are offered in `mode`.
pub fn offered_tools(dispatcher: &Dispatcher<Step>, mode: Mode) -> Vec<Tool> {
    let tool = |declaration: &Declaration| Tool {
        name: declaration.name.clone(),
        description: declaration.description.clone(),
        parameters: declaration.parameters.clone(),
    };
    let offered = dispatcher.tools().filter(|tool| ikigai_tools::offers(mode, tool.effects()));
    offered.map(|offered| tool(offered.declaration())).collect()
}

impl Toolbox {
    /// Whether any of the tools runs commands.
    pub(crate) fn runs_commands(&self) -> bool {
        self.dispatcher.tools().any(|tool| tool.effects().contains(&EffectKind::Command))
    }
}

/// How much an agent may do until the user's next message.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Wakes and requests, for the whole session.
    pub budget: Budget,
    /// The number of responses with calls in one turn.
    pub tool_turns: u32,
    /// Who is there when that number is reached: a user is asked whether to continue.
    pub user: User,
    /// When an agent is notified of mail.
    pub notify: Notify,
    /// Whether to run free agents that have work to do.
    pub free_agents: FreeAgents,
    /// What becomes of background commands when there is nothing else to do.
    pub commands_at_end: CommandsAtEnd,
    /// The maximum number and depth of the session's agents.
    pub agents: AgentLimits,
    /// Who may answer approval requests.
    pub answers_from: AnswersFrom,
}

/// When an agent is notified of mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notify {
    /// When it is idle.
    Idle,
    /// When it is idle, and between the last result of a response and the next request.
    Boundary,
}

/// Whether a process runs free agents: those of its session, machine and directory that no process
/// runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreeAgents {
    /// It runs them when they have work to do.
    TakenUp,
    /// The same, but if their process died, it waits until the lease has expired: the user may
    /// restart that process.
    TakenUpLater,
    /// It leaves them to other processes.
    Left,
}

/// What becomes of background commands when the process has nothing else to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandsAtEnd {
    /// They are ended.
    Ended,
    /// The process waits for them.
    Awaited,
}

/// What all agents of a process share.
pub struct TeamSetup {
    /// The models that they use.
    pub models: Arc<Models>,
    /// What they can do.
    pub toolbox: Toolbox,
    /// How much they may do.
    pub limits: Limits,
    /// When they make room in their contexts.
    pub context: ContextSettings,
    /// What they may spend.
    pub costs: Costs,
    /// The system prompt of logs that have none yet.
    pub prompt: String,
    /// Receives the events of all agents.
    pub events: EventSink,
}

/// An agent that this process runs.
pub(crate) struct Agent {
    pub(crate) seat: Seat,
    setup: Arc<TeamSetup>,
    /// The model of the last request.
    model: Model,
    /// The tools offered to the model, and the mode that they were selected for.
    declared: (Mode, Vec<Tool>),
    /// The fingerprints of files when the agent last saw them, as stored in the database.
    pub(crate) memory: Arc<FileMemory>,
    /// The session's system prompt, if it has one; for an agent whose log has none yet.
    prompt: Option<String>,
    is_loaded: bool,
    /// A copy of the agent's log, without what a summary or a clear hides; the first `inherited`
    /// messages are its parent's.
    pub(crate) log: Vec<Message>,
    inherited: usize,
    /// Whether user messages may be queued; set by the writer of the queue.
    pub(crate) queued: Arc<AtomicBool>,
    /// How many attempts of the latest request came to nothing before the response that was
    /// recorded, although they may have been billed.
    pub(crate) lost_attempts: u32,
    /// Rings when the user moves the running command to the background.
    pub(crate) leave: Arc<tokio::sync::Notify>,
    /// Whether it was notified of commands that ended with an earlier process.
    pub(crate) knows_lost_commands: bool,
    /// Interrupts the current turn. Every turn gets a new token.
    pub(crate) interrupt: CancellationToken,
}

impl Agent {
    /// An agent whose log is not loaded yet; [`load`](Agent::load) does that.
    pub(crate) fn new(seat: Seat, setup: Arc<TeamSetup>) -> Agent {
        let mode = setup.toolbox.permissions.mode();
        let declared = (mode, offered_tools(&setup.toolbox.dispatcher, mode));
        let model = setup.models.of(seat.agent());
        Agent {
            seat,
            setup,
            model,
            declared,
            memory: Arc::default(),
            prompt: None,
            is_loaded: false,
            log: Vec::new(),
            inherited: 0,
            queued: Arc::new(AtomicBool::new(true)),
            lost_attempts: 0,
            leave: Arc::default(),
            knows_lost_commands: false,
            interrupt: CancellationToken::new(),
        }
    }

    /// The agent's ID.
    pub(crate) fn id(&self) -> &AgentId {
        &self.seat.agent
    }

    /// Loads the log unless it is loaded already, and closes the calls that a crash left open.
    /// Returns whether a turn was cut off and has to continue.
    pub(crate) async fn load(&mut self) -> Result<Unfinished, StoreError> {
        if self.is_loaded || self.seat.lease().is_none() {
            return Ok(Unfinished::Nothing);
        }
        let (session, id) = (self.seat.session(), self.seat.agent().clone());
        let log = self
            .with_retry(|agent| {
                let (store, id) = (agent.seat.store(), agent.id().clone());
                Ok(async move { store.needed_log(session, id).await })
            })
            .await?;
        self.replace_log(log);
        self.recall_files().await?;
        self.is_loaded = true;
        let open = self.log().open_calls();
        if !open.is_empty() {
            self.record(open, ikigai_store::Next::Tool).await?;
        }
        if !self.has_system_prompt() {
            self.prompt = self
                .with_retry(|agent| {
                    let store = agent.seat.store();
                    Ok(async move { store.system_prompt(session).await })
                })
                .await?;
        }
        let agents = self
            .with_retry(|agent| {
                let store = agent.seat.store();
                Ok(async move { store.agents(session).await })
            })
            .await?;
        let was_idle = agents.iter().any(|agent| agent.id == id && agent.state == State::Idle);
        Ok(match self.log().needs_turn() && !was_idle {
            true => Unfinished::Turn,
            false => Unfinished::Nothing,
        })
    }

    pub(crate) fn setup(&self) -> Arc<TeamSetup> {
        Arc::clone(&self.setup)
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// The effort for the next request, unless the model has refused one.
    pub(crate) fn effort(&self) -> Option<Effort> {
        let effort = self.setup.models.effort_of(self.id());
        effort.filter(|_| !self.setup.models.refuses_effort(&self.model.label))
    }

    pub(crate) fn toolbox(&self) -> &Toolbox {
        &self.setup.toolbox
    }

    pub(crate) fn limits(&self) -> Limits {
        self.setup.limits
    }

    pub(crate) fn log(&self) -> Log<'_> {
        let (inherited, own) = self.log.split_at(self.inherited);
        Log::forked(inherited, own)
    }

    /// Forgets the part of the log that a summary or a clear hides.
    pub(crate) fn forget_hidden(&mut self) {
        let log = self.log();
        let Some(reduction) = log.reduction() else { return };
        let needed = log.reduced(&reduction);
        self.replace_log(needed);
    }

    /// Replaces the copy of the log.
    pub(crate) fn replace_log(&mut self, log: Vec<Message>) {
        let id = self.id().clone();
        self.inherited = log.partition_point(|message| message.agent != id);
        self.log = log;
    }

    /// The log without the messages that a fork inherited.
    pub(crate) fn own_log(&self) -> &[Message] {
        &self.log[self.inherited..]
    }

    /// The IDs of the calls in the log, including those that a rewind discarded.
    pub(crate) fn call_ids(&self) -> HashSet<&str> {
        let ids = self.log.iter().filter_map(|message| match &message.body {
            Body::ToolCall(call) => Some(call.tool_call_id.as_str()),
            _ => None,
        });
        ids.collect()
    }

    /// A user message, preceded by the system prompt if the log has none yet.
    pub(crate) fn user_messages(&self, text: String) -> Vec<NewMessage> {
        self.missing_prompt().into_iter().chain([NewMessage::user(text)]).collect()
    }

    /// The system prompt, if the log has none yet.
    pub(crate) fn missing_prompt(&self) -> Option<NewMessage> {
        (!self.has_system_prompt()).then(|| NewMessage::system(self.prompt()))
    }

    /// The system prompt of the session.
    pub(crate) fn prompt(&self) -> String {
        self.prompt.as_ref().unwrap_or(&self.setup.prompt).clone()
    }

    fn has_system_prompt(&self) -> bool {
        self.log.iter().any(|message| message.body == Body::System)
    }

    /// The context of a call in this turn.
    pub(crate) fn context(&self) -> Context {
        let Toolbox { commands, directory, permissions, agent_variable, .. } = self.toolbox();
        let agent = OsString::from(self.id().to_string());
        let interrupt = self.interrupt.clone();
        let context = Context::new(directory, self.output_size(), Arc::clone(commands), interrupt);
        permissions
            .enclose(context)
            .with_variables(vec![(agent_variable.clone(), agent.clone())])
            .of_agent(agent)
            .remembering(Arc::clone(&self.memory))
            .with_background(Arc::clone(&self.leave))
    }

    /// The maximum size of an output: as configured, and no more than a part of the model's context.
    pub(crate) fn output_size(&self) -> OutputSize {
        let configured = self.toolbox().output_size.bytes();
        let window = self.model.facts.now().context_window;
        let most = window.map_or(configured, |window| bytes_of(Room::one_output(window)));
        OutputSize::clamped(configured.min(most))
    }

    pub(crate) fn emit(&self, kind: EventKind) {
        (self.setup.events)(Event { agent: self.seat.agent().clone(), kind });
    }

    /// Updates the model and the offered tools: the user may have changed the model or the mode.
    pub(crate) fn refresh(&mut self) {
        self.model = self.setup.models.of(self.id());
        let mode = self.toolbox().permissions.mode();
        if mode != self.declared.0 {
            self.declared = (mode, offered_tools(&self.toolbox().dispatcher, mode));
        }
    }

    pub(crate) fn declared(&self) -> &[Tool] {
        &self.declared.1
    }
}

/// The unfinished work in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// None.
    Nothing,
    /// A turn that has to continue.
    Turn,
}
