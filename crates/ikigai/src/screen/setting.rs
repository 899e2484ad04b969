//! The terminal's capabilities, the status line and the greeting.

use ikigai_conversation::{AgentId, SessionId};
use ikigai_host::{AgentChoice, Environment};
use ikigai_tools::{NoSandbox, SandboxKind};
use ikigai_tui::{Background, Bell, Colours, Status};

use super::Purpose;

/// Terminals that show a notification for OSC 9, by `TERM_PROGRAM` or `TERM`.
const NOTIFYING: [&str; 5] = ["iTerm.app", "WezTerm", "ghostty", "xterm-kitty", "xterm-ghostty"];

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
    match named.into_iter().any(|name| NOTIFYING.contains(&name.as_str())) {
        true => Bell::Notification,
        false => Bell::Plain,
    }
}

/// The status line before the sandbox is known.
pub(super) fn status(
    environment: &Environment,
    session: SessionId,
    choice: &AgentChoice,
    purpose: &Purpose,
) -> Status {
    /// The part of the ID with the time at which the session started.
    const SHORT: usize = 13;
    Status {
        model: choice.model.label.clone(),
        mode: choice.mode,
        sandbox: String::new(),
        session: session.to_string().chars().take(SHORT).collect(),
        context_tokens: choice.model.facts.now().context_window,
        cost: None,
        directory: directory(environment),
        label: match purpose {
            Purpose::Work => None,
            Purpose::Tour { .. } => Some("tour (scripted)".to_owned()),
        },
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
    purpose: &Purpose,
    agent: &AgentId,
    beside: Option<&AgentId>,
) -> Option<String> {
    let Purpose::Work = purpose else { return None };
    let version = env!("CARGO_PKG_VERSION");
    let others = beside.map(|beside| {
        format!(
            "\nThe session runs in another terminal, too: /mail send {beside} TEXT writes to its agent."
        )
    });
    let others = others.unwrap_or_default();
    Some(format!(
        "ikigai {version} · you talk to agent {agent}\n\
         Type what you want done; Enter sends it. Esc interrupts the agent.\n\
         Ctrl+T shows all agents, /mail the mailbox, /help everything else.\n\
         Ctrl+D leaves.{others}"
    ))
}
