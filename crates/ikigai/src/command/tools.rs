//! `ikigai tools`: what a model is offered.

use ikigai_host::{Environment, settings, tool_summary};
use ikigai_protocol::render_tools;
use ikigai_tools::CORE;

use crate::cli::{Set, ToolsArguments};
use crate::exit::Exit;
use crate::print;

pub(crate) fn run(environment: &Environment, arguments: &ToolsArguments) -> anyhow::Result<Exit> {
    let dispatcher = match arguments.set {
        Some(Set::Core) => ikigai_agents::catalogue().only(|name| CORE.contains(&name)),
        None => {
            let mode = settings::mode(&environment.settings);
            settings::tools(&environment.settings).only(|name| ikigai_tools::offers(mode, name))
        }
    };
    print::out(match arguments.json {
        true => format!("{}\n", dispatcher.schemas()),
        false => render_tools(&dispatcher.declarations().map(tool_summary).collect::<Vec<_>>()),
    })?;
    Ok(Exit::Done)
}
