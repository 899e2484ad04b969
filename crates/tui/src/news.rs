//! What goes in and out of the screen: closed lists, so that whoever runs it can see all that it may want.

use ikigai_conversation::{AgentId, Message, Mode};
use ikigai_protocol::{Event, Request};

use crate::completion::Listing;
use crate::team::Member;

/// Something that the screen is told.
#[derive(Debug, Clone)]
pub enum News {
    /// Something happened to an agent that is run here.
    Event(Event),
    /// The log of an agent, as [`Effect::Recall`] asked for it.
    Recalled {
        /// Whose it is.
        agent: AgentId,
        /// All of it, or its newest [`RECALLED`](crate::RECALLED) messages.
        log: Vec<Message>,
    },
    /// The agents of the session, those that are dead left out. It is told anew whenever something about them changes.
    Team(Vec<Member>),
    /// What the last line says.
    Status(Status),
    /// The reply to a command, or anything else that the user should read.
    Told {
        /// In whose conversation it is shown.
        agent: AgentId,
        /// What is said.
        text: String,
    },
    /// Why a command was refused.
    Refused {
        /// In whose conversation it is shown.
        agent: AgentId,
        /// The reason.
        text: String,
    },
    /// What [`Effect::List`] asked for.
    Listed(Listing, Vec<String>),
    /// The editor has ended: the text, or `None` when it is to stay as it was.
    Edited(Option<String>),
    /// A text for the person to send. It is put into the input as soon as nothing else is there.
    Draft {
        /// To whom.
        agent: AgentId,
        /// The text.
        text: String,
    },
    /// What was typed in earlier sessions.
    History {
        /// The newest last.
        texts: Vec<String>,
        /// How many are kept.
        size: usize,
    },
    /// This model answers an agent.
    Model {
        /// Whom.
        agent: AgentId,
        /// Its name.
        model: String,
        /// How many tokens it can take, where that is known.
        context_tokens: Option<u64>,
    },
    /// This agent is to be looked at.
    View(AgentId),
    /// The screen took nothing for so long that what agents said was let go. The logs have it.
    Missed,
}

/// Something that the screen wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// An agent is told something: what the person says, an interrupt, an answer.
    Request(Request),
    /// The log of this agent is wanted; it is looked at for the first time.
    Recall(AgentId),
    /// A list for completion is wanted.
    List(Listing),
    /// This was typed, and goes into the history.
    Remember(String),
    /// The person has begun or stopped typing to this agent; while it is idle, its mail waits for that.
    Drafting {
        /// The agent.
        agent: AgentId,
        /// Which of both.
        draft: Drafting,
    },
    /// The person wants to edit this text in the editor. The terminal is the editor's until [`News::Edited`].
    Edit(String),
}

/// Whether there is something in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drafting {
    /// There is.
    Begun,
    /// It was sent or cleared.
    Ended,
}

/// What the last line says. What is not known is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The model that answers, unless another one was told of for the agent in view.
    pub model: String,
    /// What agents may touch.
    pub mode: Mode,
    /// What commands are kept in by; empty where they are not.
    pub sandbox: String,
    /// The session, as short as it can be named.
    pub session: String,
    /// How many tokens the model can take.
    pub context_tokens: Option<u64>,
    /// What the session has cost, with its currency.
    pub cost: Option<String>,
    /// The working directory, as it is shown.
    pub directory: String,
    /// Something to be said before all else: `tour (scripted)`.
    pub label: Option<String>,
}
