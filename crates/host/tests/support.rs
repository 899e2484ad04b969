//! A directory with its own database, and an open session in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ikigai_conversation::AgentId;
use ikigai_host::{
    AgentChoice, AgentSlot, Environment, OpenSession, ServiceEnd, SessionOptions, WatchdogProgram,
    connect,
};
use ikigai_protocol::{Command, CommandError, Event, EventKind, Reply, Request, TurnEnd};
use ikigai_store::StoreError;
use ikigai_testkit::ModelServer;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The limit on every wait. Only what never comes takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Home {
    folder: TempDir,
    server: ModelServer,
}

impl Home {
    pub(crate) fn new(server: ModelServer) -> Home {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "project", "tmp"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Home { folder, server }
    }

    pub(crate) fn server(&self) -> &ModelServer {
        &self.server
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// An environment in which commands cannot run.
    pub(crate) fn environment(&self) -> Environment {
        let path = |name: &str| self.folder.path().join(name);
        let database = format!("sqlite://{}", path("home/ikigai.db").display());
        let variables: [(&str, OsString); 6] = [
            ("HOME", path("home").into()),
            ("PATH", "/usr/bin:/bin".into()),
            ("IKIGAI_DATABASE_URL", database.into()),
            ("IKIGAI_MODEL", "openai/scripted".into()),
            ("OPENAI_BASE_URL", self.server.base_url().into()),
            ("OPENAI_API_KEY", "key".into()),
        ];
        let variables = variables.map(|(name, value)| (name.into(), value)).into();
        let watchdog = WatchdogProgram { path: path("none"), argument: "none".into() };
        Environment::from_variables(path("project"), variables, path("tmp"), watchdog).unwrap()
    }

    /// Opens a session with a user, as selected in the environment.
    pub(crate) async fn open(&self) -> TestSession {
        self.open_in(self.environment()).await
    }

    pub(crate) async fn open_in(&self, environment: Environment) -> TestSession {
        let environment = Arc::new(environment);
        let slot = AgentSlot::claim(&environment, SessionOptions::INTERACTIVE).await.unwrap();
        TestSession::start(slot).await
    }
}

/// An open session with running agents.
pub(crate) struct TestSession {
    pub(crate) session: Arc<OpenSession>,
    events: mpsc::UnboundedReceiver<Event>,
    service: JoinHandle<Result<ServiceEnd, StoreError>>,
    stop: CancellationToken,
}

impl TestSession {
    pub(crate) async fn start(slot: AgentSlot) -> TestSession {
        let choice = AgentChoice::new(slot.environment(), connect(slot.environment()).unwrap());
        let (sender, events) = mpsc::unbounded_channel();
        let sink = move |event| drop(sender.send(event));
        let (session, service) = slot.open(choice, Arc::new(sink)).await.unwrap();
        let stop = CancellationToken::new();
        let service = tokio::spawn(service.run(stop.clone()));
        TestSession { session: Arc::new(session), events, service, stop }
    }

    /// Carries out a command for an agent.
    pub(crate) async fn execute(
        &self,
        agent: &str,
        command: Command,
    ) -> Result<Reply, CommandError> {
        let request = Request { agent: AgentId::parse(agent).unwrap(), command };
        timeout(PATIENCE, self.session.execute(request)).await.unwrap()
    }

    /// Sends a message to an agent and waits for the end of its turn.
    pub(crate) async fn ask(&mut self, agent: &str, text: &str) -> TurnEnd {
        assert_eq!(self.execute(agent, say(text)).await, Ok(Reply::Done));
        self.turn_end(agent).await
    }

    pub(crate) async fn turn_end(&mut self, agent: &str) -> TurnEnd {
        let end = |event: &Event| match &event.kind {
            EventKind::TurnEnded(end) if event.agent.to_string() == agent => Some(end.clone()),
            _ => None,
        };
        self.wait_for(end).await
    }

    /// Waits for an event.
    pub(crate) async fn wait_for<T>(&mut self, found: impl Fn(&Event) -> Option<T>) -> T {
        let waiting = async {
            loop {
                let event = self.events.recv().await.unwrap();
                if let Some(found) = found(&event) {
                    return found;
                }
            }
        };
        timeout(PATIENCE, waiting).await.unwrap()
    }

    /// Waits until the service ends.
    pub(crate) async fn end(self) -> ServiceEnd {
        timeout(PATIENCE, self.service).await.unwrap().unwrap().unwrap()
    }

    /// Leaves the session.
    pub(crate) async fn leave(self) {
        self.stop.cancel();
        assert!(matches!(self.end().await, ServiceEnd::Finished));
    }
}

pub(crate) fn say(text: &str) -> Command {
    Command::Say { text: text.to_owned() }
}

pub(crate) fn mail(line: &str) -> Command {
    Command::Mail { line: line.to_owned() }
}

#[track_caller]
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
