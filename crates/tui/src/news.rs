//! What goes in and out of the screen: closed lists, so that whoever runs it can see all that it may want.

use ikigai_conversation::{AgentId, Message, ToolCall, ToolCallId};
use ikigai_protocol::{Event, Request};
use ikigai_tools::Mode;

use crate::completion::Listing;
use crate::slash::Slash;
use crate::subject::Before;
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
    /// The answer to a command, or anything else that a person is to read. `Error: …` is one.
    Told {
        /// In whose conversation it is shown.
        agent: AgentId,
        /// What is said.
        text: String,
    },
    /// What [`Effect::List`] asked for.
    Listed(Listing, Vec<String>),
    /// What a file held before a call changed it, as [`Effect::FindBefore`] asked for it.
    Before {
        /// Whose call it is.
        agent: AgentId,
        /// The call.
        call: ToolCallId,
        /// What it held.
        before: Before,
    },
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
    /// A command that the screen cannot carry out alone. What comes of it is told by [`News::Told`].
    Obey {
        /// The agent in view.
        agent: AgentId,
        /// What was typed.
        command: Slash,
    },
    /// The log of this agent is wanted; it is looked at for the first time.
    Recall(AgentId),
    /// A list for completion is wanted.
    List(Listing),
    /// The text that a file had before this call is wanted, for a diff.
    FindBefore {
        /// Whose call it is.
        agent: AgentId,
        /// The call, a `file_write`.
        call: ToolCall,
        /// Where that text is to be found.
        when: When,
    },
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

/// Whether a call has been carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Not yet: the file still has the text.
    Asked,
    /// It has: the text was kept for an undo.
    Done,
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
