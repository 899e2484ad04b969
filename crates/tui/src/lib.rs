//! The screen: one agent in view, the others working in the background.
//!
//! The crate takes [`Update`] and emits [`Effect`]s. It knows no database, no model and no
//! configuration: the program around it feeds it the events of agents and carries out the effects.
//!
//! In reading order:
//!
//! | | is | lives in |
//! | --- | --- | --- |
//! | [`Update`], [`Effect`] | everything that goes in and out | `update.rs`, `feed.rs` |
//! | [`run()`] | the event loop | `run.rs`, `keyboard.rs`, `typed.rs`, `answers.rs`, `terminal.rs`, `backend.rs` |
//! | [`App`] | the state of the whole screen | `app.rs` |
//! | keys | what each key does | `keys.rs` |
//! | drawing | what goes where | `draw.rs` |
//! | an agent | its conversation, work, questions, draft | `pane.rs`, `transcript.rs`, `activity.rs`, `question.rs`, `draft.rs` |
//! | the rest of the screen | | `separator.rs`, `team.rs`, `team_list.rs`, `status.rs`, `completion.rs`, `picker.rs`, `history.rs`, `help.rs` |
//! | text | sanitizing, wrapping, Markdown, code, diffs, styles | `safe.rs`, `wrap.rs`, `prose.rs`, `markdown.rs`, `highlight.rs`, `diff.rs`, `style.rs` |
//!
//! # Invariants
//!
//! - State changes only through updates and user input. Drawing changes nothing visible. Only
//!   `run.rs` reads the clock.
//! - All text passes through `safe.rs` before it is drawn: no control character reaches the terminal.
//! - Only visible rows are laid out. A delta of an answer lays out only the last part again.
//! - The terminal is always restored, even after a panic.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//!
//! use ikigai_conversation::{AgentId, Mode};
//! use ikigai_tui::{App, Colours, Setup, Status, Update};
//! use ratatui_core::buffer::Buffer;
//! use ratatui_core::layout::{Rect, Size};
//!
//! let status = Status {
//!     model: "gpt-5".to_owned(),
//!     mode: Mode::Work,
//!     sandbox: "landlock".to_owned(),
//!     branch: String::new(),
//!     context_tokens: None,
//!     cost: None,
//!     label: None,
//! };
//! let view = AgentId::top_level(0);
//! let setup = Setup { view: view.clone(), status, colours: Colours::None };
//! let mut app = App::new(setup, Size::new(50, 5));
//! app.update(Update::Note { agent: view, text: "hello".to_owned() }, Duration::ZERO);
//!
//! let mut buffer = Buffer::empty(Rect::new(0, 0, 50, 5));
//! app.draw(&mut buffer, Duration::ZERO);
//! let row = |y: u16| (0..50).map(|x| buffer[(x, y)].symbol()).collect::<String>();
//! assert_eq!(row(1).trim_end(), "hello");
//! assert_eq!(row(4).trim_end(), "gpt-5 · work (landlock)");
//! ```

#![forbid(unsafe_code)]

mod feed;
mod update;

mod app;
mod draw;
mod keys;

mod activity;
mod completion;
mod draft;
mod help;
mod history;
mod pane;
mod picker;
mod question;
mod separator;
mod status;
mod team;
mod team_list;
mod team_row;
mod transcript;

mod diff;
mod highlight;
mod markdown;
mod prose;
mod safe;
mod style;
mod wrap;

mod answers;
mod backend;
mod keyboard;
mod run;
mod terminal;
mod typed;

#[cfg(test)]
mod tests;

pub use app::{App, ExitSummary, Setup};
pub use completion::Listing;
pub use feed::{Feed, Updates, feed};
pub use prose::wrap_prose;
pub use run::{Options, run};
pub use style::{Background, Colours};
pub use team::Member;
pub use terminal::{Bell, Mouse};
pub use update::{Drafting, Effect, Status, Update};
