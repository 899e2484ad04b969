//! `agents`: lists the agents of the session.

use std::sync::Arc;

use ikigai_conversation::EffectKind;
use ikigai_store::Step;
use ikigai_tools::{Arguments, BuiltIn, Call, Tool, ToolResult, tool};

pub(crate) fn tool() -> Arc<dyn Tool<Step>> {
    BuiltIn::new(Agents::declaration(), &[EffectKind::Database], prepare)
        .repairing(Agents::PARAMETERS)
        .shared()
}

tool! {
    /// List the living agents
    struct Agents = "agents" {}
}

fn prepare(arguments: &Arguments) -> Result<Call<Step>, ToolResult> {
    let Agents {} = Agents::parse(arguments)?;
    Ok(Call::step(Step::Agents).shown_as("Agents", ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::check;

    #[test]
    fn it_has_no_parameters() {
        for arguments in ["", "{}", r#"{"all":true}"#] {
            check("agents", arguments, Ok(Step::Agents));
        }
        check("agents", "7", Err(r#"{"error":"Invalid JSON arguments"}"#));
    }
}
