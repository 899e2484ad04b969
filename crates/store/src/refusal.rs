//! Why agents are not forked, killed or waited for: conditions that failed inside the transaction.

use ikigai_conversation::{AgentId, CommandId};

/// The error for a model or the user, letter by letter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The session has as many agents as allowed.
    #[error("Maximum agents ({0}) reached")]
    TooMany(u32),
    /// The child would be too deep in the tree.
    #[error("Maximum agent depth ({0}) exceeded")]
    TooDeep(u32),
    /// Mail to an agent with this name would be ambiguous.
    #[error(
        "'{}' is not a valid agent name: use up to 32 letters, digits, '-', '_' and '.', but not \
            only digits, 'parent' or 'user'", cut(.0)
    )]
    Name(String),
    /// A name must be unique.
    #[error("Agent {agent} is already called '{name}'")]
    NameTaken {
        /// The name.
        name: String,
        /// The agent that has it.
        agent: AgentId,
    },
    /// There is no such agent, or a name means more than one.
    #[error("Agent {} not found", cut(.0))]
    NoAgent(String),
    /// It was killed before, or it acts although it was killed.
    #[error("Agent {0} is dead")]
    Dead(AgentId),
    /// A model may not kill itself.
    #[error("Agent {0} cannot kill itself")]
    KillsItself(AgentId),
    /// A model may not kill the agents that it works for.
    #[error("Agent {0} cannot be killed by its descendant")]
    KillsAncestor(AgentId),
    /// Only the user can kill these.
    #[error("Agent {0} is a top-level agent: only the user can kill it")]
    TopLevel(AgentId),
    /// A session needs an agent for the user.
    #[error("Agent {0} is the last top-level agent")]
    LastTopLevel(AgentId),
    /// The shortest cycle.
    #[error("Agent {0} cannot wait for itself")]
    WaitsForItself(AgentId),
    /// The session has as many background commands as allowed.
    #[error("Maximum background commands of the session ({0}) reached")]
    TooManyCommands(i64),
    /// The agent has no such command.
    #[error("Command #{0} not found")]
    NoCommand(CommandId),
    /// All agents in it would wait forever. It starts and ends with the one that wanted to wait.
    #[error("Waiting cycle: {}", path(.0))]
    Cycle(Vec<AgentId>),
}

/// A model can make up long values.
fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}

fn path(agents: &[AgentId]) -> String {
    let ids: Vec<String> = agents.iter().map(AgentId::to_string).collect();
    ids.join(" waits for ")
}
