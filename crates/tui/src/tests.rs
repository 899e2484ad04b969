//! The screen as the user sees it: updates and keys go in, rows and effects come out.

mod agents;
mod anything;
mod asking;
mod conversation;
mod manners;
mod picking;
mod typing;

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ikigai_conversation::{
    AgentId, Message, MessageId, Mode, NewMessage, ResponseId, Time, ToolCallId,
};
use ikigai_protocol::{Command, Event, EventKind, Request, StartReason, StopReason, TurnEnd};
use ratatui_core::backend::TestBackend;
use ratatui_core::layout::Size;
use ratatui_core::terminal::Terminal;

use crate::app::{Action, App, Setup};
use crate::status::tests::status;
use crate::style::Colours;
use crate::typed::Typed;
use crate::update::{Effect, Update};

/// A screen with a user and agents.
struct Stage {
    app: App,
    terminal: Terminal<TestBackend>,
    now: Duration,
    last_id: i64,
}

impl Stage {
    fn new(width: u16, height: u16) -> Stage {
        Stage::with(width, height, Mode::Work, Colours::None)
    }

    fn with(width: u16, height: u16, mode: Mode, colours: Colours) -> Stage {
        let setup = Setup { view: agent("0/"), status: status(mode), colours };
        let mut app = App::new(setup, Size::new(width, height));
        assert_eq!(app.take_actions(), [Action::Effect(Effect::LoadLog(agent("0/")))]);
        let terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        Stage { app, terminal, now: Duration::from_secs(10), last_id: 0 }
    }

    /// The rows of the screen, without trailing spaces.
    fn rows(&mut self) -> Vec<String> {
        let (app, now) = (&mut self.app, self.now);
        self.terminal
            .draw(|frame| {
                if let Some(cursor) = app.draw(frame.buffer_mut(), now) {
                    frame.set_cursor_position(cursor);
                }
            })
            .unwrap();
        let buffer = self.terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        let row = |cells: &[ratatui_core::buffer::Cell]| {
            let text: String = cells.iter().map(ratatui_core::buffer::Cell::symbol).collect();
            text.trim_end().to_owned()
        };
        buffer.content.chunks(width).map(row).collect()
    }

    /// The last rows of the screen; those above are empty.
    #[track_caller]
    fn shows(&mut self, expected: &[&str]) {
        let rows = self.rows();
        let empty = rows.len() - expected.len();
        let expected: Vec<&str> =
            std::iter::repeat_n("", empty).chain(expected.iter().copied()).collect();
        assert_eq!(rows, expected, "\n{}", rows.join("\n"));
    }

    #[track_caller]
    fn has(&mut self, part: &str) {
        let rows = self.rows().join("\n");
        assert!(rows.contains(part), "no {part:?} in\n{rows}");
    }

    #[track_caller]
    fn lacks(&mut self, part: &str) {
        let rows = self.rows().join("\n");
        assert!(!rows.contains(part), "{part:?} in\n{rows}");
    }

    /// Presses a key after a pause.
    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        self.now += Duration::from_secs(1);
        self.app.press(Typed::Key(KeyEvent::new(code, modifiers)), self.now);
    }

    fn key(&mut self, code: KeyCode) {
        self.press(code, KeyModifiers::NONE);
    }

    fn control(&mut self, c: char) {
        self.press(KeyCode::Char(c), KeyModifiers::CONTROL);
    }

    fn types(&mut self, text: &str) {
        for c in text.chars() {
            self.key(KeyCode::Char(c));
        }
    }

    fn enters(&mut self, text: &str) {
        self.types(text);
        self.key(KeyCode::Enter);
    }

    fn emits(&mut self, id: &str, kind: EventKind) {
        let event = Event { agent: agent(id), kind };
        self.app.update(Update::Event(event), self.now);
    }

    fn logs(&mut self, id: &str, message: NewMessage) {
        let message = self.message(id, message);
        self.emits(id, EventKind::Message(message));
    }

    fn message(&mut self, id: &str, message: NewMessage) -> Message {
        self.last_id += 1;
        message.into_message(MessageId::new(self.last_id).unwrap(), agent(id), Time::from_millis(0))
    }

    fn starts(&mut self, id: &str) {
        self.emits(id, EventKind::TurnStarted(StartReason::UserMessage));
    }

    fn streams(&mut self, id: &str, text: &str) {
        self.emits(id, EventKind::TextDelta(text.to_owned()));
    }

    fn answers(&mut self, id: &str, text: &str) {
        self.logs(id, NewMessage::assistant(text, ResponseId::new("r")));
        self.ends(id, text);
    }

    fn ends(&mut self, id: &str, text: &str) {
        let done = TurnEnd {
            stop: StopReason::Stop,
            text: text.to_owned(),
            error: None,
            can_continue: false,
        };
        self.emits(id, EventKind::TurnEnded(done));
    }

    /// A call and its result.
    fn calls(&mut self, id: &str, name: &str, arguments: &str, output: &str) {
        let call =
            NewMessage::tool_call(ToolCallId::new("c"), name, arguments, ResponseId::new("r"));
        let ikigai_conversation::Body::ToolCall(body) = call.body.clone() else {
            unreachable!("it is one")
        };
        self.logs(id, call);
        self.logs(id, NewMessage::tool_result(&body, output));
    }

    /// Takes the pending actions, without those about drafts and the history.
    fn actions(&mut self) -> Vec<Action> {
        let mut actions = self.app.take_actions();
        actions.retain(|action| {
            !matches!(action, Action::Effect(Effect::Drafting { .. } | Effect::AddToHistory(_)))
        });
        actions
    }
}

fn agent(id: &str) -> AgentId {
    AgentId::parse(id).unwrap()
}

fn request(id: &str, command: Command) -> Action {
    Action::Effect(Effect::Request(Request { agent: agent(id), command }))
}

fn say(id: &str, text: &str) -> Action {
    request(id, Command::Say { text: text.to_owned() })
}
