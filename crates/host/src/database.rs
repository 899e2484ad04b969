//! Opening the database, and checking where its file is.

use std::path::{Path, PathBuf};

use ikigai_store::{Options, Store, database_files};

use crate::environment::Environment;
use crate::lookup::Lookup;

/// Opens the configured database.
pub fn open(environment: &Environment) -> anyhow::Result<Store> {
    open_at(environment, environment.settings.database_url()?.expose())
}

/// Opens the database at an address.
pub fn open_at(environment: &Environment, address: &str) -> anyhow::Result<Store> {
    if let Some(file) = database_files(address)?.first() {
        require_unreachable_by_agents(environment, file)?;
    }
    Ok(Store::open(address, Options::default())?)
}

/// Refuses a database file that agents can reach. SQLite replays a journal beside the file no
/// matter who wrote it, and a sandbox cannot hide a file that does not exist yet. ikigai's own
/// folders are hidden as a whole, so a database there is safe even inside the working tree.
fn require_unreachable_by_agents(environment: &Environment, file: &Path) -> anyhow::Result<()> {
    let settings = &environment.settings;
    let lookup = Lookup::of(file);
    let is_in = |folder: &PathBuf| lookup.end.starts_with(Lookup::of(folder).end);
    if settings.folders().own().iter().any(is_in) {
        return Ok(());
    }
    let roots = [&environment.directory].into_iter().chain(&environment.added).cloned();
    for root in roots.chain(settings.paths("sandbox.write")) {
        let real = Lookup::of(&root).end;
        if let Some(folder) = lookup.folders.iter().rfind(|folder| folder.starts_with(&real)) {
            anyhow::bail!(
                "Cannot open the database {}: agents can write to {} and could change it \
                    unnoticed. Move it out of {}, or choose another path with --db sqlite://PATH",
                file.display(),
                folder.display(),
                root.display()
            );
        }
    }
    Ok(())
}
