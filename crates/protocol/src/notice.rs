//! The texts of notices about a turn.

use crate::block::NoticeTone;
use crate::event::{StopReason, TurnEnd};

/// Shown when agents have reached the limit on waking each other.
pub const MAIL_HELD: &str =
    "Mail is held: agents were woken mail.max_wakes times. Your next message releases it";

/// A notice on how a turn ended, if one is needed. That the user interrupted it is in the log.
pub(crate) fn turn_end_notice(turn: &TurnEnd) -> Option<(NoticeTone, String)> {
    let error = turn.error.as_deref();
    let (tone, text) = match turn.stop {
        StopReason::Stop if turn.text.trim().is_empty() => {
            (NoticeTone::Warning, "The model gave no answer")
        }
        StopReason::Stop | StopReason::Call => return None,
        StopReason::Length => {
            (NoticeTone::Warning, "The answer was cut at the model's token limit")
        }
        StopReason::ToolLimit => {
            let limit = "Stopped at the limit of tool calls (max_tool_turns)";
            (NoticeTone::Warning, error.unwrap_or(limit))
        }
        StopReason::Interrupted => {
            return Some((NoticeTone::Fault, format!("interrupted: {}", error?)));
        }
        StopReason::Error => (NoticeTone::Fault, error.unwrap_or("the turn failed")),
    };
    Some((tone, text.to_owned()))
}

/// Says that a model refused the effort.
pub fn effort_refused(label: &str) -> String {
    format!("{label} refused the effort, so it is used without one (/effort changes it)")
}

/// Says that a message was rejected because too many are queued.
pub fn input_rejected(text: &str) -> String {
    let shown: String = text.chars().take(64).collect();
    format!("Too many messages are waiting, so this one was not sent: {shown}")
}
