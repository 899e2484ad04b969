//! `agents`: who else is there.

use ikigai_store::Step;
use ikigai_tools::{Arguments, StepTool, ToolResult, tool};

pub(crate) const TOOL: StepTool<Step> = StepTool { declaration: &Agents::DECLARATION, prepare };

tool! {
    /// List the living agents
    struct Agents = "agents" {}
}

fn prepare(arguments: &Arguments) -> Result<Step, ToolResult> {
    let Agents {} = Agents::parse(arguments)?;
    Ok(Step::Agents)
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
