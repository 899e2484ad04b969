//! The tools, as the configuration has them.

use ikigai_agents::catalogue;
use ikigai_store::Step;
use ikigai_tools::Dispatcher;

use crate::config::Settings;

/// The tools that the configuration enables.
pub(crate) fn offered(settings: &Settings) -> Dispatcher<Step> {
    match settings.enabled_tools() {
        Some(enabled) => catalogue().only(|name| enabled.iter().any(|tool| tool == name)),
        None => catalogue(),
    }
}

pub(crate) fn names() -> Vec<&'static str> {
    catalogue().declarations().map(|declaration| declaration.name).collect()
}
