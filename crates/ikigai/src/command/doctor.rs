//! `ikigai doctor`: checks what ikigai needs, and says how to fix what is missing.

use std::io::{self, IsTerminal};

use ikigai_host::{Environment, connect, explain_model, open_database, sandbox_here, settings};
use ikigai_tools::{ForeignFile, Loopback, Mode, SandboxKind, passed_over};

use crate::exit::Exit;
use crate::print;

pub(crate) fn run(environment: &Environment) -> anyhow::Result<Exit> {
    let mut findings =
        vec![configuration(), keys(environment), model(environment)?, sandbox(environment)?];
    findings.extend(held_back(environment));
    findings.extend(missing_paths(environment));
    findings.extend(passed_over(&environment.directory).iter().map(foreign));
    findings.extend([terminal(environment), database(environment)]);
    let text: String = findings.iter().map(Finding::render).collect();
    print::out(print::safe(&text))?;
    let is_bad = findings.iter().any(|finding| finding.health == Health::Bad);
    Ok(if is_bad { Exit::Failed } else { Exit::Done })
}

/// The report if the configuration itself is invalid.
pub(crate) fn run_without_configuration(error: &anyhow::Error) -> anyhow::Result<Exit> {
    let text = format!("{error:#}\n    (no further checks were made)");
    let finding = Finding { what: "configuration", health: Health::Bad, text };
    print::out(print::safe(&finding.render()))?;
    Ok(Exit::Failed)
}

/// The result of one check.
struct Finding {
    what: &'static str,
    health: Health,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Good,
    /// Missing, possibly on purpose.
    Missing,
    Bad,
}

impl Finding {
    fn render(&self) -> String {
        let mark = match self.health {
            Health::Good => "ok ",
            Health::Missing => "-- ",
            Health::Bad => "BAD",
        };
        format!("{mark} {:<14} {}\n", self.what, self.text)
    }
}

/// Always good: an invalid configuration is reported before this runs.
fn configuration() -> Finding {
    let text = "read; 'ikigai config' shows it".to_owned();
    Finding { what: "configuration", health: Health::Good, text }
}

/// Where there are keys: in variables, and stored ones. They are never shown.
fn keys(environment: &Environment) -> Finding {
    let variables = environment.settings.key_variables();
    let (set, missing): (Vec<_>, Vec<_>) = variables.partition(|(_, is_set)| *is_set);
    let has_stored = environment.settings.credentials().providers().next().is_some();
    let health = if set.is_empty() && !has_stored { Health::Missing } else { Health::Good };
    let state = |variables: Vec<(String, bool)>, state: &str| {
        let names: Vec<String> = variables.into_iter().map(|(name, _)| name).collect();
        (!names.is_empty()).then(|| format!("{} {state}", names.join(", ")))
    };
    let stored: Vec<&str> = environment.settings.credentials().providers().collect();
    let stored = (!stored.is_empty()).then(|| format!("stored for {}", stored.join(", ")));
    let states = [state(set, "set"), stored, state(missing, "not set")];
    let text = states.into_iter().flatten().collect::<Vec<_>>().join("; ");
    Finding { what: "keys", health, text }
}

/// A file that is skipped because another user owns it.
fn foreign(foreign: &ForeignFile) -> Finding {
    let text = format!("{foreign}; it is passed over");
    Finding { what: "ownership", health: Health::Missing, text }
}

/// Whether the terminal supports the full screen.
fn terminal(environment: &Environment) -> Finding {
    let finding = |health, text: String| Finding { what: "terminal", health, text };
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        let text = "none; 'ikigai run' does not need one";
        return finding(Health::Missing, text.to_owned());
    }
    let name = environment.variable("TERM").unwrap_or_else(|| "dumb".to_owned());
    if name == "dumb" {
        let text = "TERM is dumb, so line mode is used; set TERM for the full screen";
        return finding(Health::Missing, text.to_owned());
    }
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) => finding(Health::Good, format!("{name}, {}×{}", size.ws_col, size.ws_row)),
        Err(error) => finding(Health::Bad, format!("{name}: unknown size: {error}")),
    }
}

/// Whether the model's server responds, accepts the key and has the model.
fn model(environment: &Environment) -> anyhow::Result<Finding> {
    let finding = |health, text| Finding { what: "model", health, text };
    let model = match connect(environment) {
        Ok(model) => model,
        Err(error) => return Ok(finding(Health::Missing, explain_model(error).to_string())),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let models = runtime.block_on(model.client.models());
    runtime.shutdown_background();
    let label = &model.label;
    Ok(match models {
        Ok(models) if models.iter().any(|listed| listed.name == model.name) => {
            let text = format!("{label}, known to its server");
            finding(Health::Good, text)
        }
        // Some servers have more models than they list.
        Ok(models) => {
            let names: Vec<String> = models.into_iter().map(|listed| listed.name).collect();
            let text = format!(
                "{label}; its server is running but does not list it; it lists {}",
                summarize_names(&names)
            );
            finding(Health::Good, text)
        }
        Err(fault) => {
            finding(Health::Bad, format!("{label}: {fault} ({})", fault.category.advice()))
        }
    })
}

fn summarize_names(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "no model".to_owned(),
        1..=SHOWN => shown,
        more => format!("{shown} and {} more", more - SHOWN),
    }
}

/// Whether commands can be sandboxed, and what the sandbox allows.
fn sandbox(environment: &Environment) -> anyhow::Result<Finding> {
    let finding = |health, text| Finding { what: "sandbox", health, text };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let sandbox = sandbox_here(environment)?;
    let commands = environment.commands(environment.for_commands());
    let (found, here, loopback) = runtime.block_on(async {
        let found = commands.sandbox_kind().await;
        let here = match found {
            Ok(kind) => commands.try_out(&sandbox, kind).await,
            Err(_) => Ok(()),
        };
        let loopback = commands.loopback().await;
        commands.close().await;
        (found, here, loopback)
    });
    let mode = settings::mode(&environment.settings);
    if let (Ok(kind), Err(error), Mode::Work) = (&found, here, mode) {
        let text = format!("{kind} works, but not in this directory: {error}");
        return Ok(finding(Health::Bad, text));
    }
    Ok(match (found, mode) {
        (Ok(kind), Mode::Full) => finding(
            Health::Missing,
            format!("{kind} works, but mode full runs commands without it"),
        ),
        (Ok(SandboxKind::Landlock), _) => {
            let better = match commands.failed_sandbox() {
                Some(failed) => format!("the stronger bubblewrap does not work ({failed})"),
                None => "install bubblewrap for a stronger sandbox".to_owned(),
            };
            let sockets = match sandbox.network {
                true => "commands have the network",
                false => "commands have no sockets, not even on localhost",
            };
            let unix = "sandbox.unix_sockets has no effect";
            let text = format!("landlock, in mode {}; {better}; {sockets}; {unix}", mode.word());
            finding(Health::Good, text)
        }
        (Ok(kind), Mode::Read | Mode::Work) => {
            let sockets = match (sandbox.network, loopback) {
                (true, _) => "commands have the network",
                (false, Loopback::PerAgent) => "the commands of an agent share a private loopback",
                (false, Loopback::PerCommand) => {
                    "each command has its own loopback, which later commands cannot reach"
                }
            };
            finding(Health::Good, format!("{kind}, in mode {}; {sockets}", mode.word()))
        }
        (Err(none), _) => finding(
            Health::Missing,
            format!("{none}, so every command needs approval: install bubblewrap"),
        ),
    })
}

/// Variables that are held back from commands in the sandbox.
fn held_back(environment: &Environment) -> Option<Finding> {
    let names = environment.held_back();
    let text = format!(
        "held back from sandboxed commands, since they look like secrets: {} (sandbox.env lets \
            them through)",
        names.join(", ")
    );
    let finding = Finding { what: "variables", health: Health::Good, text };
    (!names.is_empty()).then_some(finding)
}

/// Configured sandbox paths that do not exist. They are not reported anywhere else.
fn missing_paths(environment: &Environment) -> impl Iterator<Item = Finding> {
    let named = ["sandbox.read", "sandbox.hide", "sandbox.write"].into_iter().flat_map(|setting| {
        environment.settings.paths(setting).into_iter().map(move |place| (setting, place))
    });
    named.filter(|(_, place)| !place.exists()).map(|(setting, place)| {
        let text = format!("{setting} names {}, which is not there", place.display());
        Finding { what: "sandbox", health: Health::Missing, text }
    })
}

fn database(environment: &Environment) -> Finding {
    let check = || -> anyhow::Result<String> {
        let store = open_database(environment)?;
        Ok(format!("{} ({})", environment.settings.database_url()?, store.check()?))
    };
    match check() {
        Ok(text) => Finding { what: "database", health: Health::Good, text },
        Err(error) => Finding { what: "database", health: Health::Bad, text: error.to_string() },
    }
}
