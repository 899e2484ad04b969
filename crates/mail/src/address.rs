//! How a model refers to an agent.

use ikigai_conversation::AgentId;
use ikigai_store::{AgentAddress, NamedAgent, Step};

/// Parses an id. The last slash may be missing.
pub(crate) fn parse_agent(text: &str) -> Option<AgentId> {
    let text = text.trim();
    AgentId::parse(text).or_else(|_| AgentId::parse(&format!("{text}/"))).ok()
}

/// The agent that `text` refers to: an id, the parent, or a name.
pub fn parse_named(text: &str) -> NamedAgent {
    let text = text.trim();
    let given = || text.to_owned();
    match parse_agent(text) {
        Some(id) => NamedAgent { given: id.to_string(), address: AgentAddress::Id(id) },
        None if text == "parent" => NamedAgent { given: given(), address: AgentAddress::Parent },
        None => NamedAgent { given: given(), address: AgentAddress::Name(given()) },
    }
}

/// The step that sends `body`, already checked, to the agent that `to` refers to.
pub(crate) fn send(to: &str, body: String) -> Step {
    let NamedAgent { address, given } = parse_named(to);
    Step::Send { to: address, given, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(to: &str, address: AgentAddress, given: &str) {
        let expected = Step::Send { to: address, given: given.to_owned(), body: "x".to_owned() };
        assert_eq!(send(to, "x".to_owned()), expected);
    }

    fn id(text: &str) -> AgentAddress {
        AgentAddress::Id(AgentId::parse(text).unwrap())
    }

    #[test]
    fn an_id_needs_no_last_slash_and_is_shown_with_it() {
        check("1/", id("1/"), "1/");
        check("1", id("1/"), "1/");
        check("0/1", id("0/1/"), "0/1/");
        check(" 0/1/ ", id("0/1/"), "0/1/");
    }

    #[test]
    fn other_text_is_the_parent_or_a_name() {
        check("parent", AgentAddress::Parent, "parent");
        for name in ["reviewer", "Parent", "1//", "01", "-1", "+1", "", "1/a", "00/"] {
            check(name, AgentAddress::Name(name.to_owned()), name);
        }
        check(" reviewer ", AgentAddress::Name("reviewer".to_owned()), "reviewer");
    }
}
