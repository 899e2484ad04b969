//! Mail between agents and with the user: the rules of a mailbox, the `mail` tool, and the texts of `/mail` and
//! notifications.
//!
//! The store keeps the rows and enforces what must hold at a commit. This crate decides everything
//! that needs no row: which calls are valid, the order of checks, and how an outcome is shown to a
//! model ([`render_result`]) and to an agent that is woken ([`notification()`]). [`Command`] is what
//! the user types. Everything in it is pure.
//!
//! # Invariants
//!
//! - Every text of the contract is written once, in [`MailError`] or in the module that produces
//!   it.
//! - Sender and time are never parameters.
//! - A body that reaches the store is trimmed, not empty, and at most
//!   [`BODY_LIMIT`](ikigai_store::BODY_LIMIT) bytes long.
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
pub use command::{Command, Owner, USAGE};
pub use error::MailError;
pub use notification::notification;
pub use preview::preview;
pub use relative_time::relative_time;
pub use result::render_result;
pub use tool::tool;
