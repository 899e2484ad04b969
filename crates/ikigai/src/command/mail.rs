//! `ikigai mail`: an agent's mailbox, on the command line.

use std::io::Read;

use anyhow::Context;
use ikigai_mail::{Command, render_result};
use ikigai_tools::ToolResult;

use crate::cli::{MailAction, MailArguments};
use crate::command::now;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::print;
use crate::session::OpenSession;

pub(crate) fn run(environment: &Environment, arguments: &MailArguments) -> anyhow::Result<Exit> {
    let command = match parse(&arguments.action)? {
        Ok(command) => command,
        Err(text) => return refuse(&text, arguments.json),
    };
    let session = OpenSession::open(environment)?;
    let outcome = session.perform(command.step)?;
    if arguments.json {
        print::out(format!("{}\n", render_result(&outcome)))?;
        return Ok(Exit::Done);
    }
    match Command::render(&session.agent, &outcome, now()) {
        Ok(text) => print::out(format!("{text}\n")).map(|()| Exit::Done),
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

/// A body from standard input; what is longer than a mail may be is refused as such.
fn read_body() -> anyhow::Result<String> {
    /// Enough to see that it is too long, whatever white space is around it.
    const LIMIT: u64 = 1024 * 1024;
    let mut body = Vec::new();
    std::io::stdin()
        .take(LIMIT)
        .read_to_end(&mut body)
        .context("cannot read the text from stdin")?;
    String::from_utf8(body).context("the text on standard input is no UTF-8")
}

fn refuse(text: &str, json: bool) -> anyhow::Result<Exit> {
    if json {
        let error = text.strip_prefix("Error: ").unwrap_or(text);
        print::out(format!("{}\n", ToolResult::error(error)))?;
        return Ok(Exit::Done);
    }
    print::note(text);
    Ok(Exit::Failed)
}
