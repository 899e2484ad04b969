//! Opening a database, and where its file may lie.

use std::fs;
use std::path::{Component, Path, PathBuf};

use ikigai_store::{Options, Store, database_files};

use crate::environment::Environment;

/// Opens the database of the configuration.
pub(crate) fn open(environment: &Environment) -> anyhow::Result<Store> {
    open_at(environment, environment.settings.database_url()?)
}

/// Opens the database at an address.
pub(crate) fn open_at(environment: &Environment, address: &str) -> anyhow::Result<Store> {
    if let Some(file) = database_files(address)?.first() {
        require_out_of_reach(environment, file)?;
    }
    Ok(Store::open(address, Options::default())?)
}

/// Refuses a file that agents can reach. SQLite replays a journal that lies beside it without asking who wrote it, and a
/// sandbox cannot hide a file that does not exist yet. In ikigai's own folders, which are hidden as a whole, it is
/// safe, even if a tree contains them.
fn require_out_of_reach(environment: &Environment, file: &Path) -> anyhow::Result<()> {
    let settings = &environment.settings;
    let lookup = Lookup::of(file);
    let is_in = |folder: &PathBuf| lookup.end.starts_with(Lookup::of(folder).end);
    if settings.own_folders().iter().any(is_in) {
        return Ok(());
    }
    let roots = [&environment.directory].into_iter().chain(&environment.added).cloned();
    for root in roots.chain(settings.paths("sandbox.write")) {
        let real = Lookup::of(&root).end;
        if let Some(folder) = lookup.folders.iter().rfind(|folder| folder.starts_with(&real)) {
            anyhow::bail!(
                "Cannot open the database {}: agents can write to {} and could change it unnoticed; move it out of {}, \
                 or choose another place with --db sqlite://PATH",
                file.display(),
                folder.display(),
                root.display()
            );
        }
    }
    Ok(())
}

/// The way to a file as the system goes it, link by link.
struct Lookup {
    /// The folders in which a name was looked up, without links. Whoever can write to one of them can change where the
    /// path leads.
    folders: Vec<PathBuf>,
    /// Where it leads, whether or not something is there.
    end: PathBuf,
}

impl Lookup {
    fn of(path: &Path) -> Lookup {
        /// The system follows no more.
        const MOST_LINKS: usize = 40;
        let mut lookup = Lookup { folders: Vec::new(), end: PathBuf::from("/") };
        let mut links = 0;
        let mut rest = path.to_owned();
        while let Some(component) = rest.components().next() {
            let behind: PathBuf = rest.components().skip(1).collect();
            match component {
                Component::RootDir | Component::Prefix(_) => lookup.end = PathBuf::from("/"),
                Component::CurDir => {}
                Component::ParentDir => drop(lookup.end.pop()),
                Component::Normal(name) => {
                    lookup.folders.push(lookup.end.clone());
                    let named = lookup.end.join(name);
                    match fs::read_link(&named) {
                        Ok(target) if links < MOST_LINKS => {
                            links += 1;
                            rest = target.join(behind);
                            continue;
                        }
                        Ok(_) | Err(_) => lookup.end = named,
                    }
                }
            }
            rest = behind;
        }
        lookup
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_is_followed_as_the_system_does() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("tree/sub")).unwrap();
        fs::create_dir(top.join("safe")).unwrap();
        symlink("../safe", top.join("tree/out")).unwrap();
        symlink(top.join("tree/sub"), top.join("in")).unwrap();
        symlink("loop", top.join("loop")).unwrap();
        let check = |path: &str, end: &str, in_tree: bool| {
            let lookup = Lookup::of(&top.join(path));
            assert_eq!(lookup.end, top.join(end), "{path}");
            let tree = top.join("tree");
            assert_eq!(lookup.folders.iter().any(|at| at.starts_with(&tree)), in_tree, "{path}");
        };
        check("safe/a.db", "safe/a.db", false);
        check("tree/../safe/a.db", "safe/a.db", false);
        check("treeish/a.db", "treeish/a.db", false);
        check("tree", "tree", false);
        check("tree/a.db", "tree/a.db", true);
        check("tree/not/there/a.db", "tree/not/there/a.db", true);
        check("tree/out/a.db", "safe/a.db", true);
        check("in/a.db", "tree/sub/a.db", true);
        check("in/../../safe/a.db", "safe/a.db", true);
        check("loop/a.db", "loop/a.db", false);
    }
}
