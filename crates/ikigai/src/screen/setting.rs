//! The terminal's capabilities, the status line and the greeting.

use ikigai_conversation::AgentId;
use ikigai_host::{AgentChoice, Environment};
use ikigai_tools::{NoSandbox, SandboxKind};
use ikigai_tui::{Background, Bell, Colours, Status};

use super::Purpose;

/// The terminals that are known to show notifications, by the start of `TERM_PROGRAM` or `TERM`.
const NOTIFYING: [(&str, Bell); 8] = [
    ("iTerm.app", Bell::Osc9),
    ("WezTerm", Bell::Osc9),
    ("ghostty", Bell::Osc9),
    ("xterm-ghostty", Bell::Osc9),
    ("kitty", Bell::Osc99),
    ("xterm-kitty", Bell::Osc99),
    ("foot", Bell::Osc777),
    ("rxvt-unicode", Bell::Osc777),
];

pub(super) fn colours(environment: &Environment) -> Colours {
    let is_set = |name: &str, values: &[&str]| {
        let value = environment.variable(name).unwrap_or_default();
        values.iter().any(|known| value.contains(known))
    };
    let has_many = is_set("TERM", &["256color", "kitty", "ghostty", "direct"])
        || is_set("COLORTERM", &["truecolor", "24bit"]);
    match environment.variable("NO_COLOR") {
        Some(_) => Colours::None,
        None if has_many => Colours::Many(Background::Dark),
        None => Colours::Sixteen,
    }
}

pub(super) fn bell(environment: &Environment) -> Bell {
    let named = ["TERM_PROGRAM", "TERM"].iter().filter_map(|name| environment.variable(name));
    let bell = |name: String| {
        let known = NOTIFYING.iter().find(|(known, _)| name.starts_with(known));
        known.map(|(_, bell)| *bell)
    };
    named.into_iter().find_map(bell).unwrap_or(Bell::Plain)
}

/// The status line before the sandbox is known.
pub(super) fn status(environment: &Environment, choice: &AgentChoice, purpose: &Purpose) -> Status {
    Status {
        model: model_name(environment, &choice.model.label),
        mode: choice.mode,
        sandbox: String::new(),
        branch: String::new(),
        context_tokens: choice.model.facts.now().context_window,
        cost: None,
        label: match purpose {
            Purpose::Work => None,
            Purpose::Tour { .. } => Some("tour (scripted)".to_owned()),
        },
    }
}

/// A model as it is shown: without its provider, if the name alone is clear.
pub(super) fn model_name(environment: &Environment, label: &str) -> String {
    let name = label.split_once('/').map_or(label, |(_, name)| name);
    let meant = environment.settings.model_named(name);
    match meant.is_ok_and(|meant| meant.label() == label) {
        true => name.to_owned(),
        false => label.to_owned(),
    }
}

/// The name of the sandbox; empty if there is none.
pub(super) fn sandbox(found: &Result<SandboxKind, NoSandbox>) -> String {
    found.as_ref().map(ToString::to_string).unwrap_or_default()
}

fn directory(environment: &Environment) -> String {
    let home = environment.settings.folders().home();
    match home.and_then(|home| environment.directory.strip_prefix(home).ok()) {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => format!("~/{}", below.display()),
        None => environment.directory.display().to_string(),
    }
}

/// The greeting for a new conversation. On a tour the guide greets instead.
pub(super) fn greeting(
    environment: &Environment,
    purpose: &Purpose,
    model: &str,
    agent: &AgentId,
    beside: Option<&AgentId>,
) -> Option<String> {
    let Purpose::Work = purpose else { return None };
    let (version, directory) = (env!("CARGO_PKG_VERSION"), directory(environment));
    let who = match *agent == AgentId::top_level(0) {
        true => String::new(),
        false => format!(" · agent {agent}"),
    };
    let others = beside.map(|beside| {
        format!("\n\nAlso open in another terminal: /mail send {beside} TEXT writes to its agent")
    });
    let others = others.unwrap_or_default();
    Some(format!(
        "ikigai {version}{who}\n{model} · {directory}\n\n\
         Type what you want done, and press Enter\n\
         Esc interrupts, Ctrl+D leaves\n\
         /help lists the commands, ? the keys{others}"
    ))
}
