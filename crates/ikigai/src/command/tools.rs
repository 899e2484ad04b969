//! `ikigai tools`: what a model is offered.

use ikigai_tools::{CORE, Declaration};

use crate::cli::{Set, ToolsArguments};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::print;
use crate::settings;

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
        false => render(dispatcher.declarations()),
    })?;
    Ok(Exit::Done)
}

/// A line per tool, its parameters below it; optional ones in brackets.
pub(crate) fn render<'a>(tools: impl Iterator<Item = &'a Declaration>) -> String {
    let mut text = String::new();
    for declaration in tools {
        text.push_str(&format!("{:<11} {}\n", declaration.name, declaration.description));
        let parameters: Vec<String> = declaration
            .parameter_names()
            .into_iter()
            .map(|(name, is_required)| match is_required {
                true => name.to_owned(),
                false => format!("[{name}]"),
            })
            .collect();
        if !parameters.is_empty() {
            text.push_str(&format!("{:<11}   {}\n", "", parameters.join(" ")));
        }
    }
    text
}
