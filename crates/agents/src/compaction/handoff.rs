//! The request for a summary: a handoff to a reader who has only that.

use ikigai_conversation::{ResponseId, Seen};

/// Replaces an output that does not fit.
const LEFT_OUT: &str = "(left out)";

/// What the model is asked for at the end of the conversation.
pub(super) fn instruction(tokens: u64, focus: Option<&str>) -> String {
    // A word is a little more than a token.
    let words = tokens / 4 * 3;
    let wish = focus.map(|focus| format!("\nThe user asks for this in particular: {focus}\n"));
    format!("{INSTRUCTION}{}\nAt most {words} words. Call no tools.", wish.unwrap_or_default())
}

const INSTRUCTION: &str = "\
[The context is nearly full. Your next message replaces the conversation above, except for the user's own messages \
and the last steps. Write a handoff with which the work can be continued without it:]
1. What the user wants, and how they want it done.
2. Decisions, and why.
3. What was done, and how it was verified.
4. What failed, and what was learned from it.
5. The next steps.
6. Exact names, paths, commands, numbers and error messages that are still needed.
Be concrete and brief. Write the handoff only.
";

/// Shortens a view to about this many bytes: the oldest outputs are left out first, then the oldest
/// messages. System prompts and identities stay.
pub(super) fn shorten<'a>(view: &[Seen<'a>], limit: usize) -> Vec<Seen<'a>> {
    let mut view = view.to_vec();
    let mut bytes: usize = view.iter().map(Seen::bytes).sum();
    for seen in &mut view {
        if bytes <= limit {
            return view;
        }
        let before = seen.bytes();
        if let Seen::ToolResult { output, .. } = seen
            && output.len() > LEFT_OUT.len()
        {
            *output = LEFT_OUT;
            bytes -= before - seen.bytes();
        }
    }
    let mut dropped = vec![false; view.len()];
    for index in 0..view.len() {
        // Only whole responses are dropped.
        if bytes <= limit && starts_unit(&view, index) {
            break;
        }
        let is_last = index + 1 == view.len();
        if let (true, Seen::User(text)) = (is_last, &mut view[index]) {
            let length = text.len().saturating_sub(bytes.saturating_sub(limit));
            *text = &text[..text.floor_char_boundary(length)];
            break;
        }
        if !matches!(view[index], Seen::System(_) | Seen::Identity(_)) {
            dropped[index] = true;
            bytes -= view[index].bytes();
        }
    }
    let mut dropped = dropped.into_iter();
    view.retain(|_| !dropped.next().unwrap_or(false));
    view
}

/// Whether a view can be cut before this item.
fn starts_unit(view: &[Seen<'_>], index: usize) -> bool {
    match response_of(&view[index]) {
        Some(response) => index == 0 || response_of(&view[index - 1]) != Some(response),
        None => !matches!(view[index], Seen::ToolResult { .. }),
    }
}

fn response_of<'a>(seen: &Seen<'a>) -> Option<&'a ResponseId> {
    match seen {
        Seen::Assistant { response, .. } => Some(response),
        Seen::ToolCall(call) => Some(&call.response),
        Seen::System(_) | Seen::Identity(_) | Seen::User(_) | Seen::Notification(_) => None,
        Seen::Summary(_) | Seen::Obligations(_) | Seen::ToolResult { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::{AgentId, Log, NewMessage, Time, ToolCallId};
    use ikigai_testkit::fault_of_view;

    use super::*;

    fn log() -> Vec<ikigai_conversation::Message> {
        let mut news = vec![NewMessage::system("prompt")];
        for number in 0..6 {
            let response = || ResponseId::new(format!("r{number}"));
            news.push(NewMessage::user(format!("request {number}")));
            for call in 0..2 {
                let id = ToolCallId::new(format!("c{number}{call}"));
                let call = NewMessage::tool_call(id, "grep", "{}", response());
                let ikigai_conversation::Body::ToolCall(of) = &call.body else { panic!() };
                let result = NewMessage::tool_result(of, "x".repeat(400));
                news.extend([call, result]);
            }
            news.push(NewMessage::assistant("done", ResponseId::new(format!("a{number}"))));
        }
        let ids = (1..).filter_map(ikigai_conversation::MessageId::new);
        let number = |(new, id): (NewMessage, _)| {
            new.into_message(id, AgentId::top_level(0), Time::from_millis(0))
        };
        news.into_iter().zip(ids).map(number).collect()
    }

    #[test]
    fn outputs_are_left_out_before_messages_and_the_oldest_first() {
        let log = log();
        let view = Log::new(&log).view();
        let all: usize = view.iter().map(Seen::bytes).sum();
        assert_eq!(shorten(&view, all), view);
        let outputs = |view: &[Seen<'_>]| -> Vec<usize> {
            let output = |seen: &Seen<'_>| match seen {
                Seen::ToolResult { output, .. } => Some(output.len()),
                _ => None,
            };
            view.iter().filter_map(output).collect()
        };
        let shortened = shorten(&view, all - 1_000);
        assert_eq!(shortened.len(), view.len());
        assert_eq!(outputs(&shortened)[..4], [10, 10, 10, 400]);
        for limit in (0..all).step_by(37) {
            let shortened = shorten(&view, limit);
            assert_eq!(fault_of_view(&shortened), None, "{limit}");
            assert!(matches!(shortened[..2], [Seen::System(_), Seen::Identity(_)]));
            let bytes: usize = shortened.iter().map(Seen::bytes).sum();
            assert!(bytes <= limit.max(120), "{bytes} of {limit}");
        }
    }

    #[test]
    fn a_single_message_that_is_too_long_is_cut() {
        let text = "é".repeat(5_000);
        let view = [Seen::System("p"), Seen::User(&text)];
        let shortened = shorten(&view, 1_001);
        assert!(matches!(shortened[1], Seen::User(start) if (900..1_001).contains(&start.len())));
    }

    #[test]
    fn a_focus_is_part_of_the_instruction() {
        assert!(instruction(400, Some("the parser")).contains("in particular: the parser\n"));
        assert!(instruction(400, None).ends_with("At most 300 words. Call no tools."));
    }
}
