//! The agents of a process. Each is a task while it works, and a row in the database while it is
//! idle.
//!
//! A single query of the database finds all work, whatever signals were lost (M6): new mail, turns
//! that were cut off, forked children, free agents to run, killed agents. So an idle agent costs
//! nothing, and no commit needs a notification.

mod background;
mod signals;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use ikigai_conversation::AgentId;
use ikigai_store::{Changes, PendingWork, StoreError, TakeoverPolicy};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::agent::{Agent, FreeAgents, TeamSetup};
use crate::order::{AgentCommand, Order, Pending};
use crate::seat::Seat;
use crate::task::Task;
use ikigai_protocol::{CommandError, Event, EventKind, StopReason, TurnEnd};

/// The maximum number of orders waiting for an agent. It takes them at once, even while it works,
/// unless it waits for the database; the user may type a few lines meanwhile.
const ORDERS: usize = 256;

/// Runs the agent of `seat`, all agents that it forks, and free agents of the session that have
/// work to do. Cancelling `shutdown` interrupts all turns and ends the team. Leases are released at
/// the end.
///
/// # Errors
/// When the database refuses, or another process has taken over the agent of `seat`.
pub async fn serve(
    seat: Seat,
    setup: TeamSetup,
    orders: mpsc::Receiver<Order>,
    shutdown: CancellationToken,
) -> Result<(), StoreError> {
    let setup = Arc::new(setup);
    let mut team = Team {
        own: seat.agent().clone(),
        seats: BTreeMap::from([(seat.agent().top(), seat)]),
        setup: Arc::clone(&setup),
        at_work: BTreeMap::new(),
        tasks: JoinSet::new(),
        idle: None,
        changes: None,
        held: BTreeSet::new(),
        shutdown,
    };
    let served = team.run(orders).await;
    if let Err(error) = &served {
        team.emit(team.own.clone(), EventKind::AgentLost(error.to_string()));
    }
    team.end_all().await;
    team.report_running_commands();
    setup.toolbox.commands.close().await;
    for seat in std::mem::take(&mut team.seats).into_values() {
        seat.release().await;
    }
    served
}

struct Team {
    /// The agent that the process was started for. Without it the team ends.
    own: AgentId,
    /// One for each top-level agent whose lease this process holds.
    seats: BTreeMap<AgentId, Seat>,
    setup: Arc<TeamSetup>,
    at_work: BTreeMap<AgentId, AtWork>,
    tasks: JoinSet<TaskEnd>,
    /// The process's own agent keeps its log in memory while it is idle; other agents reload
    /// theirs.
    idle: Option<Box<Agent>>,
    /// Watched as soon as there is a session.
    changes: Option<Changes>,
    /// Agents whose mail is held while they are idle, because the user is typing to them.
    held: BTreeSet<AgentId>,
    shutdown: CancellationToken,
}

/// An agent with a task.
struct AtWork {
    orders: mpsc::Sender<Pending>,
    /// Interrupts its turn and all later ones.
    stop: CancellationToken,
}

/// The end of an agent's task, with orders that arrived too late for it.
struct TaskEnd {
    agent: Box<Agent>,
    orders: mpsc::Receiver<Pending>,
    result: Result<(), StoreError>,
}

impl Team {
    async fn run(&mut self, mut orders: mpsc::Receiver<Order>) -> Result<(), StoreError> {
        let mut is_open = true;
        // Orders that have already arrived come before a turn that was cut off.
        while let Ok(order) = orders.try_recv() {
            self.pass_on(order);
        }
        self.start_work().await?;
        loop {
            let is_idle = !is_open && self.at_work.is_empty();
            // First of all: the end of a command is committed before the command counts as ended,
            // so that what is no longer awaited is found by the search for work.
            let awaits_commands = self.awaits_commands();
            if is_idle && !self.start_work().await? && !awaits_commands {
                return Ok(());
            }
            let (lost, is_busy) = (self.lost(), !self.at_work.is_empty());
            tokio::select! {
                biased;
                Some(ended) = self.tasks.join_next() => {
                    self.finish_task(ended.map_err(|error| join_error(&error))?).await?;
                    // Otherwise the start of the loop checks for work.
                    if is_open {
                        self.start_work().await?;
                    }
                }
                order = orders.recv(), if is_open => match order {
                    Some(order) => {
                        let is_due = order.pending.command == AgentCommand::ReleaseMail;
                        self.pass_on(order);
                        if is_due {
                            self.start_work().await?;
                        }
                    }
                    None => is_open = false,
                },
                () = self.shutdown.cancelled(), if is_open || is_idle => is_open = false,
                (top, error) = lost => self.drop_lease(&top, error)?,
                changed = signals::changed(&mut self.changes, is_busy) => {
                    changed?;
                    self.start_work().await?;
                }
            }
        }
    }

    /// Passes an order to its agent, and starts the agent if it is idle.
    fn pass_on(&mut self, order: Order) {
        let Order { agent, pending } = order;
        match pending.command {
            AgentCommand::HoldMail => {
                self.held.insert(agent);
                return pending.reply.done();
            }
            AgentCommand::ReleaseMail => {
                self.held.remove(&agent);
                return pending.reply.done();
            }
            _ => {}
        }
        if let Some(at_work) = self.at_work.get(&agent) {
            // It takes orders at once. If its task has just ended, they come back with the task.
            match at_work.orders.try_send(pending) {
                Ok(()) => {}
                Err(TrySendError::Full(pending) | TrySendError::Closed(pending)) => {
                    if let AgentCommand::Say(text) = &pending.command {
                        self.emit(agent.clone(), EventKind::InputRejected(text.clone()));
                    }
                    pending.reply.refuse(CommandError::QueueFull(agent));
                }
            }
            return;
        }
        match self.seat_of(&agent) {
            Some(seat) => self.start(seat, pending),
            None => pending.reply.refuse(CommandError::NotRunning(agent)),
        }
    }

    /// Finds out what work there is, and starts it. Returns whether there was any.
    async fn start_work(&mut self) -> Result<bool, StoreError> {
        let Some(seat) = self.seats.get(&self.own.top()).cloned() else { return Ok(false) };
        if seat.lease().is_none() || self.shutdown.is_cancelled() {
            return Ok(false);
        }
        let store = seat.store();
        if self.changes.is_none() {
            // Before the first query, so that no later change is missed.
            self.changes = Some(store.changes(seat.session())?);
        }
        let policy = match self.setup.limits.free_agents {
            FreeAgents::TakenUp | FreeAgents::Left => TakeoverPolicy::Immediate,
            FreeAgents::TakenUpLater => TakeoverPolicy::AfterLease,
        };
        let found = store.pending_work(seat.session(), seat.place(), seat.process(), policy).await;
        let work = match found {
            Err(error) if error.is_transient() => return Ok(false),
            found => found?,
        };
        self.end_killed(&seat, &work).await?;
        self.release_idle(&work).await;
        let mut has_started = false;
        if self.setup.limits.free_agents != FreeAgents::Left {
            for top in work.to_take_up {
                has_started |= self.claim(&seat, top).await?;
            }
        }
        let to_wake: Vec<AgentId> =
            work.to_wake.into_iter().filter(|agent| !self.held.contains(agent)).collect();
        for agent in to_wake.into_iter().chain(work.at_work) {
            if !self.at_work.contains_key(&agent)
                && let Some(seat) = self.seat_of(&agent)
            {
                self.start(seat, Pending::look());
                has_started = true;
            }
        }
        Ok(has_started)
    }

    /// Ends the tasks of killed agents, and their commands.
    async fn end_killed(&mut self, seat: &Seat, work: &PendingWork) -> Result<(), StoreError> {
        // Agents that the database has at work were not killed. Most of the others have just become
        // idle.
        let at_work = self.at_work.keys().filter(|id| work.at_work.binary_search(id).is_err());
        let doubtful: BTreeSet<AgentId> = at_work.cloned().chain(self.with_commands()).collect();
        let doubtful: Vec<AgentId> = doubtful.into_iter().collect();
        if doubtful.is_empty() {
            return Ok(());
        }
        let found = seat.store().dead_among(seat.session(), doubtful).await;
        let dead = match found {
            Err(error) if error.is_transient() => return Ok(()),
            found => found?,
        };
        for dead in dead {
            if let Some(at_work) = self.at_work.get(&dead) {
                at_work.stop.cancel();
            }
            self.end_commands_of(&dead);
        }
        Ok(())
    }

    /// Claims a free top-level agent, unless another process is faster. The next query finds the
    /// work in its tree.
    async fn claim(&mut self, own: &Seat, top: AgentId) -> Result<bool, StoreError> {
        match own.store().claim(own.session(), top.clone(), own.process()).await {
            Ok(lease) => {
                info!(agent = top.to_string(), "taken up");
                self.seats.insert(top, own.with_lease(lease)?);
                Ok(true)
            }
            Err(StoreError::LeaseHeld { .. } | StoreError::AgentDead(_)) => Ok(false),
            Err(error) if error.is_transient() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn seat_of(&self, agent: &AgentId) -> Option<Seat> {
        self.seats.get(&agent.top()).map(|seat| seat.of(agent.clone()))
    }

    fn start(&mut self, seat: Seat, pending: Pending) {
        let agent = match self.idle.take_if(|idle| idle.id() == seat.agent()) {
            Some(agent) => agent,
            None => Box::new(Agent::new(seat, Arc::clone(&self.setup))),
        };
        let (sender, orders) = mpsc::channel(ORDERS);
        // The channel is new and has room.
        let _ = sender.try_send(pending);
        self.spawn(agent, sender, orders);
    }

    fn spawn(
        &mut self,
        mut agent: Box<Agent>,
        sender: mpsc::Sender<Pending>,
        mut orders: mpsc::Receiver<Pending>,
    ) {
        let stop = self.shutdown.child_token();
        let at_work = AtWork { orders: sender, stop: stop.clone() };
        self.at_work.insert(agent.id().clone(), at_work);
        self.tasks.spawn(async move {
            let task = Task {
                agent: &mut agent,
                orders: &mut orders,
                shutdown: stop,
                deferred: VecDeque::new(),
            };
            let result = task.run().await;
            TaskEnd { agent, orders, result }
        });
    }

    /// Handles the end of a task: its agent is idle, or cannot continue.
    async fn finish_task(&mut self, ended: TaskEnd) -> Result<(), StoreError> {
        let TaskEnd { agent, orders, result } = ended;
        let id = agent.id().clone();
        let Some(AtWork { orders: sender, .. }) = self.at_work.remove(&id) else { return Ok(()) };
        match result {
            Ok(()) if !orders.is_empty() => self.spawn(agent, sender, orders),
            Ok(()) if id == self.own => self.idle = Some(agent),
            // If its top-level agent was free, the next query releases that.
            Ok(()) => {}
            Err(error @ StoreError::AgentDead(_)) => {
                self.emit(id.clone(), EventKind::TurnEnded(killed()));
                if id == self.own {
                    return Err(error);
                }
            }
            Err(error @ StoreError::LeaseLost { .. }) => self.drop_lease(&id.top(), error)?,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Releases claimed top-level agents whose trees have no work left, even if another process did
    /// that work.
    async fn release_idle(&mut self, work: &PendingWork) {
        let due = work.to_wake.iter().chain(&work.at_work);
        let with_commands = self.with_commands();
        let busy = self.at_work.keys().chain(due).chain([&self.own]).chain(&with_commands);
        let busy: BTreeSet<AgentId> = busy.map(AgentId::top).collect();
        let idle: Vec<AgentId> =
            self.seats.keys().filter(|top| !busy.contains(top)).cloned().collect();
        for top in idle {
            if let Some(seat) = self.seats.remove(&top) {
                info!(agent = top.to_string(), "given back");
                seat.release().await;
            }
        }
    }

    /// Waits until a lease is lost.
    fn lost(&self) -> impl Future<Output = (AgentId, StoreError)> + use<> {
        let lost: Vec<_> = self
            .seats
            .iter()
            .map(|(top, seat)| {
                let (top, lost) = (top.clone(), seat.lost());
                Box::pin(async move { (top, lost.await) })
            })
            .collect();
        signals::first_of(lost)
    }

    /// Handles the loss of a top-level agent to another process: its tree can no longer write.
    fn drop_lease(&mut self, top: &AgentId, error: StoreError) -> Result<(), StoreError> {
        if *top == self.own.top() {
            return Err(error);
        }
        // Each of its tasks fails on its own, but the loss is reported once.
        if self.seats.remove(top).is_none() {
            return Ok(());
        }
        for (id, at_work) in &self.at_work {
            if id.top() == *top {
                at_work.stop.cancel();
            }
        }
        let with_commands = self.with_commands().into_iter();
        with_commands.filter(|id| id.top() == *top).for_each(|id| self.end_commands_of(&id));
        self.emit(top.clone(), EventKind::AgentLost(error.to_string()));
        Ok(())
    }

    /// Ends all tasks, and waits for them.
    async fn end_all(&mut self) {
        self.shutdown.cancel();
        while self.tasks.join_next().await.is_some() {}
    }

    fn emit(&self, agent: AgentId, kind: EventKind) {
        (self.setup.events)(Event { agent, kind });
    }
}

fn killed() -> TurnEnd {
    let error = Some("the agent was killed".to_owned());
    TurnEnd { stop: StopReason::Interrupted, text: String::new(), error, can_continue: false }
}

fn join_error(error: &tokio::task::JoinError) -> StoreError {
    StoreError::Internal(error.to_string().into())
}
