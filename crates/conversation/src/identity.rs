//! The line that tells a model which agent it is.

use std::fmt;

use crate::agent_id::AgentId;

/// A line sent before an agent's first message. It is not in the log.
///
/// ```
/// use ikigai_conversation::{AgentId, Identity};
///
/// let child = AgentId::parse("0/0/")?;
/// assert_eq!(Identity::of(&child).to_string(), "[You are agent 0/0/, forked by 0/.]");
/// # Ok::<(), ikigai_conversation::IdError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity<'a> {
    agent: &'a AgentId,
    /// Whether the parent's conversation is above the line.
    inherits: bool,
}

impl<'a> Identity<'a> {
    /// The identity of an agent with nothing above it.
    pub fn of(agent: &'a AgentId) -> Identity<'a> {
        Identity { agent, inherits: false }
    }

    /// The identity of a fork with its parent's conversation above it.
    pub fn inheriting(agent: &'a AgentId) -> Identity<'a> {
        Identity { agent, inherits: true }
    }
}

impl fmt::Display for Identity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[You are agent {}", self.agent)?;
        if let Some(parent) = self.agent.parent() {
            write!(f, ", forked by {parent}.")?;
            if self.inherits {
                f.write_str(" What stands above is its conversation, not your task.")?;
            }
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_the_agent_its_parent_and_what_is_above() {
        let (top, child) = (AgentId::top_level(0), AgentId::parse("0/0/").unwrap());
        for (identity, line) in [
            (Identity::of(&top), "[You are agent 0/]"),
            (Identity::inheriting(&top), "[You are agent 0/]"),
            (Identity::of(&child), "[You are agent 0/0/, forked by 0/.]"),
            (
                Identity::inheriting(&child),
                "[You are agent 0/0/, forked by 0/. What stands above is its conversation, not your task.]",
            ),
        ] {
            assert_eq!(identity.to_string(), line);
        }
    }
}
