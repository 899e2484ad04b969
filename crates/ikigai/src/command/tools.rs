//! `ikigai tools`: what a model is offered.

use ikigai_tools::{Dispatcher, Tool, ToolSet};

use crate::cli::{Set, ToolsArguments};
use crate::config::Settings;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::print;

pub(crate) fn run(environment: &Environment, arguments: &ToolsArguments) -> anyhow::Result<Exit> {
    let dispatcher = match arguments.set {
        Some(Set::Core) => Dispatcher::only(|name| ToolSet::Core.names().any(|core| core == name)),
        None => offered(&environment.settings),
    };
    print::out(match arguments.json {
        true => format!("{}\n", dispatcher.schemas()),
        false => render(dispatcher.tools()),
    })?;
    Ok(Exit::Done)
}

/// The tools that the configuration enables.
pub(crate) fn offered(settings: &Settings) -> Dispatcher {
    match settings.enabled_tools() {
        Some(enabled) => Dispatcher::only(|name| enabled.iter().any(|tool| tool == name)),
        None => Dispatcher::all(),
    }
}

/// A line per tool, its parameters below it; optional ones in brackets.
fn render(tools: &[Tool]) -> String {
    let mut text = String::new();
    for tool in tools {
        let declaration = tool.declaration();
        text.push_str(&format!("{:<11} {}\n", declaration.name, declaration.description));
        let parameters: Vec<String> = declaration
            .parameters
            .iter()
            .map(|p| if p.required { p.name.to_owned() } else { format!("[{}]", p.name) })
            .collect();
        text.push_str(&format!("{:<11}   {}\n", "", parameters.join(" ")));
    }
    text
}
