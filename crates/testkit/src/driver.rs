//! A process that writes to the database like an agent, and may die or misbehave on purpose.
//!
//! After every accepted step it prints and flushes one line that starts with `ack`: a promise. The
//! other lines are `paused`, when it waits for a line on its standard input, and `lost`, when
//! another process has taken over its agent. Exit codes: 0 when all steps are done, 3 for a lost
//! lease, 4 for an agent that a live process runs.

use std::io::{BufRead, Write};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::task::{Context, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ikigai_conversation::{
    AgentId, Body, Correspondent, Message, MessageId, NewMessage, SessionId, ToolCall,
};
use ikigai_store::{Clock, Next, Options, Outcome, Sleep, Step, Store, StoreError};
use rustix::process::{Signal, getpid, kill_process};

use crate::random::Random;
use crate::raw::Raw;
use crate::test_agent::{TestAgent, everything, output_of, result_of, said, send_to, send_to_user};
use crate::test_store::PLENTY;

/// The instructions for a driver: `--name value` each, as
/// [`arguments`](Plan::arguments) writes them.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The address of the database.
    pub database: String,
    /// The session, which has the agents `0/` to `agents - 1`.
    pub session: SessionId,
    /// How many top-level agents write to each other.
    pub agents: u32,
    /// Which of them this process runs.
    pub agent: u32,
    /// The seed for its steps.
    pub seed: u64,
    /// The number of its steps.
    pub steps: u32,
    /// The first step and the point of a call at which it may kill itself, if it should.
    pub death: Option<(u32, Point)>,
    /// The step in which it waits, with an open call, for a line on its standard input.
    pub pause: Option<u32>,
    /// How far its clock is ahead of the system clock.
    pub ahead: Duration,
    /// Its fault.
    pub fault: Fault,
}

/// A point in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// The call is in the log and has not run.
    Opened,
    /// The unit of work is in the writer's queue, and may get anywhere.
    Submitted,
    /// The commit was answered, and not acknowledged yet.
    Closed,
}

/// A fault of a driver, to see whether it is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Sends mail in one commit and writes the result in another. If it dies while the unit is
    /// queued, it dies between them.
    Torn,
    /// Writes results without checking the lease. The store has no way to do that, so it uses its
    /// own connection.
    Unfenced,
    /// Only sends, with its own connection that flushes nothing.
    Unflushed,
}

const POINTS: [(&str, Point); 3] =
    [("opened", Point::Opened), ("submitted", Point::Submitted), ("closed", Point::Closed)];
const FAULTS: [(&str, Fault); 4] = [
    ("none", Fault::None),
    ("torn", Fault::Torn),
    ("unfenced", Fault::Unfenced),
    ("unflushed", Fault::Unflushed),
];

impl Plan {
    /// A run without faults and without death.
    pub fn new(database: &str, session: SessionId, agents: u32, agent: u32) -> Plan {
        Plan {
            database: database.to_owned(),
            session,
            agents,
            agent,
            seed: u64::from(agent),
            steps: 20,
            death: None,
            pause: None,
            ahead: Duration::ZERO,
            fault: Fault::None,
        }
    }

    /// The command line of this plan.
    pub fn arguments(&self) -> Vec<String> {
        let name = |fault| FAULTS.iter().find(|(_, value)| *value == fault).unwrap().0;
        let mut arguments = vec![
            ("--database", self.database.clone()),
            ("--session", self.session.to_string()),
            ("--agents", self.agents.to_string()),
            ("--agent", self.agent.to_string()),
            ("--seed", self.seed.to_string()),
            ("--steps", self.steps.to_string()),
            ("--ahead-seconds", self.ahead.as_secs().to_string()),
            ("--fault", name(self.fault).to_owned()),
        ];
        if let Some((step, point)) = self.death {
            let point = POINTS.iter().find(|(_, value)| *value == point).unwrap().0;
            arguments.push(("--die", format!("{step}:{point}")));
        }
        if let Some(step) = self.pause {
            arguments.push(("--pause", step.to_string()));
        }
        arguments.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }

    /// Parses what [`arguments`](Plan::arguments) writes.
    ///
    /// # Panics
    /// If the arguments are invalid.
    pub fn parse(arguments: &[String]) -> Plan {
        let value = |name: &str| {
            let at = arguments.iter().position(|argument| argument == name)?;
            arguments.get(at + 1).cloned()
        };
        let number = |name: &str| value(name).map_or(0, |value| value.parse::<u64>().unwrap());
        let small = |name: &str| u32::try_from(number(name)).unwrap();
        let session = value("--session").expect("--session UUID is needed");
        let fault = value("--fault").unwrap_or_else(|| "none".to_owned());
        Plan {
            database: value("--database").expect("--database ADDRESS is needed"),
            session: SessionId::parse(&session).unwrap(),
            agents: small("--agents"),
            agent: small("--agent"),
            seed: number("--seed"),
            steps: small("--steps"),
            death: value("--die").map(|death| {
                let (step, point) = death.split_once(':').unwrap();
                let point = POINTS.iter().find(|(name, _)| *name == point).unwrap().1;
                (step.parse().unwrap(), point)
            }),
            pause: value("--pause").map(|step| step.parse().unwrap()),
            ahead: Duration::from_secs(number("--ahead-seconds")),
            fault: FAULTS.iter().find(|(name, _)| *name == fault).unwrap().1,
        }
    }
}

/// Runs a driver with the arguments of a [`Plan`].
pub fn main(arguments: &[String]) -> ExitCode {
    let plan = Plan::parse(arguments);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match runtime.block_on(run(&plan)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(StoreError::LeaseLost { holder, .. }) => {
            say(&format!("lost {holder}"));
            ExitCode::from(3)
        }
        Err(StoreError::LeaseHeld { holder, .. }) => {
            say(&format!("held {holder}"));
            ExitCode::from(4)
        }
        Err(error) => panic!("{error}"),
    }
}

async fn run(plan: &Plan) -> Result<(), StoreError> {
    let mut options = Options::default();
    if plan.ahead > Duration::ZERO {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + plan.ahead;
        let now = i64::try_from(now.as_millis()).unwrap();
        options.clock = Clock::Manual(Arc::new(AtomicI64::new(now)));
    }
    let store = Store::open(&plan.database, options)?;
    let agent = TestAgent::claim(&store, plan.session, AgentId::top_level(plan.agent)).await?;
    let random = Random::new(plan.seed);
    let mut driver = Driver { plan, store, agent, random, step: 0, known: Vec::new(), mark: None };
    while driver.step < plan.steps {
        driver.take_step().await?;
        driver.step += 1;
    }
    driver.store.release(driver.agent.lease).await
}

/// Prints a line and flushes it.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // In one write: a line is complete or missing.
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn die() -> ! {
    kill_process(getpid(), Signal::KILL).unwrap();
    unreachable!("SIGKILL ends this process")
}

struct Driver<'a> {
    plan: &'a Plan,
    store: Store,
    agent: TestAgent,
    random: Random,
    step: u32,
    /// Mail that the last inbox listed.
    known: Vec<i64>,
    mark: Option<MessageId>,
}

impl Driver<'_> {
    async fn take_step(&mut self) -> Result<(), StoreError> {
        let send = self.plan.fault != Fault::None || self.plan.pause == Some(self.step);
        match if send { 0 } else { self.random.below(20) } {
            0 if !send => self.call(send_to_user(&self.body("agent"))).await,
            0..8 => {
                let (to, body) = (self.any_agent(), self.body("agent"));
                self.call(send_to(&to, &body)).await
            }
            8..11 => self.call(everything()).await,
            11..15 if !self.known.is_empty() => {
                let mail = *self.random.one_of(&self.known);
                self.call(Step::Read(mail)).await
            }
            11..15 => self.call(everything()).await,
            15..17 => self.sleep_or_be_told().await,
            17 => self.mark_or_rewind().await,
            18 => self.person_sends().await,
            _ => self.person_reads().await,
        }
    }

    fn any_agent(&mut self) -> AgentId {
        AgentId::top_level(u32::try_from(self.random.below(self.plan.agents.into())).unwrap())
    }

    /// A unique text that names its sender. Every third is too long for a notification.
    fn body(&self, who: &str) -> String {
        let Plan { agent, seed, .. } = self.plan;
        let text = format!("{who} {agent}/ {}.{seed}.{}", std::process::id(), self.step);
        if self.step.is_multiple_of(3) { format!("{text} {}", "x".repeat(1_000)) } else { text }
    }

    fn is_time_to_die(&self, point: Point) -> bool {
        self.plan.death.is_some_and(|(step, wanted)| step <= self.step && wanted == point)
    }

    /// A call of the mail tool, from its opening to its acknowledgement.
    async fn call(&mut self, step: Step) -> Result<(), StoreError> {
        let call = self.agent.open(&self.store).await?;
        if self.is_time_to_die(Point::Opened) {
            die();
        }
        if self.plan.pause == Some(self.step) {
            say("paused");
            std::io::stdin().lock().read_line(&mut String::new()).unwrap();
        }
        let result = match self.plan.fault {
            Fault::None => self.close(call, step).await?,
            Fault::Torn => self.close_in_two_commits(&call, step).await?,
            Fault::Unfenced => self.close_without_the_store(&call, step, "full"),
            Fault::Unflushed => self.close_without_the_store(&call, step, "off"),
        };
        if self.is_time_to_die(Point::Closed) {
            die();
        }
        self.acknowledge(&result);
        Ok(())
    }

    async fn close(&self, call: ToolCall, step: Step) -> Result<Message, StoreError> {
        let mut closing = pin!(self.agent.close(&self.store, call, step));
        if self.is_time_to_die(Point::Submitted) {
            // Now the writer's thread has it.
            let _ = closing.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            die();
        }
        closing.await
    }

    /// What the store never does.
    async fn close_in_two_commits(
        &self,
        call: &ToolCall,
        step: Step,
    ) -> Result<Message, StoreError> {
        let (session, id) = (self.plan.session, self.agent.id.clone());
        let outcome = self.store.perform(session, id, step, None).await?;
        if self.is_time_to_die(Point::Submitted) {
            die();
        }
        self.agent.append(&self.store, result_of(call, &outcome), Next::Request).await
    }

    /// Sends like the store, including marks, but without its checks.
    fn close_without_the_store(&self, call: &ToolCall, step: Step, synchronous: &str) -> Message {
        let Step::Send { given, body, .. } = step else { panic!("only sending is written twice") };
        let raw = Raw::open(&self.plan.database);
        raw.script_of(
            &format!("PRAGMA synchronous = {synchronous}; BEGIN"),
            &format!("SET synchronous_commit = {}; BEGIN", synchronous.replace("full", "on")),
        );
        let key = |id: &str| -> i64 {
            let session = self.plan.session;
            raw.number(&format!(
                "SELECT a.key FROM agents a JOIN sessions s ON s.key = a.session
                WHERE s.id = '{session}' AND a.id = '{id}'"
            ))
        };
        let (me, to) = (key(&self.agent.id.to_string()), key(&given));
        let mail = raw.number(&format!(
            "INSERT INTO mail (recipient, sender, body, sent_at) VALUES ({to}, {me}, '{body}', 0)
            RETURNING id"
        ));
        let to = AgentId::parse(&given).unwrap();
        let outcome = Outcome::Sent { id: mail.try_into().unwrap(), to: to.into() };
        let NewMessage { content, body } = result_of(call, &outcome);
        let data = body.data_json();
        let message = raw.number(&format!(
            "INSERT INTO messages (agent, kind, content, data, created_at)
            VALUES ({me}, 'tool_result', '{content}', '{data}', 0) RETURNING id"
        ));
        raw.script(&format!("UPDATE mail SET sent_by = {message} WHERE id = {mail}; COMMIT"));
        let time = ikigai_conversation::Time::from_millis(0);
        NewMessage { content, body }.into_message(
            message.try_into().unwrap(),
            self.agent.id.clone(),
            time,
        )
    }

    /// Prints what was accepted: `ack sent ID TO BODY`, `ack read ID` or `ack step`.
    fn acknowledge(&mut self, result: &Message) {
        let output = output_of(result);
        let id = output["id"].as_i64().unwrap_or_default();
        if let Some(listed) = output["messages"].as_array() {
            self.known = listed.iter().filter_map(|mail| mail["id"].as_i64()).collect();
        }
        if output["sent"] == true {
            let to = output["to"].as_str().unwrap();
            say(&format!("ack sent {id} {to} {}", self.body("agent")));
        } else if output["body"].is_string() {
            say(&format!("ack read {id}"));
        } else {
            say("ack step");
        }
    }

    async fn sleep_or_be_told(&mut self) -> Result<(), StoreError> {
        match self.agent.sleep(&self.store).await? {
            Sleep::MailWaits => {
                let told = self.agent.announce(&self.store).await?;
                assert!(told.is_some_and(|told| matches!(told.body, Body::Notification(_))));
            }
            Sleep::Asleep => {
                let (lease, agent) = (self.agent.lease.clone(), self.agent.id.clone());
                self.store.append_user_input(lease, agent, said("go on", PLENTY)).await?;
            }
        }
        say("ack step");
        Ok(())
    }

    async fn mark_or_rewind(&mut self) -> Result<(), StoreError> {
        match self.mark.take() {
            Some(mark) => self.agent.rewind(&self.store, mark).await.map(drop)?,
            None => self.mark = Some(self.agent.mark(&self.store).await),
        }
        say("ack step");
        Ok(())
    }

    async fn person_sends(&mut self) -> Result<(), StoreError> {
        let (to, body) = (self.any_agent(), self.body("user"));
        let (session, user) = (self.plan.session, Correspondent::User);
        let outcome = self.store.perform(session, user, send_to(&to, &body), Some(PLENTY)).await?;
        if let Outcome::Sent { id, to } = outcome {
            say(&format!("ack sent {id} {to} {body}"));
        }
        Ok(())
    }

    /// The user reads the latest mail of a mailbox: the own one, or that of the agent.
    async fn person_reads(&mut self) -> Result<(), StoreError> {
        let (session, me) = (self.plan.session, self.agent.id.clone());
        if self.random.below(2) == 0 {
            let (user, by_hand) = (Correspondent::User, Some(PLENTY));
            let outcome = self.store.perform(session, user.clone(), everything(), by_hand).await?;
            let Outcome::Inbox(page) = outcome else { panic!("{outcome:?}") };
            let Some(latest) = page.mail.first() else { return Ok(()) };
            let read = Step::Read(latest.id.value());
            return self.store.perform(session, user, read, by_hand).await.map(drop);
        }
        if self.known.is_empty() {
            return Ok(());
        }
        let mail = *self.random.one_of(&self.known);
        // This promises nothing: reading read mail again changes nothing.
        self.store.perform(session, me, Step::Read(mail), None).await.map(drop)
    }
}
