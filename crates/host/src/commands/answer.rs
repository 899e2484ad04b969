//! Answers to approval requests of any agent of the session, whichever process runs it.

use ikigai_agents::Answer;
use ikigai_config::save_rule;
use ikigai_conversation::AgentId;
use ikigai_protocol::{ApprovalAnswer, ApprovalRequest, CommandError, Nothing, Reply};
use ikigai_store::{AnswerOutcome, AskedQuestion, Respondent, StoreError};

use super::refusal;
use crate::open::OpenSession;

impl OpenSession {
    /// Answers an approval request. The rule that comes with the answer is saved afterwards: a
    /// fault of the file must not keep the agent waiting.
    pub(super) async fn answer(&self, agent: AgentId, answer: ApprovalAnswer) -> Answer {
        let encoded = serde_json::to_string(&answer)
            .map_err(|error| CommandError::Database(error.to_string()))?;
        let (store, session) = (self.slot.store(), self.slot.session());
        let (hash, respondent) = (answer.hash.clone(), Respondent::current());
        let answered = store.answer(session, agent.clone(), hash, encoded, respondent.clone());
        let question = match answered.await {
            Ok(AnswerOutcome::Taken(question)) => question,
            Ok(AnswerOutcome::TooLate) => {
                let why = "This was already answered in another terminal".to_owned();
                return Err(CommandError::Refused(why));
            }
            Ok(AnswerOutcome::NotAllowed) => {
                return Err(CommandError::Refused(not_allowed(&agent)));
            }
            Ok(AnswerOutcome::NoQuestion) | Err(StoreError::AgentNotFound(_)) => {
                return Err(CommandError::NothingToDo(Nothing::Approval));
            }
            Err(error) => return Err(refusal(error)),
        };
        match rule_to_save(&question, answer, &respondent) {
            Some(rule) => self.save_rule(rule),
            None => Ok(Reply::Done),
        }
    }

    fn save_rule(&self, rule: String) -> Answer {
        let not_saved = |why: String| {
            let text = format!("The call was allowed, but its rule could not be saved: {why}");
            CommandError::Refused(text)
        };
        let file = self.environment().settings.user_file();
        let file = file.ok_or_else(|| not_saved("no folder is known for it".to_owned()))?;
        save_rule(file, &rule).map_err(|error| not_saved(error.to_string()))?;
        Ok(Reply::RuleSaved { file: file.to_owned(), rule })
    }
}

/// The rule of an answer. Only a rule that was shown is saved, and only where the agent runs.
fn rule_to_save(
    question: &AskedQuestion,
    answer: ApprovalAnswer,
    respondent: &Respondent,
) -> Option<String> {
    let request: ApprovalRequest = serde_json::from_str(&question.request).ok()?;
    let rule = answer.save_rule.filter(|_| question.asker.is_same_user(respondent))?;
    (request.rule.as_ref() == Some(&rule)).then_some(rule)
}

fn not_allowed(agent: &AgentId) -> String {
    format!(
        "Only the user who runs agent {agent} can answer it. With questions.remote = true in that user's configuration, every terminal of the session can"
    )
}
