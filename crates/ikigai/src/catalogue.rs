//! All tools that there are: those on files and commands, and those on the database.

use ikigai_store::Step;
use ikigai_tools::Dispatcher;

use crate::config::Settings;

pub(crate) fn all() -> Dispatcher<Step> {
    Dispatcher::new(vec![ikigai_mail::TOOL])
}

/// The tools that the configuration enables.
pub(crate) fn offered(settings: &Settings) -> Dispatcher<Step> {
    match settings.enabled_tools() {
        Some(enabled) => all().only(|name| enabled.iter().any(|tool| tool == name)),
        None => all(),
    }
}

pub(crate) fn names() -> Vec<&'static str> {
    all().declarations().map(|declaration| declaration.name).collect()
}
