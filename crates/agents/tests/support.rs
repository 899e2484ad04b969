//! A process with agents, for tests.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ikigai_agents::{
    AgentCommand, Answer, CommandsAtEnd, CompactionTrigger, ContextSettings, Costs, FreeAgents,
    Limits, Model, Models, Notify, Order, Permissions, Seat, SessionChoice, TeamSetup, Toolbox,
    User, catalogue, serve,
};
use ikigai_conversation::{AgentId, Body, Decision, Mode, SessionId};
use ikigai_protocol::{ApprovalAnswer, ApprovalRequest, Event, EventKind};
use ikigai_providers::{ChatCompletions, Client, Endpoint, KnownFacts};
use ikigai_store::{AgentLimits, AnswerOutcome, AnswersFrom, Budget, Respondent, Step, StoreError};
use ikigai_testkit::{ModelServer, TestStore, opening};
use ikigai_tools::{Commands, Dispatcher, OutputSize, Rule, Sandbox, Tree};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The timeout of every wait. Only a failing test reaches it.
const LIMIT: Duration = Duration::from_secs(60);

/// The agents of a process, with their own folder and database.
pub(crate) struct Process {
    pub(crate) model: ModelServer,
    pub(crate) events: mpsc::UnboundedReceiver<Event>,
    orders: mpsc::Sender<Order>,
    serving: JoinHandle<Result<(), StoreError>>,
    shutdown: CancellationToken,
    _folder: TempDir,
    session: SessionId,
    store: TestStore,
}

/// The defaults of the settings.
const CONTEXT: ContextSettings =
    ContextSettings { trigger: CompactionTrigger::Automatic, compact_at: 85, summarizer: None };

impl Process {
    /// Agent 0/ of a session that starts with its first message.
    pub(crate) async fn start(model: ModelServer) -> Process {
        Process::start_with(model, Abilities::default()).await
    }

    /// The same with these tools and permissions.
    pub(crate) async fn start_with(model: ModelServer, abilities: Abilities) -> Process {
        let (folder, store) = (tempfile::tempdir().unwrap(), TestStore::new());
        let opened = Arc::new(store.open_again());
        let here = opening(ikigai_store::Process::current());
        let seat = Seat::take(opened, here, SessionChoice::New, None);
        let (report, events) = mpsc::unbounded_channel();
        let sink = Arc::new(move |event: Event| drop(report.send(event)));
        let setup = TeamSetup {
            models: Arc::new(Models::new(model_of(&model), None)),
            toolbox: abilities.toolbox(folder.path()),
            limits: LIMITS,
            context: CONTEXT,
            costs: Costs::default(),
            prompt: "You are an agent.".to_owned(),
            events: sink,
        };
        let (orders, received) = mpsc::channel(16);
        let shutdown = CancellationToken::new();
        let seat = seat.await.unwrap();
        let session = seat.session();
        let serving = tokio::spawn(serve(seat, setup, received, shutdown.clone()));
        Process { model, events, orders, serving, shutdown, _folder: folder, session, store }
    }

    /// Sends an order to agent 0/, and waits for the answer.
    pub(crate) async fn order(&self, command: AgentCommand) -> Answer {
        self.order_for("0/", command).await
    }

    pub(crate) async fn order_for(&self, agent: &str, command: AgentCommand) -> Answer {
        let (order, answer) = Order::new(AgentId::parse(agent).unwrap(), command);
        self.orders.send(order).await.unwrap();
        timeout(LIMIT, answer).await.unwrap().unwrap()
    }

    /// Answers an approval request, as another terminal does.
    pub(crate) async fn answer(&self, agent: &str, request: &ApprovalRequest, decision: Decision) {
        let (call, hash) = (request.call.tool_call_id.clone(), request.hash.clone());
        let answer =
            ApprovalAnswer { call, hash: hash.clone(), decision, reason: None, save_rule: None };
        let answer = serde_json::to_string(&answer).unwrap();
        let (agent, by) = (AgentId::parse(agent).unwrap(), Respondent::current());
        let outcome = self.store.answer(self.session, agent, hash, answer, by).await.unwrap();
        assert!(matches!(outcome, AnswerOutcome::Taken(_)), "{outcome:?}");
    }

    /// Waits for an event that `passes`.
    pub(crate) async fn wait_for(&mut self, passes: impl Fn(&Event) -> bool) -> Event {
        loop {
            let event = timeout(LIMIT, self.events.recv()).await.unwrap().unwrap();
            if passes(&event) {
                return event;
            }
        }
    }

    /// Waits until a turn of agent 0/ has ended.
    pub(crate) async fn wait_for_turn_end(&mut self) {
        let is_it = |event: &Event| {
            event.agent == AgentId::top_level(0) && matches!(event.kind, EventKind::TurnEnded(_))
        };
        self.wait_for(is_it).await;
    }

    /// Waits until agent 0/ has logged a message that `passes`.
    pub(crate) async fn wait_for_message(&mut self, passes: impl Fn(&Body) -> bool) {
        let is_it = |event: &Event| match &event.kind {
            EventKind::Message(message) => {
                event.agent == AgentId::top_level(0) && passes(&message.body)
            }
            _ => false,
        };
        self.wait_for(is_it).await;
    }

    /// Ends the process.
    pub(crate) async fn end(self) {
        self.shutdown.cancel();
        timeout(LIMIT, self.serving).await.unwrap().unwrap().unwrap();
    }
}

const LIMITS: Limits = Limits {
    budget: Budget { wakes: 32, requests: 300 },
    tool_turns: 300,
    user: User::Absent,
    notify: Notify::Idle,
    free_agents: FreeAgents::TakenUp,
    commands_at_end: CommandsAtEnd::Ended,
    agents: AgentLimits::DEFAULT,
    answers_from: AnswersFrom::SameUser,
};

fn model_of(server: &ModelServer) -> Model {
    let endpoint = Endpoint {
        provider: Arc::new(ChatCompletions),
        base_url: server.base_url(),
        key: None,
        certificates: None,
    };
    let client = Arc::new(Client::new(endpoint, ikigai_providers::Limits::default()));
    Model {
        client,
        name: "test".to_owned(),
        label: "openai/test".to_owned(),
        facts: KnownFacts::default(),
    }
}

/// The tools and permissions of agents.
pub(crate) struct Abilities {
    pub(crate) tools: Dispatcher<Step>,
    pub(crate) mode: Mode,
    pub(crate) rules: Vec<Rule>,
    pub(crate) user: User,
}

/// All tools, in work mode, with a user who can approve calls.
impl Default for Abilities {
    fn default() -> Abilities {
        let (mode, user) = (Mode::Work, User::Present);
        Abilities { tools: catalogue(), mode, rules: Vec::new(), user }
    }
}

impl Abilities {
    fn toolbox(self, folder: &Path) -> Toolbox {
        let tree = Tree::open([folder]).unwrap();
        let sandbox = Sandbox::default();
        let permissions = Permissions::new(self.mode, self.rules, tree, sandbox, self.user);
        // No test here runs a command.
        let commands = Commands::new(Path::new("/bin/false"), OsStr::new(""), Vec::new());
        Toolbox {
            dispatcher: self.tools,
            commands: Arc::new(commands),
            directory: folder.to_owned(),
            output_size: OutputSize::new(51_200).unwrap(),
            permissions: Arc::new(permissions),
            agent_variable: "IKIGAI_AGENT".into(),
        }
    }
}
