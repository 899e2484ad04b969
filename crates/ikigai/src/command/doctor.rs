//! `ikigai doctor`: what ikigai needs, whether it is there, and what to do.

use ikigai_store::{Options, Store};

use crate::command::run::explain;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::model;
use crate::print;

pub(crate) fn run(environment: &Environment) -> anyhow::Result<Exit> {
    let findings = [configuration(), model(environment)?, database(environment)];
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

/// Whether the model's server is there, takes the key and has the model.
fn model(environment: &Environment) -> anyhow::Result<Finding> {
    let bad = |text| Finding { what: "model", healthy: false, text };
    let model = match model::connect(environment) {
        Ok(model) => model,
        Err(error) => return Ok(bad(explain(error).to_string())),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = runtime.block_on(model.client.models());
    runtime.shutdown_background();
    let label = &model.label;
    Ok(match asked {
        Ok(names) if names.contains(&model.name) => {
            let text = format!("{label}, known to its server");
            Finding { what: "model", healthy: true, text }
        }
        // Some servers know more models than they list.
        Ok(names) => {
            let text =
                format!("{label}; its server is there and does not list it, but {}", few(&names));
            Finding { what: "model", healthy: true, text }
        }
        Err(fault) => bad(format!("{label}: {fault} ({})", fault.category.advice())),
    })
}

fn few(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "no model".to_owned(),
        1..=SHOWN => shown,
        more => format!("{shown} and {} more", more - SHOWN),
    }
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
