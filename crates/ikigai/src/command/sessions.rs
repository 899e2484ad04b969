//! `ikigai sessions`: lists, deletes and copies sessions.

use ikigai_host::{Environment, open_database_at, session_summary};
use ikigai_protocol::render_session;
use ikigai_store::{Process, Session};
use serde_json::{Value, json};

use crate::cli::{SessionsAction, SessionsArguments};
use crate::exit::Exit;
use crate::print;
use crate::session::Database;

pub(crate) fn run(
    environment: &Environment,
    arguments: &SessionsArguments,
) -> anyhow::Result<Exit> {
    let database = Database::open(environment)?;
    match &arguments.action {
        Some(SessionsAction::Rm { id }) => {
            let id = database.find_session(id)?;
            database.wait(database.store.remove_session(id, Process::current()))?;
            print::out(format!("Session {id} deleted\n"))?;
            return Ok(Exit::Done);
        }
        Some(SessionsAction::Copy { id, to }) => {
            let id = database.find_session(id)?;
            let other = open_database_at(environment, to)?;
            database.wait(database.store.copy_session(id, &other, Process::current()))?;
            print::out(format!("Session {id} copied to {}\n", other.address()))?;
            return Ok(Exit::Done);
        }
        None => {}
    }
    let sessions = database.wait(database.store.sessions())?;
    print::out(match arguments.json {
        true => {
            print::safe_json(format_args!("{}\n", sessions.iter().map(to_json).collect::<Value>()))
        }
        false if sessions.is_empty() => "No sessions yet\n".to_owned(),
        false => print::safe(
            &sessions
                .iter()
                .map(|session| render_session(&session_summary(session)))
                .collect::<String>(),
        ),
    })?;
    Ok(Exit::Done)
}

fn to_json(session: &Session) -> Value {
    json!({
        "id": session.id.to_string(),
        "directory": session.location.directory,
        "title": session.title,
        "created_at": session.created_at.to_string(),
        "updated_at": session.updated_at.to_string(),
        "agents": session.agents,
        "messages": session.messages,
    })
}
