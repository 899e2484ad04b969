//! Events as JSON, one per line.

use std::collections::BTreeMap;

use ikigai_conversation::{AgentId, Body, Message, SessionId, ToolCall};
use ikigai_lines::{database_unavailable, prefix_lines};
use ikigai_protocol::{
    Compaction, Event, EventKind, MAIL_HELD, NoticeTone, StopReason, TurnEnd, dollars,
    effort_refused, input_rejected, render_notice,
};
use serde_json::{Map, Value, json};

use super::printer::{Output, lost_command};
use crate::print::{self, Reader};

pub(super) struct JsonLines {
    /// The agent of the prompt.
    own: AgentId,
    /// The latest call of each agent, printed with its approval.
    calls: BTreeMap<AgentId, ToolCall>,
}

impl Output for JsonLines {
    fn session(&mut self, session: SessionId, model: &str) -> anyhow::Result<Reader> {
        line("session", &self.own, None, json!({"session": session, "model": model}))
    }

    fn event(&mut self, event: &Event) -> anyhow::Result<Reader> {
        let agent = &event.agent;
        match &event.kind {
            EventKind::Message(message) => self.logged(agent, message),
            EventKind::TextDelta(delta) => line("text", agent, None, json!({"delta": delta})),
            EventKind::ThinkingDelta(delta) => {
                line("thinking", agent, None, json!({"delta": delta}))
            }
            EventKind::EffortRefused(label) => {
                note(&render_notice(NoticeTone::Warning, &effort_refused(label)))
            }
            EventKind::Retry { attempt, reason, delay, .. } => {
                let delay = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
                let fields = json!({"attempt": attempt, "reason": reason, "delay_ms": delay});
                line("retry", agent, None, fields)
            }
            EventKind::Compaction(compaction) => {
                let Compaction { method, before, after, .. } = compaction;
                let fields = json!({"method": method.name(), "before": before, "after": after});
                line("compaction", agent, None, fields)
            }
            EventKind::ToolOutput { call, delta, skipped } => {
                let fields = json!({"id": call, "delta": delta, "skipped": skipped});
                line("tool_output", agent, None, fields)
            }
            EventKind::DatabaseUnavailable(reason) => note(&database_unavailable(reason)),
            EventKind::MailHeld => note(&render_notice(NoticeTone::Warning, MAIL_HELD)),
            EventKind::Warning(text) => note(&render_notice(NoticeTone::Warning, text)),
            EventKind::InputRejected(text) => {
                note(&render_notice(NoticeTone::Warning, &input_rejected(text)))
            }
            EventKind::AgentLost(reason) => note(&prefix_lines(agent, reason)),
            EventKind::TurnStarted(_) | EventKind::TurnEnded(_) => Ok(Reader::Listening),
            EventKind::CommandStarted { command, line: _ } => {
                line("command_started", agent, None, json!({"command": command}))
            }
            EventKind::CommandOutput { command, delta, skipped } => {
                let fields = json!({"command": command, "delta": delta, "skipped": skipped});
                line("command_output", agent, None, fields)
            }
            EventKind::CommandLost { command, line } => note(&lost_command(*command, line)),
            EventKind::CommandEnded { command, exit_code } => {
                let fields = json!({"command": command, "exit_code": exit_code});
                line("command_ended", agent, None, fields)
            }
            EventKind::ContextUsed { .. }
            | EventKind::ReadsStarted(_)
            | EventKind::CallProgress { .. } => Ok(Reader::Listening),
            // The decision is printed once it is in the log.
            EventKind::ApprovalRequested(_) => Ok(Reader::Listening),
        }
    }

    fn done(&mut self, agent: &AgentId, done: &TurnEnd) -> anyhow::Result<Reader> {
        let mut fields = json!({"stop": done.stop.name(), "text": done.text});
        if let Some(error) = &done.error {
            fields["error"] = Value::from(error.as_str());
            // Like every command, say on standard error why it failed.
            match (done.stop, *agent == self.own) {
                (StopReason::Error, true) => print::note(&format!("ikigai: {error}")),
                (StopReason::Error, false) => print::note(&prefix_lines(agent, error)),
                _ => {}
            }
        }
        line("done", agent, None, fields)
    }
}

/// Prints a line on standard error.
fn note(text: &str) -> anyhow::Result<Reader> {
    print::note(text);
    Ok(Reader::Listening)
}

impl JsonLines {
    pub(super) fn new(own: AgentId) -> JsonLines {
        JsonLines { own, calls: BTreeMap::new() }
    }

    fn logged(&mut self, agent: &AgentId, message: &Message) -> anyhow::Result<Reader> {
        let log = Some(message.id.value());
        match &message.body {
            Body::ToolCall(call) => {
                self.calls.insert(agent.clone(), call.clone());
                let fields = json!({"id": call.tool_call_id, "name": call.name, "arguments": call.arguments});
                line("tool_call", agent, log, fields)
            }
            Body::ToolResult(result) => {
                let output: Value = serde_json::from_str(&result.output).unwrap_or_default();
                let fields =
                    json!({"id": result.tool_call_id, "name": result.name, "result": output});
                line("tool_result", agent, log, fields)
            }
            Body::Notification(_) => {
                line("notification", agent, log, json!({"text": message.content}))
            }
            Body::Usage(usage) => {
                let fields = json!({
                    "input_tokens": usage.input_tokens,
                    "output_tokens": usage.output_tokens,
                    "cached_tokens": usage.cache_read_tokens.unwrap_or(0),
                    "cost_usd": usage.cost.map(dollars),
                });
                line("usage", agent, log, fields)
            }
            Body::System | Body::User | Body::Assistant(_) | Body::Summary(_) | Body::Fork(_) => {
                Ok(Reader::Listening)
            }
            Body::Mark(_) | Body::Rewind(_) | Body::Clear | Body::Trim(_) | Body::Kill(_) => {
                Ok(Reader::Listening)
            }
            Body::Approval(approval) => {
                let call = self.calls.get(agent);
                let fields = json!({
                    "id": approval.tool_call_id,
                    "name": call.map(|call| &call.name),
                    "arguments": call.map(|call| &call.arguments),
                    "decision": approval.decision,
                });
                line("approval", agent, log, fields)
            }
            Body::Interrupted(_) | Body::Command(_) => Ok(Reader::Listening),
        }
    }
}

/// Prints an event as one line.
fn line(kind: &str, agent: &AgentId, log: Option<i64>, fields: Value) -> anyhow::Result<Reader> {
    let mut event = Map::new();
    event.insert("type".to_owned(), kind.into());
    event.insert("agent".to_owned(), agent.to_string().into());
    if let Some(log) = log {
        event.insert("log".to_owned(), log.into());
    }
    if let Value::Object(fields) = fields {
        event.extend(fields);
    }
    print::out_to_reader(print::safe_json(format_args!("{}\n", Value::Object(event))))
}
