//! Agent IDs: paths in the tree of agents.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use crate::error::IdError;

/// An agent's place in the tree: `0/` is a top-level agent, `0/1/` a child of it.
///
/// IDs sort in tree order: a parent before its children, siblings by number.
///
/// ```
/// use ikigai_conversation::AgentId;
///
/// let child = AgentId::parse("0/10/")?;
/// assert_eq!(child.parent(), Some(AgentId::top_level(0)));
/// assert!(AgentId::parse("0/9/")? < child);
/// assert!(AgentId::parse("0/10").is_err());
/// # Ok::<(), ikigai_conversation::IdError>(())
/// ```
// Shared, since every message of a log names the same agent.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct AgentId(Arc<[u32]>);

impl AgentId {
    /// The maximum depth of an ID. Sessions allow far less; this only bounds what parsing
    /// allocates.
    pub const MAX_DEPTH: usize = 64;

    /// Parses an ID in its displayed form: decimal numbers without leading zeros, each followed by
    /// a slash.
    pub fn parse(text: &str) -> Result<AgentId, IdError> {
        let not_an_agent = || IdError::agent(text);
        let numbers = text.strip_suffix('/').ok_or_else(not_an_agent)?;
        let numbers: Vec<u32> =
            numbers.split('/').map(parse_number).collect::<Option<_>>().ok_or_else(not_an_agent)?;
        AgentId::from_numbers(numbers)
    }

    /// The `number`th top-level agent, counted from 0.
    pub fn top_level(number: u32) -> AgentId {
        AgentId(Arc::new([number]))
    }

    /// The `number`th child of this agent, counted from 0.
    pub fn child(&self, number: u32) -> Result<AgentId, IdError> {
        AgentId::from_numbers(self.0.iter().copied().chain([number]).collect())
    }

    /// The agent that forked this one; a top-level agent has none.
    pub fn parent(&self) -> Option<AgentId> {
        match self.0.split_last() {
            Some((_, [])) | None => None,
            Some((_, parent)) => Some(AgentId(parent.into())),
        }
    }

    /// The top-level agent that this one descends from, or is.
    pub fn top(&self) -> AgentId {
        AgentId(self.0[..1].into())
    }

    /// The last number: its index among its parent's children.
    pub fn number(&self) -> u32 {
        self.0[self.0.len() - 1]
    }

    /// The depth in the tree; a top-level agent is at 1.
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// Whether `other` descends from this agent. No agent is its own ancestor.
    pub fn is_ancestor_of(&self, other: &AgentId) -> bool {
        other.depth() > self.depth() && other.0.starts_with(&self.0)
    }

    /// `numbers` is never empty: splitting a string and adding a child both give at least one.
    fn from_numbers(numbers: Vec<u32>) -> Result<AgentId, IdError> {
        if numbers.len() > AgentId::MAX_DEPTH {
            return Err(IdError::TooDeep);
        }
        Ok(AgentId(numbers.into()))
    }
}

/// Parses one number of an ID. `u32::from_str` alone would also accept `+1` and `01`.
fn parse_number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = text.len() > 1 && text.starts_with('0');
    if digits && !leading_zero { text.parse().ok() } else { None }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|number| write!(f, "{number}/"))
    }
}

/// The displayed form: a list of numbers would be noise in a failed assertion.
impl fmt::Debug for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentId({self})")
    }
}

impl TryFrom<String> for AgentId {
    type Error = IdError;

    fn try_from(text: String) -> Result<AgentId, IdError> {
        AgentId::parse(&text)
    }
}

impl std::str::FromStr for AgentId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<AgentId, IdError> {
        AgentId::parse(text)
    }
}

impl Serialize for AgentId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(text: &str) -> AgentId {
        AgentId::parse(text).unwrap()
    }

    #[track_caller]
    fn check_refused(text: &str, error: &str) {
        assert_eq!(AgentId::parse(text).unwrap_err().to_string(), error);
    }

    #[test]
    fn only_the_displayed_form_is_an_id() {
        for text in ["0/", "0/1/", "10/0/4294967295/"] {
            assert_eq!(id(text).to_string(), text);
        }
        for text in ["", "/", "0", "0/1", "//", "0//", "/0/", "00/", "01/", "+1/", "-1/", " 0/"] {
            check_refused(text, &format!("Invalid agent id: {text}"));
        }
        for text in ["0/ ", "a/", "٣/", "4294967296/", "0/1/x"] {
            check_refused(text, &format!("Invalid agent id: {text}"));
        }
    }

    #[test]
    fn an_id_has_at_most_64_levels() {
        let deepest = id(&"0/".repeat(64));
        assert_eq!(deepest.depth(), 64);
        check_refused(&"0/".repeat(65), "An agent id has at most 64 levels");
        assert_eq!(deepest.child(0).unwrap_err(), IdError::TooDeep);
    }

    #[test]
    fn an_error_quotes_only_the_start_of_a_long_text() {
        check_refused(&"x".repeat(1000), &format!("Invalid agent id: {}", "x".repeat(64)));
    }

    #[test]
    fn an_id_has_a_position_in_the_tree() {
        let (top, child, grandchild) = (id("7/"), id("7/2/"), id("7/2/5/"));
        assert_eq!((top.parent(), top.top(), top.number(), top.depth()), (None, top.clone(), 7, 1));
        assert_eq!(child.parent(), Some(top.clone()));
        assert_eq!((grandchild.parent(), grandchild.top()), (Some(child.clone()), top.clone()));
        assert_eq!((grandchild.number(), grandchild.depth()), (5, 3));
        assert_eq!(child.child(5).unwrap(), grandchild);
    }

    #[test]
    fn an_agent_is_not_its_own_ancestor() {
        assert!(id("0/").is_ancestor_of(&id("0/1/")));
        assert!(id("0/").is_ancestor_of(&id("0/1/2/")));
        for (a, b) in
            [("0/", "0/"), ("0/1/", "0/"), ("0/1/", "0/10/"), ("1/", "10/"), ("0/", "1/0/")]
        {
            assert!(!id(a).is_ancestor_of(&id(b)), "{a} {b}");
        }
    }

    #[test]
    fn ids_sort_in_tree_order() {
        let tree = ["0/", "0/0/", "0/1/", "0/1/7/", "0/2/", "0/10/", "1/", "2/", "10/"].map(id);
        let mut sorted = tree.clone();
        sorted.reverse();
        sorted.sort();
        assert_eq!(sorted, tree);
    }

    #[test]
    fn json_has_the_displayed_form_and_is_validated() {
        assert_eq!(serde_json::to_string(&id("0/1/")).unwrap(), r#""0/1/""#);
        assert_eq!(serde_json::from_str::<AgentId>(r#""0/1/""#).unwrap(), id("0/1/"));
        let error = serde_json::from_str::<AgentId>(r#""0/1""#).unwrap_err();
        assert!(error.to_string().starts_with("Invalid agent id: 0/1"), "{error}");
    }

    proptest! {
        #[test]
        fn every_id_round_trips(numbers in prop::collection::vec(any::<u32>(), 1..=64)) {
            let id = AgentId::from_numbers(numbers).unwrap();
            prop_assert_eq!(AgentId::parse(&id.to_string()).unwrap(), id);
        }

        #[test]
        fn parsed_text_is_displayed_unchanged(text in "[0-9/+-]{0,8}") {
            if let Ok(id) = AgentId::parse(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
