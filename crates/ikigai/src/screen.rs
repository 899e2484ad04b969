//! `ikigai` on the full screen. The screen runs on its own thread, so that agents never delay a
//! key. This module sends it events and carries out its requests.

mod branch;
mod editor;
mod history;
mod requests;
mod setting;

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ikigai_agents::Model;
use ikigai_conversation::SessionId;
use ikigai_host::{
    AgentChoice, AgentSlot, Environment, HOW_TO_CONNECT, OpenSession, ServiceEnd, SessionOptions,
    SessionState, now,
};
use ikigai_protocol::{AgentSummary, Event, EventSink, TokenCount};
use ikigai_tui::{
    Effect, ExitSummary, Feed, Member, Mouse, Options, Setup, Update, Updates, feed, wrap_prose,
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::print;
use crate::session::{claim, how_to_continue};
use crate::signals::{self, SignalFilter, Signals};

use branch::branch;
use history::HistoryFile;
use requests::{Heard, NextAction, RequestHandler};
use setting::{bell, colours, greeting, sandbox, status};

/// The queue of requests from the screen; they are carried out faster than a user types.
const EFFECTS: usize = 64;

/// Follows the events of agents during the tour.
pub(crate) type Watcher = Arc<dyn Fn(&Event, &Feed) + Send + Sync>;

/// What the screen is for.
pub(crate) enum Purpose {
    Work,
    /// A tour with a scripted model.
    Tour {
        /// Shown first.
        welcome: Vec<Update>,
        /// Explains events to the user.
        guide: Watcher,
        /// Cleanup if the user does not wait for the end.
        cleanup: Arc<dyn Fn() + Send + Sync>,
    },
}

impl Purpose {
    /// From now on the second signal ends the program, as with [`signals::cancel`].
    fn cancel(&self, token: CancellationToken) -> io::Result<()> {
        match self {
            Purpose::Work => signals::cancel(token),
            Purpose::Tour { cleanup, .. } => {
                let cleanup = Arc::clone(cleanup);
                signals::cancel_and(token, SignalFilter::All, move || cleanup())
            }
        }
    }
}

/// Runs the conversation until the user leaves. Moves to another agent if this process loses the
/// first.
pub(crate) async fn talk(
    environment: &Arc<Environment>,
    model: Model,
    mouse: Mouse,
    purpose: Purpose,
) -> anyhow::Result<Exit> {
    let mut slot = claim(environment, SessionOptions::INTERACTIVE).await?;
    let mut choice = AgentChoice::new(environment, model);
    let (mut session, mut top) = (slot.session(), slot.agent().top());
    let (feed, updates) = feed();
    // Before the terminal is set up: an unhandled signal would end the program without restoring
    // it.
    let mut signals = Signals::listen()?;
    let mut screen = ScreenThread::start(&slot, &choice, mouse, updates, &purpose)?;
    let history = HistoryFile::of(&environment.settings);
    feed.send(history.load());
    let exit = loop {
        let talk = Talk { feed: &feed, history: &history, purpose: &purpose };
        match talk.with(slot, choice, &mut screen, &mut signals).await {
            Ok(End::Left(exit)) => break Ok(exit),
            Ok(End::Moved(moved)) => {
                (slot, choice) = *moved;
                (session, top) = (slot.session(), slot.agent().top());
            }
            Err(error) => break Err(error),
        }
    };
    // Errors are printed on the normal screen.
    let closed = screen.close(&how_to_continue(session, &top), &purpose).await;
    exit.and_then(|exit| closed.map(|()| exit))
}

/// The screen on its thread.
struct ScreenThread {
    effects: mpsc::Receiver<Effect>,
    ending: CancellationToken,
    summary: oneshot::Receiver<io::Result<ExitSummary>>,
}

impl ScreenThread {
    fn start(
        slot: &AgentSlot,
        choice: &AgentChoice,
        mouse: Mouse,
        updates: Updates,
        purpose: &Purpose,
    ) -> anyhow::Result<ScreenThread> {
        let environment = slot.environment();
        let setup = Setup {
            view: slot.agent().clone(),
            status: status(environment, choice, purpose),
            colours: colours(environment),
        };
        let options = Options { mouse, bell: bell(environment) };
        let (sender, effects) = mpsc::channel(EFFECTS);
        let (end, summary) = oneshot::channel();
        let ending = CancellationToken::new();
        let until = ending.clone();
        let show = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let shown = runtime.and_then(|runtime| {
                runtime.block_on(ikigai_tui::run(setup, options, updates, sender, until))
            });
            // Without a receiver it is not needed.
            let _ = end.send(shown);
        };
        thread::Builder::new().name("screen".to_owned()).spawn(show)?;
        Ok(ScreenThread { effects, ending, summary })
    }

    /// Restores the terminal, and prints the last answer and how to continue.
    async fn close(self, how_to_continue: &str, purpose: &Purpose) -> anyhow::Result<()> {
        self.ending.cancel();
        // The channel only closes if the thread panicked, which printed a message.
        let Ok(summary) = self.summary.await else { anyhow::bail!("the screen failed") };
        let ExitSummary { last_answer, has_spoken } = match summary {
            Ok(summary) => summary,
            Err(error) => anyhow::bail!("cannot use the terminal: {error}; try --plain"),
        };
        if let Purpose::Tour { .. } = purpose {
            return print::out(format!(
                "The tour is over. To connect your own model:\n{HOW_TO_CONNECT}\n"
            ));
        }
        let width = width();
        if let Some(answer) = last_answer {
            let answer = print::safe(&format!("{}\n", answer.trim_end()));
            print::out(wrap_prose("● ", &answer, width))?;
        }
        if !has_spoken {
            return Ok(());
        }
        // Break only between the commands: a broken command could not be copied.
        let is_wide = how_to_continue.len() > width;
        let between = if is_wide { ",\nor " } else { ", or " };
        print::out(format!("{}\n", how_to_continue.replace(", or ", between)))
    }
}

/// The columns of the terminal.
fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let columns = size.map(|size| usize::from(size.ws_col)).ok();
    columns.filter(|columns| *columns > 0).unwrap_or(usize::MAX)
}

/// How a conversation with an agent ended.
enum End {
    /// The user left.
    Left(Exit),
    /// The user continues with another agent because this one was lost.
    Moved(Box<(AgentSlot, AgentChoice)>),
}

/// The state shared by all conversations on a screen.
struct Talk<'a> {
    feed: &'a Feed,
    history: &'a HistoryFile,
    purpose: &'a Purpose,
}

impl Talk<'_> {
    /// Runs the conversation with one agent and its children.
    async fn with(
        self,
        slot: AgentSlot,
        choice: AgentChoice,
        screen: &mut ScreenThread,
        signals: &mut Signals,
    ) -> anyhow::Result<End> {
        let Talk { feed, history, purpose } = self;
        let mut status = status(slot.environment(), &choice, purpose);
        let (session, service) = slot.clone().open(choice, sink(feed, purpose)).await?;
        status.sandbox = sandbox(session.sandbox());
        feed.send(Update::Status(status.clone()));
        feed.send(Update::Title(slot.title().await));
        if let Purpose::Tour { welcome, .. } = purpose {
            welcome.iter().cloned().for_each(|update| feed.send(update));
        }
        let beside = slot.agent_elsewhere().await;
        let (agent, model) = (slot.agent(), &status.model);
        let greeting = greeting(slot.environment(), purpose, model, agent, beside.as_ref());
        let session = Arc::new(session);
        let mut handler = RequestHandler {
            session: Arc::clone(&session),
            feed,
            history,
            greeting,
            status,
            following: None,
        };
        let stop = CancellationToken::new();
        let report = |state: SessionState| {
            feed.send(Update::Branch(branch(&slot.environment().directory)));
            feed.send(Update::Team(state.agents.into_iter().map(member).collect()));
            feed.send(Update::Questions(state.questions));
            feed.send(Update::Unread(state.unread));
        };
        let watching = slot.watch(report);
        let mut serving = std::pin::pin!(service.run(stop.clone()));
        let heard = tokio::select! {
            end = &mut serving => return match end? {
                ServiceEnd::Finished => Ok(End::Left(Exit::Done)),
                ServiceEnd::AgentLost(_) => {
                    match handler.wait_to_continue(&mut screen.effects, signals).await {
                        NextAction::Continue => Ok(move_to(feed, slot.claim_another().await?, &session)),
                        NextAction::Leave(exit) => Ok(End::Left(exit)),
                    }
                }
            },
            heard = handler.listen(&mut screen.effects, signals) => heard,
            never = watching => match never {},
        };
        let exit = match heard {
            Heard::Exit(exit) => exit,
            Heard::Session(other) => {
                stop.cancel();
                serving.await?;
                return open_other(feed, &slot, other, &session).await;
            }
        };
        // The terminal is restored while the agents stop. A second Ctrl-C exits immediately.
        screen.ending.cancel();
        stop.cancel();
        purpose.cancel(stop)?;
        serving.await?;
        Ok(End::Left(exit))
    }
}

/// Moves the screen to another agent.
fn move_to(feed: &Feed, slot: AgentSlot, session: &OpenSession) -> End {
    feed.send(Update::View(slot.agent().clone()));
    End::Moved(Box::new((slot, session.choice())))
}

/// Moves the screen to another session, or to a new one. If that cannot be opened, back to the
/// present one.
async fn open_other(
    feed: &Feed,
    slot: &AgentSlot,
    other: Option<SessionId>,
    session: &OpenSession,
) -> anyhow::Result<End> {
    let (slot, error) = match slot.claim_session(other).await {
        Ok(slot) => (slot, None),
        Err(error) => (slot.claim_session(Some(slot.session())).await?, Some(error)),
    };
    let agent = slot.agent().clone();
    feed.send(Update::Session(agent.clone()));
    if let Some(error) = error {
        feed.send(Update::Error { agent, text: format!("{error:#}") });
    }
    Ok(End::Moved(Box::new((slot, session.choice()))))
}

/// Converts an agent for the screen's list.
fn member(agent: AgentSummary) -> Member {
    let AgentSummary { id, name, state, task, unread, tokens, runner, created_at } = agent;
    let age = created_at.map(|at| now().as_millis().saturating_sub(at.as_millis()));
    let age = age.and_then(|age| u64::try_from(age).ok()).map(Duration::from_millis);
    Member { id, name, state, task, unread, cost: used(tokens), runner, age }
}

/// What an agent has used, in thousands of tokens.
fn used(tokens: TokenCount) -> Option<String> {
    match tokens.input.saturating_add(tokens.output) {
        0 => None,
        all @ 1..1_000 => Some(format!("{all} tok")),
        all => Some(format!("{}k tok", all / 1_000)),
    }
}

/// Sends agents' events to the screen and, on a tour, to the guide.
fn sink(feed: &Feed, purpose: &Purpose) -> EventSink {
    let feed = feed.clone();
    match purpose {
        Purpose::Work => Arc::new(move |event| feed.send(Update::Event(event))),
        Purpose::Tour { guide, .. } => {
            let guide = Arc::clone(guide);
            Arc::new(move |event: Event| {
                feed.send(Update::Event(event.clone()));
                guide(&event, &feed);
            })
        }
    }
}
