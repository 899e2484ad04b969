//! A client for PostgreSQL, as small as the store needs it: blocking, one thread per connection.
//!
//! - [`Address`]: where a server is and who asks, from `postgres://…`. It prints without its password.
//! - [`Client`]: a connection. Statements are queued and travel together; one [`run`](Client::run) is one round
//!   trip, whatever it carries. That is what makes a short transaction over a network short.
//! - [`Value`], [`Reply`], [`Row`]: numbers, texts and bytes, and nothing else.
//! - [`Error`]: what went wrong, sorted by who can do something about it.
//!
//! Units of work run on threads that may block, so nothing here is async. The messages themselves and the proof
//! of the password are the work of `postgres-protocol`.
//!
//! # Invariants
//!
//! - Another machine is only talked to through TLS, and its certificate is checked, the name in it included.
//! - No error and no `Debug` text has the password in it.
//! - A server's message of any size and content is an error at worst, never a panic, and memory is bounded.
//! - Statements keep no state on the server where a pooler stands between: then none has a name.

#![forbid(unsafe_code)]

mod address;
mod client;
mod error;
mod login;
mod row;
mod statements;
mod stream;
mod text;
mod value;

pub use address::{Address, Host, Tls};
pub use client::{Client, Notification};
pub use error::Error;
pub use row::{Reply, Row};
pub use value::Value;
