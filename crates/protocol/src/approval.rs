//! Approvals: a call that the user has to decide on, and the decision.

use ikigai_conversation::{Decision, Preview, ToolCall, ToolCallId};
use serde::{Deserialize, Serialize};

/// Where the user adds the rule of an [`ApprovalRequest`].
pub const RULE_LOCATION: &str =
    "in your own configuration before other rules ('ikigai config' names the file)";

/// A call that needs approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// The call; it is committed and has not run.
    pub call: ToolCall,
    /// Everything that it would do.
    pub preview: Preview,
    /// Why it needs approval.
    pub why: String,
    /// The TOML rule for the user's configuration that would allow the call. `None` if no rule can.
    pub rule: Option<String>,
    /// The first line of the latest message to the agent.
    pub cause: String,
    /// The hash of all this.
    pub hash: String,
}

/// The user's answer to an [`ApprovalRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalAnswer {
    /// The call.
    pub call: ToolCallId,
    /// The hash of the request. An answer counts for nothing but what the user has seen.
    pub hash: String,
    /// The decision.
    pub decision: Decision,
    /// For a refusal: the reason given to the model.
    #[serde(default)]
    pub reason: Option<String>,
    /// For an approval: the rule of the request, to be saved in the user's configuration.
    #[serde(default)]
    pub save_rule: Option<String>,
}
