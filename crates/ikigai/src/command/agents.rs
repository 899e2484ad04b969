//! `ikigai agents`: lists the agents of a session, or adds one.

use ikigai_host::{Environment, place, settings};
use ikigai_store::{Agent, State};
use serde_json::{Value, json};

use crate::cli::{AgentsAction, AgentsArguments};
use crate::exit::Exit;
use crate::print;
use crate::session::StoredSession;

pub(crate) fn run(environment: &Environment, arguments: &AgentsArguments) -> anyhow::Result<Exit> {
    let text = match &arguments.action {
        Some(AgentsAction::Add { name }) => {
            let session = StoredSession::open(environment)?;
            let limits = settings::agent_limits(&environment.settings);
            let add =
                session.store().add_agent(session.id, name.clone(), place(environment), limits);
            format!("{}\n", session.wait(add)?)
        }
        None => {
            let session = StoredSession::require_existing(environment)?;
            let agents = session.wait(session.store().agents(session.id))?;
            match arguments.json {
                true => print::safe_json(format_args!(
                    "{}\n",
                    agents.iter().map(to_json).collect::<Value>()
                )),
                false => print::safe(&render(&agents)),
            }
        }
    };
    print::out(text)?;
    Ok(Exit::Done)
}

fn to_json(agent: &Agent) -> Value {
    json!({
        "id": agent.id.to_string(),
        "parent": agent.id.parent().map(|parent| parent.to_string()),
        "name": agent.name,
        "state": agent.state.name(),
        "unread": agent.unread,
        "notification_pending": agent.notification_pending,
        "model": agent.model,
    })
}

/// Renders the living agents as a tree, with their tasks.
fn render(agents: &[Agent]) -> String {
    let mut text = String::new();
    for agent in agents.iter().filter(|agent| agent.state != State::Dead) {
        let indent = "  ".repeat(agent.id.depth() - 1);
        text.push_str(&format!(
            "{:<12} {:<8}",
            format!("{indent}{}", agent.id),
            agent.state.name()
        ));
        if let Some(name) = &agent.name {
            text.push_str(&format!(" {name}"));
        }
        if agent.unread > 0 {
            text.push_str(&format!(" [mail:{}]", agent.unread));
        }
        if !agent.task.is_empty() {
            text.push_str(&format!(" {}", agent.task));
        }
        text.push('\n');
    }
    text
}
