//! What agents may touch, as command line and configuration have it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use ikigai_agents::{Permissions, Person};
use ikigai_tools::{Root, Sandbox, Tree, secret_places};

use crate::environment::Environment;

/// The permissions of agents that work here, with `temporary` as their folder for temporary files.
pub(crate) fn permissions(
    environment: &Environment,
    temporary: Option<&Path>,
    person: Person,
) -> anyhow::Result<Arc<Permissions>> {
    let settings = &environment.settings;
    let mut roots: Vec<Root> = environment.roots()?.tree().collect();
    if let Some(temporary) = temporary {
        let opened = Root::open(temporary);
        roots.push(opened.with_context(|| format!("cannot work in {}", temporary.display()))?);
    }
    let folders: Vec<PathBuf> = roots.iter().map(|root| root.path().to_owned()).collect();
    let tree = Tree::open(&folders).context("cannot open the working tree")?;
    let sandbox = sandbox(environment, roots)?;
    let tree = tree.hiding(sandbox.hidden.iter().cloned());
    make_own_folders(settings.own_folders(), &tree)?;
    let rules = settings.rules()?;
    Ok(Arc::new(Permissions::new(settings.mode(), rules, tree, sandbox, person)))
}

/// A command could make what is not there to be hidden, and with it the settings of the next start.
fn make_own_folders(folders: &[PathBuf], tree: &Tree) -> anyhow::Result<()> {
    for folder in folders.iter().filter(|folder| tree.is_hidden(folder)) {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.with_context(|| format!("cannot make {}", folder.display()))?;
    }
    Ok(())
}

/// The walls around commands in the working tree.
pub(crate) fn sandbox_here(environment: &Environment) -> anyhow::Result<Sandbox> {
    sandbox(environment, environment.roots()?.tree().collect())
}

/// The walls around commands. What the configuration names and is not there is told by `ikigai doctor`.
fn sandbox(environment: &Environment, roots: Vec<Root>) -> anyhow::Result<Sandbox> {
    let settings = &environment.settings;
    let open = |places: Vec<PathBuf>| places.into_iter().filter_map(|path| Root::open(&path).ok());
    let mut write = roots;
    write.extend(environment.roots()?.write());
    let mut hidden = settings.own_places()?;
    hidden.extend(settings.paths("sandbox.hide"));
    if let Some(home) = settings.home() {
        hidden.extend(secret_places(home));
    }
    // Also where links lead now: a command that can replace such a link would uncover what it led to.
    let real: Vec<PathBuf> = hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
    hidden.extend(real);
    Ok(Sandbox {
        write,
        read: open(settings.paths("sandbox.read")).collect(),
        hidden,
        network: settings.is_on("sandbox.network"),
        unix_sockets: settings.is_on("sandbox.unix_sockets"),
        kind: None,
    })
}
