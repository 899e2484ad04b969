//! What a model may see of a log.

use crate::agent_id::AgentId;
use crate::body::{Assistant, Body, Summary, ToolCall};
use crate::extras::Extras;
use crate::identity::Identity;
use crate::ids::{MessageId, ResponseId};
use crate::log::Log;
use crate::message::Message;
use crate::pairs::{Pairs, closing_output};

/// An item that a model sees, independent of the provider.
///
/// The text and the calls of a response are adjacent (with the same `response`), directly followed
/// by one result for each of the calls, in the order of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen<'a> {
    /// The system prompt.
    System(&'a str),
    /// The line that identifies an agent, before its first message. Sent in the role `user`.
    Identity(Identity<'a>),
    /// A message of the user, or the task of a fork.
    User(&'a str),
    /// The notification of new mail. Sent in the role `user`.
    Notification(&'a str),
    /// A summary that replaces an earlier part. Sent in the role `user`.
    Summary(&'a str),
    /// What the database knew when the summary was written. Sent in the role `user`.
    Obligations(&'a str),
    /// The text of a response. It may be empty, for example if it only carries the extras.
    Assistant {
        /// The text.
        text: &'a str,
        /// The response it came from.
        response: &'a ResponseId,
        /// What the provider wants back.
        extras: Option<&'a Extras>,
    },
    /// A call.
    ToolCall(&'a ToolCall),
    /// The result of a call.
    ToolResult {
        /// The call. Another call may have the same ID; their positions differ.
        call: &'a ToolCall,
        /// The result JSON, or its one line if it was trimmed.
        output: &'a str,
        /// Whether the call worked.
        success: bool,
    },
}

impl<'a> Log<'a> {
    /// What a model may see of the log, in the order of the request.
    ///
    /// - `clear` hides everything before it except the system prompt.
    /// - `rewind` restores the view right after its target message.
    /// - `summary` replaces everything up to and including its `up_to`, except the system prompt
    ///   and the user's messages that it keeps, which come before it.
    /// - `trim` reduces earlier tool outputs to one line each.
    ///
    /// For every log, wherever a crash cut it off: each call has exactly one result, directly after
    /// the calls of its response and in their order (a call without one gets the closing result of
    /// [`open_calls`](Log::open_calls)), and there is no result without its call. Appending
    /// anything but the four kinds above keeps the previous view as a prefix, so that prompt caches
    /// stay valid; only a response whose calls are not all in the log yet still grows in place.
    pub fn view(&self) -> Vec<Seen<'a>> {
        let live = self.live();
        let visible = Visible::of(self, &live);
        let results = Results {
            log: *self,
            pairs: Pairs::of(self.messages()),
            is_live: self.is_live(&live),
            trimmed_up_to: visible.trimmed_up_to,
        };
        let mut writer = Writer::new(results);
        visible.systems.iter().for_each(|system| writer.say(Seen::System(&system.content)));
        let rest = visible.shown();
        if let Some((message, summary)) = visible.summary {
            let kept = visible.kept(self, &writer.results.is_live);
            for (index, message) in kept.iter().enumerate() {
                writer.introduce(&message.agent);
                let cut = summary.cut.filter(|_| index + 1 == kept.len());
                writer.say(Seen::User(start_of(&message.content, cut)));
            }
            // It belongs to the agent of the messages that follow it: in a fork, these may be the
            // end of the parent's conversation.
            let first = rest.first().map(|position| self.at(*position));
            let speaker = first.filter(|first| first.id < message.id).unwrap_or(message);
            writer.introduce(&speaker.agent);
            writer.say(Seen::Summary(&message.content));
            if !summary.obligations.is_empty() {
                writer.say(Seen::Obligations(&summary.obligations));
            }
        }
        rest.iter().for_each(|position| writer.add(*position, self.at(*position)));
        writer.finish()
    }
}

/// The live messages that remain visible after clears and summaries.
#[derive(Default)]
pub(crate) struct Visible<'a> {
    /// System prompts from before the last clear or the end of the summary.
    systems: Vec<&'a Message>,
    /// The summary that replaces `items[..first]`.
    pub(crate) summary: Option<(&'a Message, &'a Summary)>,
    /// The positions of all items except results, which come with their calls.
    items: Vec<usize>,
    /// The first visible item. Moving it instead of removing items keeps many summaries linear.
    first: usize,
    trimmed_up_to: Option<MessageId>,
}

impl<'a> Visible<'a> {
    pub(crate) fn of(log: &Log<'a>, live: &[usize]) -> Visible<'a> {
        let mut visible = Visible::default();
        for position in live {
            let message = log.at(*position);
            match &message.body {
                Body::System | Body::User | Body::Notification(_) => visible.items.push(*position),
                Body::Assistant(_) | Body::ToolCall(_) => visible.items.push(*position),
                Body::Summary(summary) => {
                    let end =
                        visible.items.partition_point(|item| log.at(*item).id <= summary.up_to);
                    visible.hide_until(log, end);
                    visible.summary = Some((message, summary));
                }
                Body::Clear => {
                    visible.hide_until(log, visible.items.len());
                    visible.summary = None;
                }
                Body::Trim(trim) => {
                    visible.trimmed_up_to = visible.trimmed_up_to.max(Some(trim.up_to));
                }
                Body::ToolResult(_) | Body::Fork(_) | Body::Usage(_) | Body::Mark(_) => {}
                Body::Rewind(_) | Body::Kill(_) | Body::Interrupted(_) | Body::Command(_) => {}
                Body::Approval(_) => {}
            }
        }
        visible
    }

    /// The positions of the visible items after the summary, if there is one.
    pub(crate) fn shown(&self) -> &[usize] {
        &self.items[self.first..]
    }

    /// The user's messages that the summary keeps.
    pub(crate) fn kept(&self, log: &Log<'a>, is_live: &[bool]) -> Vec<&'a Message> {
        let Some((_, summary)) = self.summary else { return Vec::new() };
        let replaced = summary.kept.iter().filter(|id| **id <= summary.up_to);
        let positions = replaced.filter_map(|id| log.position_of(*id));
        let live = positions.filter(|position| is_live[*position]);
        live.map(|position| log.at(position)).filter(|kept| kept.body == Body::User).collect()
    }

    /// Whether the output in this message is reduced to one line.
    pub(crate) fn is_trimmed(&self, result: MessageId) -> bool {
        self.trimmed_up_to.is_some_and(|up_to| result <= up_to)
    }

    /// Hides all items before `end`, unless they are hidden already.
    fn hide_until(&mut self, log: &Log<'a>, end: usize) {
        let end = end.max(self.first);
        let hidden = self.items[self.first..end].iter().map(|position| log.at(*position));
        self.systems.extend(hidden.filter(|message| message.body == Body::System));
        self.first = end;
    }
}

/// The first `bytes` of a text, or all of it.
fn start_of(text: &str, bytes: Option<u64>) -> &str {
    let limit = bytes.map_or(text.len(), |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    &text[..text.floor_char_boundary(limit)]
}

/// Finds the result of a call as a model sees it.
struct Results<'a> {
    log: Log<'a>,
    pairs: Pairs,
    is_live: Vec<bool>,
    trimmed_up_to: Option<MessageId>,
}

impl<'a> Results<'a> {
    fn of(&self, position: usize, call: &'a ToolCall) -> Seen<'a> {
        let result = self.pairs.result_of(position).filter(|result| self.is_live[*result]);
        if let Some(message) = result.map(|result| self.log.at(result))
            && let Body::ToolResult(result) = &message.body
        {
            let trimmed = self.trimmed_up_to.is_some_and(|up_to| message.id <= up_to);
            let output = if trimmed { &message.content } else { &result.output };
            return Seen::ToolResult { call, output, success: result.success };
        }
        Seen::ToolResult { call, output: closing_output(call), success: false }
    }
}

/// Groups the messages of a response, and inserts identities.
struct Writer<'a> {
    results: Results<'a>,
    seen: Vec<Seen<'a>>,
    /// The current response.
    response: Option<&'a ResponseId>,
    /// The results of its calls so far, to be added after its last call.
    waiting: Vec<Seen<'a>>,
    speaker: Option<&'a AgentId>,
}

impl<'a> Writer<'a> {
    fn new(results: Results<'a>) -> Writer<'a> {
        Writer { results, seen: Vec::new(), response: None, waiting: Vec::new(), speaker: None }
    }

    /// Adds a message that is not a result.
    fn add(&mut self, position: usize, message: &'a Message) {
        let text = message.content.as_str();
        match &message.body {
            Body::System => self.say(Seen::System(text)),
            Body::User => {
                self.introduce(&message.agent);
                self.say(Seen::User(text));
            }
            Body::Notification(_) => {
                self.introduce(&message.agent);
                self.say(Seen::Notification(text));
            }
            Body::Assistant(Assistant { response, extras, .. }) => {
                self.introduce(&message.agent);
                // Text comes before the calls of its response, so this starts another response.
                if !self.waiting.is_empty() {
                    self.finish_response();
                }
                let extras = extras.as_ref();
                self.answer(response, Seen::Assistant { text, response, extras });
            }
            Body::ToolCall(call) => {
                self.introduce(&message.agent);
                self.answer(&call.response, Seen::ToolCall(call));
                self.waiting.push(self.results.of(position, call));
            }
            Body::ToolResult(_) | Body::Summary(_) | Body::Fork(_) | Body::Usage(_) => {}
            Body::Mark(_) | Body::Rewind(_) | Body::Clear | Body::Trim(_) | Body::Kill(_) => {}
            Body::Interrupted(_) | Body::Command(_) | Body::Approval(_) => {}
        }
    }

    /// Adds the identity line if the agent differs from the previous one. A full fork sees its
    /// parent's line as well, so that its request starts with the same bytes as its parent's.
    fn introduce(&mut self, agent: &'a AgentId) {
        if self.speaker == Some(agent) {
            return;
        }
        self.finish_response();
        self.seen.push(Seen::Identity(match self.speaker {
            Some(_) => Identity::inheriting(agent),
            None => Identity::of(agent),
        }));
        self.speaker = Some(agent);
    }

    /// Adds an item that is not part of a response.
    fn say(&mut self, seen: Seen<'a>) {
        self.finish_response();
        self.seen.push(seen);
    }

    /// Adds a part of a response.
    fn answer(&mut self, response: &'a ResponseId, part: Seen<'a>) {
        if self.response != Some(response) {
            self.finish_response();
            self.response = Some(response);
        }
        self.seen.push(part);
    }

    fn finish_response(&mut self) {
        self.seen.append(&mut self.waiting);
        self.response = None;
    }

    fn finish(mut self) -> Vec<Seen<'a>> {
        self.finish_response();
        self.seen
    }
}
