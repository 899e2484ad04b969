//! An agent's log as it was loaded, and what follows from it alone.

use crate::body::Body;
use crate::ids::MessageId;
use crate::message::{Message, NewMessage};
use crate::pairs::{Pairs, closing_output};

/// The messages of one agent: what it inherited, and its own.
///
/// Ids rise through both. Everything that is derived from a log takes time in proportion to its length.
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

    /// The log of a full fork. `inherited` is all that its parent's log had up to the fork, and before it
    /// what the parent itself inherited.
    pub fn forked(inherited: &'a [Message], own: &'a [Message]) -> Log<'a> {
        Log { inherited, own }
    }

    /// The results to append when the log is taken up again, so that every call has one: in the order of
    /// the calls, also for calls that a model no longer sees. Once appended, there are none left.
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

    /// Whether the agent has to go on with its turn when a process takes it up: what it saw last is
    /// something to answer.
    ///
    /// What it inherited is its parent's to answer. After an interrupt, a rewind or a clear it waits for
    /// the person, who was there and has yet to say what next.
    pub fn needs_turn(&self) -> bool {
        let own = self.live().into_iter().rev().map_while(|position| self.own_at(position));
        own.filter_map(decides_turn).next().unwrap_or(false)
    }

    /// The agent's own messages that a rewind took back, in order. The screen dims them, and mail that
    /// they showed is unread again.
    pub fn rewound(&self) -> Vec<&'a Message> {
        let is_live = self.is_live(&self.live());
        let own = is_live[self.inherited.len()..].iter();
        self.own.iter().zip(own).filter(|(_, live)| !**live).map(|(message, _)| message).collect()
    }

    /// The positions of all messages that no rewind took back, in order. The rewinds themselves are among
    /// them.
    ///
    /// Read backwards, a rewind leads to its target, and what lies between never counts, be it another
    /// rewind, a clear or a summary: what the model saw at the target is what it sees again.
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

    /// For every position whether it is among the `live` ones.
    pub(crate) fn is_live(&self, live: &[usize]) -> Vec<bool> {
        let mut is_live = vec![false; self.inherited.len() + self.own.len()];
        live.iter().for_each(|position| is_live[*position] = true);
        is_live
    }

    /// Where the rewind at `position` leads, if there is one. It cannot leave its agent's own log, nor lead
    /// forward; such a rewind takes nothing back.
    fn target_of_rewind(&self, position: usize) -> Option<usize> {
        let message = self.at(position);
        let Body::Rewind(rewind) = &message.body else { return None };
        self.position_of(rewind.to)
            .filter(|target| *target < position && self.at(*target).agent == message.agent)
    }

    fn position_of(&self, id: MessageId) -> Option<usize> {
        let find =
            |messages: &[Message]| messages.binary_search_by_key(&id, |message| message.id).ok();
        find(self.inherited).or_else(|| find(self.own).map(|own| self.inherited.len() + own))
    }

    pub(crate) fn at(&self, position: usize) -> &'a Message {
        self.own_at(position).unwrap_or_else(|| &self.inherited[position])
    }

    fn own_at(&self, position: usize) -> Option<&'a Message> {
        position.checked_sub(self.inherited.len()).map(|own| &self.own[own])
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = &'a Message> {
        self.inherited.iter().chain(self.own)
    }
}

/// Whether a turn is due when `message` is the last that matters; `None` if it does not matter.
fn decides_turn(message: &Message) -> Option<bool> {
    match &message.body {
        Body::User | Body::Notification(_) => Some(true),
        // A call stands for its result as well: that may come late, behind an interrupt or an answer, when
        // it closes what a crash had left open, and is nothing to go on with then.
        Body::ToolCall(_) => Some(true),
        Body::ToolResult(_) => None,
        Body::Assistant(_) | Body::Interrupted(_) | Body::Rewind(_) | Body::Clear => Some(false),
        // A summary may be made in the middle of a turn, and is nothing to answer itself.
        Body::Summary(_) | Body::System | Body::Fork(_) | Body::Trim(_) | Body::Usage(_) => None,
        Body::Mark(_) | Body::Kill(_) | Body::Command(_) | Body::Approval(_) => None,
    }
}
