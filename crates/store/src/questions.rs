//! Calls that wait for the user's approval.
//!
//! A question is a row, so that every terminal of the session can answer it. The first answer wins
//! by a conditional update. The process that asks waits for the answer and acts on it; nothing runs
//! anywhere else. A question is open while its agent is asking and it has no answer. Rows that are
//! over stay until the agent asks again.

use ikigai_conversation::{AgentId, SessionId};

use crate::agents::{State, agent_by_id, set_state};
use crate::error::StoreError;
use crate::leases::{Lease, decode, encode, fence};
use crate::process::Process;
use crate::sessions;
use crate::sql::params;
use crate::store::Store;
use crate::unit::Unit;
use crate::writer::Scope;

/// A question to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewQuestion {
    /// The hash of the request.
    pub hash: String,
    /// What the user is shown, as the caller encodes it.
    pub request: String,
    /// The process that asks.
    pub asker: Respondent,
    /// Who may answer.
    pub answers_from: AnswersFrom,
}

/// Who may answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswersFrom {
    /// Processes of the same user on the same machine.
    SameUser,
    /// Every process that can open the database.
    Everywhere,
}

/// A process and its user: who asks, or who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Respondent {
    /// The process.
    pub process: Process,
    /// The number of its user.
    pub user: u32,
}

impl Respondent {
    /// The current process.
    pub fn current() -> Respondent {
        Respondent { process: Process::current(), user: rustix::process::getuid().as_raw() }
    }

    /// Whether both are the same user on the same machine.
    pub fn is_same_user(&self, other: &Respondent) -> bool {
        self.user == other.user && self.process.is_same_machine(&other.process)
    }
}

/// The key of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionId(i64);

/// A question that has no answer yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedQuestion {
    /// The agent that asks.
    pub agent: AgentId,
    /// What the user is shown.
    pub request: String,
    /// The process that asks.
    pub asker: Respondent,
    /// Who may answer.
    pub answers_from: AnswersFrom,
}

impl AskedQuestion {
    /// Whether this process may answer.
    pub fn takes_answer_of(&self, respondent: &Respondent) -> bool {
        self.answers_from == AnswersFrom::Everywhere || self.asker.is_same_user(respondent)
    }
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// It is the answer. Has the question.
    Taken(AskedQuestion),
    /// The question is answered already.
    TooLate,
    /// There is no such question, or no longer.
    NoQuestion,
    /// This process may not answer it.
    NotAllowed,
}

impl Store {
    /// Asks: the question and the state of the agent are one commit.
    pub async fn ask(
        &self,
        lease: Lease,
        agent: AgentId,
        question: NewQuestion,
    ) -> Result<QuestionId, StoreError> {
        self.commit(lease.scope(), move |unit| {
            let agent = fence(unit, &lease, &agent)?;
            unit.run("DELETE FROM questions WHERE agent = ?1", params![agent.key])?;
            let NewQuestion { hash, request, asker, answers_from } = question;
            let process = encode(&asker.process)?;
            let remote = answers_from == AnswersFrom::Everywhere;
            let sql = "INSERT INTO questions
                    (agent, hash, request, asker, asker_user, remote, created_at)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING key";
            let now = unit.now().as_millis();
            let values = params![agent.key, hash, request, process, asker.user, remote, now];
            let key = unit.insert(sql, values)?;
            set_state(unit, &agent, State::Asking)?;
            Ok(QuestionId(key))
        })
        .await
    }

    /// The answer to a question, once it has one.
    ///
    /// # Errors
    /// [`StoreError::Internal`] if the question is gone: its agent cannot ask any more.
    pub async fn answer_to(&self, question: QuestionId) -> Result<Option<String>, StoreError> {
        self.read(move |unit| {
            let sql = "SELECT answer FROM questions WHERE key = ?1";
            unit.row(sql, params![question.0], |row| row.get(0))?
                .ok_or_else(|| StoreError::internal("the question is gone"))
        })
        .await
    }

    /// The open questions of a session, the oldest first.
    pub async fn questions(&self, session: SessionId) -> Result<Vec<AskedQuestion>, StoreError> {
        self.read(move |unit| {
            let session = sessions::key_of(unit, &session)?;
            let sql = "SELECT a.id, q.request, q.asker, q.asker_user, q.remote
                FROM questions q JOIN agents a ON a.key = q.agent
                WHERE a.session = ?1 AND a.state = 'asking' AND q.answer IS NULL ORDER BY q.key";
            unit.rows(sql, params![session], |row| {
                let asker = Respondent { process: decode(&row.text(2)?)?, user: row.get(3)? };
                let (agent, request) = (row.get(0)?, row.get(1)?);
                Ok(AskedQuestion { agent, request, asker, answers_from: who_answers(row.get(4)?) })
            })
        })
        .await
    }

    /// Answers the question of an agent whose request has this hash. The first answer wins.
    pub async fn answer(
        &self,
        session: SessionId,
        agent: AgentId,
        hash: String,
        answer: String,
        respondent: Respondent,
    ) -> Result<AnswerOutcome, StoreError> {
        self.commit(Scope::Session(session), move |unit| {
            let row = agent_by_id(unit, &session, &agent)?;
            let Some((key, question)) = find(unit, row.key, &agent, &hash)? else {
                return Ok(AnswerOutcome::NoQuestion);
            };
            if !question.takes_answer_of(&respondent) {
                return Ok(AnswerOutcome::NotAllowed);
            }
            let sql = "UPDATE questions SET answer = ?2 WHERE key = ?1 AND answer IS NULL";
            Ok(match unit.execute(sql, params![key, answer])? {
                0 => AnswerOutcome::TooLate,
                _ => AnswerOutcome::Taken(question),
            })
        })
        .await
    }
}

/// The question with this hash that an agent is asking, answered or not.
fn find(
    unit: &Unit<'_>,
    agent: i64,
    id: &AgentId,
    hash: &str,
) -> Result<Option<(i64, AskedQuestion)>, StoreError> {
    let sql = "SELECT q.key, q.request, q.asker, q.asker_user, q.remote
        FROM questions q JOIN agents a ON a.key = q.agent
        WHERE q.agent = ?1 AND q.hash = ?2 AND a.state = 'asking' ORDER BY q.key DESC LIMIT 1";
    unit.row(sql, params![agent, hash], |row| {
        let asker = Respondent { process: decode(&row.text(2)?)?, user: row.get(3)? };
        let (agent, answers_from) = (id.clone(), who_answers(row.get(4)?));
        Ok((row.get(0)?, AskedQuestion { agent, request: row.get(1)?, asker, answers_from }))
    })
}

fn who_answers(is_remote: bool) -> AnswersFrom {
    if is_remote { AnswersFrom::Everywhere } else { AnswersFrom::SameUser }
}
