//! What is printed, and in which state that leaves the line.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use ikigai_agents::{Asking, Done, Event, Happening, Permissions, Reason};
use ikigai_conversation::{AgentId, Body, Message, SessionId, ToolCallId};
use ikigai_tools::{Mode, NoSandbox, SandboxKind};

use crate::environment::Environment;
use crate::print::safe;
use crate::question::{HOW_TO_ANSWER, render_question};
use crate::transcript::{self, Look};

/// The terminal, as far as we know it.
pub(super) struct Screen {
    has_colours: bool,
    /// What is shown of files is seen from here.
    directory: PathBuf,
    permissions: Arc<Permissions>,
    cursor: Cursor,
    is_busy: bool,
    /// The call that waits for a yes.
    asked: Option<ToolCallId>,
    /// The last turn stopped in a way from which it may go on; Enter does that.
    may_go_on: bool,
    /// Messages of the person that wait, and are shown when they go in.
    waiting: usize,
    /// There is a conversation to come back to.
    has_spoken: bool,
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
    pub(super) fn new(environment: &Environment, permissions: Arc<Permissions>) -> Screen {
        let is_dumb = environment.variable("TERM").is_none_or(|term| term == "dumb");
        let has_colours = !is_dumb && environment.variable("NO_COLOR").is_none();
        Screen {
            has_colours,
            directory: environment.directory.clone(),
            permissions,
            cursor: Cursor::Fresh,
            is_busy: false,
            asked: None,
            may_go_on: false,
            waiting: 0,
            has_spoken: false,
        }
    }

    /// Says who is there, and what commands are kept in by.
    pub(super) fn greet(
        &mut self,
        model: &str,
        agent: &AgentId,
        sandbox: &Result<SandboxKind, NoSandbox>,
    ) {
        let version = env!("CARGO_PKG_VERSION");
        let mode = self.permissions.mode();
        let walls = match (mode, sandbox) {
            (Mode::Work, Ok(kind)) => format!(", sandbox {kind}"),
            (Mode::Work, Err(_)) => ", no sandbox: every command is asked for".to_owned(),
            (Mode::Read | Mode::Full, _) => String::new(),
        };
        let who = format!("ikigai {version} · {} · agent {agent}", safe(model));
        let mode = self.in_colour_of(mode, &format!("mode {}{walls}", mode.word()));
        self.line(&format!("{who} · {mode}"));
        self.dim("/help lists the commands, Ctrl-C interrupts, Ctrl-D leaves");
    }

    /// Shows where an earlier conversation stands: what was said last, and what was answered.
    pub(super) fn recall(&mut self, log: &[Message]) {
        /// About a screen of text.
        const SHOWN: usize = 2_000;
        let Some(last) = log.iter().rposition(|message| message.body == Body::User) else { return };
        let answer =
            log[last..].iter().rev().find(|message| matches!(message.body, Body::Assistant(_)));
        for (prefix, message) in [("❯", Some(&log[last])), ("●", answer)] {
            let Some(message) = message else { continue };
            let text: String = message.content.chars().take(SHOWN).collect();
            let cut = if text.len() < message.content.len() { " …" } else { "" };
            self.dim(&safe(&format!("{prefix} {text}{cut}")));
        }
        self.has_spoken = true;
    }

    /// Says how to come back.
    pub(super) fn take_leave(&mut self, session: SessionId) {
        self.fresh();
        if self.has_spoken {
            self.dim(&format!("To go on: ikigai -c, or ikigai --session {session}"));
        }
    }

    pub(super) fn prompt(&mut self) {
        self.fresh();
        let mode = self.permissions.mode();
        if mode == Mode::Full {
            let full = self.in_colour_of(mode, mode.word());
            self.put(&format!("{full} "));
        }
        self.put(if self.asked.is_some() { "y/a/n ❯ " } else { "❯ " });
        self.cursor = Cursor::Prompt;
    }

    pub(super) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Whether a call waits for a yes.
    pub(super) fn asks(&self) -> bool {
        self.asked.is_some()
    }

    /// The call that waited for a yes; now it does not any more.
    pub(super) fn answered(&mut self) -> Option<ToolCallId> {
        self.asked.take()
    }

    pub(super) fn may_go_on(&self) -> bool {
        self.may_go_on && !self.is_busy
    }

    /// Something was typed; while the agent works it waits.
    pub(super) fn said(&mut self, is_busy: bool) {
        self.has_spoken = true;
        if is_busy {
            self.waiting += 1;
            self.dim("(waits for the next step)");
        }
        self.is_busy = true;
        self.may_go_on = false;
    }

    /// The person has ended a line.
    pub(super) fn entered(&mut self) {
        self.cursor = Cursor::Fresh;
    }

    /// Prints an answer of ours.
    pub(super) fn say(&mut self, text: &str) {
        self.line(&safe(text));
    }

    /// Prints what happened.
    pub(super) fn show(&mut self, event: &Event) {
        match &event.happening {
            Happening::Started(reason) => self.started(*reason),
            Happening::Text(delta) => self.text(delta),
            Happening::Logged(message) => self.logged(message),
            Happening::Retry { attempt, reason, delay } => {
                self.line(&safe(&transcript::retry(*attempt, reason, *delay)));
            }
            Happening::Asks(asking) => self.ask(&event.agent, asking),
            Happening::StoreWaits(reason) => self.line(&safe(&transcript::store_waits(reason))),
            Happening::MailHeld => self.line(transcript::MAIL_HELD),
            Happening::Done(done) => self.done(done),
            Happening::Lost(reason) => self.line(&safe(&format!("✗ {reason}"))),
        }
    }

    fn started(&mut self, reason: Reason) {
        self.is_busy = true;
        self.may_go_on = false;
        if reason == Reason::CutOff {
            self.has_spoken = true;
            self.dim("(goes on with what was cut off)");
        }
    }

    fn ask(&mut self, agent: &AgentId, asking: &Asking) {
        // At once: a long diff, written and flushed line by line, would keep everything else waiting.
        let question = render_question(agent, asking, &self.directory).join("\n");
        self.line(&safe(&question));
        self.dim(HOW_TO_ANSWER);
        self.asked = Some(asking.call.tool_call_id.clone());
        self.prompt();
    }

    fn text(&mut self, delta: &str) {
        if self.cursor != Cursor::Text {
            self.fresh();
            self.put("● ");
            self.cursor = Cursor::Text;
        }
        self.put(&safe(delta));
    }

    fn logged(&mut self, message: &Message) {
        match &message.body {
            Body::ToolCall(_) | Body::ToolResult(_) | Body::Notification(_) => self.lines(message),
            Body::User if self.waiting > 0 => {
                self.waiting -= 1;
                self.line(&safe(&format!("❯ {}", message.content)));
            }
            Body::User | Body::System | Body::Assistant(_) | Body::Summary(_) | Body::Fork(_) => {}
            Body::Usage(_) | Body::Mark(_) | Body::Rewind(_) | Body::Clear | Body::Trim(_) => {}
            Body::Kill(_) | Body::Interrupted(_) | Body::Command(_) | Body::Approval(_) => {}
        }
    }

    fn lines(&mut self, message: &Message) {
        for (look, line) in transcript::shown(message) {
            match look {
                Look::Plain => self.line(&line),
                Look::Dim => self.dim(&line),
            }
        }
    }

    fn done(&mut self, done: &Done) {
        self.is_busy = self.waiting > 0;
        self.asked = None;
        self.fresh();
        transcript::ending(done).iter().for_each(|note| self.line(&safe(note)));
        self.may_go_on = done.may_go_on;
        if done.may_go_on {
            self.dim("Enter tries to go on");
        }
        if !self.is_busy {
            self.prompt();
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
