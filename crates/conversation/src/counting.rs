//! How full the context of an agent is.

use crate::body::{Body, Usage};
use crate::ids::ResponseId;
use crate::log::Log;
use crate::size::{bytes_with_markup, tokens_in, tokens_of};

impl Log<'_> {
    /// The tokens that the next request has in the model's context: those that the provider
    /// reported for the last response, and an estimate of what was added since. Without a report
    /// since the last change of the view, everything is estimated; `tools` is the estimate for the
    /// declared tools.
    pub fn used_tokens(&self, tools: u64) -> u64 {
        self.reported_tokens().unwrap_or_else(|| tokens_of(&self.view()).saturating_add(tools))
    }

    /// The tokens that the provider reported for the last response, if the view has not been
    /// changed since.
    pub fn last_reported_tokens(&self) -> Option<u64> {
        let mut live = self.live().into_iter().rev().map(|position| &self.at(position).body);
        let last = live.find(|body| {
            matches!(body, Body::Usage(_) | Body::Summary(_) | Body::Trim(_) | Body::Clear)
        })?;
        let Body::Usage(usage) = last else { return None };
        let reported = usage.input_tokens.saturating_add(usage.output_tokens);
        (usage.input_tokens > 0).then_some(reported)
    }

    /// How many responses came since the last summary; `None` if there is none.
    pub fn responses_since_summary(&self) -> Option<usize> {
        let live = self.live();
        let summary = live.iter().rposition(|at| matches!(self.at(*at).body, Body::Summary(_)))?;
        let responses = live[summary..].iter().filter_map(|at| self.at(*at).body.response());
        let mut responses: Vec<&ResponseId> = responses.collect();
        responses.dedup();
        Some(responses.len())
    }

    fn reported_tokens(&self) -> Option<u64> {
        let mut since = Since::default();
        for position in self.live().into_iter().rev() {
            let message = self.at(position);
            match &message.body {
                Body::Usage(usage) => return since.after(usage),
                // What was reported before is no longer what is sent.
                Body::Summary(_) | Body::Trim(_) | Body::Clear => return None,
                Body::System | Body::User | Body::Notification(_) => since.add(&message.content),
                Body::ToolResult(result) => since.add(&result.output),
                Body::Assistant(answer) => since.add_part(&answer.response, &message.content),
                Body::ToolCall(call) => since.add_part(&call.response, &call.arguments),
                Body::Fork(_) | Body::Mark(_) | Body::Rewind(_) | Body::Kill(_) => {}
                Body::Interrupted(_) | Body::Command(_) | Body::Approval(_) => {}
            }
        }
        None
    }
}

/// What follows a report, read backwards.
#[derive(Default)]
struct Since<'a> {
    bytes: usize,
    /// The response that is being read, and its bytes.
    response: Option<(&'a ResponseId, usize)>,
}

impl<'a> Since<'a> {
    fn add(&mut self, text: &str) {
        self.bytes += bytes_with_markup(text);
    }

    fn add_part(&mut self, of: &'a ResponseId, text: &str) {
        match &mut self.response {
            Some((response, bytes)) if *response == of => *bytes += bytes_with_markup(text),
            Some(_) | None => {
                self.bytes += self.response.map_or(0, |(_, bytes)| bytes);
                self.response = Some((of, bytes_with_markup(text)));
            }
        }
    }

    /// The whole, if the report has a number. A response is part of its own report.
    fn after(self, usage: &Usage) -> Option<u64> {
        let other = self.response.filter(|(response, _)| **response != usage.response);
        let bytes = self.bytes + other.map_or(0, |(_, bytes)| bytes);
        let reported = usage.input_tokens.saturating_add(usage.output_tokens);
        (usage.input_tokens > 0).then(|| reported.saturating_add(tokens_in(bytes)))
    }
}
