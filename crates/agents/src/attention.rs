//! Taking orders during a turn: each is carried out, queued or refused at once, and answered.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use ikigai_conversation::{AgentId, ToolCallId};
use ikigai_protocol::{ApprovalAnswer, CommandError, Nothing, QueuedUntil, Reply};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::order::{AgentCommand, BetweenTurns, Pending, PendingReply};

/// How many messages of the user may wait to be committed, and how many orders for the end of the turn. A user types no
/// more in the time that either takes.
const WAITING: usize = 64;

/// A message of the user, and the answer that it is owed.
pub(crate) type Typed = (String, PendingReply);

/// The call that waits for approval, if there is one.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenQuestion(Arc<Mutex<Option<ToolCallId>>>);

impl OpenQuestion {
    pub(crate) fn set(&self, call: Option<ToolCallId>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = call;
    }

    fn is(&self, call: &ToolCallId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(call)
    }
}

/// What reaches an agent during a turn.
pub(crate) struct Attention {
    agent: AgentId,
    interrupt: CancellationToken,
    typed: mpsc::Sender<Typed>,
    answers: mpsc::Sender<ApprovalAnswer>,
    question: OpenQuestion,
}

impl Attention {
    /// The attention of an agent whose turn is about to run, and the messages of the user to commit meanwhile.
    pub(crate) fn of(agent: &mut Agent) -> (Attention, mpsc::Receiver<Typed>) {
        let (typed, texts) = mpsc::channel(WAITING);
        // One question at a time; a second answer is refused.
        let (answers, given) = mpsc::channel(1);
        agent.answers = given;
        let attention = Attention {
            agent: agent.id().clone(),
            interrupt: agent.interrupt.clone(),
            typed,
            answers,
            question: agent.question.clone(),
        };
        (attention, texts)
    }

    /// Takes an order. What is only possible between turns is put into `deferred`.
    pub(crate) fn take(&self, pending: Pending, deferred: &mut VecDeque<BetweenTurns>) {
        let Pending { command, reply } = pending;
        match command {
            AgentCommand::Say(text) => self.queue(text, reply),
            AgentCommand::Interrupt => {
                self.interrupt.cancel();
                reply.done();
            }
            AgentCommand::Answer(answer) => {
                let is_taken =
                    self.question.is(&answer.call) && self.answers.try_send(answer).is_ok();
                match is_taken {
                    true => reply.done(),
                    false => reply.refuse(CommandError::NothingToDo(Nothing::Approval)),
                }
            }
            AgentCommand::BetweenTurns(_) if deferred.len() >= WAITING => {
                reply.refuse(CommandError::QueueFull(self.agent.clone()));
            }
            AgentCommand::BetweenTurns(command) => {
                deferred.push_back(command);
                reply.send(Ok(Reply::Queued(QueuedUntil::TurnEnd)));
            }
            AgentCommand::Continue => {
                reply.refuse(CommandError::NothingToDo(Nothing::Continue));
            }
            // The team's.
            AgentCommand::HoldMail | AgentCommand::ReleaseMail => reply.done(),
            // Mail is looked for when the turn ends.
            AgentCommand::Look => {}
        }
    }

    /// Has a message of the user committed; it is answered then.
    fn queue(&self, text: String, reply: PendingReply) {
        use mpsc::error::TrySendError::{Closed, Full};
        if let Err(Full((_, reply)) | Closed((_, reply))) = self.typed.try_send((text, reply)) {
            reply.refuse(CommandError::QueueFull(self.agent.clone()));
        }
    }
}
