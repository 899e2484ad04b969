//! Replies to commands as lines.

use ikigai_conversation::{AgentId, Body, Message};
use ikigai_protocol::{Reply, render_reply};

use super::Screen;
use crate::print::safe;

impl Screen {
    /// Prints why nothing was done.
    pub(in crate::line) fn refuse(&mut self, why: &str) {
        self.say(&format!("error: {why}"));
    }

    /// Shows what a command did.
    pub(in crate::line) fn reply(&mut self, reply: &Reply) {
        if let Reply::Opened { agent, log } = reply {
            return self.open(agent, log);
        }
        if let Reply::Killed(dead) = reply
            && dead.contains(&self.view)
        {
            self.look_at(self.own.clone());
        }
        if let Reply::Mode { mode, .. } = reply {
            self.mode = *mode;
        }
        let text = render_reply(reply, &self.view, &self.directory).unwrap_or_default();
        self.respond(&text);
    }

    /// Prints what there is to say to a command, and the next prompt.
    pub(in crate::line) fn respond(&mut self, text: &str) {
        if !text.is_empty() {
            self.say(text);
        }
        self.prompt_after_command();
    }

    /// Prints why a command was refused, and the next prompt.
    pub(in crate::line) fn respond_error(&mut self, why: &str) {
        self.refuse(why);
        self.prompt_after_command();
    }

    fn prompt_after_command(&mut self) {
        if !self.is_busy() || self.asks() {
            self.prompt();
        }
    }

    /// Talks to another agent from now on.
    fn open(&mut self, agent: &AgentId, log: &[Message]) {
        self.look_at(agent.clone());
        self.recall(log);
        self.say(&format!("Switched to agent {agent}"));
        self.catch_up();
        self.prompt_after_command();
    }

    fn look_at(&mut self, agent: AgentId) {
        self.agents.entry(agent.clone()).or_default();
        self.view = agent;
    }

    /// Shows what the agent in view has said already of an answer that still streams.
    fn catch_up(&mut self) {
        let known = self.agents.get(&self.view);
        let so_far = known.map(|known| known.so_far.clone()).unwrap_or_default();
        if !so_far.is_empty() {
            self.text(&so_far);
        }
    }

    /// Shows where an earlier conversation stands: what was said last, and what was answered.
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
