//! How a model refers to an agent or to the user.

use ikigai_conversation::{AgentId, Correspondent};
use ikigai_store::{AgentAddress, MailAddress, NamedAgent, Step};

/// Parses an id. The last slash may be missing.
pub(crate) fn parse_agent(text: &str) -> Option<AgentId> {
    let text = text.trim();
    AgentId::parse(text).or_else(|_| AgentId::parse(&format!("{text}/"))).ok()
}

/// Parses the address of the user or an agent's id.
pub(crate) fn parse_correspondent(text: &str) -> Option<Correspondent> {
    match text.trim() {
        Correspondent::USER => Some(Correspondent::User),
        id => parse_agent(id).map(Correspondent::Agent),
    }
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

/// The step that sends `body`, already checked, to the user or the agent that `to` refers to.
pub(crate) fn send(to: &str, body: String) -> Step {
    if to.trim() == Correspondent::USER {
        let given = Correspondent::USER.to_owned();
        return Step::Send { to: MailAddress::User, given, body };
    }
    let NamedAgent { address, given } = parse_named(to);
    Step::Send { to: MailAddress::Agent(address), given, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(to: &str, address: AgentAddress, given: &str) {
        check_address(to, MailAddress::Agent(address), given);
    }

    #[track_caller]
    fn check_address(to: &str, address: MailAddress, given: &str) {
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
    fn the_user_has_an_address() {
        check_address("user", MailAddress::User, "user");
        check_address(" user ", MailAddress::User, "user");
        check("User", AgentAddress::Name("User".to_owned()), "User");
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
