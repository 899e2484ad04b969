//! Sending what the user typed: a message or a slash command.

use ikigai_conversation::AgentId;
use ikigai_protocol::{
    BlockContent, Command, CommandError, Copied, SlashCommand, is_slash_command,
};

use super::{Action, App};
use crate::help::help;
use crate::update::Effect;

impl App {
    /// Sends the draft.
    pub(crate) fn submit(&mut self) {
        let pane = self.pane_in_view();
        let text = pane.draft.whole();
        let text = text.trim();
        if text.is_empty() {
            return self.submit_nothing();
        }
        if !is_slash_command(text)
            && let Some(why) = self.why_read_only()
        {
            return self.refuse(&why.to_string());
        }
        let pane = self.pane_in_view();
        pane.draft.clear();
        pane.transcript.scroll_to_end();
        self.history.add(text);
        self.emit(Effect::AddToHistory(text.to_owned()));
        match text.strip_prefix('!').map(str::trim) {
            Some(line) if !line.is_empty() => self.run_shell(text, line),
            Some(_) | None if is_slash_command(text) => self.run_command(text),
            Some(_) | None => self.say(text),
        }
    }

    /// Runs a command of the user's own.
    fn run_shell(&mut self, typed: &str, line: &str) {
        let pane = self.pane_in_view();
        pane.transcript.add(BlockContent::Typed(typed.to_owned()));
        pane.is_shell_busy = true;
        self.send(Command::Shell { line: line.to_owned() });
    }

    /// Enter without text: shows a question that was set aside, or continues a turn that can be
    /// continued.
    fn submit_nothing(&mut self) {
        let pane = self.pane_in_view();
        if pane.transcript.toggle_selected() {
            return;
        }
        if let Some(question) = pane.questions.front_mut() {
            question.reopen();
        } else if pane.can_continue && !pane.is_busy() {
            pane.can_continue = false;
            self.send(Command::Continue);
        }
    }

    fn say(&mut self, text: &str) {
        /// The most messages that are shown as queued. Agents refuse more long before, and say so.
        const QUEUED: usize = 1_000;
        let pane = self.pane_in_view();
        pane.can_continue = false;
        pane.has_spoken = true;
        if pane.queued.len() < QUEUED && !pane.is_lost {
            pane.queued.push_back(text.to_owned());
        }
        self.send(Command::Say { text: text.to_owned() });
    }

    /// Puts a message that is no longer queued into the input.
    pub(super) fn take_back(&mut self, agent: &AgentId, text: &str) {
        let pane = self.pane(agent);
        if let Some(at) = pane.queued.iter().rposition(|queued| queued == text) {
            pane.queued.remove(at);
        }
        match pane.draft.is_empty() {
            true => pane.draft.set(text),
            false => pane.offered = Some(text.to_owned()),
        }
    }

    fn run_command(&mut self, line: &str) {
        self.pane_in_view().transcript.add(BlockContent::Typed(line.to_owned()));
        let command = match SlashCommand::parse(line) {
            Ok(command) => command,
            Err(error) => return self.refuse(&error.to_string()),
        };
        match command {
            SlashCommand::Help => {
                self.note(&help());
                let window = self.window();
                self.pane_in_view().transcript.scroll_to_last(window);
            }
            SlashCommand::Exit => self.push(Action::Leave),
            SlashCommand::Copy(what) => self.copy(what),
            SlashCommand::Raw => {
                let text = self.pane_in_view().transcript.plain();
                self.push(Action::ShowPlain(text));
            }
            SlashCommand::New => self.open_other_session(None),
            SlashCommand::Session(Command::ListRewindPoints) => self.open_rewind(),
            SlashCommand::Session(Command::Sessions) => self.open_sessions(),
            SlashCommand::Session(Command::Model { name: None }) => self.open_models(),
            SlashCommand::Session(Command::Agents) => {
                let tree = self.team.tree(&self.view);
                self.note(&tree);
            }
            SlashCommand::Session(Command::Open { target: Some(target) }) => {
                match self.team.find(&target).map(|member| member.id.clone()) {
                    Some(agent) => self.visit(&agent),
                    None => self.refuse(&CommandError::AgentNotFound(target).to_string()),
                }
            }
            SlashCommand::Session(command) => self.send(command),
        }
    }

    fn copy(&mut self, what: Copied) {
        /// Terminals silently ignore longer sequences.
        const LIMIT: usize = 70_000;
        let transcript = &self.pane_in_view().transcript;
        let (text, name) = match what {
            Copied::Answer => (transcript.last_answer().map(str::to_owned), "answer"),
            Copied::Code => (transcript.last_code(), "code"),
        };
        match text {
            None => self.refuse(&format!("There is no {name} to copy yet")),
            Some(text) if text.len() > LIMIT => self.refuse(&format!(
                "The {name} is too long for the clipboard of a terminal. /export FILE writes it to a file"
            )),
            Some(text) => {
                self.push(Action::Copy(text));
                self.note(&format!("Copied the last {name}, if the terminal allows that"));
            }
        }
    }
}
