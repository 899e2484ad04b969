//! `ikigai doctor`: what ikigai needs, whether it is there, and what to do.

use ikigai_store::{Options, Store};

use crate::environment::Environment;
use crate::exit::Exit;
use crate::print;

pub(crate) fn run(environment: &Environment) -> anyhow::Result<Exit> {
    let findings = [configuration(), database(environment)];
    let text: String = findings.iter().map(Finding::render).collect();
    print::out(print::safe(&text))?;
    let healthy = findings.iter().all(|finding| finding.healthy);
    Ok(if healthy { Exit::Done } else { Exit::Failed })
}

/// What can be said when the configuration itself is wrong.
pub(crate) fn run_without_configuration(error: &anyhow::Error) -> anyhow::Result<Exit> {
    let text = format!("{error:#}\n    (nothing else was checked)");
    let finding = Finding { what: "configuration", healthy: false, text };
    print::out(print::safe(&finding.render()))?;
    Ok(Exit::Failed)
}

/// One thing that was looked at.
struct Finding {
    what: &'static str,
    healthy: bool,
    text: String,
}

impl Finding {
    fn render(&self) -> String {
        let mark = if self.healthy { "ok " } else { "BAD" };
        format!("{mark} {:<14} {}\n", self.what, self.text)
    }
}

/// It was read before we came here, and a wrong one would have ended the program.
fn configuration() -> Finding {
    let text = "read; 'ikigai config' shows it".to_owned();
    Finding { what: "configuration", healthy: true, text }
}

fn database(environment: &Environment) -> Finding {
    let look = || -> anyhow::Result<String> {
        let store = Store::open(environment.settings.database_url()?, Options::default())?;
        Ok(format!("{} ({})", environment.settings.masked_database_url()?, store.check()?))
    };
    match look() {
        Ok(text) => Finding { what: "database", healthy: true, text },
        Err(error) => Finding { what: "database", healthy: false, text: error.to_string() },
    }
}
