//! Printing on the terminal, keeping track of the cursor and of the agents shown.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::path::PathBuf;

use ikigai_conversation::{AgentId, Body, Message, Mode};
use ikigai_protocol::{
    ApprovalRequest, Block, BlockChange, BlockContent, CallChange, Event, EventKind, StartReason,
    TranscriptReducer, TurnEnd, render_notice, safe, shown_message,
};

use crate::live::LiveLines;
use crate::text::{self, LineStyle};

/// What line mode has to know.
pub struct Setup {
    /// The agent of this process.
    pub agent: AgentId,
    /// Its mode.
    pub mode: Mode,
    /// Paths are shown relative to this directory.
    pub directory: PathBuf,
    /// The styles that the terminal supports.
    pub styles: LineStyles,
    /// The terminal.
    pub output: Box<dyn Write + Send>,
}

/// Whether lines have styles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineStyles {
    /// Dim text and colours.
    Ansi,
    /// None.
    None,
}

/// The terminal in line mode.
pub struct LineMode {
    styles: LineStyles,
    pub(crate) directory: PathBuf,
    pub(crate) mode: Mode,
    output: Box<dyn Write + Send>,
    cursor: Cursor,
    /// The agent of this process.
    pub(crate) own: AgentId,
    /// The agent that the user talks to; its text is shown as it streams.
    pub(crate) view: AgentId,
    /// The agents that have been active.
    pub(crate) agents: BTreeMap<AgentId, AgentView>,
    /// The calls that wait for approval, the oldest first. Only the oldest is shown, so that an
    /// answer always refers to what the user sees.
    pub(crate) questions: VecDeque<(AgentId, ApprovalRequest)>,
    /// Those of agents that other processes run, as last reported.
    pub(crate) elsewhere: Vec<(AgentId, ApprovalRequest)>,
    /// There is a conversation to continue.
    pub(crate) has_spoken: bool,
    /// Ctrl-C was pressed once with nothing to interrupt.
    pub(crate) is_leaving: bool,
}

/// The state of an agent that matters for the display.
#[derive(Debug, Default)]
pub(crate) struct AgentView {
    pub(crate) reducer: TranscriptReducer,
    /// A turn is running or about to start.
    is_working: bool,
    /// The last turn stopped but can be continued, by pressing Enter.
    can_continue: bool,
    /// The number of queued messages of the user; each is shown when the agent gets it.
    waiting: usize,
    /// What the running command has printed.
    live: LiveLines,
}

impl AgentView {
    fn is_busy(&self) -> bool {
        self.is_working || self.waiting > 0
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

impl LineMode {
    /// A terminal on which nothing has been printed.
    pub fn new(setup: Setup) -> LineMode {
        let Setup { agent, mode, directory, styles, output } = setup;
        LineMode {
            styles,
            directory,
            mode,
            output,
            cursor: Cursor::LineStart,
            view: agent.clone(),
            own: agent,
            agents: BTreeMap::new(),
            questions: VecDeque::new(),
            elsewhere: Vec::new(),
            has_spoken: false,
            is_leaving: false,
        }
    }

    /// Prints the program, model, agent, mode and sandbox.
    pub fn print_header(&mut self, program: &str, model: &str, sandbox: &str) {
        let (mode, agent) = (self.mode, &self.view);
        let who = format!("{program} · {} · agent {agent}", safe(model));
        let mode = self.in_colour_of(mode, &format!("mode {}{sandbox}", mode.word()));
        self.line(&format!("{who} · {mode}"));
        self.dim("/help lists the commands, Ctrl-C interrupts, Ctrl-D leaves");
    }

    /// Leaves the cursor at the start of a line.
    pub fn finish_line(&mut self) {
        self.start_line();
    }

    /// Prints how to continue the session, if there is anything to continue.
    pub fn print_exit_hint(&mut self, how_to_continue: &str) {
        self.start_line();
        if self.has_spoken {
            self.dim(how_to_continue);
        }
    }

    /// Prints the prompt.
    pub fn prompt(&mut self) {
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

    /// Whether the agent in view is at work.
    pub(crate) fn is_busy(&self) -> bool {
        self.agents.get(&self.view).is_some_and(AgentView::is_busy)
    }

    pub(crate) fn can_continue(&self) -> bool {
        let agent_view = self.agents.get(&self.view);
        agent_view.is_some_and(|agent_view| agent_view.can_continue && !agent_view.is_busy())
    }

    /// The user sent a message. If the agent is busy, the message is queued.
    pub(crate) fn message_sent(&mut self) {
        self.has_spoken = true;
        let is_busy = self.is_busy();
        let agent_view = self.agents.entry(self.view.clone()).or_default();
        agent_view.is_working = true;
        agent_view.can_continue = false;
        if is_busy {
            agent_view.waiting += 1;
            self.dim("(queued for the next step)");
        }
    }

    /// The user has entered a line.
    pub(crate) fn line_entered(&mut self) {
        self.is_leaving = false;
        self.cursor = Cursor::LineStart;
    }

    /// Prints a message of the program.
    pub(crate) fn say(&mut self, text: &str) {
        self.line(&safe(text));
    }

    /// Prints an event. Lines about agents that are not in view start with the agent's ID.
    pub fn show(&mut self, event: &Event) {
        let Event { agent, kind } = event;
        let changes = self.agent_view(agent).reducer.event(kind);
        match kind {
            EventKind::TurnStarted(reason) => self.started(agent, *reason),
            EventKind::TextDelta(_) => self.changed(agent, &changes),
            // Like other agents' text.
            EventKind::ThinkingDelta(_) if *agent != self.view => {}
            EventKind::ThinkingDelta(_) | EventKind::EffortRefused(_) => {
                self.changed(agent, &changes);
            }
            EventKind::Message(message) => self.logged(agent, message, &changes),
            EventKind::Retry { attempt, of, reason, delay } => {
                self.note(agent, &text::retry_line(*attempt, *of, reason, *delay));
            }
            EventKind::ApprovalRequested(request) => self.add_question(agent, request),
            EventKind::DatabaseUnavailable(reason) => {
                self.note(agent, &text::database_unavailable(reason));
            }
            EventKind::InputRejected(_) => self.rejected(agent, &changes),
            EventKind::TurnEnded(done) => self.done(agent, done, &changes),
            EventKind::ContextUsed { .. }
            | EventKind::ReadsStarted(_)
            | EventKind::CommandStarted { .. }
            | EventKind::CommandOutput { .. }
            | EventKind::CommandEnded { .. }
            | EventKind::CommandLost { .. } => {}
            EventKind::CallProgress { .. } => {}
            EventKind::ToolOutput { delta, skipped, .. } => self.print_live(agent, delta, *skipped),
            EventKind::MailHeld
            | EventKind::Warning(_)
            | EventKind::AgentLost(_)
            | EventKind::Compaction(_) => self.changed(agent, &changes),
        }
    }

    pub(crate) fn agent_view(&mut self, agent: &AgentId) -> &mut AgentView {
        self.agents.entry(agent.clone()).or_default()
    }

    fn started(&mut self, agent: &AgentId, reason: StartReason) {
        let agent_view = self.agent_view(agent);
        agent_view.is_working = true;
        agent_view.can_continue = false;
        if reason == StartReason::CutOff && *agent == self.view {
            self.has_spoken = true;
            self.dim("(continues an interrupted turn)");
        }
    }

    /// A message was rejected, so it is no longer queued.
    fn rejected(&mut self, agent: &AgentId, changes: &[BlockChange]) {
        self.changed(agent, changes);
        let agent_view = self.agent_view(agent);
        agent_view.waiting = agent_view.waiting.saturating_sub(1);
        if !self.is_busy() {
            self.prompt();
        }
    }

    fn logged(&mut self, agent: &AgentId, message: &Message, changes: &[BlockChange]) {
        if message.body == Body::User {
            let agent_view = self.agent_view(agent);
            // The user sees what was typed, unless it was queued.
            if agent_view.waiting > 0 {
                agent_view.waiting -= 1;
                self.note(agent, &format!("❯ {}", shown_message(&message.content)));
            }
        }
        self.changed(agent, changes);
        if let Body::Approval(approval) = &message.body {
            // Call IDs come from the model, so two agents may have the same one.
            let id = &approval.tool_call_id;
            self.drop_questions(|by, request| by == agent && request.call.tool_call_id == *id);
        }
    }

    fn done(&mut self, agent: &AgentId, done: &TurnEnd, changes: &[BlockChange]) {
        let is_in_view = *agent == self.view;
        let agent_view = self.agent_view(agent);
        agent_view.is_working = false;
        agent_view.can_continue = done.can_continue;
        let is_busy = agent_view.is_busy();
        self.drop_questions(|by, _| by == agent);
        self.start_line();
        if !is_in_view && !done.text.trim().is_empty() {
            self.note(agent, &format!("● {}", done.text));
        }
        self.changed(agent, changes);
        if let Some(hint) = done.how_to_continue().filter(|_| is_in_view) {
            self.dim(hint);
        }
        if is_in_view && !is_busy || !is_in_view && !self.is_busy() {
            self.prompt();
        }
    }

    /// Prints changes of an agent's conversation.
    fn changed(&mut self, agent: &AgentId, changes: &[BlockChange]) {
        for change in changes {
            match change {
                // Other agents' text is shown when it is complete.
                BlockChange::Added(Block {
                    content: BlockContent::Answer(text),
                    message: None,
                    ..
                })
                | BlockChange::Extended { text, .. } => {
                    if *agent == self.view {
                        self.text(text);
                    }
                }
                BlockChange::Added(Block {
                    content: BlockContent::Notice { tone, text }, ..
                }) => {
                    self.note(agent, &render_notice(*tone, text));
                }
                BlockChange::Added(_) | BlockChange::Call { .. } => self.lines(agent, change),
                BlockChange::Logged { .. } | BlockChange::Removed(_) => {}
                BlockChange::Thought { .. } => {}
                BlockChange::Hidden(_) | BlockChange::HiddenAfter(_) => {}
                BlockChange::Cleared => {}
            }
        }
    }

    /// Shows what a command of the agent in view prints.
    fn print_live(&mut self, agent: &AgentId, delta: &str, skipped: u64) {
        if *agent == self.view {
            let lines = self.agent_view(agent).live.push(delta, skipped);
            lines.iter().for_each(|line| self.dim(&safe(line)));
        }
    }

    fn lines(&mut self, agent: &AgentId, change: &BlockChange) {
        let lines = match change {
            BlockChange::Call { change: CallChange::Ended(end), .. } => {
                let live = std::mem::take(&mut self.agent_view(agent).live);
                text::end_lines(end, &live)
            }
            change => text::change_lines(change),
        };
        for (style, line) in lines {
            let line = self.prefixed(agent, &line);
            match style {
                LineStyle::Plain => self.line(&line),
                LineStyle::Dim => self.dim(&line),
            }
        }
    }

    /// Prints text of an answer.
    pub(crate) fn text(&mut self, delta: &str) {
        if self.cursor != Cursor::Text {
            self.start_line();
            self.put("● ");
            self.cursor = Cursor::Text;
        }
        self.put(&safe(delta));
    }

    /// Prints a note about an agent.
    pub(crate) fn note(&mut self, agent: &AgentId, text: &str) {
        let text = self.prefixed(agent, &safe(text));
        self.line(&text);
    }

    /// Prefixes the text with the agent's ID, unless the agent is in view.
    fn prefixed(&self, agent: &AgentId, text: &str) -> String {
        match *agent == self.view {
            true => text.to_owned(),
            false => text::prefix_lines(agent, text),
        }
    }

    /// Colours the text red in mode full, in which everything is allowed.
    fn in_colour_of(&self, mode: Mode, text: &str) -> String {
        match (self.styles, mode) {
            (LineStyles::Ansi, Mode::Full) => format!("\x1b[31m{text}\x1b[39m"),
            (LineStyles::Ansi | LineStyles::None, _) => text.to_owned(),
        }
    }

    /// Prints text on a new line.
    pub(crate) fn line(&mut self, text: &str) {
        self.start_line();
        self.put(text);
        self.put("\n");
    }

    pub(crate) fn dim(&mut self, text: &str) {
        match self.styles {
            LineStyles::Ansi => self.line(&format!("\x1b[2m{text}\x1b[22m")),
            LineStyles::None => self.line(text),
        }
    }

    fn start_line(&mut self) {
        if self.cursor != Cursor::LineStart {
            self.put("\n");
            self.cursor = Cursor::LineStart;
        }
    }

    /// Errors are ignored: a closed terminal also sends a signal.
    pub(crate) fn put(&mut self, text: &str) {
        let _ = self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush());
    }
}
