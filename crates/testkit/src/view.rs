//! Checks whether a model can be sent a view.

use std::collections::VecDeque;

use ikigai_conversation::{Seen, ToolCall};

/// The first fault of a view, if there is one. Each call must have exactly one result, right after
/// the calls of its response and in their order, and each result must have a call.
pub fn fault_of_view(view: &[Seen<'_>]) -> Option<String> {
    let mut open: VecDeque<&ToolCall> = VecDeque::new();
    let mut closing = false;
    for seen in view {
        match seen {
            Seen::ToolCall(call) => {
                let other = open.front().is_some_and(|first| first.response != call.response);
                if closing || other {
                    return Some(format!("call {} comes before results", call.tool_call_id));
                }
                open.push_back(call);
            }
            Seen::ToolResult { call, .. } => match open.pop_front() {
                Some(first) if std::ptr::eq(first, *call) => closing = !open.is_empty(),
                _ => return Some(format!("result of {} is out of place", call.tool_call_id)),
            },
            Seen::System(_)
            | Seen::Identity(_)
            | Seen::User(_)
            | Seen::Notification(_)
            | Seen::Summary(_)
            | Seen::Obligations(_)
            | Seen::Assistant { .. } => {
                if let Some(call) = open.front() {
                    return Some(format!("call {} has no result behind it", call.tool_call_id));
                }
            }
        }
    }
    open.front().map(|call| format!("call {} has no result", call.tool_call_id))
}
