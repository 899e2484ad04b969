//! Approval requests, one at a time.

use std::io;

use ikigai_conversation::AgentId;
use ikigai_protocol::{ApprovalRequest, safe};
use rustix::termios::{QueueSelector, tcflush};

use crate::line_mode::LineMode;
use crate::question::{HOW_TO_ANSWER, render_question};

impl LineMode {
    /// Whether a call waits for approval.
    pub(crate) fn has_question(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Takes the call that the user has just answered, and shows the next one.
    pub(crate) fn take_question(&mut self) -> Option<(AgentId, ApprovalRequest)> {
        let taken = self.questions.pop_front()?;
        self.show_question();
        Some(taken)
    }

    pub(crate) fn add_question(&mut self, agent: &AgentId, request: &ApprovalRequest) {
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

    /// Shows the approval requests of agents that other processes run, and drops those that are
    /// settled.
    pub fn set_questions_elsewhere(&mut self, open: &[(AgentId, ApprovalRequest)]) {
        let known = std::mem::replace(&mut self.elsewhere, open.to_vec());
        self.drop_questions(|agent, request| {
            let is = |(by, other): &(AgentId, ApprovalRequest)| by == agent && other == request;
            known.iter().any(is) && !open.iter().any(is)
        });
        for (agent, request) in open.iter().filter(|question| !known.contains(question)) {
            self.add_question(agent, request);
        }
    }

    /// Drops approval requests that are settled, and shows the next one.
    pub(crate) fn drop_questions(&mut self, is_over: impl Fn(&AgentId, &ApprovalRequest) -> bool) {
        let shown = self.questions.front().cloned();
        self.questions.retain(|(agent, request)| !is_over(agent, request));
        if self.questions.front() != shown.as_ref() {
            self.show_question();
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
}
