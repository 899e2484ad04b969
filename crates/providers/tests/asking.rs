//! Helpers for sending requests to a server.

use std::sync::Arc;
use std::time::Duration;

use ikigai_conversation::{AgentId, Log, Message, MessageId, NewMessage, Time};
use ikigai_providers::{
    Anthropic, ChatCompletions, Client, Delta, Endpoint, Fault, Limits, Progress, Provider,
    Request, Response, Secret,
};
use ikigai_testkit::ModelServer;

/// The key of every client here. It must never be shown.
pub(crate) const KEY: &str = "sk-marker-0123456789";

/// The formats that the scripted server speaks, with their base addresses.
pub(crate) fn formats(server: &ModelServer) -> Vec<(Arc<dyn Provider>, String)> {
    vec![(Arc::new(ChatCompletions), server.base_url()), (Arc::new(Anthropic), server.url())]
}

/// Retries are immediate, and successful requests do not reach a limit.
pub(crate) const EAGER: Limits = Limits {
    connect: Duration::from_secs(60),
    first_byte: Duration::from_secs(60),
    idle: Duration::from_secs(60),
    retries: 5,
    first_delay: Duration::from_millis(1),
};

pub(crate) const ONCE: Limits = Limits { retries: 0, ..EAGER };

pub(crate) fn client_at(base_url: &str, limits: Limits) -> Client {
    client_of(Arc::new(Anthropic), base_url.to_owned(), limits)
}

pub(crate) fn client(server: &ModelServer, limits: Limits) -> Client {
    client_at(&server.url(), limits)
}

pub(crate) fn client_of(provider: Arc<dyn Provider>, base_url: String, limits: Limits) -> Client {
    let key = Some(Secret::new(KEY));
    Client::new(Endpoint { provider, base_url, key, certificates: None }, limits)
}

/// What a client reported during a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Text(String),
    Thinking(String),
    Retry { attempt: u32, fault: Fault, delay: Duration },
}

impl Said {
    fn of(progress: Progress<'_>) -> Option<Said> {
        match progress {
            Progress::Delta(Delta::Text(text)) => Some(Said::Text(text.to_owned())),
            Progress::Delta(Delta::Thinking(text)) => Some(Said::Thinking(text.to_owned())),
            Progress::Retry { attempt, fault, delay, .. } => {
                Some(Said::Retry { attempt, fault: fault.clone(), delay })
            }
            Progress::Sending | Progress::Refused => None,
            Progress::Delta(Delta::Call { .. }) => None,
        }
    }
}

/// How many attempts of a request may have been billed although no response came of them.
pub(crate) async fn lost_attempts(client: &Client) -> u32 {
    let (log, mut lost) = (question(), 0);
    let view = Log::new(&log).view();
    let request = Request::without_tools("m", "", &view);
    let mut on_progress = |progress: Progress<'_>| match progress {
        Progress::Sending => lost += 1,
        Progress::Refused => lost -= 1,
        Progress::Delta(_) | Progress::Retry { .. } => {}
    };
    let answered = client.ask(&request, &mut on_progress).await.is_ok();
    lost - u32::from(answered)
}

/// A log with one user message.
pub(crate) fn question() -> Vec<Message> {
    let new = NewMessage::user("Hello?");
    let agent = AgentId::parse("0/").unwrap();
    vec![new.into_message(MessageId::new(1).unwrap(), agent, Time::from_millis(0))]
}

pub(crate) async fn ask(client: &Client) -> (Result<Response, Fault>, Vec<Said>) {
    let mut said = Vec::new();
    let log = question();
    let view = Log::new(&log).view();
    let request = Request::without_tools("m", "", &view);
    let result = client.ask(&request, &mut |progress| said.extend(Said::of(progress))).await;
    (result, said)
}

/// The text since the last retry.
pub(crate) fn valid_text(said: &[Said]) -> String {
    let since = said.iter().rposition(|said| matches!(said, Said::Retry { .. }));
    let valid = &said[since.map_or(0, |place| place + 1)..];
    let texts = valid.iter().filter_map(|said| match said {
        Said::Text(text) => Some(text.as_str()),
        Said::Thinking(_) | Said::Retry { .. } => None,
    });
    texts.collect()
}

pub(crate) fn retries(said: &[Said]) -> Vec<&Fault> {
    let retries = said.iter().filter_map(|said| match said {
        Said::Text(_) | Said::Thinking(_) => None,
        Said::Retry { fault, .. } => Some(fault),
    });
    retries.collect()
}

/// Waits in a thread, so that the client continues meanwhile.
pub(crate) async fn until(
    server: &Arc<ModelServer>,
    wait: impl FnOnce(&ModelServer) + Send + 'static,
) {
    let server = Arc::clone(server);
    tokio::task::spawn_blocking(move || wait(&server)).await.unwrap();
}
