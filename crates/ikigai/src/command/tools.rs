//! `ikigai tools`: what a model is offered.

use ikigai_tools::{CORE, Declaration};

use crate::cli::{Set, ToolsArguments};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::print;
use crate::settings;

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
        false => render(dispatcher.declarations()),
    })?;
    Ok(Exit::Done)
}

/// A line per tool, its parameters below it; optional ones in brackets.
pub(crate) fn render(tools: impl Iterator<Item = &'static Declaration>) -> String {
    let mut text = String::new();
    for declaration in tools {
        text.push_str(&format!("{:<11} {}\n", declaration.name, declaration.description));
        let parameters: Vec<String> = declaration
            .parameters
            .iter()
            .map(|p| if p.required { p.name.to_owned() } else { format!("[{}]", p.name) })
            .collect();
        if !parameters.is_empty() {
            text.push_str(&format!("{:<11}   {}\n", "", parameters.join(" ")));
        }
    }
    text
}
