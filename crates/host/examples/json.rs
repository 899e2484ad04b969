//! A front end in one file: it reads requests as JSON lines from standard input, and prints events
//! and answers as JSON lines. An event has `event`; an answer has `request`, the number of the line
//! that it answers.
//!
//! ```sh
//! export OPENAI_BASE_URL=http://127.0.0.1:11434/v1 IKIGAI_MODEL=openai/NAME
//! echo '{"agent":"0/","command":"say","text":"hello"}' | cargo run -p ikigai-host --example json
//! ```
//!
//! Every command of `ikigai_protocol::Command` works: `say`, `answer`, `open`, `mail`, `undo`, … An
//! argument names the session to continue. The program exits when its input has ended and the
//! agents are idle.

use std::env;
use std::ffi::OsString;
use std::io::BufRead;
use std::os::fd::AsFd;
use std::sync::Arc;

use ikigai_host::{
    AgentChoice, AgentSlot, DefaultSession, Environment, ServiceEnd, SessionOptions,
    WatchdogProgram, connect_again,
};
use ikigai_protocol::{CommandError, Reply, Request};
use ikigai_tools::Watch;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Prints a line.
pub(crate) type Print = Arc<dyn Fn(Value) + Send + Sync>;

const WATCHDOG: &str = "__watchdog";

fn main() -> anyhow::Result<()> {
    let mut arguments = env::args_os().skip(1);
    let argument = arguments.next();
    if argument.as_ref().is_some_and(|argument| argument == WATCHDOG) {
        // This program again, started as the watchdog of agents' commands.
        let socket = std::io::stdin().as_fd().try_clone_to_owned()?;
        return Ok(ikigai_tools::serve_watchdog(
            socket,
            Watch::parse(arguments.next().as_deref()),
        )?);
    }
    let environment = read_environment(argument)?;
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    #[expect(clippy::print_stdout, reason = "it is a program")]
    let print: Print = Arc::new(|line| println!("{line}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(talk(Arc::new(environment), lines, print))
}

fn read_environment(session: Option<OsString>) -> anyhow::Result<Environment> {
    let watchdog = WatchdogProgram { path: env::current_exe()?, argument: WATCHDOG.into() };
    let (directory, variables) = (env::current_dir()?, env::vars_os().collect());
    let mut environment =
        Environment::from_variables(directory, variables, env::temp_dir(), watchdog)?;
    environment.selection.session = session.map(|session| session.to_string_lossy().into_owned());
    Ok(environment)
}

/// Opens a session and carries out requests until the input ends.
pub(crate) async fn talk(
    environment: Arc<Environment>,
    mut lines: mpsc::Receiver<String>,
    print: Print,
) -> anyhow::Result<()> {
    let options = SessionOptions { default: DefaultSession::New, ..SessionOptions::INTERACTIVE };
    let choice = AgentChoice::new(&environment, connect_again(&environment).await?);
    let slot = AgentSlot::claim(&environment, options).await?;
    print(json!({ "session": slot.session().to_string(), "agent": slot.agent() }));
    let for_events = Arc::clone(&print);
    let events = move |event| for_events(serde_json::to_value(event).unwrap_or_default());
    let (session, service) = slot.open(choice, Arc::new(events)).await?;
    let session = Arc::new(session);
    let reading = async {
        let mut number = 0;
        while let Some(line) = lines.recv().await {
            number += 1;
            let request: Request = match serde_json::from_str(&line) {
                Ok(request) => request,
                Err(error) => {
                    print(answer_line(number, Err(CommandError::Usage(error.to_string()))));
                    continue;
                }
            };
            let (print, answer) = (Arc::clone(&print), session.start(request).await);
            tokio::spawn(async move { print(answer_line(number, answer.await)) });
        }
        // Once the session is dropped, the service ends as soon as the agents are idle.
        drop(session);
    };
    let ((), end) = tokio::join!(reading, service.run(CancellationToken::new()));
    match end? {
        ServiceEnd::Finished => Ok(()),
        ServiceEnd::AgentLost(error) => Err(error.into()),
    }
}

fn answer_line(number: usize, answer: Result<Reply, CommandError>) -> Value {
    let line = match answer {
        Ok(reply) => serde_json::to_value(reply),
        Err(error) => serde_json::to_value(error),
    };
    let mut line = line.unwrap_or_default();
    line["request"] = number.into();
    line
}
