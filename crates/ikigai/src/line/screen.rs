//! Printing on the terminal, keeping track of the cursor and of the agents shown.

mod replies;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::path::PathBuf;

use ikigai_conversation::{AgentId, Body, Message, ToolCallId};
use ikigai_host::Environment;
use ikigai_protocol::{ApprovalRequest, Event, EventKind, StartReason, TurnEnd};
use ikigai_tools::{Mode, NoSandbox, SandboxKind};
use rustix::termios::{QueueSelector, tcflush};

use crate::print::safe;
use crate::question::{HOW_TO_ANSWER, render_question};
use crate::transcript::{self, LineStyle};

/// The terminal in line mode.
pub(super) struct Screen {
    has_colours: bool,
    /// Paths are shown relative to this directory.
    directory: PathBuf,
    mode: Mode,
    cursor: Cursor,
    /// The agent of this process.
    own: AgentId,
    /// The agent that the user talks to; its text is shown as it streams.
    view: AgentId,
    /// The agents that have been active.
    agents: BTreeMap<AgentId, AgentView>,
    /// The calls that wait for approval, the oldest first. Only the oldest is shown, so that an
    /// answer always refers to what the user sees.
    questions: VecDeque<(AgentId, ApprovalRequest)>,
    /// There is a conversation to continue.
    has_spoken: bool,
}

/// The state of an agent that matters for the display.
#[derive(Debug, Default)]
struct AgentView {
    /// A turn is running or about to start.
    is_working: bool,
    /// The last turn stopped but can be continued, by pressing Enter.
    can_continue: bool,
    /// The number of queued messages of the user; each is shown when the agent gets it.
    waiting: usize,
    /// The end of the streaming text, shown when the user switches to the agent meanwhile.
    streamed_text: String,
}

impl AgentView {
    fn is_busy(&self) -> bool {
        self.is_working || self.waiting > 0
    }

    /// Keeps a piece of the streaming text.
    fn append_text(&mut self, delta: &str) {
        /// Several screens; the complete text is in the log.
        const LIMIT: usize = 16 * 1024;
        self.streamed_text.push_str(delta);
        if self.streamed_text.len() > 2 * LIMIT {
            let start = self.streamed_text.ceil_char_boundary(self.streamed_text.len() - LIMIT);
            self.streamed_text.replace_range(..start, "… ");
        }
    }
}

/// Where the cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cursor {
    /// At the start of an empty line.
    LineStart,
    /// After the prompt.
    Prompt,
    /// In the text of an answer.
    Text,
}

impl Screen {
    pub(super) fn new(environment: &Environment, mode: Mode, own: AgentId) -> Screen {
        let is_dumb = environment.variable("TERM").is_none_or(|term| term == "dumb");
        let has_colours = !is_dumb && environment.variable("NO_COLOR").is_none();
        Screen {
            has_colours,
            directory: environment.directory.clone(),
            mode,
            cursor: Cursor::LineStart,
            view: own.clone(),
            own,
            agents: BTreeMap::new(),
            questions: VecDeque::new(),
            has_spoken: false,
        }
    }

    /// Prints the version, model, agent, mode and sandbox.
    pub(super) fn print_header(&mut self, model: &str, sandbox: &Result<SandboxKind, NoSandbox>) {
        let version = env!("CARGO_PKG_VERSION");
        let (mode, agent) = (self.mode, &self.view);
        let sandbox = match (mode, sandbox) {
            (Mode::Work, Ok(kind)) => format!(", sandbox {kind}"),
            (Mode::Work, Err(_)) => ", no sandbox: every command needs approval".to_owned(),
            (Mode::Read | Mode::Full, _) => String::new(),
        };
        let who = format!("ikigai {version} · {} · agent {agent}", safe(model));
        let mode = self.in_colour_of(mode, &format!("mode {}{sandbox}", mode.word()));
        self.line(&format!("{who} · {mode}"));
        self.dim("/help lists the commands, Ctrl-C interrupts, Ctrl-D leaves");
    }

    /// Leaves the cursor at the start of a line.
    pub(super) fn finish_line(&mut self) {
        self.start_line();
    }

    /// Prints how to continue the session.
    pub(super) fn print_exit_hint(&mut self, how_to_continue: &str) {
        self.start_line();
        if self.has_spoken {
            self.dim(how_to_continue);
        }
    }

    pub(super) fn prompt(&mut self) {
        self.start_line();
        let mode = self.mode;
        if mode == Mode::Full {
            let full = self.in_colour_of(mode, mode.word());
            self.put(&format!("{full} "));
        }
        let whose = match self.questions.front() {
            Some((agent, _)) if *agent != self.view => format!("{agent} y/a/n "),
            Some(_) => "y/a/n ".to_owned(),
            None if self.agents.len() > 1 => format!("{} ", self.view),
            None => String::new(),
        };
        self.put(&format!("{whose}❯ "));
        self.cursor = Cursor::Prompt;
    }

    /// The agent that the user talks to.
    pub(super) fn view(&self) -> &AgentId {
        &self.view
    }

    /// Whether the agent in view is at work.
    pub(super) fn is_busy(&self) -> bool {
        self.agents.get(&self.view).is_some_and(AgentView::is_busy)
    }

    /// Whether a call waits for approval.
    pub(super) fn has_question(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Takes the call that the user has just answered, and shows the next one.
    pub(super) fn take_question(&mut self) -> Option<(AgentId, ToolCallId)> {
        let (agent, request) = self.questions.pop_front()?;
        self.show_question();
        Some((agent, request.call.tool_call_id))
    }

    pub(super) fn can_continue(&self) -> bool {
        let agent_view = self.agents.get(&self.view);
        agent_view.is_some_and(|agent_view| agent_view.can_continue && !agent_view.is_busy())
    }

    /// The user sent a message. If the agent is busy, the message is queued.
    pub(super) fn message_sent(&mut self, is_busy: bool) {
        self.has_spoken = true;
        let agent_view = self.agents.entry(self.view.clone()).or_default();
        agent_view.is_working = true;
        agent_view.can_continue = false;
        if is_busy {
            agent_view.waiting += 1;
            self.dim("(queued for the next step)");
        }
    }

    /// The user has entered a line.
    pub(super) fn line_entered(&mut self) {
        self.cursor = Cursor::LineStart;
    }

    /// Prints a message of the program.
    pub(super) fn say(&mut self, text: &str) {
        self.line(&safe(text));
    }

    /// Prints an event. Lines about agents that are not in view start with the agent's ID.
    pub(super) fn show(&mut self, event: &Event) {
        let agent = &event.agent;
        match &event.kind {
            EventKind::TurnStarted(reason) => self.started(agent, *reason),
            EventKind::TextDelta(delta) => {
                self.agent_view(agent).append_text(delta);
                // Other agents' text is shown when it is complete.
                if *agent == self.view {
                    self.text(delta);
                }
            }
            EventKind::Message(message) => self.logged(agent, message),
            EventKind::Retry { attempt, reason, delay } => {
                self.agent_view(agent).streamed_text.clear();
                self.note(agent, &transcript::retry(*attempt, reason, *delay));
            }
            EventKind::ApprovalRequested(request) => self.add_question(agent, request),
            EventKind::DatabaseUnavailable(reason) => {
                self.note(agent, &transcript::database_unavailable(reason));
            }
            EventKind::MailHeld => self.line(transcript::MAIL_HELD),
            EventKind::InputRejected(text) => self.rejected(agent, text),
            EventKind::TurnEnded(done) => self.done(agent, done),
            EventKind::AgentLost(reason) => self.note(agent, &format!("✗ {reason}")),
        }
    }

    fn agent_view(&mut self, agent: &AgentId) -> &mut AgentView {
        self.agents.entry(agent.clone()).or_default()
    }

    fn started(&mut self, agent: &AgentId, reason: StartReason) {
        let agent_view = self.agent_view(agent);
        agent_view.is_working = true;
        agent_view.can_continue = false;
        agent_view.streamed_text.clear();
        if reason == StartReason::CutOff && *agent == self.view {
            self.has_spoken = true;
            self.dim("(continues a turn that was cut off)");
        }
    }

    /// A message was rejected, so it is no longer queued.
    fn rejected(&mut self, agent: &AgentId, text: &str) {
        self.note(agent, &transcript::rejected(text));
        let agent_view = self.agent_view(agent);
        agent_view.waiting = agent_view.waiting.saturating_sub(1);
        if !self.is_busy() {
            self.prompt();
        }
    }

    fn add_question(&mut self, agent: &AgentId, request: &ApprovalRequest) {
        // The agent is not in view, so ring the bell.
        if *agent != self.view {
            self.put("\x07");
        }
        self.questions.push_back((agent.clone(), request.clone()));
        match self.questions.len() {
            1 => self.show_question(),
            waiting => {
                self.dim(&format!("(agent {agent} asks, too; {} more to answer)", waiting - 1));
            }
        }
    }

    /// Shows the oldest approval request, if any.
    fn show_question(&mut self) {
        let Some((agent, request)) = self.questions.front().cloned() else { return };
        // In one write: flushing a long diff line by line would block everything else.
        let question = render_question(&agent, &request).join("\n");
        self.line(&safe(&question));
        self.dim(HOW_TO_ANSWER);
        // Text typed before the question was shown is not an answer to it.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        self.prompt();
    }

    /// Drops approval requests that are settled, and shows the next one.
    fn drop_questions(&mut self, is_over: impl Fn(&AgentId, &ApprovalRequest) -> bool) {
        let shown = self.questions.front().cloned();
        self.questions.retain(|(agent, request)| !is_over(agent, request));
        if self.questions.front() != shown.as_ref() {
            self.show_question();
        }
    }

    fn text(&mut self, delta: &str) {
        if self.cursor != Cursor::Text {
            self.start_line();
            self.put("● ");
            self.cursor = Cursor::Text;
        }
        self.put(&safe(delta));
    }

    fn logged(&mut self, agent: &AgentId, message: &Message) {
        match &message.body {
            Body::ToolCall(_) | Body::ToolResult(_) | Body::Notification(_) => {
                self.lines(agent, message);
            }
            Body::User => {
                let agent_view = self.agent_view(agent);
                if agent_view.waiting > 0 {
                    agent_view.waiting -= 1;
                    self.note(agent, &format!("❯ {}", message.content));
                }
            }
            // Call IDs come from the model, so two agents may have the same one.
            Body::Approval(approval) => {
                let id = &approval.tool_call_id;
                self.drop_questions(|by, request| by == agent && request.call.tool_call_id == *id);
            }
            Body::Assistant(_) => self.agent_view(agent).streamed_text.clear(),
            Body::System | Body::Summary(_) | Body::Fork(_) => {}
            Body::Usage(_) | Body::Mark(_) | Body::Rewind(_) | Body::Clear | Body::Trim(_) => {}
            Body::Kill(_) | Body::Interrupted(_) | Body::Command(_) => {}
        }
    }

    fn lines(&mut self, agent: &AgentId, message: &Message) {
        for (style, line) in transcript::render_lines(message) {
            let line = self.prefixed(agent, &line);
            match style {
                LineStyle::Plain => self.line(&line),
                LineStyle::Dim => self.dim(&line),
            }
        }
    }

    fn done(&mut self, agent: &AgentId, done: &TurnEnd) {
        let is_in_view = *agent == self.view;
        let agent_view = self.agent_view(agent);
        agent_view.is_working = false;
        agent_view.can_continue = done.can_continue;
        agent_view.streamed_text.clear();
        let is_busy = agent_view.is_busy();
        self.drop_questions(|by, _| by == agent);
        self.start_line();
        if !is_in_view && !done.text.trim().is_empty() {
            self.note(agent, &format!("● {}", done.text));
        }
        transcript::end_note(done).iter().for_each(|note| self.note(agent, note));
        if done.can_continue && is_in_view {
            self.dim("Press Enter to retry");
        }
        if is_in_view && !is_busy || !is_in_view && !self.is_busy() {
            self.prompt();
        }
    }

    /// Prints a note about an agent.
    fn note(&mut self, agent: &AgentId, text: &str) {
        let text = self.prefixed(agent, &safe(text));
        self.line(&text);
    }

    /// Prefixes the text with the agent's ID, unless the agent is in view.
    fn prefixed(&self, agent: &AgentId, text: &str) -> String {
        match *agent == self.view {
            true => text.to_owned(),
            false => transcript::prefix_lines(agent, text),
        }
    }

    /// Colours the text red in mode full, in which everything is allowed.
    fn in_colour_of(&self, mode: Mode, text: &str) -> String {
        match self.has_colours && mode == Mode::Full {
            true => format!("\x1b[31m{text}\x1b[39m"),
            false => text.to_owned(),
        }
    }

    /// Prints text on a new line.
    fn line(&mut self, text: &str) {
        self.start_line();
        self.put(text);
        self.put("\n");
    }

    fn dim(&mut self, text: &str) {
        match self.has_colours {
            true => self.line(&format!("\x1b[2m{text}\x1b[22m")),
            false => self.line(text),
        }
    }

    fn start_line(&mut self) {
        if self.cursor != Cursor::LineStart {
            self.put("\n");
            self.cursor = Cursor::LineStart;
        }
    }

    /// Errors are ignored: a closed terminal also sends a signal.
    fn put(&mut self, text: &str) {
        let mut stdout = io::stdout().lock();
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }
}
