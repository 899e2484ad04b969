//! Pairing of calls and results.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use crate::body::{Body, ToolCall};
use crate::ids::{ResponseId, ToolCallId};
use crate::message::Message;
use crate::shown::ran_command;

/// The pairs of a log, by position.
///
/// IDs alone do not identify calls: servers repeat them across responses, and even within one. A
/// result belongs to the latest response with an open call of its ID and tool, and there to the
/// first such call.
pub(crate) struct Pairs {
    /// For the position of every call, the position of its result.
    results: Vec<Option<usize>>,
}

impl Pairs {
    pub(crate) fn of<'a>(messages: impl Iterator<Item = &'a Message>) -> Pairs {
        let mut results = Vec::with_capacity(messages.size_hint().0);
        let mut open = OpenCalls::default();
        for (position, message) in messages.enumerate() {
            results.push(None);
            if let Body::ToolCall(call) = &message.body {
                open.add(call, position);
            } else if let Body::ToolResult(result) = &message.body
                && let Some(call) = open.take(&result.tool_call_id, &result.name)
            {
                results[call] = Some(position);
            }
        }
        Pairs { results }
    }

    /// The position of the result of the call at `position`, if it has one.
    pub(crate) fn result_of(&self, position: usize) -> Option<usize> {
        self.results[position]
    }
}

/// The calls without a result so far, by ID and tool; grouped by response, the latest one last.
#[derive(Default)]
struct OpenCalls<'a>(HashMap<(&'a ToolCallId, &'a str), Vec<OfResponse<'a>>>);

struct OfResponse<'a> {
    response: &'a ResponseId,
    /// Never empty.
    positions: VecDeque<usize>,
}

impl<'a> OpenCalls<'a> {
    fn add(&mut self, call: &'a ToolCall, position: usize) {
        let same = self.0.entry((&call.tool_call_id, &call.name)).or_default();
        match same.last_mut() {
            Some(newest) if *newest.response == call.response => {
                newest.positions.push_back(position);
            }
            Some(_) | None => {
                same.push(OfResponse { response: &call.response, positions: [position].into() });
            }
        }
    }

    fn take(&mut self, id: &'a ToolCallId, name: &'a str) -> Option<usize> {
        let Entry::Occupied(mut same) = self.0.entry((id, name)) else { return None };
        let newest = same.get_mut().last_mut()?;
        let position = newest.positions.pop_front();
        if newest.positions.is_empty() {
            same.get_mut().pop();
        }
        // Only a few calls are open at once, so this keeps the map small and fast.
        if same.get().is_empty() {
            same.remove();
        }
        position
    }
}

/// The result of a call that has none: the program ended, or a rewind discarded its result.
pub(crate) fn closing_output(call: &ToolCall) -> &'static str {
    if ran_command(call) {
        r#"{"success":false,"error":"Interrupted: the program ended before the call did; the command may have had effects"}"#
    } else {
        r#"{"success":false,"error":"Interrupted: the program ended before the call did"}"#
    }
}
