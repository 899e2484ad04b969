//! Whether a call may be carried out: the gate judges, and where it does not know, the person is asked.
//!
//! This stands between "the call is committed" and "it runs", in one place for all tools.
//! What a person answered is in the log before anything happens.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_conversation::{Body, Decision, NewMessage, Preview, ToolCall};
use ikigai_store::{Next, Step, StoreError};
use ikigai_tools::{
    Call, Commands, Confinement, Context, Fact, Gate, Mode, Question, Reach, Rule, Sandbox,
    ToolResult, Tree, Verdict, interrupted, refusal,
};

use crate::agent::Agent;
use ikigai_protocol::{ApprovalAnswer, ApprovalRequest, EventKind};

/// What the agents of a process may do, and who can be asked. All of them share it.
#[derive(Debug)]
pub struct Permissions {
    mode: Mutex<Mode>,
    rules: Arc<[Rule]>,
    tree: Arc<Tree>,
    sandbox: Arc<Sandbox>,
    person: Person,
    /// What the person has allowed for the rest of the session. It is kept as long as the process, so that
    /// nobody's yes of last week counts.
    granted: Mutex<Vec<(String, Subject)>>,
}

/// What a call is about when it is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) facts: Vec<Fact>,
    /// Where its paths lead, links followed. An approval is for these, and void when they lead elsewhere.
    pub(crate) destinations: Vec<PathBuf>,
    /// Of a call of which nothing else is known: approval for the session is for the same call, not for all of the tool's.
    arguments: Option<String>,
}

impl Subject {
    pub(crate) fn of(call: &Call<Step>, arguments: &str, context: &Context) -> Subject {
        let facts = call.facts(context);
        let destinations = call.destinations(context, &facts);
        let arguments = facts.contains(&Fact::Unknown).then(|| arguments.to_owned());
        Subject { facts, destinations, arguments }
    }

    /// The same call, as if it had asked to leave the sandbox.
    pub(crate) fn leaving_sandbox(self) -> Subject {
        Subject { facts: Fact::leaving_sandbox(self.facts), ..self }
    }

    /// Where links in its paths lead, to be shown behind the reason for a question.
    fn links(&self) -> String {
        let files = self.facts.iter().filter_map(|fact| match fact {
            Fact::File(file) => Some(file),
            Fact::Command { .. } | Fact::Host(_) | Fact::Database | Fact::Unknown => None,
        });
        let links = files.zip(&self.destinations).filter(|(file, real)| file.path != **real);
        links.map(|(_, real)| format!("; it leads to {}", real.display())).collect()
    }
}

/// Whether there is somebody who can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Person {
    /// Somebody sees the questions and answers.
    Present,
    /// What would be asked is refused.
    Absent,
}

impl Permissions {
    /// Permissions in a mode, with the user's rules, in a tree, with the walls that commands get.
    pub fn new(
        mode: Mode,
        rules: Vec<Rule>,
        tree: Tree,
        sandbox: Sandbox,
        person: Person,
    ) -> Permissions {
        Permissions {
            mode: Mutex::new(mode),
            rules: rules.into(),
            tree: Arc::new(tree),
            sandbox: Arc::new(sandbox),
            person,
            granted: Mutex::default(),
        }
    }

    /// Whether somebody can be asked.
    pub fn person(&self) -> Person {
        self.person
    }

    /// What is allowed without a rule.
    pub fn mode(&self) -> Mode {
        *lock(&self.mode)
    }

    /// Changes it from the next call on.
    pub fn set_mode(&self, mode: Mode) {
        *lock(&self.mode) = mode;
    }

    /// The context of a call with the walls of these permissions around it.
    pub fn enclose(&self, context: Context) -> Context {
        context.confined(Arc::clone(&self.tree)).with_sandbox(Arc::clone(&self.sandbox))
    }

    /// Judges a call of `tool`, as far as that can be done without the person.
    pub async fn judge(&self, tool: &str, facts: &[Fact], commands: &Commands) -> Verdict {
        let mode = self.mode();
        let is_command = facts.iter().any(|fact| matches!(fact, Fact::Command { .. }));
        let confinement = match is_command && mode == Mode::Work && !commands.has_sandbox().await {
            true => Confinement::Missing,
            false => Confinement::InForce,
        };
        let gate = Gate::new(mode, confinement, Arc::clone(&self.rules));
        gate.judge(tool, facts)
    }

    fn is_granted(&self, tool: &str, subject: &Subject) -> bool {
        lock(&self.granted).iter().any(|(name, granted)| name == tool && granted == subject)
    }

    fn grant(&self, tool: &str, subject: Subject) {
        lock(&self.granted).push((tool.to_owned(), subject));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What became of the question whether a call may be carried out.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it goes nowhere")]
pub(crate) enum Permit {
    /// It may, as far as this.
    Granted(Reach),
    /// It may not: the person's answer for the log, if there was a question, and the call's result.
    Refused(Option<NewMessage>, ToolResult),
}

impl Agent {
    /// Finds out whether a committed call may be carried out.
    pub(crate) async fn permit(
        &mut self,
        call: &ToolCall,
        prepared: &Call<Step>,
        subject: Subject,
    ) -> Result<Permit, StoreError> {
        self.permit_because(call, prepared, subject, None).await
    }

    /// Finds out whether a command whose sandbox could not be had, and `why`, may run without.
    pub(crate) async fn permit_without_sandbox(
        &mut self,
        call: &ToolCall,
        prepared: &Call<Step>,
        subject: Subject,
        why: String,
    ) -> Result<Permit, StoreError> {
        self.permit_because(call, prepared, subject.leaving_sandbox(), Some(why)).await
    }

    /// A question has the reason `why`, if there is one.
    async fn permit_because(
        &mut self,
        call: &ToolCall,
        prepared: &Call<Step>,
        subject: Subject,
        why: Option<String>,
    ) -> Result<Permit, StoreError> {
        let permissions = Arc::clone(&self.toolbox().permissions);
        let commands = &self.toolbox().commands;
        let verdict = permissions.judge(&call.name, &subject.facts, commands).await;
        match verdict.because(why) {
            Verdict::Allow(reach) => Ok(Permit::Granted(reach)),
            Verdict::Deny(why) => Ok(Permit::Refused(None, refusal(&why))),
            Verdict::Ask(question) if permissions.is_granted(&call.name, &subject) => {
                Ok(Permit::Granted(question.reach))
            }
            Verdict::Ask(question) if permissions.person == Person::Absent => {
                let reason = Some("nobody is there to be asked".to_owned());
                let answer = NewMessage::approval(call.tool_call_id.clone(), Decision::No, reason);
                Ok(Permit::Refused(Some(answer), question.refusal()))
            }
            Verdict::Ask(question) => self.ask_person(call, prepared, question, subject).await,
        }
    }

    /// Asks the person, and writes down the answer.
    async fn ask_person(
        &mut self,
        call: &ToolCall,
        prepared: &Call<Step>,
        question: Question,
        subject: Subject,
    ) -> Result<Permit, StoreError> {
        let Question { why, reach, rule } = question;
        // With the eyes of the call itself: it sees what it would change, and nothing else.
        let context = self.context().reaching(reach).leading_to(subject.destinations.clone());
        let preview = prepared.preview(&context).await;
        let why = why + &subject.links();
        let Some(answer) = self.wait_for_answer(call, preview, why, rule).await? else {
            return Ok(Permit::Refused(None, interrupted()));
        };
        let ApprovalAnswer { call: id, decision, reason } = answer;
        let approval = NewMessage::approval(id, decision, reason.clone());
        match decision {
            Decision::No => {
                let why = reason.map(|reason| format!("the person said no: {reason}"));
                let why = why.unwrap_or_else(|| "the person said no".to_owned());
                return Ok(Permit::Refused(Some(approval), refusal(&why)));
            }
            Decision::Once => {}
            Decision::Always => self.toolbox().permissions.grant(&call.name, subject),
        }
        self.record(vec![approval], Next::Tool).await?;
        Ok(Permit::Granted(reach))
    }

    /// Shows a question, and waits for its answer; `None` when the person interrupts, or nobody is left.
    async fn wait_for_answer(
        &mut self,
        call: &ToolCall,
        preview: Preview,
        why: String,
        rule: Option<String>,
    ) -> Result<Option<ApprovalAnswer>, StoreError> {
        self.record(Vec::new(), Next::Permission).await?;
        let cause = self.cause();
        self.question.set(Some(call.tool_call_id.clone()));
        self.emit(EventKind::ApprovalRequested(ApprovalRequest {
            call: call.clone(),
            preview,
            why,
            rule,
            cause,
        }));
        let interrupt = self.interrupt.clone();
        let answered = interrupt.run_until_cancelled(self.answers.recv()).await.flatten();
        self.question.set(None);
        Ok(answered)
    }

    /// Asks about what commands have put into protected paths, and puts it back after a yes. Returns what the model is
    /// told of it, line by line.
    pub(crate) async fn ask_to_put_back(
        &mut self,
        call: &ToolCall,
        prepared: &Call<Step>,
    ) -> Result<Vec<String>, StoreError> {
        let commands = Arc::clone(&self.toolbox().commands);
        let found = commands.take_quarantined(self.context().agent());
        if found.is_empty() || self.toolbox().permissions.person == Person::Absent {
            return Ok(Vec::new());
        }
        let done: Vec<&str> = found.iter().map(|note| note.text.as_str()).collect();
        let why = format!("put back what it changed in protected paths? ({})", done.join("; "));
        let preview = prepared.preview(&self.context()).await;
        let Some(answer) = self.wait_for_answer(call, preview, why, None).await? else {
            return Ok(Vec::new());
        };
        let ApprovalAnswer { call: id, decision, reason } = answer;
        // It is about these paths alone, so there is nothing to be allowed for the session.
        let decision = if decision == Decision::No { decision } else { Decision::Once };
        self.record(vec![NewMessage::approval(id, decision, reason)], Next::Tool).await?;
        let mut lines = Vec::new();
        if decision == Decision::Once {
            for id in found.into_iter().filter_map(|note| note.id) {
                lines.push(match commands.put_back(&id).await {
                    Ok(path) => format!("[ikigai: Put back {} with approval]", path.display()),
                    Err(error) => format!("[ikigai: Could not put back {id}: {error}]"),
                });
            }
        }
        Ok(lines)
    }

    /// The first line of what the agent was told last.
    fn cause(&self) -> String {
        let is_told = |body: &Body| matches!(body, Body::User | Body::Notification(_));
        let told = self.log.iter().rev().find(|message| is_told(&message.body));
        told.and_then(|message| message.content.lines().next()).unwrap_or_default().to_owned()
    }
}
