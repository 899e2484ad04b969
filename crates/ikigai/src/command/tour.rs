//! `ikigai tour`: a walk through ikigai that needs no key.
//!
//! Only the model is scripted: a small server of our own says its lines. Everything that is between it and the
//! page is the real thing, in a scratch folder with a database of its own. Nothing of the user's is read or
//! written: no configuration, no key, no session.

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
use crate::signals::{self, Heeded};
use crate::talk::{Looks, has_terminal};

use pace::{Pace, Speed};
use page::Page;
use scratch::{ELSEWHERE, Scratch};
use server::Server;
use walk::Walk;

/// The mode is `work` unless another is asked for.
pub(crate) fn run(mode: Option<&str>, looks: Looks) -> anyhow::Result<Exit> {
    let mode = mode.unwrap_or("work");
    match looks.on_this_terminal() {
        Looks::Full(mouse) if has_terminal() => walk_on_screen(mode, mouse),
        Looks::Full(_) | Looks::Plain => walk_on_page(mode),
    }
}

/// On the full screen the person does it all, and is told what there is to do.
fn walk_on_screen(mode: &str, mouse: Mouse) -> anyhow::Result<Exit> {
    let interrupt = CancellationToken::new();
    // While the screen is there Ctrl-C is a key, or the editor's.
    let (scratch, environment, store) =
        prepare(Speed::Readable, mode, &interrupt, Heeded::Endings)?;
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

/// Elsewhere it is played.
fn walk_on_page(mode: &str) -> anyhow::Result<Exit> {
    let speed = match std::io::stdout().is_terminal() {
        true => Speed::Readable,
        false => Speed::AtOnce,
    };
    let interrupt = CancellationToken::new();
    let (scratch, environment, store) = prepare(speed, mode, &interrupt, Heeded::All)?;
    let page = Page::new(&environment, speed, interrupt.clone());
    let page = Arc::new(Mutex::new(page));
    let pace = Pace::new(speed, interrupt.clone())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let walked = runtime.block_on(async {
        let page = Arc::clone(&page);
        let mut walk = Walk::begin(&environment, &scratch, store, page, pace, interrupt)?;
        let walked = walk.go().await;
        walk.end().await;
        walked
    });
    // A file tool that is stuck in the system must not keep us.
    runtime.shutdown_background();
    drop(scratch);
    page::lock(&page).finish(walked)
}

/// Makes everything that the walk stands on. From here on a signal cancels `interrupt`.
fn prepare(
    speed: Speed,
    mode: &str,
    interrupt: &CancellationToken,
    heeded: Heeded,
) -> anyhow::Result<(Scratch, Arc<Environment>, Store)> {
    let folder = scratch::new_place();
    // Whoever cannot wait for the end has the folder removed, but not while it is being made.
    let making = Arc::new(Mutex::new(()));
    let _making = making.lock();
    let (made, place) = (Arc::clone(&making), folder.clone());
    signals::cancel_and(interrupt.clone(), heeded, move || {
        let _made = made.lock();
        scratch::remove(&place);
    })?;
    let scratch = Scratch::make(folder)?;
    let server = Server::start(speed)?;
    let environment = surroundings(&scratch, &server, mode)?;
    let store = Store::open(environment.settings.database_url()?.expose(), Options::default())
        .map_err(|error| anyhow::anyhow!("{error}; {ELSEWHERE}"))?;
    Ok((scratch, Arc::new(environment), store))
}

/// The scratch folder instead of the user's, and the scripted server as the model's provider.
fn surroundings(scratch: &Scratch, server: &Server, mode: &str) -> anyhow::Result<Environment> {
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
    // The tour is alone in its database.
    environment.selection.new = true;
    Ok(environment)
}
