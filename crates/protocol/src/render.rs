//! Replies as text for the user, the same in every front end.

use std::path::Path;
use std::time::Duration;

use ikigai_conversation::{AgentId, Effort};

use crate::agents::{AgentSummary, Runner};
use crate::reply::{
    Inbox, Mail, ModelChoice, QueuedUntil, Reply, SessionSummary, TokenCount, ToolSummary,
};
use crate::undo::{FileOutcome, LeftReason, UndoReport};
use crate::usage::render_usage;

/// The text of a reply; `None` if there is nothing to show. Lists mark the agent of the request,
/// and paths are shown relative to `directory`. The text may contain control characters from models
/// and files: the front end has to escape them.
pub fn render_reply(reply: &Reply, view: &AgentId, directory: &Path) -> Option<String> {
    Some(match reply {
        Reply::Done | Reply::Opened { .. } | Reply::Files(_) | Reply::Models(_) => return None,
        Reply::Queued(QueuedUntil::NextStep) => "Queued for the next step".to_owned(),
        Reply::Queued(QueuedUntil::TurnEnd) => "Queued until the turn ends".to_owned(),
        Reply::Cleared => "Started a fresh context. The log keeps everything.".to_owned(),
        Reply::Marked { label: Some(label) } => format!("Marked. /rewind {label} returns here"),
        Reply::Marked { label: None } => "Marked. /rewind returns here".to_owned(),
        Reply::Rewound { .. } => {
            "The model no longer sees what came after the mark. Files stay as they are; /undo undoes changes.".to_owned()
        }
        Reply::Undone(report) => render_undo(report, directory),
        Reply::Redone(report) => render_redo(report, directory),
        Reply::Inbox(inbox) => render_inbox(inbox),
        Reply::Mail(mail) => render_mail(mail),
        Reply::MailSent { to } => format!("Mail sent to agent {to}"),
        Reply::MailUnread(id) => format!("Message #{id} is unread again"),
        Reply::Forked(child) => format!("Forked agent {child}. Talk to it with /agent {child}"),
        Reply::Killed(agents) => format!("Killed: {}", join(agents)),
        Reply::Model(model) => render_model(model),
        Reply::Effort { effort, changed } => render_effort(*effort, *changed),
        Reply::Mode { mode, changed: true } => format!("Switched to mode {}", mode.word()),
        Reply::Mode { mode, changed: false } => format!("Mode {}", mode.word()),
        Reply::Agents(agents) => lines(agents.iter().map(|agent| tree_line(agent, view))),
        Reply::Sessions { sessions, more } => render_sessions(sessions, *more),
        Reply::Tools(tools) => render_tools(tools).trim_end().to_owned(),
        Reply::Usage(usage) => render_usage(usage),
        Reply::Config(settings) => settings.trim_end().to_owned(),
        Reply::Exported { path, messages } => {
            format!("Wrote {messages} {} to {}", plural(*messages, "message"), path.display())
        }
    })
}

/// An undo, one line per file.
pub fn render_undo(report: &UndoReport, directory: &Path) -> String {
    let verb = if has_changed(report) { "Undid" } else { "Could not undo" };
    let limit = "Commands are not undone.";
    render_report(report, verb, "restored", limit, directory)
}

/// A redo, one line per file.
pub fn render_redo(report: &UndoReport, directory: &Path) -> String {
    let verb = if has_changed(report) { "Redid" } else { "Could not redo" };
    let limit = "Commands are not run again.";
    render_report(report, verb, "written", limit, directory)
}

fn has_changed(report: &UndoReport) -> bool {
    report.files.iter().any(|(_, outcome)| match outcome {
        FileOutcome::Restored | FileOutcome::Removed | FileOutcome::Partial(_) => true,
        FileOutcome::Left(_) | FileOutcome::Failed(_) => false,
    })
}

fn render_report(
    report: &UndoReport,
    verb: &str,
    restored: &str,
    limit: &str,
    directory: &Path,
) -> String {
    let UndoReport { title, age, files, .. } = report;
    let file = |(path, outcome): &(std::path::PathBuf, FileOutcome)| {
        let path = path.strip_prefix(directory).unwrap_or(path).display();
        match outcome {
            FileOutcome::Restored => format!("  {restored:<9} {path}\n"),
            FileOutcome::Removed => format!("  {:<9} {path}\n", "removed"),
            FileOutcome::Partial(reason) => {
                format!("  {:<9} {path}: {}\n", "partly", left_reason(*reason))
            }
            FileOutcome::Left(reason) => {
                format!("  {:<9} {path}: {}\n", "unchanged", left_reason(*reason))
            }
            FileOutcome::Failed(error) => format!("  {:<9} {error}\n", "failed"),
        }
    };
    let files: String = files.iter().map(file).collect();
    format!("{verb}: \"{title}\" ({age})\n{files}{limit}")
}

fn left_reason(reason: LeftReason) -> &'static str {
    match reason {
        LeftReason::ChangedSince => "it has changed since",
        LeftReason::Gone => "it was removed since",
        LeftReason::NotKept => "its earlier content was too large to keep",
        LeftReason::GitSetting => "it is one of git's settings now",
    }
}

fn render_mail(mail: &Mail) -> String {
    let text = format!("From: {}\nTime: {}\n\n{}", mail.from, mail.age, mail.body);
    match &mail.read_for {
        Some(agent) => format!("{text}\n\n(marked read for {agent})"),
        None => text,
    }
}

fn render_inbox(inbox: &Inbox) -> String {
    let mut text = format!("Inbox for agent {}:", inbox.agent);
    for mail in &inbox.mail {
        let unread = if mail.unread { "[unread] " } else { "" };
        text.push_str(&format!(
            "\n  #{} {unread}from {} - \"{}\"",
            mail.id, mail.from, mail.preview
        ));
    }
    match (inbox.mail.is_empty(), inbox.more) {
        (true, _) => text.push_str("\n  (no messages)"),
        (false, 0) => {}
        (false, more) => text.push_str(&format!("\n  ({more} more)")),
    }
    text
}

fn render_effort(effort: Option<Effort>, changed: bool) -> String {
    match (effort, changed) {
        (Some(effort), true) => format!("Effort set to {}", effort.word()),
        (Some(effort), false) => format!("Effort {}", effort.word()),
        (None, true) => "Effort set to the provider's default".to_owned(),
        (None, false) => "Effort: the provider's default".to_owned(),
    }
}

/// Says how long a model thought.
pub fn render_thought(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("Thought for {} s", seconds.max(1)),
        seconds => format!("Thought for {} min {} s", seconds / 60, seconds % 60),
    }
}

fn render_model(model: &ModelChoice) -> String {
    match model.changed {
        true => format!("Switched to {}", model.label),
        false => format!("{}. /model NAME chooses another one; Tab lists them", model.label),
    }
}

/// One agent of the tree.
fn tree_line(agent: &AgentSummary, view: &AgentId) -> String {
    let mark = if agent.id == *view { "*" } else { " " };
    let indent = "  ".repeat(agent.id.depth() - 1);
    format!("{mark} {indent}{}", render_agent(agent))
}

/// `0/1/ name tool [mail:2] (10 tokens in, 2 out): task`
pub fn render_agent(agent: &AgentSummary) -> String {
    let name = agent.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let mail = if agent.unread > 0 { format!(" [mail:{}]", agent.unread) } else { String::new() };
    let tokens = render_tokens(agent.tokens).map(|text| format!(" {text}")).unwrap_or_default();
    let runner = match agent.runner {
        Runner::ThisProcess => "",
        Runner::OtherProcess => " (another terminal)",
        Runner::None => " (no terminal)",
    };
    let task = if agent.task.is_empty() { String::new() } else { format!(": {}", agent.task) };
    format!("{}{name} {}{mail}{tokens}{runner}{task}", agent.id, agent.state.name())
}

/// The tokens used, unless there are none.
pub fn render_tokens(tokens: TokenCount) -> Option<String> {
    let TokenCount { input, output } = tokens;
    (input + output > 0).then(|| format!("({input} tokens in, {output} out)"))
}

fn render_sessions(sessions: &[SessionSummary], more: usize) -> String {
    if sessions.is_empty() {
        return "No sessions yet".to_owned();
    }
    let shown: String = sessions.iter().map(render_session).collect();
    let more = match more {
        0 => String::new(),
        more => format!("{more} more: 'ikigai sessions' lists all\n"),
    };
    format!("{shown}{more}'ikigai --session ID' continues one")
}

/// A session in two lines.
pub fn render_session(session: &SessionSummary) -> String {
    let SessionSummary { id, directory, title, age, agents, messages, .. } = session;
    let title = if title.is_empty() { "(nothing said yet)" } else { title };
    let (one, many) = (*agents as usize, *messages as usize);
    let (agent, message) = (plural(one, "agent"), plural(many, "message"));
    format!("{id}  {title}\n    {directory} · {agents} {agent}, {messages} {message} · {age}\n")
}

/// A line per tool, and its parameters below; optional ones in brackets.
pub fn render_tools(tools: &[ToolSummary]) -> String {
    let mut text = String::new();
    for tool in tools {
        text.push_str(&format!("{:<11} {}\n", tool.name, tool.description));
        let optional = tool.optional.iter().map(|name| format!("[{name}]"));
        let parameters: Vec<String> = tool.required.iter().cloned().chain(optional).collect();
        if !parameters.is_empty() {
            text.push_str(&format!("{:<11}   {}\n", "", parameters.join(" ")));
        }
    }
    text
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

fn join(agents: &[AgentId]) -> String {
    agents.iter().map(AgentId::to_string).collect::<Vec<_>>().join(", ")
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}
