//! The program on the pseudo-terminal: this test binary again, with a screen and scripted agents.
//! They echo each message; only `panic` makes them panic.

use std::time::Duration;

use ikigai_conversation::{AgentId, MessageId, Mode, NewMessage, ResponseId, Time};
use ikigai_protocol::{Command, Event, EventKind, Request, StartReason, StopReason, TurnEnd};
use ikigai_tui::{Bell, Colours, Effect, Feed, Mouse, Options, Setup, Status, Update, feed, run};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Not a test: the tests in `terminal.rs` start it on their own terminals.
#[test]
#[ignore = "it needs its own terminal"]
fn plays_the_agents() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let summary = runtime.block_on(play());
    println!("\r\nsummary: {summary:?}");
    runtime.shutdown_background();
}

async fn play() -> ikigai_tui::ExitSummary {
    let (feed, updates) = feed();
    // Effects are handled at once.
    let (effects, wanted) = mpsc::channel(16);
    let ending = CancellationToken::new();
    let end = ending.clone();
    let mut terminate = signal(SignalKind::terminate()).unwrap();
    tokio::spawn(async move {
        terminate.recv().await;
        end.cancel();
    });
    tokio::spawn(respond(feed, wanted));
    let setup =
        Setup { view: AgentId::top_level(0), status: status(None), colours: Colours::Sixteen };
    let options = Options { mouse: Mouse::Terminal, bell: Bell::Plain };
    run(setup, options, updates, effects, ending).await.unwrap()
}

fn status(label: Option<&str>) -> Status {
    Status {
        model: "echo".to_owned(),
        mode: Mode::Work,
        sandbox: "none".to_owned(),
        branch: String::new(),
        context_tokens: None,
        cost: None,
        label: label.map(str::to_owned),
    }
}

async fn respond(feed: Feed, mut wanted: mpsc::Receiver<Effect>) {
    let mut last_id = 0;
    while let Some(effect) = wanted.recv().await {
        match effect {
            Effect::Request(Request { agent, command: Command::Say { text } }) => {
                echo(&feed, &agent, &text, &mut last_id).await;
            }
            Effect::OpenEditor(text) => feed.send(Update::Edited(Some(format!("{text} edited")))),
            _ => {}
        }
    }
}

/// Answers with the message, in deltas.
async fn echo(feed: &Feed, agent: &AgentId, text: &str, last_id: &mut i64) {
    let give = |kind| feed.send(Update::Event(Event { agent: agent.clone(), kind }));
    let mut log = |message: NewMessage| {
        *last_id += 1;
        let id = MessageId::new(*last_id).unwrap();
        give(EventKind::Message(message.into_message(id, agent.clone(), Time::from_millis(0))));
    };
    give(EventKind::TurnStarted(StartReason::UserMessage));
    log(NewMessage::user(text));
    if text == "panic" {
        feed.send(Update::Note { agent: agent.clone(), text: "about to panic".to_owned() });
        std::thread::spawn(|| panic!("scripted panic")).join().unwrap_err();
        return;
    }
    let answer = format!("You said: **{text}**");
    for piece in answer.split_inclusive(' ') {
        give(EventKind::TextDelta(piece.to_owned()));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    log(NewMessage::assistant(&*answer, ResponseId::new("r")));
    let done = TurnEnd { stop: StopReason::Stop, text: answer, error: None, can_continue: false };
    give(EventKind::TurnEnded(done));
    // Once this is visible, so is the whole answer.
    feed.send(Update::Status(status(Some("answered"))));
}
