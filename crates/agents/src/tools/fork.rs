//! `fork`: starts a child agent that works in parallel.

use std::sync::Arc;

use ikigai_conversation::EffectKind;
use ikigai_store::{AgentLimits, ForkContext, NewFork, Step};
use ikigai_tools::{Arguments, BuiltIn, Call, Choice, Tool, ToolResult, tool};

pub(crate) fn tool() -> Arc<dyn Tool<Step>> {
    BuiltIn::new(Fork::declaration(), &[EffectKind::Database], prepare)
        .repairing(Fork::PARAMETERS)
        .shared()
}

tool! {
    /// Start a child agent; it works in parallel and mails you its result
    struct Fork = "fork" {
        /// Its task
        prompt: String,
        /// Its name
        name: Option<String>,
        /// full: it knows this conversation
        context: Option<Knowledge>,
    }
}

/// What a child knows.
#[derive(Debug, Clone, Copy)]
enum Knowledge {
    Fresh,
    Full,
}

impl Choice for Knowledge {
    const NAMES: &'static [&'static str] = &["fresh", "full"];
    const VALUES: &'static [Knowledge] = &[Knowledge::Fresh, Knowledge::Full];
}

fn prepare(arguments: &Arguments) -> Result<Call<Step>, ToolResult> {
    let Fork { prompt, name, context } = Fork::parse(arguments)?;
    if prompt.trim().is_empty() {
        return Err(ToolResult::failure("Prompt cannot be empty"));
    }
    let context = match context {
        None | Some(Knowledge::Fresh) => ForkContext::Fresh,
        Some(Knowledge::Full) => ForkContext::Full,
    };
    // Models pass an empty name to omit it.
    let name = name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let limits = AgentLimits::DEFAULT;
    let task = prompt.trim().lines().next().unwrap_or_default();
    let subject = match &name {
        Some(name) => format!("{name}: {task}"),
        None => task.to_owned(),
    };
    let fork = NewFork { prompt: Some(prompt), name, context, limits, system: None };
    Ok(Call::step(Step::Fork(fork)).shown_as("Fork", &subject))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::check;

    fn fork(name: Option<&str>, context: ForkContext) -> Step {
        Step::Fork(NewFork {
            prompt: Some("do it".to_owned()),
            name: name.map(str::to_owned),
            context,
            limits: AgentLimits { agents: 20, depth: 4 },
            system: None,
        })
    }

    #[test]
    fn only_the_prompt_is_required() {
        check("fork", r#"{"prompt":"do it"}"#, Ok(fork(None, ForkContext::Fresh)));
        for missing in ["", "{}", r#"{"prompt":[5]}"#, r#"{"prompt":null,"name":7}"#] {
            check("fork", missing, Err(r#"{"error":"Missing required parameter: prompt"}"#));
        }
        for blank in ["", " \n"] {
            let arguments = serde_json::json!({ "prompt": blank }).to_string();
            check("fork", &arguments, Err(r#"{"success":false,"error":"Prompt cannot be empty"}"#));
        }
        check("fork", "[]", Err(r#"{"error":"Invalid JSON arguments"}"#));
    }

    #[test]
    fn optional_parameters_are_checked_in_order() {
        let full = r#"{"prompt":"do it","name":" builder ","context":"full"}"#;
        check("fork", full, Ok(fork(Some("builder"), ForkContext::Full)));
        let absent = r#"{"prompt":"do it","name":null,"context":null,"extra":1}"#;
        check("fork", absent, Ok(fork(None, ForkContext::Fresh)));
        check("fork", r#"{"prompt":"do it","name":""}"#, Ok(fork(None, ForkContext::Fresh)));
        let wrong = |value| format!(r#"{{"prompt":"do it","context":{value}}}"#);
        for context in [r#""half""#, "true", "1", r#""FULL""#] {
            check("fork", &wrong(context), Err(r#"{"error":"Invalid parameter: context"}"#));
        }
        let both = r#"{"prompt":"do it","name":[1],"context":2}"#;
        check("fork", both, Err(r#"{"error":"Invalid parameter: name"}"#));
    }
}
