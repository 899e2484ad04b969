//! Line mode: a conversation as lines of text, for terminals and programs that want no screen.
//!
//! [`LineMode`] takes events, replies and lines of input, prints, and returns what the user wants
//! to do. It knows no database and no model: the program around it carries out the requests.
//!
//! In reading order:
//!
//! | | is | lives in |
//! | --- | --- | --- |
//! | [`LineMode`] | the terminal in line mode | `line_mode.rs`, `questions.rs`, `replies.rs` |
//! | [`Entered`] | what the user wants to do | `entered.rs`, `answer.rs` |
//! | [`read_lines`], [`Input`] | lines of input | `input.rs` |
//! | [`call_line`], [`end_line`], … | blocks as text, also for `run` and the tour | `text.rs`, `question.rs` |
//!
//! # Invariants
//!
//! - All text is made safe for a terminal before it is printed.
//! - An approval always refers to the question that is on the screen.
//!
//! # Example
//!
//! ```
//! use ikigai_conversation::{AgentId, Mode};
//! use ikigai_lines::{Entered, Input, LineMode, LineStyles, Setup};
//!
//! let setup = Setup {
//!     agent: AgentId::top_level(0),
//!     mode: Mode::Work,
//!     directory: "/project".into(),
//!     styles: LineStyles::None,
//!     output: Box::new(std::io::sink()),
//! };
//! let mut lines = LineMode::new(setup);
//! assert_eq!(lines.enter(Input::Line("/exit".to_owned())), Entered::Leave);
//! ```

#![forbid(unsafe_code)]

mod entered;
mod line_mode;
mod questions;
mod replies;

mod answer;
mod input;
mod live;

mod question;
mod text;

pub use entered::Entered;
pub use input::{Input, read_lines};
pub use line_mode::{LineMode, LineStyles, Setup};
pub use text::{
    LineStyle, call_line, change_lines, database_unavailable, end_line, prefix_lines, retry_line,
};
