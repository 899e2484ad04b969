//! The cost of a frame with a long scrollback and with a fast stream. Prints times and asserts
//! nothing.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints its results")]

use std::time::{Duration, Instant};

use ikigai_conversation::{AgentId, Message, MessageId, Mode, NewMessage, ResponseId, Time};
use ikigai_protocol::{Event, EventKind};
use ikigai_tui::{App, Colours, Setup, Status, Update};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Rect, Size};

fn main() {
    let view = AgentId::top_level(0);
    let mut app = app(&view);
    let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 60));
    let log: Vec<Message> = (1..=20_000).map(|number| message(&view, number)).collect();
    measure("recall 100,000 lines", 1, || {
        app.update(Update::Log { agent: view.clone(), log: log.clone() }, Duration::ZERO);
    });
    measure("first frame", 1, || draw(&mut app, &mut buffer));
    measure("further frames", 200, || draw(&mut app, &mut buffer));
    let piece = |text: &str| {
        Update::Event(Event { agent: view.clone(), kind: EventKind::TextDelta(text.to_owned()) })
    };
    app.update(piece("```rust\n"), Duration::ZERO);
    measure("frame after 16 deltas of code", 200, || {
        (0..16).for_each(|_| app.update(piece("let x = "), Duration::ZERO));
        app.update(piece("1;\n"), Duration::ZERO);
        draw(&mut app, &mut buffer);
    });
    app.update(piece("```\n\n"), Duration::ZERO);
    measure("frame after 16 deltas in one line", 500, || {
        (0..16).for_each(|_| app.update(piece("a few words "), Duration::ZERO));
        draw(&mut app, &mut buffer);
    });
}

fn app(view: &AgentId) -> App {
    let status = Status {
        model: "bench".to_owned(),
        mode: Mode::Work,
        sandbox: String::new(),
        branch: String::new(),
        context_tokens: None,
        cost: None,
        label: None,
    };
    let setup = Setup { view: view.clone(), status, colours: Colours::Sixteen };
    App::new(setup, Size::new(200, 60))
}

fn message(agent: &AgentId, number: i64) -> Message {
    let text = format!("# Answer {number}\n\n- one **two** three\n- `four` five\n\nsix seven\n");
    let new = NewMessage::assistant(text, ResponseId::new("r"));
    new.into_message(MessageId::new(number).unwrap(), agent.clone(), Time::from_millis(0))
}

fn draw(app: &mut App, buffer: &mut Buffer) {
    buffer.reset();
    app.draw(buffer, Duration::ZERO);
}

/// Prints the mean and the slowest of several runs.
fn measure(what: &str, times: u32, mut run: impl FnMut()) {
    let mut slowest = Duration::ZERO;
    let start = Instant::now();
    for _ in 0..times {
        let each = Instant::now();
        run();
        slowest = slowest.max(each.elapsed());
    }
    println!("{what}: {:?}, slowest {slowest:?}", start.elapsed() / times);
}
