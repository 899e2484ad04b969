//! The inputs and outputs of the screen, as closed enums: they list everything that it can receive
//! and request.

use ikigai_conversation::{AgentId, Message, Mode, SessionId};
use ikigai_protocol::{ApprovalRequest, Event, ModelSummary, Request, RewindPoint, SessionSummary};

use crate::completion::Listing;
use crate::team::Member;

/// An input of the screen.
#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "most updates are events: a box for each would cost more than the room in the others"
)]
pub enum Update {
    /// An event of an agent that this process runs.
    Event(Event),
    /// The log of an agent, in reply to [`Effect::LoadLog`].
    Log {
        /// The agent.
        agent: AgentId,
        /// All of it, or its latest [`RECALLED`](ikigai_protocol::RECALLED) messages.
        log: Vec<Message>,
    },
    /// The living agents of the session. Sent again after every change.
    Team(Vec<Member>),
    /// The open approval requests of agents that other processes run, the oldest first.
    Questions(Vec<(AgentId, ApprovalRequest)>),
    /// How much unread mail the user has.
    Unread(u32),
    /// Messages that an agent of another process has logged, in reply to [`Effect::Follow`].
    Followed {
        /// The agent.
        agent: AgentId,
        /// What is new.
        messages: Vec<Message>,
    },
    /// The contents of the status line.
    Status(Status),
    /// The git branch of the working directory.
    Branch(String),
    /// The reply to a command, or any other message for the user.
    Note {
        /// The agent whose conversation shows it.
        agent: AgentId,
        /// The message.
        text: String,
    },
    /// Why a command was refused.
    Error {
        /// The agent whose conversation shows it.
        agent: AgentId,
        /// The reason.
        text: String,
    },
    /// The reply to [`Effect::LoadList`].
    List(Listing, Vec<String>),
    /// The models that can be chosen, in reply to [`Effect::LoadList`].
    Models(Vec<ModelSummary>),
    /// The editor has exited: the new text, or `None` if the draft stays as it was.
    Edited(Option<String>),
    /// A suggested message. It goes into the input as soon as that is empty.
    Suggestion {
        /// The agent that it is for.
        agent: AgentId,
        /// The text.
        text: String,
    },
    /// The input history of earlier sessions.
    History {
        /// The latest last.
        texts: Vec<String>,
        /// How many are kept.
        size: usize,
    },
    /// The model of an agent.
    Model {
        /// The agent.
        agent: AgentId,
        /// The name of the model.
        model: String,
        /// Its context window in tokens, if known.
        context_tokens: Option<u64>,
    },
    /// The points that the conversation in view can return to, in order.
    RewindPoints(Vec<RewindPoint>),
    /// The sessions, in reply to `/sessions`.
    Sessions {
        /// The latest first.
        sessions: Vec<SessionSummary>,
        /// The one that the screen shows.
        current: SessionId,
        /// Its working directory.
        here: String,
    },
    /// The end of a session's conversation.
    SessionPreview {
        /// The session.
        session: SessionId,
        /// A line per message.
        text: String,
    },
    /// A message is no longer queued, and can be edited.
    Unqueued {
        /// The agent that it was for.
        agent: AgentId,
        /// The message.
        text: String,
    },
    /// The user's own command beside this agent has ended.
    ShellEnded(AgentId),
    /// The title of the session; empty until the user has said something.
    Title(String),
    /// Switch to another session, and to this agent in it.
    Session(AgentId),
    /// Switch to this agent.
    View(AgentId),
    /// Output of agents was dropped because the screen did not keep up. The logs have all of it.
    Dropped,
}

/// A request of the screen to the program around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// A command for an agent: a message, an interrupt, an approval.
    Request(Request),
    /// Load the log of this agent, which is viewed for the first time.
    LoadLog(AgentId),
    /// Load the log of this agent, which another process runs, and then report what is new in it.
    Follow(AgentId),
    /// Stop that.
    Unfollow,
    /// Load a list for completion.
    LoadList(Listing),
    /// Add this input to the history.
    AddToHistory(String),
    /// The user has started or finished a draft for this agent. While the agent is idle, its mail
    /// waits for the draft.
    Drafting {
        /// The agent.
        agent: AgentId,
        /// Whether the draft was started or finished.
        draft: Drafting,
    },
    /// Switch to this session, or to a new one.
    OpenSession(Option<SessionId>),
    /// Open this text in the editor. The editor owns the terminal until [`Update::Edited`].
    OpenEditor(String),
}

/// A change in whether the input has text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drafting {
    /// The first character was typed.
    Started,
    /// The text was sent or cleared.
    Ended,
}

/// The contents of the status line. Unknown parts are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The model, unless [`Update::Model`] named another one for the agent in view.
    pub model: String,
    /// The permission mode.
    pub mode: Mode,
    /// The sandbox of commands; empty if there is none.
    pub sandbox: String,
    /// The git branch of the working directory; empty if there is none.
    pub branch: String,
    /// The context window of the model in tokens.
    pub context_tokens: Option<u64>,
    /// The cost of the session, with its currency.
    pub cost: Option<String>,
    /// A label before everything else: `tour (scripted)`.
    pub label: Option<String>,
}
