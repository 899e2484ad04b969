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
//! - Where there is a password, the server proves that it knows it before it is told anything: only SCRAM-SHA-256 is
//!   accepted, unless the address names another login.
//! - No error and no `Debug` text has the password in it, not even when a server repeats it.
//! - A server's message of any size and content is an error at worst, never a panic, and memory is bounded.
//! - Statements keep no state on the server where a pooler stands between: then none has a name.

#![forbid(unsafe_code)]

mod address;
mod binding;
mod client;
mod connection;
mod error;
mod login;
mod password;
mod peer;
mod row;
mod statements;
mod stream;
mod text;
mod value;

pub use address::{Address, Host, Tls};
pub use client::Client;
pub use connection::Notification;
pub use error::Error;
pub use row::{Reply, Row};
pub use value::Value;
