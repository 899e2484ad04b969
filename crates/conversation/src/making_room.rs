//! What can be left out of a context that fills up: outputs of tools, and everything that a summary
//! replaces.

use crate::body::Body;
use crate::ids::MessageId;
use crate::log::Log;
use crate::message::Message;
use crate::pairs::Pairs;
use crate::size::{bytes_of, bytes_with_markup, tokens_in};
use crate::view::Visible;

/// A summary keeps at most this many messages of the user. That is a day's work; with more, each
/// would be a few words that the summary has as well.
const KEPT_LIMIT: usize = 200;

/// Outputs to shorten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrimPlan {
    /// The last message whose output is shortened.
    pub up_to: MessageId,
    /// The estimated tokens that this saves.
    pub saved: u64,
}

/// How many tokens the parts may have that stay beside a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptRoom {
    /// The user's own messages.
    pub said: u64,
    /// The end of the current turn.
    pub tail: u64,
}

/// What a summary replaces, and what stays beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryPlan {
    /// The last message that it replaces.
    pub up_to: MessageId,
    /// The user's messages that it keeps, in order.
    pub kept: Vec<MessageId>,
    /// How many bytes of the last of them are sent, if not all of it.
    pub cut: Option<u64>,
    /// The estimated tokens of what stays.
    pub tokens: u64,
}

impl Log<'_> {
    /// The outputs to shorten so that only the latest stay whole, up to `keep` tokens; `None` if
    /// that would save nothing.
    pub fn plan_trim(&self, keep: u64) -> Option<TrimPlan> {
        let live = self.live();
        let (visible, is_live) = (Visible::of(self, &live), self.is_live(&live));
        let pairs = Pairs::of(self.messages());
        let shown = visible.shown().iter().filter_map(|call| pairs.result_of(*call));
        let mut results: Vec<usize> = shown.filter(|result| is_live[*result]).collect();
        results.sort_unstable();
        let (mut kept, mut saved, mut up_to) = (0, 0, None);
        for message in results.into_iter().rev().map(|position| self.at(position)) {
            let Body::ToolResult(result) = &message.body else { continue };
            if visible.is_trimmed(message.id) {
                break;
            }
            let size = tokens_in(result.output.len());
            if up_to.is_none() && kept + size <= keep {
                kept += size;
                continue;
            }
            up_to = up_to.or(Some(message.id));
            saved += size.saturating_sub(tokens_in(message.content.len()));
        }
        up_to.filter(|_| saved > 0).map(|up_to| TrimPlan { up_to, saved })
    }

    /// What a summary can replace; `None` if there is nothing. Everything from `end` on stays, or the
    /// end of the current turn if it fits.
    pub fn plan_summary(&self, room: KeptRoom, end: Option<MessageId>) -> Option<SummaryPlan> {
        let live = self.live();
        let visible = Visible::of(self, &live);
        let is_live = self.is_live(&live);
        let units = self.units(visible.shown());
        let (tail, tail_tokens) = match end {
            Some(end) => self.tail_from(&units, end)?,
            None => self.tail(&units, room.tail),
        };
        let start = units.get(tail).map_or(usize::MAX, |unit| unit.positions[0]);
        if tail == 0 {
            return None;
        }
        let replaced = live.iter().rev().find(|position| **position < start)?;
        let earlier = visible.kept(self, &is_live).into_iter();
        let said = units[..tail].iter().flat_map(|unit| unit.positions);
        let said = said.map(|position| self.at(*position)).filter(|said| said.body == Body::User);
        let said: Vec<&Message> = earlier.chain(said).collect();
        let is_last_in_tail = units[tail..].iter().any(|unit| self.is_said_by_user(unit));
        let mut plan = SummaryPlan {
            up_to: self.at(*replaced).id,
            kept: Vec::new(),
            cut: None,
            tokens: tail_tokens,
        };
        plan.keep(&said, room.said, is_last_in_tail);
        Some(plan)
    }

    /// Groups the positions of a view: a response with its calls, or another message.
    fn units<'p>(&self, positions: &'p [usize]) -> Vec<Unit<'p>> {
        let of_one = positions.chunk_by(|one, next| {
            let response = self.at(*one).body.response();
            response.is_some() && response == self.at(*next).body.response()
        });
        let units = of_one.map(|positions| Unit { positions });
        units.filter(|unit| self.at(unit.positions[0]).body != Body::System).collect()
    }

    /// The end of the current turn that fits, as an index into the units, and its tokens.
    fn tail(&self, units: &[Unit<'_>], room: u64) -> (usize, u64) {
        let pairs = Pairs::of(self.messages());
        let (mut start, mut tokens) = (units.len(), 0);
        for (index, unit) in units.iter().enumerate().rev() {
            let size = self.tokens_of_unit(unit, &pairs);
            if self.is_before_turn(unit, units.get(index + 1)) || tokens + size > room {
                break;
            }
            (start, tokens) = (index, tokens + size);
        }
        (start, tokens)
    }

    /// Everything from the visible message `end` on.
    fn tail_from(&self, units: &[Unit<'_>], end: MessageId) -> Option<(usize, u64)> {
        let start = units.iter().position(|unit| self.at(unit.positions[0]).id == end)?;
        let pairs = Pairs::of(self.messages());
        let tokens = units[start..].iter().map(|unit| self.tokens_of_unit(unit, &pairs)).sum();
        Some((start, tokens))
    }

    /// Whether a turn ended with this unit, or between it and the next.
    fn is_before_turn(&self, unit: &Unit<'_>, next: Option<&Unit<'_>>) -> bool {
        let last = unit.positions[unit.positions.len() - 1];
        let is_answer = matches!(self.at(last).body, Body::Assistant(_));
        let end = next.map_or_else(|| self.messages().count(), |next| next.positions[0]);
        let ends = |position| {
            let message = self.at(position);
            message.ends_turn() || matches!(message.body, Body::Interrupted(_))
        };
        is_answer || (last..end).any(ends)
    }

    fn tokens_of_unit(&self, unit: &Unit<'_>, pairs: &Pairs) -> u64 {
        let size = |position: &usize| {
            let message = self.at(*position);
            let extras = message.body.extras().map_or(0, |extras| extras.as_json().len());
            let Body::ToolCall(call) = &message.body else {
                return bytes_with_markup(&message.content) + extras;
            };
            let ids = 2 * call.tool_call_id.as_str().len();
            let result = pairs.result_of(*position).map(|result| &self.at(result).body);
            let output = match result {
                Some(Body::ToolResult(result)) => result.output.as_str(),
                Some(_) | None => "",
            };
            bytes_with_markup(&call.arguments) + bytes_with_markup(output) + ids + extras
        };
        tokens_in(unit.positions.iter().map(size).sum())
    }

    fn is_said_by_user(&self, unit: &Unit<'_>) -> bool {
        self.at(unit.positions[0]).body == Body::User
    }
}

impl SummaryPlan {
    /// Chooses the messages of the user to keep, the latest first. The last one is always kept, cut
    /// if necessary, unless a later one stays anyway.
    fn keep(&mut self, said: &[&Message], room: u64, is_last_in_tail: bool) {
        let mut left = room;
        for message in said.iter().rev().take(KEPT_LIMIT) {
            let size = tokens_in(bytes_with_markup(&message.content));
            if size > left {
                break;
            }
            left -= size;
            self.kept.push(message.id);
        }
        if let (true, false, Some(last)) = (self.kept.is_empty(), is_last_in_tail, said.last()) {
            let markup = bytes_with_markup("");
            let cut = last.content.floor_char_boundary(bytes_of(room).saturating_sub(markup));
            self.kept.push(last.id);
            self.cut = Some(cut as u64);
            left = 0;
        }
        self.kept.reverse();
        self.tokens += room - left;
    }
}

/// A response, or a message that is not part of one, by the positions of its messages.
struct Unit<'p> {
    positions: &'p [usize],
}
