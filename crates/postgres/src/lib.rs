//! A minimal PostgreSQL client for the store: blocking, one thread per connection.
//!
//! - [`Address`]: the server, database and user of a `postgres://…` URL. It prints without its password.
//! - [`Client`]: a connection. Statements are queued and sent together: one [`run`](Client::run) is one round trip,
//!   however many statements it carries. That keeps a short transaction short over a network.
//! - [`Value`], [`Reply`], [`Row`]: integers, text and bytes, and nothing else.
//! - [`Error`]: what went wrong, sorted by who can fix it.
//!
//! Units of work run on threads that may block, so nothing here is async. `postgres-protocol` encodes and decodes the
//! messages and computes the SCRAM proof.
//!
//! # Invariants
//!
//! - A connection to another machine always uses TLS, and its certificate is verified, including the host name.
//! - If the address has a password, the server must prove that it knows it before it is sent anything: only
//!   SCRAM-SHA-256 is accepted, unless the address names another method.
//! - No error and no `Debug` output contains the password, even if a server repeats it.
//! - A message from a server, whatever its size and content, is an error at worst, never a panic. Memory is bounded.
//! - Behind a pooler, statements keep no state on the server: none of them is named.

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
