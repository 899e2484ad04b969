//! The server as a program: see its [`USAGE`].

use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::{fs, io, thread};

use super::scenario::{Scenario, parse_script};
use super::{ModelServer, Script};

const USAGE: &str = "usage: scripted-model [--port PORT] SCRIPT
SCRIPT is a file with a JSON list of replies, given one per request, or one of
  text            a short text
  bash N          N calls of bash, one after another, then a text
  file_read N     N calls of file_read, one after another, then a text
  deltas N        a text in N pieces
The address is printed when requests are taken.
";

/// Serves until the process is ended.
pub fn main(arguments: &[String]) -> ExitCode {
    match start(arguments) {
        Ok(server) => {
            // If the output is closed, the reader knows the port already.
            let _ = writeln!(io::stdout(), "{}", server.url());
            loop {
                thread::park();
            }
        }
        Err(problem) => {
            let _ = write!(io::stderr(), "{problem}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn start(arguments: &[String]) -> Result<ModelServer, String> {
    let mut words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut port = 0;
    if let Some(place) = words.iter().position(|word| *word == "--port") {
        let value = words.get(place + 1).ok_or("--port needs a number")?;
        port = value.parse().map_err(|_| format!("no port: {value}"))?;
        words.drain(place..place + 2);
    }
    if let Some(scenario) = Scenario::parse(&words) {
        let choose = move |captured: &_| scenario.reply(captured);
        return Ok(ModelServer::on_port(port, Script::Choice(Box::new(choose))));
    }
    let [file] = *words else { return Err("which script?".to_owned()) };
    let json = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let replies = parse_script(&json).map_err(|problem| format!("{file}: {problem}"))?;
    Ok(ModelServer::on_port(port, Script::List(Mutex::new(replies.into()))))
}
