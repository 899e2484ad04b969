//! Lists to choose from.

use crossterm::event::KeyCode;
use ikigai_conversation::{MessageId, SessionId, Time};
use ikigai_protocol::{
    Command, ModelPrices, ModelSummary, RewindPart, RewindPoint, SessionSummary,
};

use super::{Stage, request};
use crate::app::Action;
use crate::completion::Listing;
use crate::update::{Effect, Update};

fn id(number: i64) -> MessageId {
    MessageId::new(number).unwrap()
}

fn point(number: i64, text: &str, files: usize) -> RewindPoint {
    let age = format!("{number} minutes ago");
    RewindPoint { id: id(number), text: text.to_owned(), is_mark: text == "here", age, files }
}

/// The undo menu with three entries.
fn opened(width: u16, height: u16) -> Stage {
    let mut stage = Stage::new(width, height);
    stage.key(KeyCode::Esc);
    stage.has("Esc once more: earlier messages");
    stage.key(KeyCode::Esc);
    assert_eq!(stage.actions(), [request("0/", Command::ListRewindPoints)]);
    stage.has("Loading…");
    let points =
        vec![point(9, "fix the parser\nplease", 2), point(5, "here", 1), point(2, "add tests", 1)];
    stage.app.update(Update::RewindPoints(points), stage.now);
    stage
}

#[test]
fn esc_esc_lists_the_earlier_messages_and_what_can_return() {
    let mut stage = opened(60, 12);
    stage.has("❯ add tests                           1 file · 2 minutes ago");
    stage.has("  ── here                             1 file · 5 minutes ago");
    stage.types("fix");
    stage.has("Rewind to before a message 1 of 3");
    stage.key(KeyCode::Enter);
    stage.has("Rewind to before \"fix the parser\"");
    stage.has("  4 Summarize up to here  what came before becomes a summary");
    stage.key(KeyCode::Char('3'));
    let command = Command::RewindTo { point: id(9), part: RewindPart::Files };
    assert_eq!(stage.actions(), [request("0/", command)]);
    stage.lacks("Rewind to");
}

#[test]
fn a_summary_can_end_at_a_message_but_not_at_a_mark() {
    let mut stage = opened(80, 24);
    stage.key(KeyCode::Up);
    stage.key(KeyCode::Enter);
    stage.has("Rewind to mark here");
    stage.lacks("Summarize");
    stage.key(KeyCode::Esc);
    assert_eq!(stage.actions(), [request("0/", Command::ListRewindPoints)]);
    stage.app.update(Update::RewindPoints(vec![point(2, "add tests", 1)]), stage.now);
    stage.key(KeyCode::Enter);
    stage.key(KeyCode::Up);
    stage.key(KeyCode::End);
    stage.key(KeyCode::Enter);
    let command = Command::Compact { focus: None, before: Some(id(2)) };
    assert_eq!(stage.actions(), [request("0/", command)]);
}

#[test]
fn esc_esc_does_nothing_to_a_draft_or_a_busy_agent() {
    let mut stage = Stage::new(80, 24);
    stage.types("x");
    stage.key(KeyCode::Esc);
    stage.key(KeyCode::Esc);
    stage.lacks("Rewind");
    stage.control('c');
    stage.key(KeyCode::Esc);
    stage.types("y");
    stage.control('c');
    stage.key(KeyCode::Esc);
    stage.lacks("Rewind");
    stage.starts("0/");
    stage.enters("/rewind");
    stage.has("Agent 0/ is working. Interrupt it first");
}

fn session(number: u128, title: &str, directory: &str) -> SessionSummary {
    SessionSummary {
        id: SessionId::new(uuid::Uuid::from_u128(number)),
        directory: directory.to_owned(),
        title: title.to_owned(),
        updated_at: Time::from_millis(0),
        age: "2 hours ago".to_owned(),
        agents: 1,
        messages: 7,
    }
}

/// The list of sessions with three entries, one of which is open.
fn sessions(width: u16, height: u16) -> Stage {
    let mut stage = Stage::new(width, height);
    stage.enters("/sessions");
    assert_eq!(stage.actions(), [request("0/", Command::Sessions)]);
    let sessions = vec![
        session(1, "this one", "/w"),
        session(2, "fix the parser", "/w"),
        session(3, "", "/x"),
    ];
    let (current, here) = (sessions[0].id, "/w".to_owned());
    stage.app.update(Update::Sessions { sessions, current, here }, stage.now);
    stage.actions();
    stage
}

#[test]
fn sessions_are_listed_by_folder_with_a_preview_and_resumed() {
    let mut stage = sessions(60, 24);
    stage.has("Sessions of this folder 2");
    stage.has(&format!("❯ this one{:>50}", "7 messages · open"));
    stage.key(KeyCode::Enter);
    assert_eq!(stage.actions(), [], "it is open already");
    let mut stage = sessions(60, 24);
    stage.key(KeyCode::Down);
    let (second, third) = (session(2, "", "").id, session(3, "", "").id);
    let preview = request("0/", Command::PreviewSession { session: second });
    assert_eq!(stage.actions(), [preview]);
    let text = "❯ please\n● Fixed.".to_owned();
    stage.app.update(Update::SessionPreview { session: second, text }, stage.now);
    stage.has("  ● Fixed.");
    stage.key(KeyCode::Tab);
    stage.has("Sessions of all folders 3");
    stage.types("/x");
    stage.has(&format!("❯ (nothing said yet){:>40}", "/x · 7 messages · 2 hours ago"));
    stage.actions();
    stage.key(KeyCode::Enter);
    assert_eq!(stage.actions(), [Action::Effect(Effect::OpenSession(Some(third)))]);
    stage.lacks("Sessions of");
}

#[test]
fn a_session_is_not_left_while_an_agent_works() {
    let mut stage = Stage::new(80, 24);
    stage.enters("/new");
    assert_eq!(stage.actions(), [Action::Effect(Effect::OpenSession(None))]);
    stage.starts("0/");
    stage.enters("/new");
    assert_eq!(stage.actions(), []);
    stage.has("Agent 0/ is working. Interrupt it first");
}

#[test]
fn a_session_is_renamed_and_deleted_only_after_asking() {
    let mut stage = sessions(100, 24);
    stage.key(KeyCode::Down);
    stage.actions();
    stage.control('r');
    stage.has("❯ fix the parser");
    stage.types("!");
    stage.key(KeyCode::Enter);
    let (session, title) = (session(2, "", "").id, "fix the parser!".to_owned());
    assert_eq!(stage.actions(), [request("0/", Command::RenameSession { session, title })]);
    stage.has("❯ fix the parser!");
    stage.control('d');
    stage.has("Enter deletes for good · Esc cancels");
    stage.key(KeyCode::Esc);
    assert_eq!(stage.actions(), []);
    stage.control('d');
    stage.key(KeyCode::Enter);
    let delete = request("0/", Command::DeleteSession { session });
    assert_eq!(stage.actions(), [delete, request("0/", Command::Sessions)]);
}

#[test]
fn a_model_is_chosen_from_a_list() {
    let mut stage = Stage::new(60, 12);
    stage.enters("/model");
    assert_eq!(stage.actions(), [Action::Effect(Effect::LoadList(Listing::Models))]);
    let prices = ModelPrices { input: 3_000_000, cached: 1, cache_write: 1, output: 15_000_000 };
    let model = |label: &str, prices| {
        let (label, context_tokens) = (label.to_owned(), Some(200_000));
        ModelSummary { label, context_tokens, prices, ..ModelSummary::default() }
    };
    let models = vec![model("openai/gpt-5", None), model("openai/gpt-6", Some(prices))];
    stage.app.update(Update::Models(models), stage.now);
    stage.has(&format!("❯ openai/gpt-5{:>46}", "current · 200k"));
    stage.has(&format!("  openai/gpt-6{:>46}", "200k · $3.00 in, $15.00 out"));
    stage.types("6");
    stage.key(KeyCode::Enter);
    let name = Some("openai/gpt-6".to_owned());
    assert_eq!(stage.actions(), [request("0/", Command::Model { name })]);
}

#[test]
fn an_empty_list_closes_and_a_late_reply_opens_nothing() {
    let mut stage = opened(80, 24);
    stage.app.update(Update::RewindPoints(Vec::new()), stage.now);
    stage.has("There is no earlier message to return to");
    stage.key(KeyCode::Enter);
    stage.key(KeyCode::Esc);
    stage.lacks("Rewind");
    stage.app.update(Update::RewindPoints(vec![point(2, "add tests", 1)]), stage.now);
    stage.lacks("add tests");
}
