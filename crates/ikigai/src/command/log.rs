//! `ikigai log`: prints an agent's conversation, or its canonical log.

use ikigai_conversation::{Message, MessageId};
use ikigai_host::{Environment, explain};
use ikigai_protocol::PlainLog;
use ikigai_store::Changes;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::LogArguments;
use crate::exit::Exit;
use crate::print::{self, Reader};
use crate::session::StoredSession;

pub(crate) fn run(environment: &Environment, arguments: &LogArguments) -> anyhow::Result<Exit> {
    let session = StoredSession::require_existing(environment)?;
    let mut printer = Printer {
        session: &session,
        form: Form::of(arguments),
        after: arguments.after.and_then(MessageId::new),
    };
    printer.show_new()?;
    match arguments.follow {
        true => follow(printer),
        false => printer.finish(),
    }
}

/// Prints new messages until interrupted.
fn follow(mut printer: Printer<'_>) -> anyhow::Result<Exit> {
    let session = printer.session;
    let mut changes = session.store().changes(session.id)?;
    let mut interrupted = session.wait(async { signal(SignalKind::interrupt()) })?;
    while printer.show_new()? == Reader::Listening {
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

/// How messages are printed.
enum Form {
    /// As a transcript, in the words of the screen.
    Transcript(Box<PlainLog>),
    /// Every message, with the system prompt and the usage.
    All,
    Json,
}

impl Form {
    fn of(arguments: &LogArguments) -> Form {
        match (arguments.json, arguments.all) {
            (true, _) => Form::Json,
            (false, true) => Form::All,
            (false, false) => Form::Transcript(Box::default()),
        }
    }

    fn render(&mut self, messages: &[Message]) -> String {
        match self {
            Form::Transcript(log) => {
                messages.iter().for_each(|message| log.push(message));
                print::safe(&log.take())
            }
            Form::All => print::safe(&messages.iter().map(render).collect::<String>()),
            Form::Json => {
                messages.iter().map(|message| print::safe_json(message.encode()) + "\n").collect()
            }
        }
    }
}

/// Prints the messages of a log that were not printed yet.
struct Printer<'a> {
    session: &'a StoredSession<'a>,
    form: Form,
    after: Option<MessageId>,
}

impl Printer<'_> {
    fn show_new(&mut self) -> anyhow::Result<Reader> {
        let session = self.session;
        let log = session.store().own_log(session.id, session.agent()?.clone(), self.after);
        let messages = session.wait(log).map_err(explain)?;
        let Some(last) = messages.last() else {
            return Ok(Reader::Listening);
        };
        self.after = Some(last.id);
        print::out_to_reader(self.form.render(&messages))
    }

    /// Prints the calls that have no result.
    fn finish(self) -> anyhow::Result<Exit> {
        if let Form::Transcript(log) = self.form {
            print::out(print::safe(&log.finish()))?;
        }
        Ok(Exit::Done)
    }
}

fn render(message: &Message) -> String {
    let kind = message.body.kind().name();
    let time = message.created_at.to_seconds_text();
    let content = message.content.replace('\n', "\n    ");
    format!("#{} {time} {kind}\n    {content}\n", message.id)
}
