//! `ikigai mail`: an agent's mailbox, on the command line.

use anyhow::Context;
use ikigai_mail::{Command, render_result};
use ikigai_tools::ToolResult;

use crate::cli::{MailAction, MailArguments};
use crate::command::{now, read_stdin};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::print;
use crate::session::OpenSession;

pub(crate) fn run(environment: &Environment, arguments: &MailArguments) -> anyhow::Result<Exit> {
    let command = match parse(&arguments.action)? {
        Ok(command) => command,
        Err(text) => return refuse(&text, arguments.json),
    };
    let session = match arguments.action {
        MailAction::Send { .. } => OpenSession::open(environment)?,
        MailAction::Inbox | MailAction::Read { .. } | MailAction::Unread { .. } => {
            OpenSession::look(environment)?
        }
    };
    let outcome = session.perform(command.step)?;
    if arguments.json {
        print::out(print::safe_json(format_args!("{}\n", render_result(outcome.as_ref()))))?;
        return Ok(Exit::Done);
    }
    let Some(outcome) = outcome else {
        return Ok(Exit::Failed);
    };
    match Command::render(&session.agent, &outcome, now()) {
        Ok(text) => print::out(print::safe(&format!("{text}\n"))).map(|()| Exit::Done),
        Err(text) => refuse(&text, false),
    }
}

/// The same checks and texts as for a typed `/mail`.
fn parse(action: &MailAction) -> anyhow::Result<Result<Command, String>> {
    Ok(match action {
        MailAction::Inbox => Ok(Command::inbox()),
        MailAction::Read { id } => Command::read(id),
        MailAction::Unread { id } => Command::unread(id),
        MailAction::Send { to, body } if body == "-" => Command::send(to, &read_body()?),
        MailAction::Send { to, body } => Command::send(to, body),
    })
}

fn read_body() -> anyhow::Result<String> {
    String::from_utf8(read_stdin("the text")?).context("the text on standard input is no UTF-8")
}

fn refuse(text: &str, json: bool) -> anyhow::Result<Exit> {
    if json {
        let error = text.strip_prefix("Error: ").unwrap_or(text);
        print::out(print::safe_json(format_args!("{}\n", ToolResult::error(error))))?;
        return Ok(Exit::Done);
    }
    print::note(text);
    Ok(Exit::Failed)
}
