//! The folders that agents can write: opened once, so that the folders checked against the session
//! are the folders used.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use ikigai_store::RootFolder;
use ikigai_tools::{LastingIdentity, Root};

use crate::environment::Environment;

/// The folders of the working tree and of `sandbox.write`, without the folder for temporary files.
pub struct Roots {
    tree: Vec<NamedRoot>,
    write: Vec<NamedRoot>,
}

/// A root with its path as the user typed it. The path may be a link, whose target can change.
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
        // `ikigai doctor` reports folders that do not exist.
        let open = |path: PathBuf| Some(NamedRoot { root: Root::open(&path).ok()?, path });
        let write = environment.settings.paths("sandbox.write").into_iter().filter_map(open);
        Ok(Roots { tree: tree.collect::<anyhow::Result<_>>()?, write: write.collect() })
    }

    /// The working tree: the working directory and the added folders.
    pub(crate) fn tree(&self) -> impl Iterator<Item = Root> {
        self.tree.iter().map(|named| named.root.clone())
    }

    /// The folders of `sandbox.write` that exist.
    pub(crate) fn write(&self) -> impl Iterator<Item = Root> {
        self.write.iter().map(|named| named.root.clone())
    }

    /// All folders as a session stores them: by real path, and by the path that the user typed.
    pub fn folders(&self) -> Arc<[RootFolder]> {
        let named = self.tree.iter().chain(&self.write);
        named
            .flat_map(|named| [&*named.path, named.root.path()].map(|path| (path, &named.root)))
            .map(|(path, root)| folder_at(path, root))
            .collect()
    }
}

/// The folder currently at a path, as a session stores folders; `None` if it cannot be opened.
pub fn find_folder(path: &Path) -> Option<RootFolder> {
    Some(folder_at(path, &Root::open(path).ok()?))
}

fn folder_at(path: &Path, root: &Root) -> RootFolder {
    let LastingIdentity { device, inode } = root.lasting_identity();
    RootFolder { path: path.to_owned(), device, inode }
}
