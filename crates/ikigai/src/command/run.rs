//! `ikigai run`: one task for one agent, without a person at hand.

mod json;
mod text;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ikigai_agents::{Command, Done, Event, Happening, Seat, Sink, Stop, serve};
use ikigai_conversation::AgentId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::cli::RunArguments;
use crate::command::read_stdin;
use crate::config::NoModel;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::model::{self, HOW_TO_CONNECT};
use crate::opening::{Otherwise, equip, take_seat};
use crate::print::{self, Reader};
use crate::signals;

use json::JsonLines;
use text::PlainText;

pub(crate) fn run(environment: &Environment, arguments: &RunArguments) -> anyhow::Result<Exit> {
    let prompt = prompt(&arguments.prompt)?;
    if prompt.trim().is_empty() {
        print::note("ikigai: the prompt is empty: say what is to be done");
        return Ok(Exit::WrongUsage);
    }
    let model = model::connect(environment).map_err(explain)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let interrupt = CancellationToken::new();
    signals::cancel(interrupt.clone())?;
    let stop = runtime.block_on(async {
        let seat = take_seat(environment, Otherwise::New).await?;
        let output: Box<dyn Output> = match arguments.json {
            true => Box::new(JsonLines),
            false => Box::<PlainText>::default(),
        };
        let printer = Arc::new(Mutex::new(Printer::new(output, interrupt.clone())));
        lock(&printer).begin(&seat, &model.label)?;
        let agent = equip(environment, seat, model, sink(&printer))?;
        if let Some(seconds) = arguments.timeout {
            let (interrupt, limit) = (interrupt.clone(), Duration::from_secs(seconds));
            tokio::spawn(async move {
                tokio::time::sleep(limit).await;
                interrupt.cancel();
            });
        }
        let (say, commands) = mpsc::channel(1);
        say.send(Command::Say(prompt)).await?;
        drop(say);
        let served = serve(agent, commands, interrupt).await;
        lock(&printer).finish(served.err().map(|error| error.to_string()))
    });
    // A file tool that is stuck in the system must not keep us.
    runtime.shutdown_background();
    Ok(match stop? {
        Stop::Stop | Stop::Length | Stop::ToolLimit => Exit::Done,
        Stop::Interrupted => Exit::Interrupted,
        Stop::Error => Exit::Failed,
    })
}

/// The prompt as typed, or all of standard input for `-`.
fn prompt(typed: &str) -> anyhow::Result<String> {
    /// More than any model reads.
    const LIMIT: usize = 16 * 1024 * 1024;
    let prompt = match typed {
        "-" => String::from_utf8_lossy(&read_stdin("the prompt")?).into_owned(),
        typed => typed.to_owned(),
    };
    anyhow::ensure!(prompt.len() <= LIMIT, "the prompt has more than {LIMIT} bytes");
    Ok(prompt)
}

pub(crate) fn explain(error: NoModel) -> anyhow::Error {
    match error {
        NoModel::Nothing | NoModel::NoKey { .. } => anyhow::anyhow!("{error}; {HOW_TO_CONNECT}"),
        NoModel::NoName { .. } => error.into(),
    }
}

/// How events are shown.
trait Output: Send {
    /// Which session and model it is.
    fn begin(&mut self, seat: &Seat, model: &str) -> anyhow::Result<Reader>;
    /// Anything but the end of a turn.
    fn event(&mut self, event: &Event) -> anyhow::Result<Reader>;
    /// The end of a turn.
    fn done(&mut self, event: &Event, done: &Done) -> anyhow::Result<Reader>;
}

/// Shows events in order, but the end of a turn only when something follows it: the last one is the last
/// that is shown (cli.md, Events).
struct Printer {
    output: Box<dyn Output>,
    /// Cancelled when nobody reads what we print.
    interrupt: CancellationToken,
    held: Option<Event>,
    failure: Option<anyhow::Error>,
    agent: Option<AgentId>,
}

impl Printer {
    fn new(output: Box<dyn Output>, interrupt: CancellationToken) -> Printer {
        Printer { output, interrupt, held: None, failure: None, agent: None }
    }

    fn begin(&mut self, seat: &Seat, model: &str) -> anyhow::Result<()> {
        let reader = self.output.begin(seat, model)?;
        self.note(Ok(reader));
        Ok(())
    }

    fn take(&mut self, event: Event) {
        self.agent = Some(event.agent.clone());
        self.release();
        match event.happening {
            Happening::Done(_) => self.held = Some(event),
            // What it was is said at the end.
            Happening::Lost(_) => {}
            _ => {
                let shown = self.output.event(&event);
                self.note(shown);
            }
        }
    }

    fn release(&mut self) {
        if let Some(Event { agent, happening: Happening::Done(done) }) = self.held.take() {
            let event = Event { agent, happening: Happening::Done(done.clone()) };
            let shown = self.output.done(&event, &done);
            self.note(shown);
        }
    }

    fn note(&mut self, shown: anyhow::Result<Reader>) {
        match shown {
            Ok(Reader::Listening) => {}
            Ok(Reader::Gone) => self.interrupt.cancel(),
            Err(error) => {
                self.interrupt.cancel();
                self.failure.get_or_insert(error);
            }
        }
    }

    /// Shows the end, which is an error when the agent could not be served.
    fn finish(&mut self, error: Option<String>) -> anyhow::Result<Stop> {
        if let (Some(error), Some(agent)) = (error, self.agent.clone()) {
            // An answer that came before it is one all the same.
            self.release();
            let done = Done { stop: Stop::Error, text: String::new(), error: Some(error) };
            self.held = Some(Event { agent, happening: Happening::Done(done) });
        }
        let stop = match &self.held {
            Some(Event { happening: Happening::Done(done), .. }) => done.stop,
            _ => Stop::Error,
        };
        self.release();
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(stop),
        }
    }
}

fn sink(printer: &Arc<Mutex<Printer>>) -> Sink {
    let printer = Arc::clone(printer);
    Box::new(move |event| lock(&printer).take(event))
}

fn lock(printer: &Mutex<Printer>) -> MutexGuard<'_, Printer> {
    printer.lock().unwrap_or_else(PoisonError::into_inner)
}
