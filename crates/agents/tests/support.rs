//! An agent with a scripted model and tools of the test's choice.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use ikigai_agents::{
    Command, Equipment, FreeAgents, Limits, Model, Models, Notify, Order, Permissions, Person,
    Seat, Toolbox, Which, serve,
};
use ikigai_conversation::{AgentId, Decision, Message};
use ikigai_protocol::{ApprovalAnswer, Event, EventKind};
use ikigai_providers::{ChatCompletions, Client, Endpoint, Limits as ClientLimits};
use ikigai_store::{AgentLimits, Step};
use ikigai_testkit::{ModelServer, PLENTY, TestStore, place};
use ikigai_tools::{Commands, Dispatcher, Mode, OutputSize, Rule, Sandbox, Tool, Tree};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What the agent may do, and what the user says about the rest.
pub(crate) struct Scene {
    pub(crate) tools: Vec<Arc<dyn Tool<Step>>>,
    pub(crate) mode: Mode,
    pub(crate) rules: Vec<Rule>,
    /// The answer to every question; `None` where the user cannot be asked.
    pub(crate) answer: Option<Decision>,
}

impl Scene {
    /// Gives the agent a task, and returns what happened until it was idle.
    pub(crate) async fn run(self, server: &ModelServer) -> Vec<EventKind> {
        let (store, folder) = (TestStore::new(), tempfile::tempdir().unwrap());
        let agent = AgentId::top_level(0);
        let limits = AgentLimits::DEFAULT;
        let again = Arc::new(store.open_again());
        let seat = Seat::take(again, place(), Arc::new([]), Which::New, None, limits);
        let seat = seat.await.unwrap();
        let (events, mut happenings) = mpsc::unbounded_channel();
        let answer = self.answer;
        let equipment = self.equipment(server, folder.path(), events);
        let (orders, taken) = mpsc::channel(16);
        let say = Command::Say("do it".to_owned());
        orders.send(Order { agent: agent.clone(), command: say }).await.unwrap();
        let served = tokio::spawn(serve(seat, equipment, taken, CancellationToken::new()));
        let mut seen = Vec::new();
        while let Some(kind) = happenings.recv().await {
            if let EventKind::ApprovalRequested(asking) = &kind {
                let decision = answer.unwrap();
                let call = asking.call.tool_call_id.clone();
                let command = Command::Answer(ApprovalAnswer { call, decision, reason: None });
                orders.send(Order { agent: agent.clone(), command }).await.unwrap();
            }
            let is_over = matches!(kind, EventKind::TurnEnded(_));
            seen.push(kind);
            if is_over {
                break;
            }
        }
        drop(orders);
        served.await.unwrap().unwrap();
        seen
    }

    fn equipment(
        self,
        server: &ModelServer,
        folder: &Path,
        events: mpsc::UnboundedSender<EventKind>,
    ) -> Equipment {
        let endpoint = Endpoint {
            provider: Arc::new(ChatCompletions),
            base_url: server.base_url(),
            key: None,
            certificates: None,
        };
        let client = Arc::new(Client::new(endpoint, ClientLimits::default()));
        let model = Model { client, name: "m".to_owned(), label: "test/m".to_owned() };
        let person = if self.answer.is_some() { Person::Present } else { Person::Absent };
        let tree = Tree::open([folder.to_owned()]).unwrap();
        let sandbox = Sandbox::default();
        let permissions = Permissions::new(self.mode, self.rules, tree, sandbox, person);
        // No command is ever run in here.
        let commands = Commands::new(Path::new("/nowhere"), OsStr::new(""), Vec::new());
        let toolbox = Toolbox {
            dispatcher: Dispatcher::new(self.tools),
            commands: Arc::new(commands),
            directory: folder.to_owned(),
            output_size: OutputSize::clamped(0),
            permissions: Arc::new(permissions),
            agent_variable: "AGENT".into(),
        };
        let limits = Limits {
            budget: PLENTY,
            tool_turns: 10,
            notify: Notify::Idle,
            free_agents: FreeAgents::Left,
            agents: AgentLimits::DEFAULT,
        };
        Equipment {
            models: Arc::new(Models::new(model)),
            toolbox,
            limits,
            prompt: "Be brief.".to_owned(),
            // The test may have heard enough.
            events: Arc::new(move |event: Event| drop(events.send(event.kind))),
        }
    }
}

/// The messages that were written to the log.
pub(crate) fn logged(happenings: &[EventKind]) -> Vec<&Message> {
    let messages = happenings.iter().filter_map(|kind| match kind {
        EventKind::Message(message) => Some(message),
        _ => None,
    });
    messages.collect()
}
