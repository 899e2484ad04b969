//! `ikigai mail`: the mailbox of an agent or of the user.

use anyhow::Context;
use ikigai_conversation::{AgentId, Correspondent};
use ikigai_host::{Environment, mail_reply, now};
use ikigai_mail::{Command, Owner, render_result};
use ikigai_protocol::{Reply, render_reply};
use ikigai_tools::ToolResult;

use crate::cli::{MailAction, MailArguments};
use crate::command::read_stdin;
use crate::exit::Exit;
use crate::print;
use crate::session::StoredSession;

pub(crate) fn run(environment: &Environment, arguments: &MailArguments) -> anyhow::Result<Exit> {
    let command = match parse(&arguments.action)? {
        Ok(command) => command,
        Err(text) => return refuse(&text, arguments.json),
    };
    let mut session = match arguments.action {
        MailAction::Send { .. } => StoredSession::open(environment)?,
        MailAction::Inbox
        | MailAction::Read { .. }
        | MailAction::Peek { .. }
        | MailAction::Unread { .. } => StoredSession::require_existing(environment)?,
    };
    // `--agent` selects a mailbox as well as a sender.
    if command.owner == Owner::User && environment.selection.agent.is_none() {
        session.actor = Correspondent::User;
    }
    let outcome = session.perform(command.step)?;
    if arguments.json {
        print::out(print::safe_json(format_args!("{}\n", render_result(outcome.as_ref()))))?;
        return Ok(Exit::Done);
    }
    let Some(outcome) = outcome else {
        return Ok(Exit::Failed);
    };
    match mail_reply(&session.actor, outcome, now()) {
        Ok(mut reply) => {
            // Scripts get the message alone.
            if let Reply::Mail(mail) = &mut reply {
                mail.read_for = None;
            }
            // No reply about mail depends on the agent in view.
            let text = render_reply(&reply, &AgentId::top_level(0), &environment.directory);
            let text = text.unwrap_or_default();
            print::out(print::safe(&format!("{text}\n"))).map(|()| Exit::Done)
        }
        Err(error) => refuse(&error.to_string(), false),
    }
}

/// The same checks and texts as for `/mail`.
fn parse(action: &MailAction) -> anyhow::Result<Result<Command, String>> {
    Ok(match action {
        MailAction::Inbox => Ok(Command::inbox()),
        MailAction::Read { id } => Command::read(id),
        MailAction::Peek { id } => Command::peek(id),
        MailAction::Unread { id } => Command::unread(id),
        MailAction::Send { to, body } if body == "-" => Command::send(to, &read_body()?),
        MailAction::Send { to, body } => Command::send(to, body),
    })
}

fn read_body() -> anyhow::Result<String> {
    String::from_utf8(read_stdin("the text")?).context("the text on stdin is not UTF-8")
}

fn refuse(text: &str, json: bool) -> anyhow::Result<Exit> {
    if json {
        print::out(print::safe_json(format_args!("{}\n", ToolResult::error(text))))?;
        return Ok(Exit::Done);
    }
    print::note(&format!("Error: {text}"));
    Ok(Exit::Failed)
}
