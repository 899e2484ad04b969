//! Printing replies to commands.

use ikigai_conversation::{AgentId, Body, Message};
use ikigai_protocol::{Reply, render_reply, safe, shown_message};

use crate::line_mode::LineMode;

impl LineMode {
    /// Prints an error.
    pub fn show_error(&mut self, why: &str) {
        self.say(&format!("error: {why}"));
    }

    /// Shows the result of a command, and the next prompt.
    pub fn reply(&mut self, reply: &Reply) {
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
    pub(crate) fn respond(&mut self, text: &str) {
        if !text.is_empty() {
            self.say(text);
        }
        self.prompt_after_command();
    }

    /// Prints why a command was refused, and the next prompt.
    pub fn respond_error(&mut self, why: &str) {
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
        /// Several screens; the complete text is in the log.
        const LIMIT: usize = 16 * 1024;
        let agent_view = self.agents.get(&self.view);
        let text = agent_view.and_then(|agent_view| agent_view.reducer.streaming());
        let Some(text) = text.map(str::to_owned) else { return };
        let start = text.ceil_char_boundary(text.len().saturating_sub(LIMIT));
        let cut = if start > 0 { "… " } else { "" };
        self.text(&format!("{cut}{}", &text[start..]));
    }

    /// Shows the end of an earlier conversation: the latest message and its answer.
    pub fn recall(&mut self, log: &[Message]) {
        /// About a screen of text.
        const SHOWN: usize = 2_000;
        let view = self.view.clone();
        self.agent_view(&view).reducer.recall(log);
        let Some(last) = log.iter().rposition(|message| message.body == Body::User) else { return };
        let answer =
            log[last..].iter().rev().find(|message| matches!(message.body, Body::Assistant(_)));
        for (prefix, message) in [("❯", Some(&log[last])), ("●", answer)] {
            let Some(message) = message else { continue };
            let content = shown_message(&message.content);
            let text: String = content.chars().take(SHOWN).collect();
            let cut = if text.len() < content.len() { " …" } else { "" };
            self.dim(&safe(&format!("{prefix} {text}{cut}")));
        }
        self.has_spoken = true;
    }
}
