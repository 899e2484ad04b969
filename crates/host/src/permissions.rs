//! The permissions of agents, from command line and configuration.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use ikigai_agents::{Permissions, User};
use ikigai_tools::{Mode, Root, Sandbox, Tree, other_names, secret_places};

use crate::environment::Environment;
use crate::lookup::Lookup;
use crate::secret_locations::moved_secrets;
use crate::settings;

/// The permissions of agents that work here, with `temporary` as their folder for temporary files.
///
/// # Errors
/// When a folder cannot be opened, or a rule of the settings is wrong.
pub fn permissions(
    environment: &Environment,
    temporary: Option<&Path>,
    user: User,
) -> anyhow::Result<Arc<Permissions>> {
    let settings = &environment.settings;
    let mut roots: Vec<Root> = environment.roots()?.tree().collect();
    if let Some(temporary) = temporary {
        let opened = Root::open(temporary);
        roots.push(opened.with_context(|| format!("cannot work in {}", temporary.display()))?);
    }
    let folders: Vec<PathBuf> = roots.iter().map(|root| root.path().to_owned()).collect();
    let tree = Tree::open(&folders).context("cannot open the working tree")?;
    let mut sandbox = sandbox(environment, roots)?;
    sandbox.unprotected.extend(temporary.map(Path::to_owned));
    let tree = tree.hiding(sandbox.hidden.iter().cloned());
    if settings::mode(settings) != Mode::Full {
        require_stable_paths(&settings::own_places(settings)?, &sandbox)?;
    }
    create_own_folders(&settings.folders().own(), &tree)?;
    let rules = settings::rules(settings)?;
    Ok(Arc::new(Permissions::new(settings::mode(settings), rules, tree, sandbox, user)))
}

/// Refuses to start if a link leads to ikigai's own files and commands can replace that link: a
/// command could put a folder in its place, with the settings for the next start. A sandbox can
/// hide a folder, but cannot pin a link.
fn require_stable_paths(own: &[PathBuf], sandbox: &Sandbox) -> anyhow::Result<()> {
    let can_be_replaced = |link: &PathBuf| {
        let is_in = |place: &Path| link.starts_with(place) && link != place;
        sandbox.write.iter().any(|root| is_in(root.path()))
            && !sandbox.hidden.iter().any(|place| is_in(place))
    };
    for place in own {
        if let Some(link) = Lookup::of(place).links.into_iter().find(can_be_replaced) {
            anyhow::bail!(
                "Commands could replace the link {}, which points to {}, a folder of ikigai's: \
                    start ikigai in another folder, or replace the link with the folder itself",
                link.display(),
                place.display()
            );
        }
    }
    Ok(())
}

/// Creates our own folders where they would be missing: a folder that does not exist cannot be
/// hidden, so a command could create it with the settings for the next start.
fn create_own_folders(folders: &[PathBuf], tree: &Tree) -> anyhow::Result<()> {
    for folder in folders.iter().filter(|folder| tree.is_hidden(folder)) {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.with_context(|| format!("cannot make {}", folder.display()))?;
    }
    Ok(())
}

/// The sandbox for commands in the working tree.
///
/// # Errors
/// When a folder cannot be opened.
pub fn sandbox_here(environment: &Environment) -> anyhow::Result<Sandbox> {
    sandbox(environment, environment.roots()?.tree().collect())
}

/// The sandbox for commands. `ikigai doctor` reports configured paths that do not exist.
fn sandbox(environment: &Environment, roots: Vec<Root>) -> anyhow::Result<Sandbox> {
    let settings = &environment.settings;
    let open = |places: Vec<PathBuf>| places.into_iter().filter_map(|path| Root::open(&path).ok());
    let mut write = roots;
    write.extend(environment.roots()?.write());
    let mut hidden = settings::own_places(settings)?;
    hidden.extend(settings.paths("sandbox.hide"));
    if let Some(home) = settings.folders().home() {
        hidden.extend(secret_places(home));
    }
    hidden.extend(moved_secrets(environment, &write));
    // Hide the targets of links too: a command that can replace such a link would expose its
    // target. Most paths do not exist, and checking that is one call.
    let there = hidden.iter().filter(|path| path.symlink_metadata().is_ok());
    let real = there.filter_map(|path| path.canonicalize().ok().filter(|real| real != path));
    let real: Vec<PathBuf> = real.collect();
    hidden.extend(real);
    hidden.extend(other_names(&hidden));
    Ok(Sandbox {
        write,
        unprotected: Vec::new(),
        read: open(settings.paths("sandbox.read")).collect(),
        hidden,
        network: settings.is_on("sandbox.network"),
        unix_sockets: settings.is_on("sandbox.unix_sockets"),
        kind: None,
    })
}
