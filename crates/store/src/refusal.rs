//! Why agents are not forked, killed or waited for: conditions that failed inside the transaction.

use ikigai_conversation::AgentId;

/// What a model or a person is told, letter by letter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The session has as many living agents as it may.
    #[error("Maximum agents ({0}) reached")]
    TooMany(u32),
    /// The child would stand too deep in the tree.
    #[error("Maximum agent depth ({0}) exceeded")]
    TooDeep(u32),
    /// Nobody could write to an agent of this name.
    #[error(
        "'{}' is no name for an agent: use up to 32 letters, digits, '-', '_' and '.', but not only digits and not 'parent'", cut(.0)
    )]
    Name(String),
    /// A name means one agent.
    #[error("Agent {agent} is already called '{name}'")]
    NameTaken {
        /// The name.
        name: String,
        /// Who has it.
        agent: AgentId,
    },
    /// There is no such agent, or a name means more than one.
    #[error("Agent {} not found", cut(.0))]
    NoAgent(String),
    /// It was killed before, or acts although it was.
    #[error("Agent {0} is dead")]
    Dead(AgentId),
    /// A model may not end itself.
    #[error("Agent {0} cannot kill itself")]
    KillsItself(AgentId),
    /// A model may not end those that it works for.
    #[error("Agent {0} cannot be killed by its descendant")]
    KillsAncestor(AgentId),
    /// Only a person ends these.
    #[error("Agent {0} is a top-level agent: only a person can kill it")]
    TopLevel(AgentId),
    /// A session has somebody to talk to.
    #[error("Agent {0} is the last top-level agent")]
    LastTopLevel(AgentId),
    /// The shortest circle.
    #[error("Agent {0} cannot wait for itself")]
    WaitsForItself(AgentId),
    /// Everybody in it would wait for ever. It begins and ends with the one that wanted to wait.
    #[error("Waiting cycle: {}", path(.0))]
    Cycle(Vec<AgentId>),
}

/// What a model made up may be long.
fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}

fn path(agents: &[AgentId]) -> String {
    let ids: Vec<String> = agents.iter().map(AgentId::to_string).collect();
    ids.join(" waits for ")
}
