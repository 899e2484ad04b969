//! What is printed, and in which state that leaves the line.

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
use crate::transcript::{self, Look};

/// The terminal, as far as we know it.
pub(super) struct Screen {
    has_colours: bool,
    /// Paths in replies are shown relative to it.
    directory: PathBuf,
    mode: Mode,
    cursor: Cursor,
    /// The agent of this process.
    own: AgentId,
    /// The agent that the user talks to, and whose text is shown as it comes.
    view: AgentId,
    /// What is known of the agents that have done something.
    agents: BTreeMap<AgentId, Known>,
    /// The calls that wait for approval, the oldest first. Only that one is shown, so that an answer is to what is seen.
    asked: VecDeque<(AgentId, ApprovalRequest)>,
    /// There is a conversation to come back to.
    has_spoken: bool,
}

/// An agent, as far as the user sees it.
#[derive(Debug, Default)]
struct Known {
    /// A turn goes on, or is about to begin.
    is_at_work: bool,
    /// Its last turn stopped in a way from which it may go on; Enter does that.
    can_continue: bool,
    /// Messages of the user that wait, and are shown when they go in.
    waiting: usize,
    /// The end of the text that streams, for whoever comes in the middle of it.
    so_far: String,
}

impl Known {
    fn is_busy(&self) -> bool {
        self.is_at_work || self.waiting > 0
    }

    /// Keeps a piece of the text that streams.
    fn hear(&mut self, delta: &str) {
        /// Several screens; who wants to see more of it waits for the end.
        const LIMIT: usize = 16 * 1024;
        self.so_far.push_str(delta);
        if self.so_far.len() > 2 * LIMIT {
            let start = self.so_far.ceil_char_boundary(self.so_far.len() - LIMIT);
            self.so_far.replace_range(..start, "… ");
        }
    }
}

/// Where the cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cursor {
    /// At the beginning of an empty line.
    Fresh,
    /// Behind the prompt.
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
            cursor: Cursor::Fresh,
            view: own.clone(),
            own,
            agents: BTreeMap::new(),
            asked: VecDeque::new(),
            has_spoken: false,
        }
    }

    /// Says who is there, and what commands are kept in by.
    pub(super) fn greet(&mut self, model: &str, sandbox: &Result<SandboxKind, NoSandbox>) {
        let version = env!("CARGO_PKG_VERSION");
        let (mode, agent) = (self.mode, &self.view);
        let walls = match (mode, sandbox) {
            (Mode::Work, Ok(kind)) => format!(", sandbox {kind}"),
            (Mode::Work, Err(_)) => ", no sandbox: every command needs approval".to_owned(),
            (Mode::Read | Mode::Full, _) => String::new(),
        };
        let who = format!("ikigai {version} · {} · agent {agent}", safe(model));
        let mode = self.in_colour_of(mode, &format!("mode {}{walls}", mode.word()));
        self.line(&format!("{who} · {mode}"));
        self.dim("/help lists the commands, Ctrl-C interrupts, Ctrl-D leaves");
    }

    /// Leaves the terminal at the beginning of a line.
    pub(super) fn leave_line(&mut self) {
        self.fresh();
    }

    /// Says how to continue the session.
    pub(super) fn say_goodbye(&mut self, how_to_continue: &str) {
        self.fresh();
        if self.has_spoken {
            self.dim(how_to_continue);
        }
    }

    pub(super) fn prompt(&mut self) {
        self.fresh();
        let mode = self.mode;
        if mode == Mode::Full {
            let full = self.in_colour_of(mode, mode.word());
            self.put(&format!("{full} "));
        }
        let whose = match self.asked.front() {
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
        self.agents.get(&self.view).is_some_and(Known::is_busy)
    }

    /// Whether a call waits for approval.
    pub(super) fn asks(&self) -> bool {
        !self.asked.is_empty()
    }

    /// The call that the user was asked for; now it does not wait any more.
    pub(super) fn answered(&mut self) -> Option<(AgentId, ToolCallId)> {
        let (agent, asking) = self.asked.pop_front()?;
        self.show_question();
        Some((agent, asking.call.tool_call_id))
    }

    pub(super) fn can_continue(&self) -> bool {
        let known = self.agents.get(&self.view);
        known.is_some_and(|known| known.can_continue && !known.is_busy())
    }

    /// Something was typed; while the agent works it waits.
    pub(super) fn said(&mut self, is_busy: bool) {
        self.has_spoken = true;
        let known = self.agents.entry(self.view.clone()).or_default();
        known.is_at_work = true;
        known.can_continue = false;
        if is_busy {
            known.waiting += 1;
            self.dim("(queued for the next step)");
        }
    }

    /// The person has ended a line.
    pub(super) fn entered(&mut self) {
        self.cursor = Cursor::Fresh;
    }

    /// Prints a message of ours.
    pub(super) fn say(&mut self, text: &str) {
        self.line(&safe(text));
    }

    /// Prints what happened. Of an agent that is not in view every line has its id before it.
    pub(super) fn show(&mut self, event: &Event) {
        let agent = &event.agent;
        match &event.kind {
            EventKind::TurnStarted(reason) => self.started(agent, *reason),
            EventKind::TextDelta(delta) => {
                self.known(agent).hear(delta);
                // That of others is shown when it is complete.
                if *agent == self.view {
                    self.text(delta);
                }
            }
            EventKind::Message(message) => self.logged(agent, message),
            EventKind::Retry { attempt, reason, delay } => {
                self.known(agent).so_far.clear();
                self.tell(agent, &transcript::retry(*attempt, reason, *delay));
            }
            EventKind::ApprovalRequested(asking) => self.ask(agent, asking),
            EventKind::DatabaseUnavailable(reason) => {
                self.tell(agent, &transcript::store_waits(reason));
            }
            EventKind::MailHeld => self.line(transcript::MAIL_HELD),
            EventKind::InputRejected(text) => self.not_taken(agent, text),
            EventKind::TurnEnded(done) => self.done(agent, done),
            EventKind::AgentLost(reason) => self.tell(agent, &format!("✗ {reason}")),
        }
    }

    fn known(&mut self, agent: &AgentId) -> &mut Known {
        self.agents.entry(agent.clone()).or_default()
    }

    fn started(&mut self, agent: &AgentId, reason: StartReason) {
        let known = self.known(agent);
        known.is_at_work = true;
        known.can_continue = false;
        known.so_far.clear();
        if reason == StartReason::CutOff && *agent == self.view {
            self.has_spoken = true;
            self.dim("(continues a turn that was cut off)");
        }
    }

    /// What the user said will not get into the log, so it no longer waits.
    fn not_taken(&mut self, agent: &AgentId, text: &str) {
        self.tell(agent, &transcript::not_taken(text));
        let known = self.known(agent);
        known.waiting = known.waiting.saturating_sub(1);
        if !self.is_busy() {
            self.prompt();
        }
    }

    fn ask(&mut self, agent: &AgentId, asking: &ApprovalRequest) {
        // An agent that nobody looks at needs somebody to look.
        if *agent != self.view {
            self.put("\x07");
        }
        self.asked.push_back((agent.clone(), asking.clone()));
        match self.asked.len() {
            1 => self.show_question(),
            waiting => {
                self.dim(&format!("(agent {agent} asks, too; {} more to answer)", waiting - 1));
            }
        }
    }

    /// Shows the oldest question, if there is one.
    fn show_question(&mut self) {
        let Some((agent, asking)) = self.asked.front().cloned() else { return };
        // At once: a long diff, written and flushed line by line, would keep everything else waiting.
        let question = render_question(&agent, &asking).join("\n");
        self.line(&safe(&question));
        self.dim(HOW_TO_ANSWER);
        // What was typed before the question was seen is no answer to it.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        self.prompt();
    }

    /// Forgets questions that nobody has to answer any more, and shows the next one.
    fn forget_questions(&mut self, is_over: impl Fn(&AgentId, &ApprovalRequest) -> bool) {
        let shown = self.asked.front().cloned();
        self.asked.retain(|(agent, asking)| !is_over(agent, asking));
        if self.asked.front() != shown.as_ref() {
            self.show_question();
        }
    }

    fn text(&mut self, delta: &str) {
        if self.cursor != Cursor::Text {
            self.fresh();
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
                let known = self.known(agent);
                if known.waiting > 0 {
                    known.waiting -= 1;
                    self.tell(agent, &format!("❯ {}", message.content));
                }
            }
            // Ids are the models' own, so those of two agents may be the same.
            Body::Approval(approval) => {
                let id = &approval.tool_call_id;
                self.forget_questions(|by, asking| by == agent && asking.call.tool_call_id == *id);
            }
            Body::Assistant(_) => self.known(agent).so_far.clear(),
            Body::System | Body::Summary(_) | Body::Fork(_) => {}
            Body::Usage(_) | Body::Mark(_) | Body::Rewind(_) | Body::Clear | Body::Trim(_) => {}
            Body::Kill(_) | Body::Interrupted(_) | Body::Command(_) => {}
        }
    }

    fn lines(&mut self, agent: &AgentId, message: &Message) {
        for (look, line) in transcript::shown(message) {
            let line = self.of(agent, &line);
            match look {
                Look::Plain => self.line(&line),
                Look::Dim => self.dim(&line),
            }
        }
    }

    fn done(&mut self, agent: &AgentId, done: &TurnEnd) {
        let is_in_view = *agent == self.view;
        let known = self.known(agent);
        known.is_at_work = false;
        known.can_continue = done.can_continue;
        known.so_far.clear();
        let is_busy = known.is_busy();
        self.forget_questions(|by, _| by == agent);
        self.fresh();
        if !is_in_view && !done.text.trim().is_empty() {
            self.tell(agent, &format!("● {}", done.text));
        }
        transcript::ending(done).iter().for_each(|note| self.tell(agent, note));
        if done.can_continue && is_in_view {
            self.dim("Press Enter to retry");
        }
        if is_in_view && !is_busy || !is_in_view && !self.is_busy() {
            self.prompt();
        }
    }

    /// Prints what is told of an agent.
    fn tell(&mut self, agent: &AgentId, text: &str) {
        let text = self.of(agent, &safe(text));
        self.line(&text);
    }

    /// The text, with whose it is where that is not clear.
    fn of(&self, agent: &AgentId, text: &str) -> String {
        match *agent == self.view {
            true => text.to_owned(),
            false => transcript::of_agent(agent, text),
        }
    }

    /// Red is for the mode in which everything is allowed.
    fn in_colour_of(&self, mode: Mode, text: &str) -> String {
        match self.has_colours && mode == Mode::Full {
            true => format!("\x1b[31m{text}\x1b[39m"),
            false => text.to_owned(),
        }
    }

    /// Prints lines of their own.
    fn line(&mut self, text: &str) {
        self.fresh();
        self.put(text);
        self.put("\n");
    }

    fn dim(&mut self, text: &str) {
        match self.has_colours {
            true => self.line(&format!("\x1b[2m{text}\x1b[22m")),
            false => self.line(text),
        }
    }

    fn fresh(&mut self) {
        if self.cursor != Cursor::Fresh {
            self.put("\n");
            self.cursor = Cursor::Fresh;
        }
    }

    /// A terminal that is gone is noticed by the signal that tells of it.
    fn put(&mut self, text: &str) {
        let mut stdout = io::stdout().lock();
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }
}
