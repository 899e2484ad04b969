//! `ikigai` on the full screen. The screen has a thread of its own, so that no agent's work delays a key; here it is given
//! the news, and what it wants is done.

mod desk;
mod editor;
mod files;
mod history;
mod members;
mod setting;

use std::io;
use std::sync::Arc;
use std::thread;

use ikigai_agents::{Model, Person, Seat, serve};
use ikigai_protocol::Event;
use ikigai_store::StoreError;
use ikigai_tui::{Arrivals, Effect, Farewell, Feed, Mouse, News, Options, Setup, feed, wrap_prose};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::environment::Environment;
use crate::exit::Exit;
use crate::hand::{Choice, Hand, way_back};
use crate::model::HOW_TO_CONNECT;
use crate::opening::{
    Otherwise, equip, join, session_to_join, take_seat, take_seat_beside, toolbox,
};
use crate::print;
use crate::settings;
use crate::signals::{self, Heeded, Signals};
use crate::temporary::TemporaryFolder;

use desk::{Desk, Left};
use history::HistoryFile;
use members::{run_elsewhere, watch_members};
use setting::{bell, colours, greeting, sandbox, status};

/// How many orders may wait for the agents; they are taken at once, also while they work.
const ORDERS: usize = 16;
/// How many wishes of the screen may wait; a hand does not type faster than they are done.
const EFFECTS: usize = 64;

/// What happens to agents, for somebody who walks with the person.
pub(crate) type Watcher = Arc<dyn Fn(&Event, &Feed) + Send + Sync>;

/// Why the screen is opened.
pub(crate) enum Occasion {
    Work,
    /// A walk with a scripted model.
    Tour {
        /// What is said first.
        welcome: Vec<News>,
        /// Who goes with the person.
        guide: Watcher,
        /// What is to be done for somebody who does not wait for the end.
        at_last: Arc<dyn Fn() + Send + Sync>,
    },
}

impl Occasion {
    /// Ends the program at the second signal from now on, as [`signals::cancel`] does.
    fn cancel(&self, token: CancellationToken) -> io::Result<()> {
        match self {
            Occasion::Work => signals::cancel(token),
            Occasion::Tour { at_last, .. } => {
                let at_last = Arc::clone(at_last);
                signals::cancel_and(token, Heeded::All, move || at_last())
            }
        }
    }
}

/// Talks until the person leaves, with another agent when the first is not run here any more.
pub(crate) async fn talk(
    environment: &Environment,
    model: Model,
    mouse: Mouse,
    occasion: Occasion,
) -> anyhow::Result<Exit> {
    let mut seat = take_seat(environment, Otherwise::Join).await?;
    let mut choice = Choice { mode: settings::mode(&environment.settings), model };
    let (mut session, mut top) = (seat.session(), seat.agent().top());
    let (feed, arrivals) = feed();
    // Before the terminal is taken: a signal that nobody listens to would end us with it.
    let mut signals = Signals::listen()?;
    let mut opened = Opened::open(environment, &seat, &choice, mouse, arrivals, &occasion)?;
    let history = HistoryFile::of(&environment.settings);
    feed.give(history.load());
    let exit = loop {
        let talked = Talk { environment, choice, feed: &feed, history: &history };
        match talked.at(seat, &mut opened, &mut signals, &occasion).await {
            Ok(Parted::Left(exit)) => break Ok(exit),
            Ok(Parted::Reseated(other)) => {
                (seat, choice) = *other;
                (session, top) = (seat.session(), seat.agent().top());
            }
            Err(error) => break Err(error),
        }
    };
    // Whatever happened is told on the normal screen.
    let closed = opened.close(&way_back(session, &top), &occasion).await;
    exit.and_then(|exit| closed.map(|()| exit))
}

/// The screen on its thread.
struct Opened {
    effects: mpsc::Receiver<Effect>,
    ending: CancellationToken,
    farewell: oneshot::Receiver<io::Result<Farewell>>,
}

impl Opened {
    fn open(
        environment: &Environment,
        seat: &Seat,
        choice: &Choice,
        mouse: Mouse,
        arrivals: Arrivals,
        occasion: &Occasion,
    ) -> anyhow::Result<Opened> {
        let setup = Setup {
            view: seat.agent().clone(),
            status: status(environment, seat.session(), choice, occasion),
            colours: colours(environment),
        };
        let options = Options { mouse, bell: bell(environment) };
        let (wish, effects) = mpsc::channel(EFFECTS);
        let (part, farewell) = oneshot::channel();
        let ending = CancellationToken::new();
        let until = ending.clone();
        let show = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let shown = runtime.and_then(|runtime| {
                runtime.block_on(ikigai_tui::run(setup, options, arrivals, wish, until))
            });
            // Who does not wait for it any more has no use for it.
            let _ = part.send(shown);
        };
        thread::Builder::new().name("screen".to_owned()).spawn(show)?;
        Ok(Opened { effects, ending, farewell })
    }

    /// Gives the terminal back, and leaves there what the person may want to keep.
    async fn close(self, way_back: &str, occasion: &Occasion) -> anyhow::Result<()> {
        self.ending.cancel();
        // It ends without a word only by a panic, which has said what there is to say.
        let Ok(farewell) = self.farewell.await else { anyhow::bail!("the screen broke down") };
        let Farewell { last_answer, has_spoken } = match farewell {
            Ok(farewell) => farewell,
            Err(error) => anyhow::bail!("the terminal cannot be used: {error}; try --plain"),
        };
        if let Occasion::Tour { .. } = occasion {
            return print::out(format!(
                "The tour is over. To connect a model of your own:\n{HOW_TO_CONNECT}\n"
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
        // Only between the commands: one that is broken by us could not be copied.
        let is_wide = way_back.len() > width;
        let between = if is_wide { ",\nor " } else { ", or " };
        print::out(format!("{}\n", way_back.replace(", or ", between)))
    }
}

/// The columns of the terminal.
fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let columns = size.map(|size| usize::from(size.ws_col)).ok();
    columns.filter(|columns| *columns > 0).unwrap_or(usize::MAX)
}

/// How a conversation at a seat ended.
enum Parted {
    /// By the person.
    Left(Exit),
    /// Another process has taken the agent over, or somebody has killed it, or there is a session to join; the person
    /// goes on here.
    Reseated(Box<(Seat, Choice)>),
}

/// The conversation with the agents of a seat.
struct Talk<'a> {
    environment: &'a Environment,
    choice: Choice,
    feed: &'a Feed,
    history: &'a HistoryFile,
}

impl Talk<'_> {
    async fn at(
        self,
        seat: Seat,
        opened: &mut Opened,
        signals: &mut Signals,
        occasion: &Occasion,
    ) -> anyhow::Result<Parted> {
        let Talk { environment, choice, feed, history } = self;
        let (store, session) = (seat.store(), seat.session());
        let temporary = TemporaryFolder::of_session(environment, session)?;
        let toolbox = toolbox(environment, &seat, &temporary, Person::Present)?;
        let permissions = Arc::clone(&toolbox.permissions);
        permissions.set_mode(choice.mode);
        let mut status = status(environment, session, &choice, occasion);
        status.sandbox = sandbox(&toolbox.commands.sandbox_kind().await);
        feed.give(News::Status(status.clone()));
        if let Occasion::Tour { welcome, .. } = occasion {
            welcome.iter().cloned().for_each(|news| feed.give(news));
        }
        let equipment = equip(environment, choice.model, toolbox, sink(feed, occasion));
        let (tell, orders) = mpsc::channel(ORDERS);
        let hand = Hand {
            environment,
            store: Arc::clone(&store),
            session,
            seat: seat.clone(),
            permissions,
            models: Arc::clone(&equipment.models),
            tell,
            interrupt_key: "Esc",
        };
        let beside = run_elsewhere(&store, session).await;
        let greeting = greeting(occasion, seat.agent(), beside.as_ref());
        let mut desk = Desk { hand, feed, history, greeting, status };
        let shutdown = CancellationToken::new();
        let watching = watch_members(Arc::clone(&store), session, seat.agent().top(), feed.clone());
        let own = seat.clone();
        let joining = async {
            match occasion {
                Occasion::Work => session_to_join(environment, &own).await,
                Occasion::Tour { .. } => std::future::pending().await,
            }
        };
        let mut serving = std::pin::pin!(serve(seat, equipment, orders, shutdown.clone()));
        let left = tokio::select! {
            served = &mut serving => match served {
                Ok(()) => return Ok(Parted::Left(Exit::Done)),
                Err(StoreError::LeaseLost { .. } | StoreError::AgentDead(_)) => {
                    return begin_anew(&desk, opened, signals).await;
                }
                Err(error) => return Err(error.into()),
            },
            left = desk.listen(&mut opened.effects, signals) => left,
            never = watching => match never {},
            other = joining => {
                shutdown.cancel();
                serving.await?;
                return Ok(desk.move_to(join(environment, &own, other).await?));
            }
        };
        // The terminal is the person's again while the agents come to their end. Whoever cannot wait presses Ctrl-C.
        opened.ending.cancel();
        shutdown.cancel();
        occasion.cancel(shutdown)?;
        serving.await?;
        Ok(Parted::Left(left))
    }
}

/// The agent is gone: goes on with another one, if the person wants to.
async fn begin_anew(
    desk: &Desk<'_>,
    opened: &mut Opened,
    signals: &mut Signals,
) -> anyhow::Result<Parted> {
    match desk.wait_for_a_wish(&mut opened.effects, signals).await {
        Left::Stays => {
            let Hand { environment, store, session, .. } = &desk.hand;
            Ok(desk.move_to(take_seat_beside(environment, Arc::clone(store), *session).await?))
        }
        Left::By(exit) => Ok(Parted::Left(exit)),
    }
}

impl Desk<'_> {
    /// The person goes on at another seat.
    fn move_to(&self, seat: Seat) -> Parted {
        self.feed.give(News::View(seat.agent().clone()));
        Parted::Reseated(Box::new((seat, self.hand.choice())))
    }
}

/// Where the events of agents go.
fn sink(feed: &Feed, occasion: &Occasion) -> ikigai_protocol::EventSink {
    let feed = feed.clone();
    match occasion {
        Occasion::Work => Arc::new(move |event| feed.give(News::Event(event))),
        Occasion::Tour { guide, .. } => {
            let guide = Arc::clone(guide);
            Arc::new(move |event: Event| {
                feed.give(News::Event(event.clone()));
                guide(&event, &feed);
            })
        }
    }
}
