//! What a model may see of a log.

use crate::agent_id::AgentId;
use crate::body::{Assistant, Body, ToolCall};
use crate::extras::Extras;
use crate::identity::Identity;
use crate::ids::{MessageId, ResponseId};
use crate::log::Log;
use crate::message::Message;
use crate::pairs::{Pairs, closing_output};

/// One thing that a model sees, in a form that every provider can be served from.
///
/// The text and the calls of one response stand together (same `response`), and right behind them one
/// result for each of the calls, in the order of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen<'a> {
    /// The prompt.
    System(&'a str),
    /// Who the model is, before the first message of an agent; for a provider, something that a user says.
    Identity(Identity<'a>),
    /// What a person typed, or a fork's task.
    User(&'a str),
    /// The news that there is mail; for a provider, something that a user says.
    Notification(&'a str),
    /// What stands for an earlier part; for a provider, something that a user says.
    Summary(&'a str),
    /// The text of a response. It may be empty, if only to carry the extras.
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
    /// What came out of a call.
    ToolResult {
        /// The call. Its id may be that of another call too; the place tells them apart.
        call: &'a ToolCall,
        /// The result JSON, or its one line when it was trimmed.
        output: &'a str,
        /// Whether the call worked.
        success: bool,
    },
}

impl<'a> Log<'a> {
    /// What a model may see of the log, in the order in which it is to be sent.
    ///
    /// - `clear` leaves only the system prompt of all that came before it.
    /// - `rewind` makes the view what it was right after the message that it leads to.
    /// - `summary` stands for everything up to and including its `up_to`, except the system prompt.
    /// - `trim` leaves of earlier tool outputs only their one line.
    ///
    /// For every log, wherever a crash may have cut it: each call has exactly one result, right behind the
    /// calls of its response and in their order (a call that never got one has the closing one of
    /// [`open_calls`](Log::open_calls)), and no result is without its call. Appending anything but the
    /// four kinds above leaves what was seen before as it was, so that prompt caches hold; only a response
    /// whose calls are not all in the log yet still grows where it stands.
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
        let rest = &visible.items[visible.first..];
        if let Some(summary) = visible.summary {
            // It speaks for what stood before the rest: that may be the parent's, of which a fork that made
            // the summary has kept the end.
            let first = rest.first().map(|position| self.at(*position));
            let speaker = first.filter(|first| first.id < summary.id).unwrap_or(summary);
            writer.introduce(&speaker.agent);
            writer.say(Seen::Summary(&summary.content));
        }
        rest.iter().for_each(|position| writer.add(*position, self.at(*position)));
        writer.finish()
    }
}

/// What is left of the live messages after clears and summaries.
#[derive(Default)]
struct Visible<'a> {
    /// System prompts from before the last clear or the end of the summary.
    systems: Vec<&'a Message>,
    /// What stands for `items[..first]`.
    summary: Option<&'a Message>,
    /// The positions of what a model sees by itself; results come with their calls.
    items: Vec<usize>,
    /// The first item that is visible. Moving it, instead of taking items out, keeps many summaries linear.
    first: usize,
    trimmed_up_to: Option<MessageId>,
}

impl<'a> Visible<'a> {
    fn of(log: &Log<'a>, live: &[usize]) -> Visible<'a> {
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
                    visible.summary = Some(message);
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

    /// Hides all items before `end`, which may lie behind what is hidden already.
    fn hide_until(&mut self, log: &Log<'a>, end: usize) {
        let end = end.max(self.first);
        let hidden = self.items[self.first..end].iter().map(|position| log.at(*position));
        self.systems.extend(hidden.filter(|message| message.body == Body::System));
        self.first = end;
    }
}

/// Finds what a model sees as the result of a call.
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

/// Puts the messages of a response together, and says who speaks.
struct Writer<'a> {
    results: Results<'a>,
    seen: Vec<Seen<'a>>,
    /// The response that is being put together.
    response: Option<&'a ResponseId>,
    /// The results of its calls so far; they wait until the calls are complete.
    waiting: Vec<Seen<'a>>,
    speaker: Option<&'a AgentId>,
}

impl<'a> Writer<'a> {
    fn new(results: Results<'a>) -> Writer<'a> {
        Writer { results, seen: Vec::new(), response: None, waiting: Vec::new(), speaker: None }
    }

    /// Adds a message that a model sees by itself.
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
            Body::Assistant(Assistant { response, extras }) => {
                self.introduce(&message.agent);
                // Text comes before the calls of its response; behind calls it can only be another one.
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

    /// Tells the model who it is when the agent is another than before. A full fork sees its parent's line
    /// too, so that its request begins with its parent's bytes.
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

    /// Adds what comes from no response.
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
