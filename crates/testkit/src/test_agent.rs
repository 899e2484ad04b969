//! An agent that handles its mail like a real one.

use std::time::Duration;

use ikigai_conversation::{
    AgentId, Body, Correspondent, Log, MailId, Message, MessageId, NewMessage, Notification,
    ResponseId, SessionId, ToolCall, ToolCallId,
};
use ikigai_store::{
    AgentAddress, AgentLimits, AwaitedAgent, Budget, Ending, ForkContext, InboxFilter, Input,
    Lease, MailAddress, NamedAgent, NewFork, Next, Outcome, Process, Sleep, Status, Step, Store,
    StoreError, Unread, Wait,
};
use serde_json::{Value, json};

/// An agent with its lease. The ids of its calls contain the process, so that a log shows which
/// process wrote what.
#[derive(Debug, Clone)]
pub struct TestAgent {
    /// The agent.
    pub id: AgentId,
    /// Its lease.
    pub lease: Lease,
    run: String,
    calls: u32,
}

impl TestAgent {
    /// An agent that is already claimed, with an empty log.
    pub fn with(lease: Lease, id: AgentId) -> TestAgent {
        let process = Process::current();
        let run = format!("{}.{}", process.pid, process.start);
        TestAgent { id, lease, run, calls: 0 }
    }

    /// Claims an agent for this process, and closes the open calls in its log.
    pub async fn claim(
        store: &Store,
        session: SessionId,
        id: AgentId,
    ) -> Result<TestAgent, StoreError> {
        let process = Process::current();
        let run = format!("{}.{}", process.pid, process.start);
        let lease = store.claim(session, id.clone(), process).await?;
        let agent = TestAgent { id, lease, run, calls: 0 };
        let own = store.own_log(session, agent.id.clone(), None).await?;
        for result in Log::new(&own).open_calls() {
            agent.append(store, result, Next::Request).await?;
        }
        Ok(agent)
    }

    /// A child of this agent, under the same lease.
    pub fn child(&self, id: AgentId) -> TestAgent {
        TestAgent { id, ..self.clone() }
    }

    /// The session it is in.
    pub fn session(&self) -> SessionId {
        *self.lease.session()
    }

    /// Appends a message.
    pub async fn append(
        &self,
        store: &Store,
        message: NewMessage,
        next: Next,
    ) -> Result<Message, StoreError> {
        let (lease, agent) = (self.lease.clone(), self.id.clone());
        let recorded = store.append(lease, agent, vec![message], next).await?;
        Ok(only(recorded.messages))
    }

    /// Commits a call of the mail tool, before it runs.
    pub async fn open(&mut self, store: &Store) -> Result<ToolCall, StoreError> {
        self.calls += 1;
        let id = ToolCallId::new(format!("{}:{}", self.run, self.calls));
        let response = ResponseId::new(format!("{}:{}", self.run, self.calls));
        let call = NewMessage::tool_call(id, "mail", "{}", response);
        match self.append(store, call, Next::Tool).await?.body {
            Body::ToolCall(call) => Ok(call),
            _ => panic!("an opened call is a call"),
        }
    }

    /// Performs the step of an open call and closes it.
    pub async fn close(
        &self,
        store: &Store,
        call: ToolCall,
        step: Step,
    ) -> Result<Message, StoreError> {
        let render = move |outcome: &Outcome| result_of(&call, outcome);
        let (lease, agent) = (self.lease.clone(), self.id.clone());
        let recorded = store.close_call(lease, agent, step, render, Next::Request).await?;
        Ok(only(recorded.messages))
    }

    /// A complete call.
    pub async fn call(&mut self, store: &Store, step: Step) -> Result<Message, StoreError> {
        let call = self.open(store).await?;
        self.close(store, call, step).await
    }

    /// Sends mail that must be accepted.
    pub async fn send(&mut self, store: &Store, to: &AgentId, body: &str) -> MailId {
        let result = self.call(store, send_to(to, body)).await.unwrap();
        let output = output_of(&result);
        MailId::new(output["id"].as_i64().unwrap_or_default()).unwrap_or_else(|| {
            panic!("not sent: {output}");
        })
    }

    /// Forks a child with a call. Returns it, or why it was refused.
    pub async fn fork(&mut self, store: &Store, fork: NewFork) -> Result<TestAgent, String> {
        let output = output_of(&self.call(store, Step::Fork(fork)).await.unwrap());
        match output["data"]["agent"].as_str() {
            Some(id) => Ok(self.child(AgentId::parse(id).unwrap())),
            None => Err(output["error"].as_str().unwrap_or_default().to_owned()),
        }
    }

    /// Kills with a call. Returns the dead, or why it was refused.
    pub async fn kill(&mut self, store: &Store, victim: &AgentId) -> Result<Vec<AgentId>, String> {
        let step = Step::Kill(by_id(victim));
        let output = output_of(&self.call(store, step).await.unwrap());
        match output["data"]["killed"].as_array() {
            Some(ids) => {
                Ok(ids.iter().map(|id| AgentId::parse(id.as_str().unwrap()).unwrap()).collect())
            }
            None => Err(output["error"].as_str().unwrap_or_default().to_owned()),
        }
    }

    /// Reads a message, and returns the result in the log.
    pub async fn read(&mut self, store: &Store, mail: MailId) -> Message {
        self.call(store, Step::Read(mail.value())).await.unwrap()
    }

    /// Lists the whole inbox.
    pub async fn look(&mut self, store: &Store) -> Message {
        self.call(store, everything()).await.unwrap()
    }

    /// Announces new mail, if there is mail that would wake it.
    pub async fn announce(&self, store: &Store) -> Result<Option<Message>, StoreError> {
        let (lease, id) = (self.lease.clone(), self.id.clone());
        Ok(store.announce(lease, id, None, notification_of).await?.pop())
    }

    /// Goes idle, unless there is mail.
    pub async fn sleep(&self, store: &Store) -> Result<Sleep, StoreError> {
        self.end(store, Vec::new(), Ending::Answered).await
    }

    /// Ends its turn with an answer.
    pub async fn answer(&self, store: &Store, text: &str) -> Sleep {
        let response = ResponseId::new(format!("answer of {}", self.id));
        let answer = NewMessage::assistant(text, response);
        self.end(store, vec![answer], Ending::Answered).await.unwrap()
    }

    /// Ends its turn.
    pub async fn end(
        &self,
        store: &Store,
        messages: Vec<NewMessage>,
        ending: Ending,
    ) -> Result<Sleep, StoreError> {
        let (lease, agent) = (self.lease.clone(), self.id.clone());
        Ok(store.end_turn(lease, agent, messages, ending).await?.sleep)
    }

    /// Marks a point to rewind to.
    pub async fn mark(&self, store: &Store) -> MessageId {
        self.append(store, NewMessage::mark(None), Next::Request).await.unwrap().id
    }

    /// Rewinds to a message.
    pub async fn rewind(&self, store: &Store, to: MessageId) -> Result<Message, StoreError> {
        let message = NewMessage::rewind(to, None);
        store.rewind(self.lease.clone(), self.id.clone(), to, message).await
    }
}

fn only(messages: Vec<Message>) -> Message {
    messages.into_iter().next().expect("one was appended")
}

/// User input with a budget.
pub fn said(text: &str, budget: Budget) -> Input {
    Input { messages: vec![NewMessage::user(text)], budget, model: "test/model".to_owned() }
}

/// Limits that no test reaches by accident.
pub const ROOM: AgentLimits = AgentLimits { agents: 1_000, depth: 64 };

/// A child to fork, with this context and task.
pub fn new_fork(context: ForkContext, prompt: Option<&str>) -> NewFork {
    let prompt = prompt.map(str::to_owned);
    NewFork { prompt, name: None, context, limits: ROOM, system: None }
}

/// An agent named by its id.
pub fn by_id(id: &AgentId) -> NamedAgent {
    NamedAgent { address: AgentAddress::Id(id.clone()), given: id.to_string() }
}

/// A wait without a time limit for these agents, or for all children.
pub fn wait_for(agents: &[&AgentId]) -> Wait {
    let agents = agents.iter().map(|id| by_id(id)).collect();
    Wait { agents, commands: Vec::new(), limit: Duration::MAX }
}

/// The step that sends `body` to an agent.
pub fn send_to(to: &AgentId, body: &str) -> Step {
    let address = MailAddress::Agent(AgentAddress::Id(to.clone()));
    Step::Send { to: address, given: to.to_string(), body: body.to_owned() }
}

/// The step that sends `body` to the user.
pub fn send_to_user(body: &str) -> Step {
    let given = Correspondent::USER.to_owned();
    Step::Send { to: MailAddress::User, given, body: body.to_owned() }
}

/// The step that lists a whole mailbox, up to the limit of a page.
pub fn everything() -> Step {
    Step::Inbox(InboxFilter { unread: None, from: None, limit: 200, offset: 0 })
}

/// A notification of all new mail, in the format of the mail crate.
pub(crate) fn notification_of(unread: &Unread) -> NewMessage {
    let mut text = format!("[Notification: {} unread]", unread.count);
    for mail in &unread.new {
        let shown = if mail.is_whole() { mail.body.as_str() } else { "..." };
        text.push_str(&format!("\n#{} from {}: {}", mail.id, mail.from, json!(shown)));
    }
    let commands = unread.ended.iter().map(|command| command.id).collect();
    let notification = Notification { mail: unread.all_new.clone(), commands };
    NewMessage { content: text, body: Body::Notification(notification) }
}

/// The result for a model, in the format of the mail tool.
pub fn result_of(call: &ToolCall, outcome: &Outcome) -> NewMessage {
    let output = match outcome {
        Outcome::Inbox(page) => {
            let listed = page.mail.iter();
            let messages: Vec<Value> = listed.map(|mail| json!({"id": mail.id.value()})).collect();
            json!({"messages": messages, "unread_count": page.unread})
        }
        Outcome::Read(mail) | Outcome::Peeked(mail) => {
            json!({"id": mail.id.value(), "body": mail.body})
        }
        Outcome::Sent { id, to } => json!({"sent": true, "to": to.to_string(), "id": id.value()}),
        Outcome::MadeUnread(id) => json!({"unread": id.value()}),
        Outcome::NoMail(id) => json!({"error": format!("Message #{id} not found")}),
        Outcome::NoAgent(agent) => json!({"error": format!("Agent {agent} not found")}),
        Outcome::Dead(agent) => json!({"error": format!("Agent {agent} is dead")}),
        Outcome::Full(agent) => json!({"error": format!("Mailbox of agent {agent} is full")}),
        Outcome::Forked(agent) => json!({"success": true, "data": {"agent": agent}}),
        Outcome::Killed(killed) => json!({"success": true, "data": {"killed": killed}}),
        Outcome::Agents(agents) => json!({"success": true, "data": {"agents": agents.len()}}),
        Outcome::WaitEnded(waited) => {
            let results: Vec<Value> = waited.results.iter().map(awaited).collect();
            json!({"success": true, "data": {"results": results, "unread": waited.unread}})
        }
        Outcome::Abandoned => json!({"success": false, "error": "Interrupted"}),
        Outcome::Refused(refusal) => json!({"success": false, "error": refusal.to_string()}),
    };
    NewMessage::tool_result(call, output.to_string())
}

fn awaited(awaited: &AwaitedAgent) -> Value {
    let status = match &awaited.status {
        Status::Answered(text) => format!("idle: {text}"),
        Status::Failed(error) => format!("idle: error: {error}"),
        Status::Running => "running".to_owned(),
        Status::Dead => "dead".to_owned(),
    };
    json!([awaited.agent, status])
}

/// The JSON of a result.
pub fn output_of(message: &Message) -> Value {
    match &message.body {
        Body::ToolResult(result) => serde_json::from_str(&result.output).unwrap_or_default(),
        _ => Value::Null,
    }
}
