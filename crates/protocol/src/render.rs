//! Replies as text for the user, the same in every front end.

use std::path::Path;
use std::time::Duration;

use ikigai_conversation::{AgentId, Correspondent, Effort};

use crate::agents::{AgentSummary, Runner};
use crate::elapsed::render_elapsed;
use crate::event::Compaction;
use crate::reply::{
    CommandSummary, ContextReport, Inbox, Mail, ModelChoice, QueuedUntil, Reply, SessionSummary,
    ShellOutput, TokenCount, ToolSummary,
};
use crate::rewind::{RewindPart, RewindPoint, RewindReport};
use crate::undo::{FileOutcome, LeftReason, UndoReport};
use crate::usage::render_usage;

/// The text of a reply; `None` if there is nothing to show. Lists mark the agent of the request,
/// and paths are shown relative to `directory`. The text may contain control characters from models
/// and files: the front end has to escape them.
pub fn render_reply(reply: &Reply, view: &AgentId, directory: &Path) -> Option<String> {
    Some(match reply {
        Reply::Done | Reply::Opened { .. } | Reply::Files(_) | Reply::Models(_) => return None,
        Reply::Unqueued(_) | Reply::SessionPreview { .. } => return None,
        Reply::Shell(output) => render_shell(output),
        Reply::SessionRenamed { title, .. } => format!("Renamed to {title}"),
        Reply::SessionDeleted(id) => format!("Session {id} deleted"),
        Reply::Queued(QueuedUntil::NextStep) => "Queued for the next step".to_owned(),
        Reply::Queued(QueuedUntil::TurnEnd) => "Queued until the turn ends".to_owned(),
        Reply::Cleared => "Started a fresh context. The log keeps everything.".to_owned(),
        Reply::Context(report) => render_context(report),
        Reply::Marked { label: Some(label) } => format!("Marked. /rewind {label} returns here"),
        Reply::Marked { label: None } => "Marked. /rewind returns here".to_owned(),
        Reply::Rewound { .. } => {
            "The model no longer sees what came after the mark. Files stay as they are; /undo undoes changes.".to_owned()
        }
        Reply::RewindPoints(points) => render_rewind_points(points),
        Reply::RewoundTo(report) => render_rewind(report, directory),
        Reply::Undone(report) => render_undo(report, directory),
        Reply::Redone(report) => render_redo(report, directory),
        Reply::Inbox(inbox) => render_inbox(inbox),
        Reply::Mail(mail) => render_mail(mail),
        Reply::MailSent { to } => format!("Mail sent to {}", named(to)),
        Reply::MailUnread(id) => format!("Message #{id} is unread again"),
        Reply::Forked(child) => format!("Forked agent {child}. Talk to it with /agent {child}"),
        Reply::Killed(agents) => format!("Killed: {}", join(agents)),
        Reply::Model(model) => render_model(model),
        Reply::Effort { effort, changed } => render_effort(*effort, *changed),
        Reply::Mode { mode, changed: true } => format!("Switched to mode {}", mode.word()),
        Reply::Mode { mode, changed: false } => format!("Mode {}", mode.word()),
        Reply::Agents(agents) => lines(agents.iter().map(|agent| tree_line(agent, view))),
        Reply::Sessions { sessions, more, .. } => render_sessions(sessions, *more),
        Reply::Commands(commands) => render_commands(commands),
        Reply::CommandStopped(id) => format!("Stopping command #{id}"),
        Reply::Tools(tools) => render_tools(tools).trim_end().to_owned(),
        Reply::Usage(usage) => render_usage(usage),
        Reply::Config(settings) => settings.trim_end().to_owned(),
        Reply::RuleSaved { file, rule } => {
            format!("Saved to {}:\n{}", file.display(), rule.trim_end())
        }
        Reply::Exported { path, messages } => {
            format!("Wrote {messages} {} to {}", plural(*messages, "message"), path.display())
        }
    })
}

/// Background commands, each with its last line of output below it.
fn render_commands(commands: &[CommandSummary]) -> String {
    if commands.is_empty() {
        return "No background commands".to_owned();
    }
    let render = |command: &CommandSummary| {
        let CommandSummary { id, agent, line, seconds, exit_code, last_line } = command;
        let state = match exit_code {
            None => format!("running for {seconds} s"),
            Some(code) => format!("exit {code} after {seconds} s"),
        };
        let output = Some(last_line).filter(|line| !line.is_empty());
        let output = output.map(|line| format!("\n     {line}")).unwrap_or_default();
        format!("  #{id} {agent} · {state} · {line}{output}")
    };
    lines(commands.iter().map(render))
}

fn render_rewind_points(points: &[RewindPoint]) -> String {
    if points.is_empty() {
        return "There is no earlier message to return to".to_owned();
    }
    let point = |point: &RewindPoint| {
        let text =
            if point.is_mark { format!("── {}", point.text) } else { point.text.clone() };
        let files = match point.files {
            0 => String::new(),
            count => format!(", {count} {} changed since", plural(count, "file")),
        };
        format!("  #{} {text} ({}{files})", point.id, point.age)
    };
    let usage = "/rewind NUMBER [all|conversation|files|summary] returns to before a message";
    lines(points.iter().map(point).chain([usage.to_owned()]))
}

fn render_rewind(report: &RewindReport, directory: &Path) -> String {
    let conversation = match report.part {
        RewindPart::Everything => "The model no longer sees what came after.",
        RewindPart::Conversation => {
            "The model no longer sees what came after. Files stay as they are; /undo undoes changes."
        }
        RewindPart::Files => "",
    };
    let files = match report.part {
        RewindPart::Conversation => String::new(),
        RewindPart::Everything | RewindPart::Files if report.files.is_empty() => {
            "No file changes to undo.".to_owned()
        }
        RewindPart::Everything | RewindPart::Files => {
            lines(report.files.iter().map(|report| render_undo(report, directory)))
        }
    };
    let parts = [conversation.to_owned(), files].into_iter().filter(|part| !part.is_empty());
    lines(parts)
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
        LeftReason::GitSetting => "it is now one of git's settings",
    }
}

fn render_mail(mail: &Mail) -> String {
    let text = format!("From: {}\nTime: {}\n\n{}", mail.from, mail.age, mail.body);
    match &mail.read_for {
        Some(owner) => format!("{text}\n\n(marked read for {owner})"),
        None => text,
    }
}

/// `agent 1/` or `user`
fn named(correspondent: &Correspondent) -> String {
    match correspondent {
        Correspondent::User => correspondent.to_string(),
        Correspondent::Agent(agent) => format!("agent {agent}"),
    }
}

fn render_inbox(inbox: &Inbox) -> String {
    let mut text = format!("Inbox for {}:", named(&inbox.owner));
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
    format!("Thought for {}", render_elapsed(duration.max(Duration::from_secs(1))))
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
    let (shown_in, shown_out) = (render_short_count(input), render_short_count(output));
    (input + output > 0).then(|| format!("({shown_in} tokens in, {shown_out} out)"))
}

/// How room was made: `Context compacted: 171k → 24k tokens (summary, 6 s)`
pub fn render_compaction(compaction: &Compaction) -> String {
    let Compaction { method, before, after, elapsed } = compaction;
    let (before, after) = (render_short_count(*before), render_short_count(*after));
    let time = match elapsed.as_secs() {
        0 => String::new(),
        seconds => format!(", {seconds} s"),
    };
    format!("Context compacted: {before} → {after} tokens ({}{time})", method.name())
}

/// How full a context is: `82% context`, or `18.2k tokens` if the window is not known.
pub fn render_context_use(used: u64, window: Option<u64>) -> String {
    match window.filter(|window| *window > 0) {
        Some(window) => format!("{}% context", percent(used, window)),
        None => format!("{} tokens", render_short_count(used)),
    }
}

fn percent(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * 100 / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

/// A number in few characters: `950`, `18.2k`, `171k`.
pub fn render_short_count(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..100_000 if !(count / 100).is_multiple_of(10) => {
            format!("{}.{}k", count / 1_000, count / 100 % 10)
        }
        _ => format!("{}k", count / 1_000),
    }
}

/// A line per part.
fn render_context(report: &ContextReport) -> String {
    let ContextReport { used, window, parts, .. } = report;
    let share = |tokens: u64| match window {
        Some(window) => format!("{:>4}%", percent(tokens, *window)),
        None => String::new(),
    };
    let line = |name: &str, tokens: u64| {
        format!("  {name:<22} {:>7}{}", render_short_count(tokens), share(tokens))
    };
    let free = window.map(|window| line("free", window.saturating_sub(*used)));
    let parts = parts.iter().map(|part| line(&part.name, part.tokens));
    let of = window.map(|window| format!(" of {}", render_short_count(window))).unwrap_or_default();
    let title = format!("Context: {}{of} tokens, by part (estimated):", render_short_count(*used));
    lines([title].into_iter().chain(parts).chain(free))
}

/// What a command printed, and its exit code if it failed.
fn render_shell(shell: &ShellOutput) -> String {
    let output = shell.output.trim_end();
    match (output.is_empty(), shell.exit_code) {
        (true, 0) => "(no output)".to_owned(),
        (true, code) => format!("exit {code}"),
        (false, 0) => output.to_owned(),
        (false, code) => format!("{output}\nexit {code}"),
    }
}

fn render_sessions(sessions: &[SessionSummary], more: usize) -> String {
    if sessions.is_empty() {
        return "No sessions yet".to_owned();
    }
    /// One screen.
    const SHOWN: usize = 20;
    let shown: String = sessions.iter().take(SHOWN).map(render_session).collect();
    let more = match more + sessions.len().saturating_sub(SHOWN) {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::event::CompactionMethod;
    use crate::reply::ContextPart;

    #[test]
    fn a_compaction_is_one_line() {
        let (before, after) = (171_499, 24_000);
        let (method, elapsed) = (CompactionMethod::Summary, Duration::from_millis(6_400));
        let line = render_compaction(&Compaction { method, before, after, elapsed });
        assert_eq!(line, "Context compacted: 171k → 24k tokens (summary, 6 s)");
        let (method, elapsed) = (CompactionMethod::Trim, Duration::from_millis(1));
        let line = render_compaction(&Compaction { method, before: 6_512, after: 900, elapsed });
        assert_eq!(line, "Context compacted: 6.5k → 900 tokens (trim)");
    }

    #[test]
    fn totals_are_short() {
        let tokens = |input, output| render_tokens(TokenCount { input, output });
        assert_eq!(tokens(405_900, 1_230).as_deref(), Some("(405k tokens in, 1.2k out)"));
        assert_eq!(tokens(0, 0), None);
    }

    #[test]
    fn a_context_is_shown_in_percent_where_the_window_is_known() {
        assert_eq!(render_context_use(164_000, Some(200_000)), "82% context");
        assert_eq!(render_context_use(18_234, None), "18.2k tokens");
        let part = |name: &str, tokens| ContextPart { name: name.to_owned(), tokens };
        let parts = vec![part("tools", 2_000), part("results of bash", 500)];
        let agent = AgentId::top_level(0);
        let report = ContextReport { agent, used: 4_000, window: Some(8_000), parts };
        let expected = "Context: 4k of 8k tokens, by part (estimated):
  tools                       2k  25%
  results of bash            500   6%
  free                        4k  50%";
        assert_eq!(render_context(&report), expected);
    }
}
