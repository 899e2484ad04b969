//! Approval requests as rows: asking, and waiting for the answer of any terminal.

use ikigai_conversation::{Preview, ToolCall};
use ikigai_protocol::{ApprovalAnswer, ApprovalRequest, EventKind};
use ikigai_store::{Changes, NewQuestion, QuestionId, Respondent, StoreError};
use ikigai_tools::{Content, ContentHash};

use crate::agent::Agent;

impl Agent {
    /// Asks the user, and waits for the first answer from a terminal of the session. Returns `None`
    /// if the turn is interrupted.
    pub(crate) async fn ask_and_wait(
        &mut self,
        call: ToolCall,
        preview: Preview,
        why: String,
        rule: Option<String>,
    ) -> Result<Option<ApprovalAnswer>, StoreError> {
        let (cause, hash) = (self.cause(), String::new());
        let request = ApprovalRequest { call, preview, why, rule, cause, hash };
        let request = with_hash(request)?;
        let question = self.ask_in_database(&request).await?;
        self.emit(EventKind::ApprovalRequested(request));
        let interrupt = self.interrupt.clone();
        let answered = interrupt.run_until_cancelled(self.wait_for_answer(question)).await;
        answered.transpose()
    }

    async fn ask_in_database(
        &mut self,
        request: &ApprovalRequest,
    ) -> Result<QuestionId, StoreError> {
        let question = NewQuestion {
            hash: request.hash.clone(),
            request: encode(request)?,
            asker: Respondent::current(),
            answers_from: self.limits().answers_from,
        };
        self.with_retry(|agent| {
            let (lease, id) = agent.lease_and_id()?;
            let (store, question) = (agent.seat.store(), question.clone());
            Ok(async move { store.ask(lease, id, question).await })
        })
        .await
    }

    async fn wait_for_answer(&self, question: QuestionId) -> Result<ApprovalAnswer, StoreError> {
        let (store, session) = (self.seat.store(), self.seat.session());
        let mut changes: Option<Changes> = None;
        loop {
            // Subscribe before reading, so that no answer in between is missed.
            if changes.is_none() {
                changes = store.changes(session).ok();
            }
            match store.answer_to(question).await {
                Ok(Some(answer)) => {
                    return serde_json::from_str(&answer).map_err(|error| internal(&error));
                }
                Ok(None) => {}
                Err(error) if error.is_transient() => {}
                Err(error) => return Err(error),
            }
            let waited = match &mut changes {
                Some(changes) => changes.wait(Changes::SWEEP).await,
                None => Err(StoreError::Closed),
            };
            if waited.is_err() {
                changes = None;
                tokio::time::sleep(Changes::SWEEP).await;
            }
        }
    }
}

/// The request with its hash: an answer counts for exactly this request.
fn with_hash(request: ApprovalRequest) -> Result<ApprovalRequest, StoreError> {
    let content = Content { bytes: encode(&request)?.into_bytes(), mode: 0 };
    let hash = ContentHash::of_content(&content).to_string();
    Ok(ApprovalRequest { hash, ..request })
}

fn encode(request: &ApprovalRequest) -> Result<String, StoreError> {
    serde_json::to_string(request).map_err(|error| internal(&error))
}

fn internal(error: &serde_json::Error) -> StoreError {
    StoreError::Internal(error.to_string().into())
}
