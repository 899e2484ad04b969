//! `ikigai log`: prints an agent's canonical log.

use ikigai_conversation::{Message, MessageId};
use ikigai_host::{Environment, explain};
use ikigai_store::Changes;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::LogArguments;
use crate::exit::Exit;
use crate::print::{self, Reader};
use crate::session::StoredSession;

pub(crate) fn run(environment: &Environment, arguments: &LogArguments) -> anyhow::Result<Exit> {
    let session = StoredSession::require_existing(environment)?;
    let mut after = arguments.after.and_then(MessageId::new);
    show_new(&session, arguments, &mut after)?;
    match arguments.follow {
        true => follow(&session, arguments, after),
        false => Ok(Exit::Done),
    }
}

/// Prints new messages until interrupted.
fn follow(
    session: &StoredSession<'_>,
    arguments: &LogArguments,
    mut after: Option<MessageId>,
) -> anyhow::Result<Exit> {
    let mut changes = session.store().changes(session.id)?;
    let mut interrupted = session.wait(async { signal(SignalKind::interrupt()) })?;
    while show_new(session, arguments, &mut after)? == Reader::Listening {
        let changed = session.wait(async {
            tokio::select! {
                changed = changes.wait(Changes::SWEEP) => Some(changed),
                _ = interrupted.recv() => None,
            }
        });
        match changed {
            Some(changed) => changed?,
            None => return Ok(Exit::Interrupted),
        }
    }
    Ok(Exit::Done)
}

fn show_new(
    session: &StoredSession<'_>,
    arguments: &LogArguments,
    after: &mut Option<MessageId>,
) -> anyhow::Result<Reader> {
    let log = session.store().own_log(session.id, session.agent.clone(), *after);
    let messages = session.wait(log).map_err(explain)?;
    let Some(last) = messages.last() else {
        return Ok(Reader::Listening);
    };
    *after = Some(last.id);
    let lines: String = match arguments.json {
        true => messages.iter().map(|message| print::safe_json(message.encode()) + "\n").collect(),
        false => print::safe(&messages.iter().map(render).collect::<String>()),
    };
    print::out_to_reader(lines)
}

fn render(message: &Message) -> String {
    let kind = message.body.kind().name();
    let time = message.created_at.to_seconds_text();
    let content = message.content.replace('\n', "\n    ");
    format!("#{} {time} {kind}\n    {content}\n", message.id)
}
