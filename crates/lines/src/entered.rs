//! What the user wants to do with a line of input.

use ikigai_protocol::{
    ApprovalAnswer, Command, CommandError, Request, SLASH_COMMANDS, SlashCommand, is_slash_command,
};

use crate::answer::parse_answer;
use crate::input::Input;
use crate::line_mode::LineMode;
use crate::question::HOW_TO_ANSWER;

const TOO_LONG: &str = "\
A terminal cuts lines at 4,095 bytes, so this was not sent. End shorter lines with a \\, or use
'ikigai run -c -' with the text on standard input";

const GARBLED: &str =
    "Arrow keys cannot edit the line here yet, so this was not sent. Please type it again";

const HELP_ON_KEYS: &str = "\
Type a message and press Enter. While the agent works, messages are queued for the next step.
A \\ at the end of a line continues it in the next one.
@FILE attaches a file, !COMMAND runs a command of your own without a sandbox.
Ctrl-C interrupts the agent, Ctrl-D leaves.";

/// What the user wants to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entered {
    /// Nothing more.
    Nothing,
    /// Leave.
    Leave,
    /// Send this to an agent. Events show what comes of it; only a refusal has to be shown, with
    /// [`LineMode::show_error`].
    Send(Request),
    /// Continue with a new session.
    NewSession,
    /// Carry out a command, and show its reply with [`LineMode::reply`] or
    /// [`LineMode::respond_error`].
    Execute(Request),
}

impl LineMode {
    /// Handles a line of input.
    pub fn enter(&mut self, input: Input) -> Entered {
        self.line_entered();
        let line = match input {
            Input::Line(line) => line,
            Input::TooLong => return self.refuse_line(TOO_LONG),
            Input::Garbled => return self.refuse_line(GARBLED),
        };
        let text = line.trim();
        if is_slash_command(text) {
            return self.enter_command(text);
        }
        if self.has_question() {
            return self.enter_answer(text);
        }
        if let Some(line) = text.strip_prefix('!').map(str::trim).filter(|line| !line.is_empty()) {
            return Entered::Execute(self.request(Command::Shell { line: line.to_owned() }));
        }
        let is_busy = self.is_busy();
        if text.is_empty() {
            if self.can_continue() {
                return Entered::Send(self.request(Command::Continue));
            }
            if !is_busy {
                self.prompt();
            }
            return Entered::Nothing;
        }
        self.message_sent();
        Entered::Send(self.request(Command::Say { text: text.to_owned() }))
    }

    /// Handles Ctrl-C: interrupts the agent, or leaves when pressed twice.
    pub fn interrupt(&mut self) -> Entered {
        if self.is_busy() {
            return Entered::Send(self.request(Command::Interrupt));
        }
        if self.is_leaving {
            return Entered::Leave;
        }
        self.is_leaving = true;
        self.say("Press Ctrl-C again to leave");
        self.prompt();
        Entered::Nothing
    }

    fn refuse_line(&mut self, why: &str) -> Entered {
        self.show_error(why);
        self.prompt();
        Entered::Nothing
    }

    /// An answer to the approval request that is shown. Anything else gets help on how to answer.
    fn enter_answer(&mut self, text: &str) -> Entered {
        let Some((decision, reason)) = parse_answer(text) else {
            self.say(HOW_TO_ANSWER);
            self.prompt();
            return Entered::Nothing;
        };
        let Some((agent, request)) = self.take_question() else { return Entered::Nothing };
        let (call, hash) = (request.call.tool_call_id, request.hash);
        let answer = ApprovalAnswer { call, hash, decision, reason, save_rule: None };
        Entered::Send(Request { agent, command: Command::Answer(answer) })
    }

    fn enter_command(&mut self, line: &str) -> Entered {
        match SlashCommand::parse(line) {
            Ok(SlashCommand::Exit) => return Entered::Leave,
            Ok(SlashCommand::Session(command)) => return Entered::Execute(self.request(command)),
            Ok(SlashCommand::New) if !self.is_busy() => return Entered::NewSession,
            Ok(SlashCommand::New) => {
                self.respond_error(&CommandError::Working(self.view.clone()).to_string());
            }
            Ok(SlashCommand::Help) => self.respond(&help()),
            Ok(SlashCommand::Copy(_)) => self.respond_error("/copy needs the full screen"),
            // It is plain text already.
            Ok(SlashCommand::Raw) => self.respond_error("/raw needs the full screen"),
            Err(error) => self.respond_error(&error.to_string()),
        }
        Entered::Nothing
    }

    /// A request to the agent in view.
    fn request(&self, command: Command) -> Request {
        Request { agent: self.view.clone(), command }
    }
}

/// The help text. `/copy` is omitted: it needs the full screen.
fn help() -> String {
    let commands = SLASH_COMMANDS.iter().filter(|(name, _)| *name != "copy");
    let lines = commands.map(|(name, help)| format!("  /{name:<8} {help}\n"));
    format!("{}{HELP_ON_KEYS}", lines.collect::<String>())
}
