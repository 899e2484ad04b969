//! Mail between agents: the rules of a mailbox, the `mail` tool, the texts of `/mail` and notifications.
//!
//! The rows are the store's business, and so is everything that must hold at the commit. Here is what needs
//! no row: which calls are understood, which checks come in which order, and how an outcome is told to a
//! model ([`render_result`]), to a person ([`Command`]) and to an agent that is woken ([`notification()`]).
//! Everything in this crate is pure.
//!
//! # Invariants
//!
//! - Every text of the contract stands once, in [`MailError`] or in the module that makes it.
//! - Sender and time are never parameters.
//! - A body that reaches the store is trimmed, not empty, and at most [`BODY_LIMIT`](ikigai_store::BODY_LIMIT) bytes long.
//!
//! # Example
//!
//! ```
//! assert_eq!(ikigai_mail::preview("first line\r\n\r\nsecond line"), "first line second line");
//! ```

#![forbid(unsafe_code)]

mod tool;

mod address;
mod body;
mod command;
mod error;
mod notification;
mod preview;
mod relative_time;
mod result;

pub use address::parse_named;
pub use command::{Command, USAGE};
pub use error::MailError;
pub use notification::notification;
pub use preview::preview;
pub use relative_time::relative_time;
pub use result::render_result;
pub use tool::tool;
