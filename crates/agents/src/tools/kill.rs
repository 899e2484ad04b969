//! `kill`: ends an agent and its descendants.

use std::sync::Arc;

use ikigai_conversation::EffectKind;
use ikigai_mail::parse_named;
use ikigai_store::Step;
use ikigai_tools::{Arguments, BuiltIn, Call, Tool, ToolResult, tool};

pub(crate) fn tool() -> Arc<dyn Tool<Step>> {
    BuiltIn::new(Kill::declaration(), &[EffectKind::Database], prepare)
        .repairing(Kill::PARAMETERS)
        .shared()
}

tool! {
    /// End an agent and its descendants
    struct Kill = "kill" {
        /// Its ID
        agent: String,
    }
}

fn prepare(arguments: &Arguments) -> Result<Call<Step>, ToolResult> {
    let Kill { agent } = Kill::parse(arguments)?;
    Ok(Call::step(Step::Kill(parse_named(&agent))).shown_as("Kill", agent.trim()))
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::AgentId;
    use ikigai_store::{AgentAddress, NamedAgent};

    use super::*;
    use crate::tools::testing::check;

    #[test]
    fn an_agent_is_addressed_as_in_mail() {
        let named =
            |address, given: &str| Step::Kill(NamedAgent { address, given: given.to_owned() });
        let id = || AgentAddress::Id(AgentId::parse("0/1/").unwrap());
        check("kill", r#"{"agent":"0/1/"}"#, Ok(named(id(), "0/1/")));
        check("kill", r#"{"agent":" 0/1 "}"#, Ok(named(id(), "0/1/")));
        check("kill", r#"{"agent":"parent"}"#, Ok(named(AgentAddress::Parent, "parent")));
        let name = || AgentAddress::Name("builder".to_owned());
        check("kill", r#"{"agent":"builder"}"#, Ok(named(name(), "builder")));
        for missing in ["{}", r#"{"agent":null}"#, r#"{"agent":[1]}"#] {
            check("kill", missing, Err(r#"{"error":"Missing required parameter: agent"}"#));
        }
    }
}
