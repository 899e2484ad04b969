//! Printing replies to commands.

use ikigai_conversation::{AgentId, Body, Message};
use ikigai_protocol::{Reply, render_reply};

use super::Screen;
use crate::print::safe;

impl Screen {
    /// Prints an error.
    pub(in crate::line) fn show_error(&mut self, why: &str) {
        self.say(&format!("error: {why}"));
    }

    /// Shows the result of a command.
    pub(in crate::line) fn reply(&mut self, reply: &Reply) {
        if let Reply::Opened { agent, log } = reply {
            return self.open(agent, log);
        }
        if let Reply::Killed(dead) = reply
            && dead.contains(&self.view)
        {
            self.switch_to(self.own.clone());
        }
        if let Reply::Mode { mode, .. } = reply {
            self.mode = *mode;
        }
        let text = render_reply(reply, &self.view, &self.directory).unwrap_or_default();
        self.respond(&text);
    }

    /// Prints the response to a command, and the next prompt.
    pub(in crate::line) fn respond(&mut self, text: &str) {
        if !text.is_empty() {
            self.say(text);
        }
        self.prompt_after_command();
    }

    /// Prints why a command was refused, and the next prompt.
    pub(in crate::line) fn respond_error(&mut self, why: &str) {
        self.show_error(why);
        self.prompt_after_command();
    }

    fn prompt_after_command(&mut self) {
        if !self.is_busy() || self.has_question() {
            self.prompt();
        }
    }

    /// Switches to another agent.
    fn open(&mut self, agent: &AgentId, log: &[Message]) {
        self.switch_to(agent.clone());
        self.recall(log);
        self.say(&format!("Switched to agent {agent}"));
        self.catch_up();
        self.prompt_after_command();
    }

    fn switch_to(&mut self, agent: AgentId) {
        self.agents.entry(agent.clone()).or_default();
        self.view = agent;
    }

    /// Shows the part of an answer that the agent in view has already streamed.
    fn catch_up(&mut self) {
        let agent_view = self.agents.get(&self.view);
        let streamed_text =
            agent_view.map(|agent_view| agent_view.streamed_text.clone()).unwrap_or_default();
        if !streamed_text.is_empty() {
            self.text(&streamed_text);
        }
    }

    /// Shows the end of an earlier conversation: the latest message and its answer.
    pub(in crate::line) fn recall(&mut self, log: &[Message]) {
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
}
