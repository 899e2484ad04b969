//! The part of a log that its view and its turn depend on. What a summary or a clear hides is not
//! needed in memory, so that the work for a turn does not grow with the log.

use crate::body::Body;
use crate::ids::MessageId;
use crate::log::{Log, decides_turn};
use crate::message::Message;

/// Where a log can be cut off at its start. The system prompts and the kept messages before that
/// are still needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reduction {
    /// How many messages come before the part that is needed as a whole.
    pub start: usize,
    /// Messages that the latest summary keeps. Those before `start` are needed as well.
    pub kept: Vec<MessageId>,
}

impl Log<'_> {
    /// Where this log can be cut off without changing what is derived from it, now or later; `None`
    /// if it cannot. The log may itself be the end of a longer one: if it does not have what is
    /// needed to know, the answer is `None`.
    ///
    /// Only a rewind to a message that was cut off needs the whole log again.
    pub fn reduction(&self) -> Option<Reduction> {
        let live = self.live();
        let last = live.iter().rposition(|position| {
            matches!(self.at(*position).body, Body::Summary(_) | Body::Clear)
        })?;
        let boundary = self.at(live[last]);
        let (mut up_to, mut kept) = (boundary.id, Vec::new());
        if let Body::Summary(summary) = &boundary.body {
            up_to = summary.up_to;
            kept = summary.kept.iter().copied().filter(|id| *id <= up_to).collect();
        }
        let after = live.partition_point(|position| self.at(*position).id <= up_to);
        let own = live.iter().rev().take_while(|position| self.own_at(**position).is_some());
        let decisive = own.copied().find(|position| decides_turn(self.at(*position)).is_some())?;
        let first_visible = live.get(after).copied().unwrap_or(usize::MAX);
        let start = decisive.min(first_visible);
        // A rewind to what is not here may have hidden the boundary, or what seems to be visible.
        let leads_out = |position: &usize| {
            let body = &self.at(*position).body;
            matches!(body, Body::Rewind(rewind) if self.position_of(rewind.to).is_none())
        };
        let relevant = live.iter().filter(|position| **position > start.min(live[last]));
        let is_known = !relevant.into_iter().any(leads_out);
        // Without a message that is replaced, it is not known whether there are others.
        (after > 0 && is_known).then_some(Reduction { start, kept })
    }

    /// The messages that are left of this log.
    pub fn reduced(&self, reduction: &Reduction) -> Vec<Message> {
        let is_needed = |(position, message): &(usize, &Message)| {
            *position >= reduction.start
                || message.body == Body::System
                || reduction.kept.contains(&message.id)
        };
        let needed = self.messages().enumerate().filter(is_needed);
        needed.map(|(_, message)| message.clone()).collect()
    }
}
