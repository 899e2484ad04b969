//! An agent with all that it needs to work.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ikigai_conversation::{AgentId, Body, EffectKind, Log, Message, NewMessage};
use ikigai_providers::{Client, Tool};
use ikigai_store::{AgentLimits, Budget, State, Step, StoreError};
use ikigai_tools::{Commands, Context, Declaration, Dispatcher, FileMemory, Mode, OutputSize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::attention::OpenQuestion;
use crate::models::Models;
use crate::permission::Permissions;
use crate::seat::Seat;
use ikigai_protocol::ApprovalAnswer;
use ikigai_protocol::{Event, EventKind, EventSink};

/// The model that an agent talks to.
#[derive(Debug, Clone)]
pub struct Model {
    /// The way to its server.
    pub client: Arc<Client>,
    /// Its name, as the provider knows it.
    pub name: String,
    /// `provider/name`, for people.
    pub label: String,
}

impl Model {
    /// Whose it is.
    pub(crate) fn origin(&self) -> &str {
        self.label.split('/').next().unwrap_or_default()
    }
}

/// What an agent can do.
pub struct Toolbox {
    /// The tools on offer.
    pub dispatcher: Dispatcher<Step>,
    /// Starts commands.
    pub commands: Arc<Commands>,
    /// Where they work; absolute.
    pub directory: PathBuf,
    /// How much of an output a model gets.
    pub output_size: OutputSize,
    /// What they may touch.
    pub permissions: Arc<Permissions>,
    /// The variable by which a command knows whose it is.
    pub agent_variable: OsString,
}

impl Toolbox {
    /// The tools as a model is told of them in a mode.
    fn declared(&self, mode: Mode) -> Vec<Tool> {
        let tool = |declaration: &Declaration| Tool {
            name: declaration.name.clone(),
            description: declaration.description.clone(),
            parameters: declaration.parameters.clone(),
        };
        let offered =
            self.dispatcher.tools().filter(|tool| ikigai_tools::offers(mode, tool.effects()));
        offered.map(|offered| tool(offered.declaration())).collect()
    }

    /// Whether some of the tools run commands.
    pub(crate) fn runs_commands(&self) -> bool {
        self.dispatcher.tools().any(|tool| tool.effects().contains(&EffectKind::Command))
    }
}

/// How much an agent may do until a person speaks again.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Wakes and requests, of the whole session.
    pub budget: Budget,
    /// Responses with calls in one turn.
    pub tool_turns: u32,
    /// When an agent is told of mail.
    pub notify: Notify,
    /// What becomes of agents that nobody runs and that have something to do.
    pub free_agents: FreeAgents,
    /// How many agents the session may have.
    pub agents: AgentLimits,
}

/// When an agent is told of mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notify {
    /// When it is idle.
    Idle,
    /// Also between the last result of a response and the next request.
    Boundary,
}

/// Whether a process takes up agents of its session, machine and directory that nobody runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreeAgents {
    /// When they have something to do.
    TakenUp,
    /// The same, but those whose process has died only when its lease has run out: a person may come back for them.
    TakenUpLater,
    /// They wait for somebody else.
    Left,
}

/// What all agents of a process have in common.
pub struct Equipment {
    /// Whom they ask.
    pub models: Arc<Models>,
    /// What they can do.
    pub toolbox: Toolbox,
    /// How much of it.
    pub limits: Limits,
    /// Written at the beginning of a log that has no other.
    pub prompt: String,
    /// Who is told of all that happens.
    pub events: EventSink,
}

/// An agent that this process runs.
pub(crate) struct Agent {
    pub(crate) seat: Seat,
    equipment: Arc<Equipment>,
    /// The model of the last request.
    model: Model,
    /// The tools on offer, and the mode for which they are.
    declared: (Mode, Vec<Tool>),
    /// How files looked when the agent has last seen them; a copy of what the database has.
    pub(crate) memory: Arc<FileMemory>,
    /// Written at the beginning of the agent's log when it has none: the session's, if that has one.
    prompt: Option<String>,
    is_loaded: bool,
    /// A copy of the agent's log; the first `inherited` messages are its parent's.
    pub(crate) log: Vec<Message>,
    inherited: usize,
    /// Whether something may wait in the queue of what the person said; set by whoever puts it there.
    pub(crate) queued: Arc<AtomicBool>,
    /// What the user answers to the questions of the current turn.
    pub(crate) answers: mpsc::Receiver<ApprovalAnswer>,
    /// The question that is open.
    pub(crate) question: OpenQuestion,
    /// Ends the turn that runs; a new one for every turn.
    pub(crate) interrupt: CancellationToken,
}

impl Agent {
    /// An agent at its seat. What its log holds is read when it begins to work.
    pub(crate) fn new(seat: Seat, equipment: Arc<Equipment>) -> Agent {
        let mode = equipment.toolbox.permissions.mode();
        let declared = (mode, equipment.toolbox.declared(mode));
        let model = equipment.models.of(seat.agent());
        Agent {
            seat,
            equipment,
            model,
            declared,
            memory: Arc::default(),
            prompt: None,
            is_loaded: false,
            log: Vec::new(),
            inherited: 0,
            queued: Arc::new(AtomicBool::new(true)),
            // Nobody is asked before there is a turn.
            answers: mpsc::channel(1).1,
            question: OpenQuestion::default(),
            interrupt: CancellationToken::new(),
        }
    }

    /// Who it is.
    pub(crate) fn id(&self) -> &AgentId {
        &self.seat.agent
    }

    /// Reads the log, unless that was done, and closes the calls that a crash has left open. Says whether a turn was
    /// cut off that is to go on.
    pub(crate) async fn load(&mut self) -> Result<Unfinished, StoreError> {
        if self.is_loaded || self.seat.lease().is_none() {
            return Ok(Unfinished::Nothing);
        }
        let (session, id) = (self.seat.session(), self.seat.agent().clone());
        self.log = self
            .insist(|agent| {
                let (store, id) = (agent.seat.store(), agent.id().clone());
                Ok(async move { store.whole_log(session, id).await })
            })
            .await?;
        self.inherited = self.log.partition_point(|message| message.agent != id);
        self.recall_files().await?;
        self.is_loaded = true;
        let open = self.log().open_calls();
        if !open.is_empty() {
            self.record(open, ikigai_store::Next::Tool).await?;
        }
        if !self.has_system_prompt() {
            self.prompt = self
                .insist(|agent| {
                    let store = agent.seat.store();
                    Ok(async move { store.system_prompt(session).await })
                })
                .await?;
        }
        let agents = self
            .insist(|agent| {
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

    pub(crate) fn equipment(&self) -> Arc<Equipment> {
        Arc::clone(&self.equipment)
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn toolbox(&self) -> &Toolbox {
        &self.equipment.toolbox
    }

    pub(crate) fn limits(&self) -> Limits {
        self.equipment.limits
    }

    pub(crate) fn log(&self) -> Log<'_> {
        let (inherited, own) = self.log.split_at(self.inherited);
        Log::forked(inherited, own)
    }

    /// The log without what was inherited in a fork.
    pub(crate) fn own_log(&self) -> &[Message] {
        &self.log[self.inherited..]
    }

    /// The ids of all calls in the log, those that no model sees any more included.
    pub(crate) fn call_ids(&self) -> HashSet<&str> {
        let ids = self.log.iter().filter_map(|message| match &message.body {
            Body::ToolCall(call) => Some(call.tool_call_id.as_str()),
            _ => None,
        });
        ids.collect()
    }

    /// What a person says, and before it the prompt if the log has none yet.
    pub(crate) fn opening(&self, text: String) -> Vec<NewMessage> {
        let prompt = (!self.has_system_prompt()).then(|| NewMessage::system(self.prompt()));
        prompt.into_iter().chain([NewMessage::user(text)]).collect()
    }

    /// The prompt of the session.
    pub(crate) fn prompt(&self) -> String {
        self.prompt.as_ref().unwrap_or(&self.equipment.prompt).clone()
    }

    fn has_system_prompt(&self) -> bool {
        self.log.iter().any(|message| message.body == Body::System)
    }

    /// The surroundings of a call in this turn.
    pub(crate) fn context(&self) -> Context {
        let Toolbox { commands, directory, output_size, permissions, agent_variable, .. } =
            self.toolbox();
        let agent = OsString::from(self.id().to_string());
        let interrupt = self.interrupt.clone();
        let context = Context::new(directory, *output_size, Arc::clone(commands), interrupt);
        permissions
            .enclose(context)
            .with_variables(vec![(agent_variable.clone(), agent.clone())])
            .of_agent(agent)
            .remembering(Arc::clone(&self.memory))
    }

    pub(crate) fn emit(&self, kind: EventKind) {
        (self.equipment.events)(Event { agent: self.seat.agent().clone(), kind });
    }

    /// The model that is asked now, and the tools that it is offered: the person may have changed model and mode.
    pub(crate) fn refresh(&mut self) {
        self.model = self.equipment.models.of(self.id());
        let mode = self.toolbox().permissions.mode();
        if mode != self.declared.0 {
            self.declared = (mode, self.toolbox().declared(mode));
        }
    }

    pub(crate) fn declared(&self) -> &[Tool] {
        &self.declared.1
    }
}

/// What a log was left with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// Nothing is to be done.
    Nothing,
    /// A turn that goes on.
    Turn,
}
