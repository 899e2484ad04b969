//! An agent with all that it needs to work.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ikigai_conversation::{AgentId, Body, Log, Message, NewMessage};
use ikigai_providers::{Client, Tool};
use ikigai_store::{AgentLimits, Budget, State, Step, StoreError};
use ikigai_tools::{Commands, Context, Dispatcher, FileMemory, Mode, OutputSize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::event::{Event, Happening, Sink};
use crate::keeper::Keeper;
use crate::permission::{Answer, Permissions};
use crate::seat::Seat;

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
}

impl Toolbox {
    /// The tools as a model is told of them in a mode.
    fn declared(&self, mode: Mode) -> Vec<Tool> {
        let tool = |declaration: &ikigai_tools::Declaration| Tool {
            name: declaration.name.to_owned(),
            description: declaration.description.to_owned(),
            parameters: declaration.parameters_schema(),
        };
        let offered = self.dispatcher.declarations().filter(|tool| mode.offers(tool.name));
        offered.map(tool).collect()
    }
}

/// How much an agent may do until a person speaks again.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Wakes and requests, of the whole session.
    pub budget: Budget,
    /// Responses with calls in one turn.
    pub tool_turns: u32,
    /// How many agents the session may have.
    pub agents: AgentLimits,
}

/// An agent that this process runs.
pub struct Agent {
    pub(crate) seat: Seat,
    pub(crate) model: Model,
    pub(crate) toolbox: Toolbox,
    /// The tools on offer, and the mode for which they are.
    declared: (Mode, Vec<Tool>),
    pub(crate) limits: Limits,
    /// How files looked when the agent has last seen them; a copy of what the database has.
    pub(crate) memory: Arc<FileMemory>,
    /// Written at the beginning of the agent's log when it has none.
    pub(crate) prompt: String,
    /// A copy of the agent's log; the first `inherited` messages are its parent's.
    pub(crate) log: Vec<Message>,
    inherited: usize,
    /// Whether something may wait in the queue of what the person said; set by whoever puts it there.
    pub(crate) queued: Arc<AtomicBool>,
    /// Makes the lease last, from the moment that there is one.
    pub(crate) keeper: Option<Keeper>,
    /// What the person answers to questions of the turn that runs.
    pub(crate) answers: mpsc::Receiver<Answer>,
    /// Ends the turn that runs; a new one for every turn.
    pub(crate) interrupt: CancellationToken,
    events: Sink,
}

impl Agent {
    /// An agent at its seat. What its log holds is read when it is [served](crate::serve).
    pub fn new(
        seat: Seat,
        model: Model,
        toolbox: Toolbox,
        limits: Limits,
        prompt: String,
        events: Sink,
    ) -> Agent {
        let mode = toolbox.permissions.mode();
        let declared = (mode, toolbox.declared(mode));
        Agent {
            seat,
            model,
            toolbox,
            declared,
            limits,
            memory: Arc::default(),
            prompt,
            log: Vec::new(),
            inherited: 0,
            queued: Arc::new(AtomicBool::new(true)),
            keeper: None,
            // Nobody is asked before there is a turn.
            answers: mpsc::channel(1).1,
            interrupt: CancellationToken::new(),
            events,
        }
    }

    /// Who it is.
    pub fn id(&self) -> &AgentId {
        &self.seat.agent
    }

    /// Reads the log, and closes the calls that a crash has left open (conversation.md, The loop). Says
    /// whether a turn was cut off that is to go on.
    pub(crate) async fn load(&mut self) -> Result<Unfinished, StoreError> {
        if self.seat.lease.is_none() {
            return Ok(Unfinished::Nothing);
        }
        self.keep_lease()?;
        let (session, id) = (self.seat.session, self.seat.agent.clone());
        self.log = self.seat.store.whole_log(session, id.clone()).await?;
        self.inherited = self.log.partition_point(|message| message.agent != id);
        self.recall_files().await?;
        let open = self.log().open_calls();
        if !open.is_empty() {
            self.record(open, ikigai_store::Next::Tool).await?;
        }
        let agents = self.seat.store.agents(session).await?;
        let was_idle = agents.iter().any(|agent| agent.id == id && agent.state == State::Idle);
        if !self.has_system_prompt()
            && let Some(prompt) = self.seat.store.system_prompt(session).await?
        {
            self.prompt = prompt;
        }
        Ok(match self.log().needs_turn() && !was_idle {
            true => Unfinished::Turn,
            false => Unfinished::Nothing,
        })
    }

    /// Makes the lease last from now on.
    pub(crate) fn keep_lease(&mut self) -> Result<(), StoreError> {
        if self.keeper.is_none() {
            let (lease, _) = self.right()?;
            self.keeper = Some(Keeper::start(self.seat.store(), lease)?);
        }
        Ok(())
    }

    /// Waits until the lease is lost, and says why.
    pub(crate) fn lost(&self) -> impl Future<Output = StoreError> + use<> {
        let lost = self.keeper.as_ref().map(Keeper::lost);
        async move {
            match lost {
                Some(lost) => lost.await,
                None => std::future::pending().await,
            }
        }
    }

    pub(crate) fn log(&self) -> Log<'_> {
        let (inherited, own) = self.log.split_at(self.inherited);
        Log::forked(inherited, own)
    }

    /// What a person says, and before it the prompt if the log has none yet.
    pub(crate) fn opening(&self, text: String) -> Vec<NewMessage> {
        let prompt = (!self.has_system_prompt()).then(|| NewMessage::system(self.prompt.clone()));
        prompt.into_iter().chain([NewMessage::user(text)]).collect()
    }

    fn has_system_prompt(&self) -> bool {
        self.log.iter().any(|message| message.body == Body::System)
    }

    /// The surroundings of a call in this turn.
    pub(crate) fn context(&self) -> Context {
        let Toolbox { commands, directory, output_size, permissions, .. } = &self.toolbox;
        let interrupt = self.interrupt.clone();
        let context = Context::new(directory, *output_size, Arc::clone(commands), interrupt);
        permissions.enclose(context).remembering(Arc::clone(&self.memory))
    }

    pub(crate) fn emit(&mut self, happening: Happening) {
        (self.events)(Event { agent: self.seat.agent.clone(), happening });
    }

    pub(crate) fn parts(&mut self) -> Parts<'_> {
        let mode = self.toolbox.permissions.mode();
        if mode != self.declared.0 {
            self.declared = (mode, self.toolbox.declared(mode));
        }
        let (inherited, own) = self.log.split_at(self.inherited);
        Parts {
            log: Log::forked(inherited, own),
            model: &self.model,
            tools: &self.declared.1,
            agent: &self.seat.agent,
            events: &mut self.events,
            interrupt: &self.interrupt,
        }
    }
}

/// What asking a model needs, borrowed apart.
pub(crate) struct Parts<'a> {
    pub(crate) log: Log<'a>,
    pub(crate) model: &'a Model,
    pub(crate) tools: &'a [Tool],
    pub(crate) interrupt: &'a CancellationToken,
    pub(crate) agent: &'a AgentId,
    events: &'a mut Sink,
}

impl Parts<'_> {
    pub(crate) fn emit(&mut self, happening: Happening) {
        (self.events)(Event { agent: self.agent.clone(), happening });
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
