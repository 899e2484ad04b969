//! The agents that a process runs: each is a task while it works, and a row in the database while it is idle.
//!
//! One look at the database tells what is to be done, whatever signals were lost (M6): who has mail,
//! whose turn was cut off, which child was forked, which free agent is to be taken up, who was killed. So an
//! idle agent costs nothing, and nobody has to be told of anything that is committed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ikigai_conversation::AgentId;
use ikigai_store::{Changes, PendingWork, StoreError, TakeoverPolicy};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::agent::{Agent, Equipment, FreeAgents};
use crate::order::{AgentCommand, Order, Pending};
use crate::seat::Seat;
use crate::task::Task;
use ikigai_protocol::{CommandError, Event, EventKind, StopReason, TurnEnd};

/// How many orders may wait for an agent. It takes them at once, even while it works, unless it waits for the database; the
/// user may type some lines meanwhile.
const ORDERS: usize = 256;

/// Runs the agent at `seat`, all that it forks, and free agents of the session that have something to do. Cancelling
/// `shutdown` interrupts all turns and ends the team. Leases are given back at the end.
///
/// # Errors
/// When the database refuses, or another process has taken the agent at the seat over.
pub async fn serve(
    seat: Seat,
    equipment: Equipment,
    orders: mpsc::Receiver<Order>,
    shutdown: CancellationToken,
) -> Result<(), StoreError> {
    let equipment = Arc::new(equipment);
    let mut team = Team {
        own: seat.agent().clone(),
        seats: BTreeMap::from([(seat.agent().top(), seat)]),
        equipment: Arc::clone(&equipment),
        at_work: BTreeMap::new(),
        tasks: JoinSet::new(),
        resting: None,
        changes: None,
        held: BTreeSet::new(),
        shutdown,
    };
    let served = team.run(orders).await;
    if let Err(error) = &served {
        team.emit(team.own.clone(), EventKind::AgentLost(error.to_string()));
    }
    team.end_all().await;
    equipment.toolbox.commands.close().await;
    for seat in std::mem::take(&mut team.seats).into_values() {
        seat.leave().await;
    }
    served
}

struct Team {
    /// The agent that the person talks to first. Without it the team has no purpose.
    own: AgentId,
    /// One for each top-level agent that this process has the lease of.
    seats: BTreeMap<AgentId, Seat>,
    equipment: Arc<Equipment>,
    at_work: BTreeMap<AgentId, AtWork>,
    tasks: JoinSet<Rested>,
    /// The agent of the person keeps its log in memory while it is idle; others read it again.
    resting: Option<Box<Agent>>,
    /// Watched from the moment that there is a session.
    changes: Option<Changes>,
    /// Agents whose mail waits while they are idle, since the person is writing to them.
    held: BTreeSet<AgentId>,
    shutdown: CancellationToken,
}

/// An agent with a task.
struct AtWork {
    orders: mpsc::Sender<Pending>,
    /// Ends its turn and all further ones.
    stop: CancellationToken,
}

/// An agent whose task has ended, with what it was told too late.
struct Rested {
    agent: Box<Agent>,
    orders: mpsc::Receiver<Pending>,
    served: Result<(), StoreError>,
}

impl Team {
    async fn run(&mut self, mut orders: mpsc::Receiver<Order>) -> Result<(), StoreError> {
        let mut is_open = true;
        // What somebody has to say already goes in before a turn goes on that was cut off.
        while let Ok(order) = orders.try_recv() {
            self.pass_on(order);
        }
        self.look().await?;
        loop {
            if !is_open && self.at_work.is_empty() && !self.look().await? {
                return Ok(());
            }
            let (lost, is_busy) = (self.lost(), !self.at_work.is_empty());
            tokio::select! {
                biased;
                Some(rested) = self.tasks.join_next() => {
                    self.take_back(rested.map_err(|error| broken(&error))?).await?;
                    // Else the look that decides about the end is due anyway.
                    if is_open {
                        self.look().await?;
                    }
                }
                order = orders.recv(), if is_open => match order {
                    Some(order) => {
                        let is_due = order.pending.command == AgentCommand::ReleaseMail;
                        self.pass_on(order);
                        if is_due {
                            self.look().await?;
                        }
                    }
                    None => is_open = false,
                },
                () = self.shutdown.cancelled(), if is_open => is_open = false,
                (top, error) = lost => self.lose(&top, error)?,
                changed = wait(&mut self.changes, is_busy) => {
                    changed?;
                    self.look().await?;
                }
            }
        }
    }

    /// Passes an order on to its agent; one that is idle starts to work.
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
            // It takes orders at once; when it has just ended, they come back with it.
            match at_work.orders.try_send(pending) {
                Ok(()) => {}
                Err(TrySendError::Full(pending) | TrySendError::Closed(pending)) => {
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

    /// Finds out what is to be done, and begins it. Says whether there was something.
    async fn look(&mut self) -> Result<bool, StoreError> {
        let Some(seat) = self.seats.get(&self.own.top()).cloned() else { return Ok(false) };
        if seat.lease().is_none() || self.shutdown.is_cancelled() {
            return Ok(false);
        }
        let store = seat.store();
        if self.changes.is_none() {
            // Before the first look: what comes after it is noticed.
            self.changes = Some(store.changes(seat.session())?);
        }
        let patience = match self.equipment.limits.free_agents {
            FreeAgents::TakenUp | FreeAgents::Left => TakeoverPolicy::Immediate,
            FreeAgents::TakenUpLater => TakeoverPolicy::AfterLease,
        };
        let found =
            store.pending_work(seat.session(), seat.place(), seat.process(), patience).await;
        let work = match found {
            Err(error) if error.is_transient() => return Ok(false),
            found => found?,
        };
        self.end_killed(&seat, &work).await?;
        self.give_back_idle(&work).await;
        let mut is_begun = false;
        if self.equipment.limits.free_agents != FreeAgents::Left {
            for top in work.to_take_up {
                is_begun |= self.take_up(&seat, top).await?;
            }
        }
        let to_wake: Vec<AgentId> =
            work.to_wake.into_iter().filter(|agent| !self.held.contains(agent)).collect();
        for agent in to_wake.into_iter().chain(work.at_work) {
            if !self.at_work.contains_key(&agent)
                && let Some(seat) = self.seat_of(&agent)
            {
                self.start(seat, Pending::look());
                is_begun = true;
            }
        }
        Ok(is_begun)
    }

    /// Ends the work of those that were killed, their commands with it.
    async fn end_killed(&mut self, seat: &Seat, work: &PendingWork) -> Result<(), StoreError> {
        // Whoever the registry has at work was not killed; of the others most have just become idle.
        let doubtful = self.at_work.keys().filter(|id| work.at_work.binary_search(id).is_err());
        let doubtful: Vec<AgentId> = doubtful.cloned().collect();
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
        }
        Ok(())
    }

    /// Takes up a top-level agent that nobody runs; the next look finds who in its tree has something to do. Another
    /// process may have been quicker.
    async fn take_up(&mut self, beside: &Seat, top: AgentId) -> Result<bool, StoreError> {
        match beside.store().claim(beside.session(), top.clone(), beside.process()).await {
            Ok(lease) => {
                info!(agent = top.to_string(), "taken up");
                self.seats.insert(top, beside.beside(lease)?);
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
        let agent = match self.resting.take_if(|resting| resting.id() == seat.agent()) {
            Some(agent) => agent,
            None => Box::new(Agent::new(seat, Arc::clone(&self.equipment))),
        };
        let (sender, orders) = mpsc::channel(ORDERS);
        // The channel is new and has room.
        let _ = sender.try_send(pending);
        self.go_on(agent, sender, orders);
    }

    fn go_on(
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
            let served = task.run().await;
            Rested { agent, orders, served }
        });
    }

    /// An agent is idle, or cannot go on.
    async fn take_back(&mut self, rested: Rested) -> Result<(), StoreError> {
        let Rested { agent, orders, served } = rested;
        let id = agent.id().clone();
        let Some(AtWork { orders: sender, .. }) = self.at_work.remove(&id) else { return Ok(()) };
        match served {
            Ok(()) if !orders.is_empty() => self.go_on(agent, sender, orders),
            Ok(()) if id == self.own => self.resting = Some(agent),
            // The next look gives its top-level agent back if that was taken up.
            Ok(()) => {}
            Err(error @ StoreError::AgentDead(_)) => {
                self.emit(id.clone(), EventKind::TurnEnded(killed()));
                if id == self.own {
                    return Err(error);
                }
            }
            Err(error @ StoreError::LeaseLost { .. }) => self.lose(&id.top(), error)?,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Gives top-level agents back that were taken up, once nobody in their trees is at work or has anything to do;
    /// also those for which somebody else had done it before we came to it.
    async fn give_back_idle(&mut self, work: &PendingWork) {
        let due = work.to_wake.iter().chain(&work.at_work);
        let busy: BTreeSet<AgentId> =
            self.at_work.keys().chain(due).chain([&self.own]).map(AgentId::top).collect();
        let idle: Vec<AgentId> =
            self.seats.keys().filter(|top| !busy.contains(top)).cloned().collect();
        for top in idle {
            if let Some(seat) = self.seats.remove(&top) {
                info!(agent = top.to_string(), "given back");
                seat.leave().await;
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
        async move {
            match lost.is_empty() {
                true => std::future::pending().await,
                false => first_of(lost).await,
            }
        }
    }

    /// Another process has taken a top-level agent over: nobody in its tree can write any more.
    fn lose(&mut self, top: &AgentId, error: StoreError) -> Result<(), StoreError> {
        if *top == self.own.top() {
            return Err(error);
        }
        // Its tasks find out one by one; it is lost once.
        if self.seats.remove(top).is_none() {
            return Ok(());
        }
        for (id, at_work) in &self.at_work {
            if id.top() == *top {
                at_work.stop.cancel();
            }
        }
        self.emit(top.clone(), EventKind::AgentLost(error.to_string()));
        Ok(())
    }

    /// Ends all that is still at work, and waits for it.
    async fn end_all(&mut self) {
        self.shutdown.cancel();
        while self.tasks.join_next().await.is_some() {}
    }

    fn emit(&self, agent: AgentId, kind: EventKind) {
        (self.equipment.events)(Event { agent, kind });
    }
}

fn killed() -> TurnEnd {
    let error = Some("the agent was killed".to_owned());
    TurnEnd { stop: StopReason::Interrupted, text: String::new(), error, can_continue: false }
}

/// Waits until something may have changed. A session that is only just being made is looked for soon.
async fn wait(changes: &mut Option<Changes>, is_busy: bool) -> Result<(), StoreError> {
    const SOON: Duration = Duration::from_millis(10);
    match changes {
        Some(changes) => changes.wait(Changes::SWEEP).await,
        None if is_busy => {
            tokio::time::sleep(SOON).await;
            Ok(())
        }
        None => std::future::pending().await,
    }
}

/// Waits for the first of several.
async fn first_of<T, F: Future<Output = T> + Unpin>(mut futures: Vec<F>) -> T {
    std::future::poll_fn(move |context| {
        let mut ready =
            futures.iter_mut().filter_map(|future| match Pin::new(future).poll(context) {
                Poll::Ready(value) => Some(value),
                Poll::Pending => None,
            });
        ready.next().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

fn broken(error: &tokio::task::JoinError) -> StoreError {
    StoreError::Internal(error.to_string().into())
}
