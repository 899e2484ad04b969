//! Making room when the context of an agent fills up: outputs are shortened, or a summary replaces
//! the conversation. What is written to the log is one commit, so a crash leaves the view from
//! before it or the one after it.

mod handoff;
mod obligations;
mod room;
mod summary;

use std::time::{Duration, Instant};

use ikigai_conversation::{NewMessage, Seen, SummaryPlan, tokens_of};
use ikigai_protocol::{Compaction, CompactionMethod, EventKind, render_context_use};
use ikigai_providers::{Category, Fault};
use ikigai_store::{Next, Requests, StoreError};
use tracing::{info, warn};

use crate::agent::{Agent, Model};
use crate::context_parts::{context_parts, tokens_of_tools, what_fills};
use crate::order::CompactRequest;
pub(crate) use room::Room;
use room::SummaryRoom;
use summary::{SummaryDraft, SummaryFailure};

/// A second summary within fewer requests would only burn money.
const REQUESTS_BETWEEN: usize = 3;

/// No model for agents has less.
const SMALL_WINDOW: u64 = 16_000;

/// When agents make room in their contexts, and who writes the summaries.
#[derive(Debug, Clone)]
pub struct ContextSettings {
    /// Who decides when.
    pub trigger: CompactionTrigger,
    /// How full a context may become, in percent of what is usable.
    pub compact_at: u64,
    /// The model that writes summaries, if not the agent's own.
    pub summarizer: Option<Model>,
}

/// Who decides when room is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionTrigger {
    /// Agents do, when it is necessary.
    Automatic,
    /// The user does. Agents only warn.
    User,
}

/// Why room is made.
#[derive(Debug, Clone, Copy)]
enum Cause<'a> {
    /// The context is nearly full.
    Full,
    /// The server refused the last request as too long.
    Refused,
    /// The user wants it.
    Asked(&'a CompactRequest),
}

/// The outcome of making room.
#[derive(Debug)]
pub(crate) enum RoomOutcome {
    /// There was enough room, or none could be made; nothing was done.
    Unchanged,
    /// There is room now. Says whether the next request is granted.
    Made(Requests),
    /// The user interrupted it.
    Interrupted,
    /// There is no room. The text says why, and what the user can do.
    Failed(String),
}

impl Agent {
    /// Makes room before a request, if it is due.
    pub(crate) async fn make_room_if_due(&mut self) -> Result<RoomOutcome, StoreError> {
        self.refresh();
        let used = self.report_context();
        let Some(room) = self.room() else { return Ok(RoomOutcome::Unchanged) };
        if used <= room.limit(self.setup().context.compact_at) {
            return Ok(RoomOutcome::Unchanged);
        }
        if self.setup().context.trigger == CompactionTrigger::User {
            let share = render_context_use(used, Some(room.window));
            self.emit(EventKind::Warning(format!("{share}; /compact makes room")));
            return Ok(RoomOutcome::Unchanged);
        }
        self.make_room(room, used, Cause::Full).await
    }

    /// Makes room after a fault, if the server refused the request as too long.
    pub(crate) async fn make_room_after(
        &mut self,
        fault: &Fault,
    ) -> Result<RoomOutcome, StoreError> {
        if fault.category != Category::ContextTooLong
            || self.setup().context.trigger == CompactionTrigger::User
        {
            return Ok(RoomOutcome::Unchanged);
        }
        if let Some(named) = fault.named_window() {
            self.model().facts.add_named_window(named);
        }
        let used = self.used_tokens();
        let window = self.model().facts.now().context_window;
        // Otherwise at least as much fits as was accepted before.
        let window = window.or_else(|| self.log().last_reported_tokens()).unwrap_or(used / 2);
        let room = self.room_in(window);
        self.make_room(room, used.max(window), Cause::Refused).await
    }

    /// Makes room because the user wants it.
    pub(crate) async fn compact(
        &mut self,
        request: &CompactRequest,
    ) -> Result<RoomOutcome, StoreError> {
        self.refresh();
        let used = self.used_tokens();
        // An unknown window is at least as large as what is used.
        let room = self.room().unwrap_or_else(|| self.room_in(used.max(SMALL_WINDOW)));
        self.make_room(room, used, Cause::Asked(request)).await
    }

    async fn make_room(
        &mut self,
        room: Room,
        used: u64,
        cause: Cause<'_>,
    ) -> Result<RoomOutcome, StoreError> {
        match cause {
            Cause::Asked(_) => {}
            Cause::Full | Cause::Refused => {
                let next = Next::GrantedRequest;
                let trimmed = self.trim(room.whole_outputs(), used, room.target(), next).await?;
                if let Some(requests) = trimmed {
                    return Ok(RoomOutcome::Made(requests));
                }
                if self.log().responses_since_summary().is_some_and(|n| n < REQUESTS_BETWEEN) {
                    return self.make_more_room(&room, used, "It was summarized just before").await;
                }
            }
        }
        let end = match cause {
            Cause::Asked(request) => request.before,
            Cause::Full | Cause::Refused => None,
        };
        let plan = room.for_summary().and_then(|rest| self.log().plan_summary(rest.kept(), end));
        match (room.for_summary().zip(plan), cause) {
            (Some((rest, plan)), _) => self.summarize(&room, rest, plan, used, cause).await,
            (None, Cause::Asked(_)) => {
                Ok(RoomOutcome::Failed("There is nothing to compact".to_owned()))
            }
            // The server's own words say more.
            (None, Cause::Refused) if !self.has_summary() => Ok(RoomOutcome::Unchanged),
            (None, Cause::Full | Cause::Refused) => {
                self.make_more_room(&room, used, "A summary would not make room").await
            }
        }
    }

    async fn summarize(
        &mut self,
        room: &Room,
        rest: SummaryRoom,
        plan: SummaryPlan,
        used: u64,
        cause: Cause<'_>,
    ) -> Result<RoomOutcome, StoreError> {
        let (request, next) = match cause {
            Cause::Asked(request) => (request.clone(), Next::GrantedRequest),
            // The request that was granted is used for the summary.
            Cause::Full | Cause::Refused => (CompactRequest::default(), Next::Request),
        };
        match self.ask_for_summary(room, rest, &request).await? {
            Ok(written) => {
                let elapsed = written.elapsed;
                let draft = SummaryDraft { written, plan, before: used };
                let requests = self.record_summary(draft, room, rest, next).await?;
                self.report_compaction(CompactionMethod::Summary, used, elapsed);
                Ok(RoomOutcome::Made(requests))
            }
            Err(SummaryFailure::Interrupted) => Ok(RoomOutcome::Interrupted),
            Err(SummaryFailure::Failed(why)) => {
                warn!(agent = self.id().to_string(), why, "no summary");
                match cause {
                    Cause::Asked(_) => Ok(RoomOutcome::Failed(why)),
                    Cause::Full | Cause::Refused => self.make_more_room(room, used, &why).await,
                }
            }
        }
    }

    /// Shortens more outputs than usual, where a summary cannot be had; otherwise explains what the
    /// user can do.
    async fn make_more_room(
        &mut self,
        room: &Room,
        used: u64,
        why: &str,
    ) -> Result<RoomOutcome, StoreError> {
        let percent = self.setup().context.compact_at;
        let keep = room.whole_outputs() / 4;
        if let Some(requests) = self.trim(keep, used, room.limit(percent), Next::Request).await? {
            return Ok(RoomOutcome::Made(requests));
        }
        let fills = what_fills(&context_parts(&self.log(), self.declared()), room.window);
        Ok(RoomOutcome::Failed(format!(
            "The context is full: {fills}. {why}. Use /compact, /clear, or a model with a larger \
             context: /model"
        )))
    }

    /// Shortens outputs but the latest with up to `keep` tokens, if that brings the context below
    /// `enough`.
    async fn trim(
        &mut self,
        keep: u64,
        used: u64,
        enough: u64,
        next: Next,
    ) -> Result<Option<Requests>, StoreError> {
        let started = Instant::now();
        let plan = self.log().plan_trim(keep);
        let Some(plan) = plan.filter(|plan| used.saturating_sub(plan.saved) < enough) else {
            return Ok(None);
        };
        let requests = self.record(vec![NewMessage::trim(plan.up_to)], next).await?;
        self.report_compaction(CompactionMethod::Trim, used, started.elapsed());
        Ok(Some(requests))
    }

    fn has_summary(&self) -> bool {
        self.log().responses_since_summary().is_some()
    }

    fn report_compaction(&self, method: CompactionMethod, before: u64, elapsed: Duration) {
        let after = self.used_tokens();
        info!(agent = self.id().to_string(), ?method, before, after, "made room");
        self.emit(EventKind::Compaction(Compaction { method, before, after, elapsed }));
        self.report_context();
    }

    /// Reports how full the context is, and returns how many tokens are used.
    pub(crate) fn report_context(&self) -> u64 {
        let used = self.used_tokens();
        let window = self.model().facts.now().context_window;
        self.emit(EventKind::ContextUsed { used, window });
        used
    }

    fn used_tokens(&self) -> u64 {
        self.log().used_tokens(tokens_of_tools(self.declared()))
    }

    /// The window of the agent's model, if it is known.
    fn room(&self) -> Option<Room> {
        self.model().facts.now().context_window.map(|window| self.room_in(window))
    }

    fn room_in(&self, window: u64) -> Room {
        let fixed = tokens_of_tools(self.declared()) + self.tokens_of_prompt();
        Room::of(window, &self.model().facts.now(), fixed)
    }

    fn tokens_of_prompt(&self) -> u64 {
        let mut view = self.log().view();
        view.retain(|seen| matches!(seen, Seen::System(_)));
        tokens_of(&view)
    }
}
