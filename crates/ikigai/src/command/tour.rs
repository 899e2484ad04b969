//! `ikigai tour`: a walk through ikigai that needs no key.
//!
//! Only the model is scripted, by a small local server. Everything else is real and runs in a
//! scratch folder with its own database. No configuration, key or session of the user is read or
//! written.

mod guide;
mod pace;
mod page;
mod scratch;
mod script;
mod server;
mod shell;
mod turn;
mod walk;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex};

use ikigai_host::{Environment, connect};
use ikigai_store::{Options, Store};
use ikigai_tui::Mouse;
use tokio_util::sync::CancellationToken;

use crate::environment;
use crate::exit::Exit;
use crate::screen;
use crate::signals::{self, SignalFilter};
use crate::talk::{Interface, has_terminal};

use pace::{Pace, Speed};
use page::Page;
use scratch::{ELSEWHERE, Scratch};
use server::Server;
use walk::Walk;

/// Runs the tour, in mode `work` by default.
pub(crate) fn run(mode: Option<&str>, interface: Interface) -> anyhow::Result<Exit> {
    let mode = mode.unwrap_or("work");
    match interface.on_this_terminal() {
        Interface::Full(mouse) if has_terminal() => run_on_screen(mode, mouse),
        Interface::Full(_) | Interface::Plain => run_on_page(mode),
    }
}

/// The interactive tour on the full screen: the user acts, and the guide says what to do.
fn run_on_screen(mode: &str, mouse: Mouse) -> anyhow::Result<Exit> {
    let interrupt = CancellationToken::new();
    // On the full screen, Ctrl-C is a key or belongs to the editor.
    let (scratch, environment, store) =
        prepare(Speed::Readable, mode, &interrupt, SignalFilter::Terminations)?;
    drop(store);
    let model = connect(&environment)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let folder = scratch.folder().to_owned();
    let purpose = guide::purpose(move || scratch::remove(&folder));
    let ended = runtime.block_on(screen::talk(&environment, model, mouse, purpose));
    runtime.shutdown_background();
    drop(scratch);
    ended
}

/// The tour without the full screen: it plays by itself.
fn run_on_page(mode: &str) -> anyhow::Result<Exit> {
    let speed = match std::io::stdout().is_terminal() {
        true => Speed::Readable,
        false => Speed::AtOnce,
    };
    let interrupt = CancellationToken::new();
    let (scratch, environment, store) = prepare(speed, mode, &interrupt, SignalFilter::All)?;
    let page = Page::new(&environment, speed, interrupt.clone());
    let page = Arc::new(Mutex::new(page));
    let pace = Pace::new(speed, interrupt.clone())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let walked = runtime.block_on(async {
        let page = Arc::clone(&page);
        let mut walk = Walk::new(&environment, &scratch, store, page, pace, interrupt)?;
        let walked = walk.run().await;
        walk.close().await;
        walked
    });
    // Do not wait for a file tool that is stuck in a system call.
    runtime.shutdown_background();
    drop(scratch);
    page::lock(&page).finish(walked)
}

/// Prepares everything that the tour needs. From here on a signal cancels `interrupt`.
fn prepare(
    speed: Speed,
    mode: &str,
    interrupt: &CancellationToken,
    filter: SignalFilter,
) -> anyhow::Result<(Scratch, Arc<Environment>, Store)> {
    let folder = scratch::new_path();
    // A second signal removes the folder, but not while it is being created.
    let making = Arc::new(Mutex::new(()));
    let _making = making.lock();
    let (made, place) = (Arc::clone(&making), folder.clone());
    signals::cancel_and(interrupt.clone(), filter, move || {
        let _made = made.lock();
        scratch::remove(&place);
    })?;
    let scratch = Scratch::create(folder)?;
    let server = Server::start(speed)?;
    let environment = tour_environment(&scratch, &server, mode)?;
    let store = Store::open(environment.settings.database_url()?.expose(), Options::default())
        .map_err(|error| anyhow::anyhow!("{error}; {ELSEWHERE}"))?;
    Ok((scratch, Arc::new(environment), store))
}

/// An environment in the scratch folder, with the scripted server as the provider.
fn tour_environment(scratch: &Scratch, server: &Server, mode: &str) -> anyhow::Result<Environment> {
    let path = environment::path_with(&scratch.programs());
    let path = path.map_err(|error| anyhow::anyhow!("{error}; {ELSEWHERE}"))?;
    let mut environment = environment::isolated(
        scratch.project(),
        [
            ("PATH", path),
            ("IKIGAI_DATABASE_URL", scratch.database_url()),
            ("IKIGAI_MODEL", OsString::from("openai/scripted")),
            ("OPENAI_BASE_URL", OsString::from(server.base_url())),
            ("IKIGAI_MODE", OsString::from(mode)),
            ("TMPDIR", scratch.temporary().into()),
        ],
    )?;
    // No other session exists in the tour's database.
    environment.selection.new = true;
    Ok(environment)
}
