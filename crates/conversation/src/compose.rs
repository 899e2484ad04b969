//! New messages, with readable content rendered from their data.

use std::time::Duration;

use serde_json::Value;

use crate::agent_id::AgentId;
use crate::body::{
    Approval, Assistant, Body, Command, Decision, Fork, Interrupted, Kill, Mark, Notification,
    Rewind, Summary, ToolCall, ToolResult, Trim, Usage,
};
use crate::extras::Extras;
use crate::ids::{CommandId, MailId, MessageId, ResponseId, ToolCallId};
use crate::message::NewMessage;
use crate::one_line::{call_line, is_success, line, result_line};
use crate::shown::{CallSummary, EffectKind, ResultSummary};

/// The most bytes of thinking that a log keeps of one response. It is only shown to the user, who
/// reads the start of it.
pub const THINKING_LIMIT: usize = 64 * 1024;

impl NewMessage {
    /// The system prompt of a session.
    pub fn system(prompt: impl Into<String>) -> NewMessage {
        NewMessage { content: prompt.into(), body: Body::System }
    }

    /// A message of the user.
    pub fn user(text: impl Into<String>) -> NewMessage {
        NewMessage { content: text.into(), body: Body::User }
    }

    /// The text of a response.
    pub fn assistant(text: impl Into<String>, response: ResponseId) -> NewMessage {
        let assistant = Assistant { response, extras: None, thinking: None, thinking_ms: None };
        NewMessage { content: text.into(), body: Body::Assistant(assistant) }
    }

    /// A call that a model requested, with the arguments as it sent them.
    ///
    /// ```
    /// use ikigai_conversation::{NewMessage, ResponseId, ToolCallId};
    ///
    /// let id = ToolCallId::new("call_1");
    /// let call = NewMessage::tool_call(id, "glob", r#"{"pattern":"*.c"}"#, ResponseId::new("r1"));
    /// assert_eq!(call.content, r#"glob(pattern="*.c")"#);
    /// ```
    pub fn tool_call(
        tool_call_id: ToolCallId,
        name: impl Into<String>,
        arguments: impl Into<String>,
        response: ResponseId,
    ) -> NewMessage {
        let (name, arguments) = (name.into(), arguments.into());
        let content = call_line(&name, &arguments);
        let call = ToolCall {
            tool_call_id,
            name,
            arguments,
            response,
            extras: None,
            thinking: None,
            thinking_ms: None,
            effects: None,
            shown: None,
        };
        NewMessage { content, body: Body::ToolCall(call) }
    }

    /// Adds what the provider wants back with this response. Messages that are not part of a
    /// response stay unchanged.
    pub fn with_extras(mut self, extras: Extras) -> NewMessage {
        if let Body::Assistant(Assistant { extras: slot, .. })
        | Body::ToolCall(ToolCall { extras: slot, .. }) = &mut self.body
        {
            *slot = Some(extras);
        }
        self
    }

    /// Adds what the model thought before this response, and for how long. Messages that are not
    /// part of a response stay unchanged.
    pub fn with_thinking(mut self, text: String, duration: Duration) -> NewMessage {
        if let Body::Assistant(Assistant { thinking, thinking_ms, .. })
        | Body::ToolCall(ToolCall { thinking, thinking_ms, .. }) = &mut self.body
        {
            *thinking = Some(text);
            *thinking_ms = u64::try_from(duration.as_millis()).ok();
        }
        self
    }

    /// Adds the effects of a call and how it is displayed. Messages of other kinds stay unchanged.
    pub fn with_shown(mut self, effects: Vec<EffectKind>, shown: CallSummary) -> NewMessage {
        if let Body::ToolCall(call) = &mut self.body {
            call.effects = Some(effects);
            call.shown = Some(shown);
        }
        self
    }

    /// The result of a call without a summary by its tool: `output` is the result JSON, as sent to
    /// the model.
    pub fn tool_result(call: &ToolCall, output: impl Into<String>) -> NewMessage {
        let output = output.into();
        let result: Value = serde_json::from_str(&output).unwrap_or_default();
        let (content, success) = (result_line(&result), is_success(&result));
        NewMessage { content, body: Body::ToolResult(result_of(call, output, success)) }
    }

    /// The result of a call with a summary by its tool: `line` becomes the content of the message.
    pub fn shown_result(
        call: &ToolCall,
        output: String,
        success: bool,
        line: &str,
        shown: ResultSummary,
    ) -> NewMessage {
        let result = ToolResult { shown: Some(shown), ..result_of(call, output, success) };
        NewMessage { content: self::line(line), body: Body::ToolResult(result) }
    }

    /// The same result, with which the turn ends. Messages of other kinds stay unchanged.
    pub fn ending_turn(mut self) -> NewMessage {
        if let Body::ToolResult(result) = &mut self.body {
            result.ends_turn = true;
        }
        self
    }

    /// The notification of new mail.
    pub fn notification(text: impl Into<String>, mail: Vec<MailId>) -> NewMessage {
        let commands = Vec::new();
        NewMessage {
            content: text.into(),
            body: Body::Notification(Notification { mail, commands }),
        }
    }

    /// The notification that background commands ended because ikigai did.
    pub fn lost_commands(commands: Vec<CommandId>) -> NewMessage {
        let lost = |id| format!("Command #{id} was ended with ikigai (it may have had effects)");
        let content = commands.iter().map(lost).collect::<Vec<_>>().join("\n");
        let mail = Vec::new();
        NewMessage { content, body: Body::Notification(Notification { mail, commands }) }
    }

    /// A summary that replaces everything up to and including its `up_to`.
    ///
    /// That should be the end of a response: its extras are in its first message, and would be lost
    /// by a cut in the middle of it.
    pub fn summary(text: impl Into<String>, summary: Summary) -> NewMessage {
        NewMessage { content: text.into(), body: Body::Summary(summary) }
    }

    /// The first message of a fork's own log.
    pub fn fork(fork: Fork) -> NewMessage {
        NewMessage { content: format!("Forked from {}", fork.parent), body: Body::Fork(fork) }
    }

    /// The token usage of a response.
    pub fn usage(usage: Usage) -> NewMessage {
        NewMessage { content: String::new(), body: Body::Usage(usage) }
    }

    /// A point to return to.
    pub fn mark(label: Option<String>) -> NewMessage {
        NewMessage { content: labelled("Mark", &label), body: Body::Mark(Mark { label }) }
    }

    /// A rewind to what the model saw right after `to`.
    pub fn rewind(to: MessageId, label: Option<String>) -> NewMessage {
        NewMessage {
            content: labelled("Rewound", &label),
            body: Body::Rewind(Rewind { to, label }),
        }
    }

    /// A fresh context.
    pub fn clear() -> NewMessage {
        NewMessage { content: "Context cleared".to_owned(), body: Body::Clear }
    }

    /// From now on, a model sees tool outputs up to and including `up_to` only as one line each.
    pub fn trim(up_to: MessageId) -> NewMessage {
        NewMessage {
            content: "Earlier tool outputs shortened".to_owned(),
            body: Body::Trim(Trim { up_to }),
        }
    }

    /// The killing of other agents, children first.
    pub fn kill(killed: Vec<AgentId>) -> NewMessage {
        let names: Vec<String> = killed.iter().map(AgentId::to_string).collect();
        let content = line(&format!("Killed {}", names.join(", ")));
        NewMessage { content, body: Body::Kill(Kill { killed }) }
    }

    /// The interrupt of a turn by the user, in the middle of `response` if one had started.
    pub fn interrupted(response: Option<ResponseId>) -> NewMessage {
        let body = Body::Interrupted(Interrupted { response });
        NewMessage { content: "Interrupted".to_owned(), body }
    }

    /// A command that the user typed, with its slash.
    pub fn command(command: impl Into<String>) -> NewMessage {
        let command = command.into();
        NewMessage { content: line(&command), body: Body::Command(Command { command }) }
    }

    /// The user's answer to a call that needed approval.
    pub fn approval(
        tool_call_id: ToolCallId,
        decision: Decision,
        reason: Option<String>,
    ) -> NewMessage {
        let answer = match decision {
            Decision::Once => "Allowed once",
            Decision::Always => "Allowed for this session",
            Decision::No => "Refused",
        };
        let content = labelled(answer, &reason);
        NewMessage { content, body: Body::Approval(Approval { tool_call_id, decision, reason }) }
    }
}

fn result_of(call: &ToolCall, output: String, success: bool) -> ToolResult {
    let (tool_call_id, name) = (call.tool_call_id.clone(), call.name.clone());
    ToolResult { tool_call_id, name, output, success, ends_turn: false, shown: None }
}

fn labelled(what: &str, label: &Option<String>) -> String {
    match label {
        Some(label) => line(&format!("{what}: {label}")),
        None => what.to_owned(),
    }
}
