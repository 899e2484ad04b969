//! `ikigai tools`: lists the tools offered to a model.

use ikigai_host::{Environment, settings, tool_summary};
use ikigai_protocol::render_tools;
use ikigai_tools::CORE;

use crate::cli::{Set, ToolsArguments};
use crate::exit::Exit;
use crate::print;

pub(crate) fn run(environment: &Environment, arguments: &ToolsArguments) -> anyhow::Result<Exit> {
    let dispatcher = match arguments.set {
        Some(Set::Core) => {
            let is_core = |name: &str| CORE.contains(&name);
            ikigai_agents::catalogue().only(|tool| is_core(&tool.declaration().name))
        }
        None => {
            let mode = settings::mode(&environment.settings);
            settings::tools(&environment.settings).offered_in(mode)
        }
    };
    print::out(match arguments.json {
        true => format!("{}\n", dispatcher.schemas()),
        false => render_tools(&dispatcher.declarations().map(tool_summary).collect::<Vec<_>>()),
    })?;
    Ok(Exit::Done)
}
