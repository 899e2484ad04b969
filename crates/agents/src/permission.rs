//! Whether a call may run: the gate decides, or asks for the user's approval.
//!
//! This is the only place between "the call is committed" and "it runs", for all tools. The user's
//! answer is logged before anything happens.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ikigai_conversation::{Body, Decision, NewMessage, ToolCall};
use ikigai_store::{Next, Step, StoreError};
use ikigai_tools::{
    Call, Commands, Confinement, Context, Fact, Gate, Mode, Question, Reach, Rule, Sandbox,
    ToolResult, Tree, Verdict, interrupted, refusal,
};

use crate::agent::{Agent, Toolbox};
use ikigai_protocol::ApprovalAnswer;

/// What the agents of a process may do, and whether a user can approve more. Shared by all of them.
#[derive(Debug)]
pub struct Permissions {
    mode: Mutex<Mode>,
    rules: Arc<[Rule]>,
    tree: Arc<Tree>,
    sandbox: Arc<Sandbox>,
    user: User,
    /// The calls that the user approved for the rest of the session. They are not stored, so that
    /// an approval ends with the process.
    granted: Mutex<Vec<(String, Subject)>>,
}

/// The aspects of a call that decide whether it may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) facts: Vec<Fact>,
    /// The destinations of its paths, with links resolved. An approval is for these, and void if
    /// the paths lead elsewhere.
    pub(crate) destinations: Vec<PathBuf>,
    /// The arguments, if the effects are unknown: approval for the session is then for the same
    /// call only, not for every call of the tool.
    arguments: Option<String>,
}

impl Subject {
    pub(crate) fn of(call: &Call<Step>, arguments: &str, context: &Context) -> Subject {
        let facts = call.facts(context);
        let destinations = call.destinations(context, &facts);
        let arguments = facts.contains(&Fact::Unknown).then(|| arguments.to_owned());
        Subject { facts, destinations, arguments }
    }

    /// The same call, as if it had requested to run without the sandbox.
    pub(crate) fn leaving_sandbox(self) -> Subject {
        Subject { facts: Fact::leaving_sandbox(self.facts), ..self }
    }

    /// The destinations of links in its paths, to be appended to the reason for an approval
    /// request.
    fn links(&self) -> String {
        let files = self.facts.iter().filter_map(|fact| match fact {
            Fact::File(file) => Some(file),
            Fact::Command { .. } | Fact::Host(_) | Fact::Database | Fact::Unknown => None,
        });
        let links = files.zip(&self.destinations).filter(|(file, real)| file.path != **real);
        links.map(|(_, real)| format!("; it leads to {}", real.display())).collect()
    }
}

/// Whether there is a user who can approve calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// A user sees and answers approval requests.
    Present,
    /// Calls that need approval are refused.
    Absent,
}

impl Permissions {
    /// Permissions for a mode, the user's rules, a working tree, and the sandbox of commands.
    pub fn new(
        mode: Mode,
        rules: Vec<Rule>,
        tree: Tree,
        sandbox: Sandbox,
        user: User,
    ) -> Permissions {
        Permissions {
            mode: Mutex::new(mode),
            rules: rules.into(),
            tree: Arc::new(tree),
            sandbox: Arc::new(sandbox),
            user,
            granted: Mutex::default(),
        }
    }

    /// Whether there is a user who can approve calls.
    pub fn user(&self) -> User {
        self.user
    }

    /// The mode in force.
    pub fn mode(&self) -> Mode {
        *lock(&self.mode)
    }

    /// Changes the mode, from the next call on.
    pub fn set_mode(&self, mode: Mode) {
        *lock(&self.mode) = mode;
    }

    /// The context of a call, restricted to the working tree and the sandbox.
    pub fn enclose(&self, context: Context) -> Context {
        context.confined(Arc::clone(&self.tree)).with_sandbox(Arc::clone(&self.sandbox))
    }

    /// Judges a call of `tool`, as far as that is possible without the user.
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

/// Whether a call may run.
#[expect(clippy::large_enum_variant, reason = "a call has one question at a time")]
pub(crate) enum Permit {
    /// It may, with this reach.
    Granted(Reach),
    /// It may not. Has the user's answer for the log, if there was one, and the call's result.
    Refused(Option<NewMessage>, ToolResult),
}

impl Agent {
    /// Finds out whether a committed call may run.
    pub(crate) async fn permit(
        &mut self,
        call: &ToolCall,
        prepared: &Call<Step>,
        subject: Subject,
    ) -> Result<Permit, StoreError> {
        self.permit_because(call, prepared, subject, None).await
    }

    /// The reach of a call that may run without approval; `None` for any other.
    pub(crate) async fn reach_without_approval(
        &self,
        prepared: &Call<Step>,
        subject: &Subject,
    ) -> Option<Reach> {
        let Toolbox { permissions, commands, .. } = self.toolbox();
        match permissions.judge(prepared.tool(), &subject.facts, commands).await {
            Verdict::Allow(reach) => Some(reach),
            Verdict::Ask(question) if permissions.is_granted(prepared.tool(), subject) => {
                Some(question.reach)
            }
            Verdict::Ask(_) | Verdict::Deny(_) => None,
        }
    }

    /// Finds out whether a command may run without a sandbox; `why` says why there is none.
    pub(crate) async fn permit_without_sandbox(
        &mut self,
        call: &ToolCall,
        prepared: &Call<Step>,
        subject: Subject,
        why: String,
    ) -> Result<Permit, StoreError> {
        self.permit_because(call, prepared, subject.leaving_sandbox(), Some(why)).await
    }

    /// An approval request gets the reason `why`, if there is one.
    async fn permit_because(
        &mut self,
        call: &ToolCall,
        prepared: &Call<Step>,
        subject: Subject,
        why: Option<String>,
    ) -> Result<Permit, StoreError> {
        let permissions = Arc::clone(&self.toolbox().permissions);
        let commands = &self.toolbox().commands;
        let verdict = permissions.judge(prepared.tool(), &subject.facts, commands).await;
        match verdict.because(why) {
            Verdict::Allow(reach) => Ok(Permit::Granted(reach)),
            Verdict::Deny(why) => Ok(Permit::Refused(None, refusal(&why))),
            Verdict::Ask(question) if permissions.is_granted(prepared.tool(), &subject) => {
                Ok(Permit::Granted(question.reach))
            }
            Verdict::Ask(question) if permissions.user == User::Absent => {
                let reason = Some("there is no user to ask".to_owned());
                let answer = NewMessage::approval(call.tool_call_id.clone(), Decision::No, reason);
                Ok(Permit::Refused(Some(answer), question.refusal()))
            }
            Verdict::Ask(question) => self.ask_user(call, prepared, question, subject).await,
        }
    }

    /// Requests the user's approval, and logs the answer.
    async fn ask_user(
        &mut self,
        call: &ToolCall,
        prepared: &Call<Step>,
        question: Question,
        subject: Subject,
    ) -> Result<Permit, StoreError> {
        let Question { why, reach, rule } = question;
        // With the reach of the call itself: the preview reads what the call would change, no more.
        let context = self.context().reaching(reach).leading_to(subject.destinations.clone());
        let preview = prepared.preview(&context).await;
        let why = why + &subject.links();
        let Some(answer) = self.ask_and_wait(prepared.understood(call), preview, why, rule).await?
        else {
            return Ok(Permit::Refused(None, interrupted()));
        };
        let ApprovalAnswer { call: id, decision, reason, .. } = answer;
        let approval = NewMessage::approval(id, decision, reason.clone());
        if decision == Decision::No {
            let why = reason.map(|reason| format!("denied by the user: {reason}"));
            let why = why.unwrap_or_else(|| "denied by the user".to_owned());
            return Ok(Permit::Refused(Some(approval), refusal(&why)));
        }
        // What is approved is what was shown: the files and the mode may have changed meanwhile.
        if let Some(why) = self.objection(call, prepared, &subject, reach).await {
            return Ok(Permit::Refused(Some(approval), refusal(&why)));
        }
        if decision == Decision::Always {
            self.toolbox().permissions.grant(prepared.tool(), subject);
        }
        self.record(vec![approval], Next::Tool).await?;
        Ok(Permit::Granted(reach))
    }

    /// Why an approved call may not run after all.
    async fn objection(
        &self,
        call: &ToolCall,
        prepared: &Call<Step>,
        approved: &Subject,
        reach: Reach,
    ) -> Option<String> {
        let now = Subject::of(prepared, &call.arguments, &self.context());
        // Beyond the tree, the call itself refuses a path that leads elsewhere, and names it.
        let is_bound = !matches!(reach, Reach::Tree | Reach::Network);
        let is_refused = is_bound && now.destinations != approved.destinations;
        let is_same = now == *approved || now.leaving_sandbox() == *approved;
        if !is_same && !is_refused {
            return Some("what it would do has changed since it was shown".to_owned());
        }
        let Toolbox { permissions, commands, .. } = self.toolbox();
        match permissions.judge(prepared.tool(), &approved.facts, commands).await {
            Verdict::Deny(why) => Some(why),
            Verdict::Allow(_) | Verdict::Ask(_) => None,
        }
    }

    /// Requests approval for what commands wrote to protected paths, and restores it if approved.
    /// Returns the lines about it to be added to the result.
    pub(crate) async fn ask_to_restore(
        &mut self,
        call: &ToolCall,
        prepared: &Call<Step>,
    ) -> Result<Vec<String>, StoreError> {
        let commands = Arc::clone(&self.toolbox().commands);
        let found = commands.take_quarantined(self.context().agent());
        if found.is_empty() || self.toolbox().permissions.user == User::Absent {
            return Ok(Vec::new());
        }
        let done: Vec<&str> = found.iter().map(|note| note.text.as_str()).collect();
        let why = format!("put back what it changed in protected paths? ({})", done.join("; "));
        let preview = prepared.preview(&self.context()).await;
        let Some(answer) = self.ask_and_wait(prepared.understood(call), preview, why, None).await?
        else {
            return Ok(Vec::new());
        };
        let ApprovalAnswer { call: id, decision, reason, .. } = answer;
        // The approval is for these paths only, so it cannot be for the session.
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

    /// The first line of the latest message to the agent.
    pub(crate) fn cause(&self) -> String {
        let is_input = |body: &Body| matches!(body, Body::User | Body::Notification(_));
        let latest = self.log.iter().rev().find(|message| is_input(&message.body));
        latest.and_then(|message| message.content.lines().next()).unwrap_or_default().to_owned()
    }
}
