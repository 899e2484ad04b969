//! What a model means when it names an agent.

use ikigai_conversation::AgentId;
use ikigai_store::{Address, Step};

/// An id, also without its last slash.
pub(crate) fn parse_agent(text: &str) -> Option<AgentId> {
    let text = text.trim();
    AgentId::parse(text).or_else(|_| AgentId::parse(&format!("{text}/"))).ok()
}

/// The step that sends `body`, already checked, to whom `to` means.
pub(crate) fn send(to: &str, body: String) -> Step {
    let to = to.trim();
    match parse_agent(to) {
        Some(id) => Step::Send { given: id.to_string(), to: Address::Id(id), body },
        None if to == "parent" => Step::Send { given: to.to_owned(), to: Address::Parent, body },
        None => Step::Send { given: to.to_owned(), to: Address::Name(to.to_owned()), body },
    }
}
