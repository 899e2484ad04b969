//! An agent's log, and what is derived from it alone.

use crate::body::Body;
use crate::ids::MessageId;
use crate::message::{Message, NewMessage};
use crate::pairs::{Pairs, closing_output};

/// The messages of one agent: what it inherited, and its own.
///
/// IDs increase through both. Everything derived from a log takes time linear in its length.
#[derive(Debug, Clone, Copy)]
pub struct Log<'a> {
    inherited: &'a [Message],
    own: &'a [Message],
}

impl<'a> Log<'a> {
    /// The log of an agent that inherits nothing: a top-level one, or a fresh fork.
    pub fn new(own: &'a [Message]) -> Log<'a> {
        Log { inherited: &[], own }
    }

    /// The log of a full fork. `inherited` is its parent's log up to the fork, preceded by what the
    /// parent itself inherited.
    pub fn forked(inherited: &'a [Message], own: &'a [Message]) -> Log<'a> {
        Log { inherited, own }
    }

    /// The results to append when a process resumes the agent, so that every call has one: in the
    /// order of the calls, even for calls that a model no longer sees. Once they are appended, none
    /// are left.
    pub fn open_calls(&self) -> Vec<NewMessage> {
        let pairs = Pairs::of(self.own.iter());
        let own = self.own.iter().enumerate();
        let open = own.filter(|(position, _)| pairs.result_of(*position).is_none());
        let close = |(_, message): (usize, &Message)| {
            let Body::ToolCall(call) = &message.body else { return None };
            Some(NewMessage::tool_result(call, closing_output(call)))
        };
        open.filter_map(close).collect()
    }

    /// Whether the agent has to continue its turn when a process resumes it: the last message that
    /// it saw needs an answer.
    ///
    /// Inherited messages are the parent's to answer. After an interrupt, a rewind or a clear, the
    /// agent waits for the user, who was present and decides what happens next.
    pub fn needs_turn(&self) -> bool {
        let own = self.live().into_iter().rev().map_while(|position| self.own_at(position));
        own.filter_map(decides_turn).next().unwrap_or(false)
    }

    /// The agent's own messages that a rewind discarded, in order. The screen dims them, and mail
    /// that they contain becomes unread again.
    pub fn rewound(&self) -> Vec<&'a Message> {
        let is_live = self.is_live(&self.live());
        let own = is_live[self.inherited.len()..].iter();
        self.own.iter().zip(own).filter(|(_, live)| !**live).map(|(message, _)| message).collect()
    }

    /// The agent's own messages that the user can rewind to, in order: what the user said, and marks.
    /// Before the first message of a log there is nothing to rewind to.
    pub fn rewind_points(&self) -> Vec<&'a Message> {
        let is_live = self.is_live(&self.live());
        let own = self.own.iter().zip(&is_live[self.inherited.len()..]).skip(1);
        let live = own.filter(|(_, is_live)| **is_live).map(|(message, _)| message);
        live.filter(|message| matches!(message.body, Body::User | Body::Mark(_))).collect()
    }

    /// The last message that remains visible after a rewind to a point: a mark itself, or the message
    /// before what the user said.
    pub fn rewind_target(&self, point: MessageId) -> Option<MessageId> {
        let points = self.rewind_points();
        let point = points.into_iter().find(|message| message.id == point)?;
        if let Body::Mark(_) = point.body {
            return Some(point.id);
        }
        let position = self.own.partition_point(|message| message.id < point.id);
        position.checked_sub(1).map(|before| self.own[before].id)
    }

    /// The log without its own messages from `end` on.
    #[must_use]
    pub fn before(self, end: MessageId) -> Log<'a> {
        let own = &self.own[..self.own.partition_point(|message| message.id < end)];
        Log { own, ..self }
    }

    /// The positions of all messages that no rewind discarded, in order, including the rewinds
    /// themselves.
    ///
    /// Read backwards, a rewind jumps to its target. Everything between is skipped, even another
    /// rewind, a clear or a summary: the model sees again what it saw at the target.
    pub(crate) fn live(&self) -> Vec<usize> {
        let mut live = Vec::with_capacity(self.inherited.len() + self.own.len());
        let mut end = self.inherited.len() + self.own.len();
        while let Some(position) = end.checked_sub(1) {
            live.push(position);
            end = self.target_of_rewind(position).map_or(position, |target| target + 1);
        }
        live.reverse();
        live
    }

    /// For every position, whether it is in `live`.
    pub(crate) fn is_live(&self, live: &[usize]) -> Vec<bool> {
        let mut is_live = vec![false; self.inherited.len() + self.own.len()];
        live.iter().for_each(|position| is_live[*position] = true);
        is_live
    }

    /// The target of the rewind at `position`, if there is one. It must be in the agent's own log
    /// and not ahead; otherwise the rewind has no effect.
    fn target_of_rewind(&self, position: usize) -> Option<usize> {
        let message = self.at(position);
        let Body::Rewind(rewind) = &message.body else { return None };
        self.position_of(rewind.to)
            .filter(|target| *target < position && self.at(*target).agent == message.agent)
    }

    pub(crate) fn position_of(&self, id: MessageId) -> Option<usize> {
        let find =
            |messages: &[Message]| messages.binary_search_by_key(&id, |message| message.id).ok();
        find(self.inherited).or_else(|| find(self.own).map(|own| self.inherited.len() + own))
    }

    pub(crate) fn at(&self, position: usize) -> &'a Message {
        self.own_at(position).unwrap_or_else(|| &self.inherited[position])
    }

    pub(crate) fn own_at(&self, position: usize) -> Option<&'a Message> {
        position.checked_sub(self.inherited.len()).map(|own| &self.own[own])
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = &'a Message> {
        self.inherited.iter().chain(self.own)
    }
}

/// Whether a turn is due after `message`; `None` if the message before it decides.
pub(crate) fn decides_turn(message: &Message) -> Option<bool> {
    match &message.body {
        Body::User | Body::Notification(_) => Some(true),
        // A call counts for its result as well. A result that closes a call left open by a crash
        // may come after an interrupt or an answer, and is no reason to continue then.
        Body::ToolCall(_) => Some(true),
        Body::ToolResult(result) => result.ends_turn.then_some(false),
        Body::Assistant(_) | Body::Interrupted(_) | Body::Rewind(_) | Body::Clear => Some(false),
        // A summary may be written in the middle of a turn, and needs no answer itself.
        Body::Summary(_) | Body::System | Body::Fork(_) | Body::Trim(_) | Body::Usage(_) => None,
        Body::Mark(_) | Body::Kill(_) | Body::Command(_) | Body::Approval(_) => None,
    }
}
