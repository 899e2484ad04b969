//! The folders that agents can write: opened once, for the check against what the session knows and for all that follows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use ikigai_store::RootFolder;
use ikigai_tools::{LastingIdentity, Root};

use crate::environment::Environment;

/// The folders of the working tree, and what `sandbox.write` names. The folder for temporary files is not among them.
pub struct Roots {
    tree: Vec<NamedRoot>,
    write: Vec<NamedRoot>,
}

/// A root with its path as the user wrote it. That may be a link, which can lead elsewhere tomorrow.
struct NamedRoot {
    path: PathBuf,
    root: Root,
}

impl Roots {
    pub(crate) fn open(environment: &Environment) -> anyhow::Result<Roots> {
        let open = |(folder, path): (&Path, &PathBuf)| {
            let root = Root::open(folder);
            let root = root.with_context(|| format!("cannot work in {}", folder.display()))?;
            Ok(NamedRoot { path: path.clone(), root })
        };
        let tree = environment.tree_folders().zip(&environment.typed_folders).map(open);
        // What does not exist is reported by `ikigai doctor`.
        let open = |path: PathBuf| Some(NamedRoot { root: Root::open(&path).ok()?, path });
        let write = environment.settings.paths("sandbox.write").into_iter().filter_map(open);
        Ok(Roots { tree: tree.collect::<anyhow::Result<_>>()?, write: write.collect() })
    }

    /// The working tree: where ikigai was started, and the folders that were added.
    pub(crate) fn tree(&self) -> impl Iterator<Item = Root> {
        self.tree.iter().map(|named| named.root.clone())
    }

    /// What `sandbox.write` names and is there.
    pub(crate) fn write(&self) -> impl Iterator<Item = Root> {
        self.write.iter().map(|named| named.root.clone())
    }

    /// All folders as a session knows them: by their paths without links, and as the user wrote them.
    pub fn folders(&self) -> Arc<[RootFolder]> {
        let named = self.tree.iter().chain(&self.write);
        named
            .flat_map(|named| [&*named.path, named.root.path()].map(|path| (path, &named.root)))
            .map(|(path, root)| folder_at(path, root))
            .collect()
    }
}

/// What is found under a path now, as a session knows folders; `None` where nothing can be opened.
pub fn find_folder(path: &Path) -> Option<RootFolder> {
    Some(folder_at(path, &Root::open(path).ok()?))
}

fn folder_at(path: &Path, root: &Root) -> RootFolder {
    let LastingIdentity { device, inode } = root.lasting_identity();
    RootFolder { path: path.to_owned(), device, inode }
}
