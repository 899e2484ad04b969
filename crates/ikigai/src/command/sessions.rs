//! `ikigai sessions`: what is in the database.

use ikigai_mail::relative_time;
use ikigai_store::{Process, Session};
use serde_json::{Value, json};

use crate::cli::{SessionsAction, SessionsArguments};
use crate::command::now;
use crate::database;
use crate::environment::Environment;
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
            let other = database::open_at(environment, to)?;
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
        false => print::safe(&sessions.iter().map(render).collect::<String>()),
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

/// A session in two lines.
pub(crate) fn render(session: &Session) -> String {
    let title = if session.title.is_empty() { "(nothing said yet)" } else { &session.title };
    let agents = if session.agents == 1 { "agent" } else { "agents" };
    let messages = if session.messages == 1 { "message" } else { "messages" };
    format!(
        "{}  {}\n    {} · {} {agents}, {} {messages} · {}\n",
        session.id,
        title,
        session.location.directory,
        session.agents,
        session.messages,
        relative_time(session.updated_at, now()),
    )
}
