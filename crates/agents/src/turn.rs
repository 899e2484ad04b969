//! The agent loop: from a new message until the agent is idle.

use ikigai_conversation::NewMessage;
use ikigai_providers::{Category, Fault, Response, Stop as ModelStop, ToolUse};
use ikigai_store::{Ending, Next, Requests, Sleep, StoreError};

use crate::agent::{Agent, Notify};
use crate::ask::{Arrived, RequestOutcome};
use crate::call::CallsEnd;
use crate::compaction::RoomOutcome;
use crate::order::CompactRequest;
use crate::permission::User;
use crate::response_messages::{ResponseMessages, new_response};
use crate::thought::Thought;
use ikigai_protocol::{StopReason, TurnEnd, did_you_mean};

/// How a turn ended, and whether mail is waiting.
pub(crate) struct Turn {
    pub(crate) done: TurnEnd,
    pub(crate) sleep: Sleep,
}

/// What came of trying to make a request.
enum Requested {
    Answered(Response, Option<Thought>),
    /// There is room for it now. Says whether it is granted.
    RoomMade(Requests),
    /// The turn has ended instead.
    Ended(Turn),
}

impl Turn {
    /// A turn that ended with a call, which the text came with.
    fn answered(text: String, sleep: Sleep) -> Turn {
        let done = TurnEnd { stop: StopReason::Call, text, error: None, can_continue: false };
        Turn { done, sleep }
    }
}

impl Agent {
    /// Runs one turn. Its first message is in the log, and `requests` says whether a request may be
    /// made.
    pub(crate) async fn run_turn(&mut self, mut requests: Requests) -> Result<Turn, StoreError> {
        let mut with_calls = 0;
        self.tell_lost_commands().await?;
        loop {
            if requests == Requests::UsedUp {
                return self.end_by_budget().await;
            }
            if let Some(error) = self.cost_limit_reached().await? {
                return self.end_by_error(error).await;
            }
            if with_calls >= self.limits().tool_turns && self.asks_at_tool_limit() {
                return self.end_at_tool_limit().await;
            }
            let tool_use = match with_calls < self.limits().tool_turns {
                true => ToolUse::Auto,
                false => ToolUse::None,
            };
            let (response, thought) = match self.request(tool_use).await? {
                Requested::Answered(response, thought) => (response, thought),
                Requested::RoomMade(granted) => {
                    requests = granted;
                    continue;
                }
                Requested::Ended(turn) => return Ok(turn),
            };
            if tool_use == ToolUse::None {
                return self.answer_at_limit(response, thought).await;
            }
            if response.calls.is_empty() || response.stop == ModelStop::Blocked {
                return self.answer(response, thought).await;
            }
            with_calls += 1;
            let limit = self.limits().tool_turns;
            let limit = (limit == with_calls && !self.asks_at_tool_limit()).then_some(limit);
            let response = response.with_call_ids_not_in(&self.call_ids());
            let text = response.text.clone();
            let lost = self.lost_attempts;
            let messages = ResponseMessages::of(response, thought, self.model(), lost);
            requests = match self.run_calls(messages, limit).await? {
                CallsEnd::All => Requests::Granted,
                CallsEnd::BudgetUsedUp => Requests::UsedUp,
                CallsEnd::Interrupted => return self.end_by_interrupt(Arrived::default()).await,
                CallsEnd::TurnEnded(sleep) => return Ok(Turn::answered(text, sleep)),
            };
            if let Some(granted) = self.record_queued().await? {
                requests = granted;
            }
            if self.limits().notify == Notify::Boundary && requests == Requests::Granted {
                self.announce_mail_in_turn().await?;
            }
        }
    }

    /// Makes a request. If the context is too full for it, this makes room first or after the
    /// server has refused.
    async fn request(&mut self, tool_use: ToolUse) -> Result<Requested, StoreError> {
        let room = self.make_room_if_due().await?;
        if let Some(requested) = self.after_room(room).await? {
            return Ok(requested);
        }
        match self.ask(tool_use).await? {
            RequestOutcome::Answered(response, thought) => {
                Ok(Requested::Answered(response, thought))
            }
            RequestOutcome::Interrupted(arrived) => {
                self.end_by_interrupt(arrived).await.map(Requested::Ended)
            }
            RequestOutcome::Failed(fault) => {
                let room = self.make_room_after(&fault).await?;
                match self.after_room(room).await? {
                    Some(requested) => Ok(requested),
                    None => self.end_by_fault(&fault).await.map(Requested::Ended),
                }
            }
        }
    }

    /// What follows from making room, unless nothing was done.
    async fn after_room(&mut self, room: RoomOutcome) -> Result<Option<Requested>, StoreError> {
        let requested = match room {
            RoomOutcome::Unchanged => return Ok(None),
            RoomOutcome::Made(granted) => Requested::RoomMade(granted),
            RoomOutcome::Interrupted => {
                Requested::Ended(self.end_by_interrupt(Arrived::default()).await?)
            }
            RoomOutcome::Failed(error) => Requested::Ended(self.end_by_error(error).await?),
        };
        Ok(Some(requested))
    }

    /// Makes room because the user wants it, and reports that like a turn.
    pub(crate) async fn run_compaction(
        &mut self,
        request: &CompactRequest,
    ) -> Result<Turn, StoreError> {
        let outcome = match self.record(Vec::new(), Next::Request).await? {
            Requests::Granted | Requests::NotNeeded(_) => match self.cost_limit_reached().await? {
                Some(error) => RoomOutcome::Failed(error),
                None => self.compact(request).await?,
            },
            Requests::UsedUp => RoomOutcome::Failed(self.budget_used_up()),
        };
        let (stop, error) = match outcome {
            RoomOutcome::Unchanged | RoomOutcome::Made(_) => (StopReason::Stop, None),
            RoomOutcome::Interrupted => (StopReason::Interrupted, None),
            RoomOutcome::Failed(error) => (StopReason::Error, Some(error)),
        };
        let sleep = self.go_idle().await?;
        let can_continue = self.log().needs_turn();
        Ok(Turn { done: TurnEnd { stop, text: String::new(), error, can_continue }, sleep })
    }

    /// Ends the turn with a response. Calls in it are neither run nor logged.
    async fn answer(
        &mut self,
        mut response: Response,
        thought: Option<Thought>,
    ) -> Result<Turn, StoreError> {
        response.calls.clear();
        let text = response.text.clone();
        let (stop, ending, error) = match response.stop {
            ModelStop::Complete => (StopReason::Stop, Ending::Answered, None),
            ModelStop::Length => (StopReason::Length, Ending::Answered, None),
            ModelStop::Blocked => {
                let fault = Fault::new(Category::Blocked, "the model was not allowed to continue");
                let error = explain(&fault);
                (StopReason::Error, Ending::Failed(error.clone()), Some(error))
            }
        };
        let lost = self.lost_attempts;
        let messages = ResponseMessages::of(response, thought, self.model(), lost).messages;
        let sleep = self.record_end(messages, ending).await?;
        Ok(Turn { done: TurnEnd { stop, text, error, can_continue: false }, sleep })
    }

    /// Ends the turn with the answer to its last permitted request.
    async fn answer_at_limit(
        &mut self,
        response: Response,
        thought: Option<Thought>,
    ) -> Result<Turn, StoreError> {
        let mut turn = self.answer(response, thought).await?;
        if turn.done.stop != StopReason::Error {
            turn.done.stop = StopReason::ToolLimit;
        }
        Ok(turn)
    }

    /// Whether the user decides at the limit of calls. A child answers with what it has, because its
    /// parent waits for it.
    fn asks_at_tool_limit(&self) -> bool {
        self.limits().user == User::Present && self.id().parent().is_none()
    }

    /// Ends the turn so that the user can continue it.
    async fn end_at_tool_limit(&mut self) -> Result<Turn, StoreError> {
        let mut turn = self.end_by_error(tool_limit_reached(self.limits().tool_turns)).await?;
        turn.done.stop = StopReason::ToolLimit;
        Ok(turn)
    }

    /// Ends the turn with the text that had arrived, marked as interrupted.
    async fn end_by_interrupt(&mut self, arrived: Arrived) -> Result<Turn, StoreError> {
        let Arrived { text, thought } = arrived;
        let response = new_response();
        let mut messages = Vec::new();
        let has_arrived = !text.trim().is_empty();
        if has_arrived {
            let answer = NewMessage::assistant(text.clone(), response.clone());
            messages.push(match thought {
                Some(thought) => thought.add_to(answer),
                None => answer,
            });
        }
        messages.push(NewMessage::interrupted(has_arrived.then_some(response)));
        let sleep = self.record_end(messages, Ending::Interrupted).await?;
        let done =
            TurnEnd { stop: StopReason::Interrupted, text, error: None, can_continue: false };
        Ok(Turn { done, sleep })
    }

    async fn end_by_fault(&mut self, fault: &Fault) -> Result<Turn, StoreError> {
        let mut error = explain(fault);
        if fault.category == Category::ModelUnknown {
            error.push_str(&did_you_mean(&self.model().facts.similar_names().await));
        }
        self.end_by_error(error).await
    }

    async fn end_by_budget(&mut self) -> Result<Turn, StoreError> {
        self.end_by_error(self.budget_used_up()).await
    }

    fn budget_used_up(&self) -> String {
        format!("Request budget used up ({})", self.limits().budget.requests)
    }

    async fn end_by_error(&mut self, error: String) -> Result<Turn, StoreError> {
        let sleep = self.record_end(Vec::new(), Ending::Failed(error.clone())).await?;
        let can_continue = self.log().needs_turn();
        let done = TurnEnd {
            stop: StopReason::Error,
            text: String::new(),
            error: Some(error),
            can_continue,
        };
        Ok(Turn { done, sleep })
    }
}

fn tool_limit_reached(turns: u32) -> String {
    format!("Tool call limit reached ({turns})")
}

/// What went wrong, and what the user can do about it.
fn explain(fault: &Fault) -> String {
    match fault.retry_after.map(|wish| wish.as_secs()) {
        // The client did not wait that long, or waiting did not help.
        Some(seconds) if seconds > 0 => {
            format!("{fault} (the server asks to wait {seconds} s: wait, or use another model)")
        }
        Some(_) | None => format!("{fault} ({})", fault.category.advice()),
    }
}
