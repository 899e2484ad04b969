//! Opening, joining and resuming sessions, and carrying out every user command. The one place
//! where tools, permissions, models and the store meet. Nothing here knows about screens.
//!
//! In reading order:
//!
//! | | is | lives in |
//! | --- | --- | --- |
//! | [`Environment`], [`Selection`] | the directory, settings and variables to work with; the selected session and agent | `environment.rs`, `selection.rs`, [`settings`] |
//! | [`AgentSlot`] | an agent of a session that this process may run | `open.rs` |
//! | [`OpenSession`], [`AgentService`] | the session that takes requests; the future that runs its agents | `open.rs` |
//! | [`OpenSession::execute`] | carries out every command | `commands.rs`, `commands/` |
//! | [`AgentSlot::watch`] | reports agents and questions of the session after every change | `agents.rs` |
//! | [`permissions()`], [`Roots`] | what agents may touch | `permissions.rs`, `roots.rs`, `lookup.rs`, `secret_names.rs` |
//! | [`connect`], [`connect_again`] | the configured model | `model.rs`, `model_facts.rs` |
//! | [`try_key`] | whether a provider accepts a key | `credentials.rs` |
//! | [`list_models`] | the models of all connected providers | `models.rs`, `model_lists.rs` |
//! | [`open_database`] | the database, and where its file is allowed to be | `database.rs` |
//! | [`TemporaryFolder`], [`quarantine_folder`] | folders outside the working tree | `temporary.rs`, `quarantine.rs` |
//!
//! A front end claims an agent, opens its session and runs the service alongside its own work:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use ikigai_host::{AgentChoice, AgentSlot, Environment, SessionOptions, connect};
//! # use ikigai_protocol::{Command, Request};
//! # use tokio_util::sync::CancellationToken;
//! # async fn example(environment: Environment) -> anyhow::Result<()> {
//! let environment = Arc::new(environment);
//! let choice = AgentChoice::new(&environment, connect(&environment)?);
//! let slot = AgentSlot::claim(&environment, SessionOptions::UNATTENDED).await?;
//! let agent = slot.agent().clone();
//! let (session, service) = slot.open(choice, Arc::new(|event| drop(event))).await?;
//! let say = async {
//!     let reply = session.execute(Request { agent, command: Command::Say { text: "hello".into() } }).await;
//!     // Once the session is dropped, the service ends with the turn.
//!     drop(session);
//!     reply
//! };
//! let (reply, end) = tokio::join!(say, service.run(CancellationToken::new()));
//! # drop((reply, end));
//! # Ok(())
//! # }
//! ```
//!
//! # Invariants
//!
//! - Nothing is printed and no variable is read: values go in, replies and notes come out.
//! - Every command returns a typed reply or a [`CommandError`](ikigai_protocol::CommandError).
//! - Opening a session returns `anyhow` errors: they come from six crates and the system, and every
//!   front end prints them with their causes and exits.

#![forbid(unsafe_code)]

mod clock;
mod credentials;
mod environment;
mod selection;
pub mod settings;

mod open;

mod agents;
mod commands;

mod database;
mod lookup;
mod model;
mod model_facts;
mod model_lists;
mod models;
mod permissions;
mod quarantine;
mod roots;
mod secret_locations;
mod secret_names;
mod temporary;

pub use agents::SessionState;
pub use clock::now;
pub use commands::{
    PendingAnswer, mail_reply, relative_path, session_summary, tool_summary, undo_report,
    usage_table,
};
pub use credentials::{TriedKey, try_key};
pub use database::{open as open_database, open_at as open_database_at};
pub use environment::{AGENT_VARIABLE, Environment, SESSION_VARIABLE, WatchdogProgram};
pub use model::{HOW_TO_CONNECT, connect, connect_again, connect_with, explain as explain_model};
pub use models::{ProviderModels, list_models};
pub use open::{
    AgentChoice, AgentService, AgentSlot, DefaultSession, OpenSession, ServiceEnd, SessionOptions,
    prompt,
};
pub use permissions::{permissions, sandbox_here};
pub use quarantine::folder as quarantine_folder;
pub use roots::{Roots, find_folder};
pub use selection::{
    Selection, existing_session, explain, find_agent, find_session, parse_agent, place,
};
pub use temporary::TemporaryFolder;
