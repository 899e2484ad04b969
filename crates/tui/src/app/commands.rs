//! What becomes of a text that is sent: a message, or a command with a slash.

use ikigai_protocol::Command;

use super::{Act, App};
use crate::news::Effect;
use crate::question::Stage;
use crate::slash::{self, Slash};
use crate::transcript::Tone;

impl App {
    /// Sends what was typed.
    pub(crate) fn submit(&mut self) {
        let pane = self.pane_in_view();
        let text = pane.draft.whole();
        let text = text.trim();
        if text.is_empty() {
            return self.submit_nothing();
        }
        pane.draft.clear();
        pane.transcript.scroll_to_end();
        self.history.add(text);
        self.wish(Effect::Remember(text.to_owned()));
        match slash::is_command(text) {
            true => self.obey(text),
            false => self.say(text),
        }
    }

    /// Enter without a text: a question that was set aside is taken up, a turn that may go on does.
    fn submit_nothing(&mut self) {
        let pane = self.pane_in_view();
        if let Some(question) = pane.questions.front_mut() {
            question.stage = Stage::Choice;
        } else if pane.can_continue && !pane.is_busy() {
            pane.can_continue = false;
            self.order(Command::Continue);
        }
    }

    fn say(&mut self, text: &str) {
        /// So much may wait unseen by the log. Agents refuse sooner, and say so.
        const QUEUED: usize = 1_000;
        let pane = self.pane_in_view();
        pane.can_continue = false;
        pane.has_spoken = true;
        if pane.queued.len() < QUEUED && !pane.is_lost {
            pane.queued.push_back(text.to_owned());
        }
        self.order(Command::Say { text: text.to_owned() });
    }

    fn obey(&mut self, line: &str) {
        self.pane_in_view().transcript.tell(Tone::Dim, &format!("❯ {line}"));
        let command = match Slash::parse(line) {
            Ok(command) => command,
            Err(error) => return self.tell(&error),
        };
        match command {
            Slash::Help => {
                self.tell(&slash::help());
                let window = self.window();
                self.pane_in_view().transcript.scroll_to_last(window);
            }
            Slash::Exit => self.act(Act::Leave),
            Slash::Copy => self.copy(),
            Slash::Agents => {
                let tree = self.team.tree(&self.view);
                self.tell(&tree);
            }
            Slash::Agent(named) => match self.team.find(&named).map(|member| member.id.clone()) {
                Some(agent) => self.visit(&agent),
                None => self.tell(&format!("Error: Agent {named} not found; /agents lists all")),
            },
            Slash::Clear if self.pane_in_view().is_busy() => {
                self.tell("Error: the agent is at work; interrupt it with Esc first");
            }
            command @ (Slash::Clear
            | Slash::Model(_)
            | Slash::Mail(_)
            | Slash::Fork(_)
            | Slash::Kill(_)
            | Slash::Mark(_)
            | Slash::Rewind(_)
            | Slash::Sessions
            | Slash::Export(_)
            | Slash::Tools
            | Slash::Mode(_)
            | Slash::Undo
            | Slash::Redo
            | Slash::Usage
            | Slash::Config) => {
                let agent = self.view.clone();
                self.wish(Effect::Obey { agent, command });
            }
        }
    }

    fn copy(&mut self) {
        /// Terminals pass over longer sequences without a word.
        const LIMIT: usize = 70_000;
        match self.pane_in_view().transcript.last_answer().map(str::to_owned) {
            None => self.tell("Error: there is no answer to copy yet"),
            Some(answer) if answer.len() > LIMIT => {
                self.tell("Error: the answer is too long for a terminal's clipboard; /export FILE writes it to a file");
            }
            Some(answer) => {
                self.act(Act::Copy(answer));
                self.tell("The last answer is on the clipboard, if the terminal allows that");
            }
        }
    }
}
