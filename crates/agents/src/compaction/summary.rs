//! Asking for a summary, and committing it.

use std::time::{Duration, Instant};

use ikigai_conversation::{NewMessage, Seen, Summary, SummaryPlan, bytes_of, tokens_in, tokens_of};
use ikigai_protocol::EventKind;
use ikigai_providers::{Category, Fault, Progress, Request, Response, Stop, ToolUse};
use ikigai_store::{Next, Obligations, Requests, StoreError};

use super::handoff::{instruction, shorten};
use super::obligations;
use super::room::{Room, SummaryRoom};
use crate::agent::{Agent, Model};
use crate::context_parts::tokens_of_tools;
use crate::order::CompactRequest;
use crate::response_messages::{new_response, usage_message};

/// How often a summarizing request that is too long is repeated with half of the conversation.
const HALVINGS: u32 = 5;

/// A summary as a model wrote it.
pub(super) struct WrittenSummary {
    text: String,
    usage: Option<NewMessage>,
    /// How long that took.
    pub(super) elapsed: Duration,
}

/// A summary that is about to be committed.
pub(super) struct SummaryDraft {
    pub(super) written: WrittenSummary,
    pub(super) plan: SummaryPlan,
    /// The tokens in the context before it.
    pub(super) before: u64,
}

/// Why there is no summary. Nothing was changed.
pub(super) enum SummaryFailure {
    /// The user interrupted the request.
    Interrupted,
    /// The request failed, or the summary was empty.
    Failed(String),
}

impl Agent {
    /// Asks for a summary of the conversation. What came to nothing and may have been billed is
    /// accounted for.
    pub(super) async fn ask_for_summary(
        &mut self,
        room: &Room,
        rest: SummaryRoom,
        wanted: &CompactRequest,
    ) -> Result<Result<WrittenSummary, SummaryFailure>, StoreError> {
        let started = Instant::now();
        let model = self.setup().context.summarizer.clone().unwrap_or_else(|| self.model().clone());
        let mut attempts = 0;
        let answer = self.send_for_summary(&model, room, rest, wanted, &mut attempts).await;
        let text = answer.and_then(|response| Ok((text_of(&response, &model, rest)?, response)));
        match text {
            Ok((text, Response { tokens: Some(tokens), .. })) => {
                model.facts.looked_up().await;
                let lost = attempts.saturating_sub(1);
                let usage = Some(usage_message(tokens, &model, lost, new_response()));
                Ok(Ok(WrittenSummary { text, usage, elapsed: started.elapsed() }))
            }
            other => {
                if attempts > 0 {
                    self.settle_request(attempts).await?;
                }
                let elapsed = started.elapsed();
                Ok(other.map(|(text, _)| WrittenSummary { text, usage: None, elapsed }))
            }
        }
    }

    /// Sends the request with the same tools and messages as any other, so that the server has most
    /// of it in its cache. If it is too long, it is repeated with half of the conversation.
    async fn send_for_summary(
        &self,
        model: &Model,
        room: &Room,
        rest: SummaryRoom,
        wanted: &CompactRequest,
        attempts: &mut u32,
    ) -> Result<Response, SummaryFailure> {
        let log = wanted.before.map_or(self.log(), |end| self.log().before(end));
        let view = log.view();
        let instruction = instruction(rest.summary(), wanted.focus.as_deref());
        // Another model may have a smaller window.
        let window = match model.label == self.model().label {
            true => room.window,
            false => model.facts.now().context_window.unwrap_or(room.window),
        };
        let tools = tokens_of_tools(self.declared());
        let beside = rest.summary() + tools + tokens_of(&[Seen::User(&instruction)]);
        // An estimate may be too low, and a refusal would cost a request.
        let mut limit = bytes_of(window.saturating_sub(beside)) / 10 * 9;
        let mut halvings = 0;
        loop {
            let mut view = shorten(&view, limit);
            let size: usize = view.iter().map(Seen::bytes).sum();
            view.push(Seen::User(&instruction));
            let request = Request {
                model: &model.name,
                origin: model.origin(),
                view: &view,
                tools: self.declared(),
                tool_use: ToolUse::None,
                // As the provider likes: not every model can be told not to think.
                effort: None,
                max_output_tokens: Some(rest.summary()),
            };
            let asked = self.request_summary(model, &request, attempts);
            match self.interrupt.run_until_cancelled(asked).await {
                Some(Ok(response)) => return Ok(response),
                Some(Err(fault))
                    if fault.category == Category::ContextTooLong && halvings < HALVINGS =>
                {
                    halvings += 1;
                    limit = size / 2;
                }
                Some(Err(fault)) => return Err(SummaryFailure::Failed(fault.to_string())),
                None => return Err(SummaryFailure::Interrupted),
            }
        }
    }

    /// `attempts` counts those that may be billed.
    async fn request_summary(
        &self,
        model: &Model,
        request: &Request<'_>,
        attempts: &mut u32,
    ) -> Result<Response, Fault> {
        let mut on_progress = |progress: Progress<'_>| match progress {
            Progress::Sending => *attempts += 1,
            Progress::Refused => *attempts = attempts.saturating_sub(1),
            Progress::Delta(_) => {}
            Progress::Retry { attempt, of, fault, delay } => {
                let reason = fault.to_string();
                self.emit(EventKind::Retry { attempt, of, reason, delay });
            }
        };
        model.client.ask(request, &mut on_progress).await
    }

    /// Commits a summary, with what the agent must not forget as of that commit.
    pub(super) async fn record_summary(
        &mut self,
        draft: SummaryDraft,
        room: &Room,
        rest: SummaryRoom,
        next: Next,
    ) -> Result<Requests, StoreError> {
        let SummaryDraft { written, plan, before } = draft;
        let WrittenSummary { text, usage, elapsed } = written;
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let directory = self.toolbox().directory.clone();
        let limit = bytes_of(rest.obligations());
        let content = format!("{}\n\n{text}", heading(&plan));
        let tokens = room.fixed + plan.tokens + tokens_in(content.len());
        let render = move |facts: &Obligations| {
            let obligations = obligations::render(facts, &directory, limit);
            let after = tokens + tokens_in(obligations.len());
            let SummaryPlan { up_to, kept, cut, .. } = plan.clone();
            let data = Summary { up_to, kept, cut, obligations, before, after, elapsed_ms };
            let summary = NewMessage::summary(content.clone(), data);
            usage.clone().into_iter().chain([summary]).collect()
        };
        let requests = self.append_summary(render, next).await?;
        self.forget_hidden();
        Ok(requests)
    }
}

/// The summary in a response, bounded: not every server keeps to the limit.
fn text_of(
    response: &Response,
    model: &Model,
    rest: SummaryRoom,
) -> Result<String, SummaryFailure> {
    let text = response.text.trim();
    if response.stop == Stop::Blocked || text.is_empty() {
        return Err(SummaryFailure::Failed(format!("{} wrote no summary", model.label)));
    }
    Ok(text[..text.floor_char_boundary(bytes_of(rest.summary()))].to_owned())
}

/// Tells the model what it sees.
fn heading(plan: &SummaryPlan) -> String {
    let above = match (plan.kept.is_empty(), plan.cut) {
        (true, _) => String::new(),
        (false, None) => " The user's messages above are complete.".to_owned(),
        (false, Some(bytes)) => {
            format!(" The user's last message above is cut after {bytes} bytes.")
        }
    };
    format!("[What happened before was summarized to make room.{above}]")
}
