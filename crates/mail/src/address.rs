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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(to: &str, address: Address, given: &str) {
        let expected = Step::Send { to: address, given: given.to_owned(), body: "x".to_owned() };
        assert_eq!(send(to, "x".to_owned()), expected);
    }

    fn id(text: &str) -> Address {
        Address::Id(AgentId::parse(text).unwrap())
    }

    #[test]
    fn an_id_needs_no_last_slash_and_is_told_with_it() {
        check("1/", id("1/"), "1/");
        check("1", id("1/"), "1/");
        check("0/1", id("0/1/"), "0/1/");
        check(" 0/1/ ", id("0/1/"), "0/1/");
    }

    #[test]
    fn what_is_no_id_is_the_parent_or_a_name() {
        check("parent", Address::Parent, "parent");
        for name in ["reviewer", "Parent", "1//", "01", "-1", "+1", "", "1/a", "00/"] {
            check(name, Address::Name(name.to_owned()), name);
        }
        check(" reviewer ", Address::Name("reviewer".to_owned()), "reviewer");
    }
}
