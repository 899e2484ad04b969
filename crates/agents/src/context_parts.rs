//! What an agent's context consists of.

use std::collections::BTreeMap;

use ikigai_conversation::{Log, Seen, tokens_in};
use ikigai_protocol::ContextPart;
use ikigai_providers::Tool;

use crate::prompt::instructions_in;

/// How many tools are named with the size of their results.
const NAMED_TOOLS: usize = 5;

/// The parts of a context with their estimated sizes, without empty ones.
pub fn context_parts(log: &Log<'_>, tools: &[Tool]) -> Vec<ContextPart> {
    let mut bytes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut results: BTreeMap<&str, usize> = BTreeMap::new();
    for seen in &log.view() {
        let size = seen.bytes();
        match seen {
            Seen::System(prompt) => {
                let instructions = instructions_in(prompt).len();
                *bytes.entry(PROMPT).or_default() += size - instructions;
                *bytes.entry(INSTRUCTIONS).or_default() += instructions;
            }
            Seen::Identity(_) => *bytes.entry(PROMPT).or_default() += size,
            Seen::User(_) => *bytes.entry(SAID).or_default() += size,
            Seen::Assistant { .. } | Seen::ToolCall(_) => {
                *bytes.entry(ANSWERS).or_default() += size;
            }
            Seen::ToolResult { call, .. } => {
                *results.entry(call.name.as_str()).or_default() += size;
            }
            Seen::Notification(_) => *bytes.entry(MAIL).or_default() += size,
            Seen::Summary(_) | Seen::Obligations(_) => {
                *bytes.entry(SUMMARY).or_default() += size;
            }
        }
    }
    let part = |name: &str, tokens| ContextPart { name: name.to_owned(), tokens };
    let size = |name: &str| tokens_in(bytes.get(name).copied().unwrap_or(0));
    let mut parts = vec![part(PROMPT, size(PROMPT)), part(TOOLS, tokens_of_tools(tools))];
    let others = [INSTRUCTIONS, SUMMARY, SAID, ANSWERS, MAIL];
    parts.extend(others.map(|name| part(name, size(name))));
    parts.extend(parts_of_results(results));
    parts.retain(|part| part.tokens > 0);
    parts
}

const PROMPT: &str = "system prompt";
const TOOLS: &str = "tools";
const INSTRUCTIONS: &str = "AGENTS.md";
const SUMMARY: &str = "summary";
const SAID: &str = "your messages";
const ANSWERS: &str = "answers";
const MAIL: &str = "mail";

/// The largest by name, and the rest together.
fn parts_of_results(results: BTreeMap<&str, usize>) -> Vec<ContextPart> {
    let mut results: Vec<(&str, usize)> = results.into_iter().collect();
    results.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let rest = results.split_off(NAMED_TOOLS.min(results.len()));
    let named = results.into_iter().map(|(name, bytes)| ContextPart {
        name: format!("results of {name}"),
        tokens: tokens_in(bytes),
    });
    let others = rest.iter().map(|(_, bytes)| bytes).sum();
    let others = ContextPart { name: "other results".to_owned(), tokens: tokens_in(others) };
    named.chain([others]).collect()
}

/// The estimated tokens of the declarations of tools.
pub fn tokens_of_tools(tools: &[Tool]) -> u64 {
    /// The fields around a declaration.
    const MARKUP: usize = 70;
    let size = |tool: &Tool| {
        tool.name.len() + tool.description.len() + tool.parameters.to_string().len() + MARKUP
    };
    tokens_in(tools.iter().map(size).sum())
}

/// The largest parts, for a message about a full context.
pub(crate) fn what_fills(parts: &[ContextPart], window: u64) -> String {
    const SHOWN: usize = 3;
    let mut parts: Vec<&ContextPart> = parts.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.tokens));
    let part = |part: &&ContextPart| format!("{} {}", part.name, part.tokens);
    let largest: Vec<String> = parts.iter().take(SHOWN).map(part).collect();
    format!("{} of {window} tokens", largest.join(", "))
}
