//! What is to be known of a call before it is judged.

use std::path::{Component, Path, PathBuf};

use crate::context::Context;
use crate::effect::Effect;
use crate::file_error::FileError;
use crate::place::real_path;
use crate::protected::is_guarded_at;

/// What is known of one effect of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// A command.
    Command {
        /// The whole of it.
        command: String,
        /// Whether the call asks to leave the sandbox.
        leaves_sandbox: bool,
        /// Whether it asks for the network, inside a sandbox that has none.
        wants_network: bool,
    },
    /// A file or a folder.
    File(FileFacts),
    /// A host that is reached.
    Host(String),
    /// A step on the database.
    Database,
    /// Nothing is known.
    Unknown,
}

impl Fact {
    /// The facts of the same call, if its commands asked to leave the sandbox.
    pub fn leaving_sandbox(mut facts: Vec<Fact>) -> Vec<Fact> {
        for fact in &mut facts {
            if let Fact::Command { leaves_sandbox, .. } = fact {
                *leaves_sandbox = true;
            }
        }
        facts
    }

    /// Looks where a path leads, and what the sandbox has already. Without a tree everything counts as outside.
    pub(crate) fn of(effect: &Effect, context: &Context) -> Fact {
        match effect {
            Effect::Command { command, leaves_sandbox, wants_network } => {
                let (command, leaves_sandbox) = (command.clone(), *leaves_sandbox);
                let wants_network = *wants_network && !leaves_sandbox && !context.has_network();
                Fact::Command { command, leaves_sandbox, wants_network }
            }
            Effect::Read(named) => Fact::File(FileFacts::of(Access::Read, named, context)),
            Effect::Write(named) => Fact::File(FileFacts::of(Access::Write, named, context)),
            Effect::Host(name) => Fact::Host(name.clone()),
            Effect::Database => Fact::Database,
            Effect::Unknown => Fact::Unknown,
        }
    }
}

/// A file or a folder that a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    /// What is done to it.
    pub access: Access,
    /// As the model named it.
    pub named: String,
    /// The same as an absolute path, without `.` and `..`.
    pub path: PathBuf,
    /// The absolute path without links, if that is known.
    pub real: Option<PathBuf>,
    /// Where it lies.
    pub whereabouts: Whereabouts,
    /// What relative patterns of rules are relative to.
    pub directory: PathBuf,
}

/// What a call does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads, lists or searches.
    Read,
    /// It creates or changes.
    Write,
}

/// Where a file lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// In the working tree.
    Inside,
    /// There too, but at a place that a person is always asked for before it is written.
    Guarded,
    /// There too, but where secrets or ikigai's own files are.
    Hidden,
    /// Not in the working tree.
    Outside,
}

impl FileFacts {
    fn of(access: Access, named: &str, context: &Context) -> FileFacts {
        let named = named.to_owned();
        let (directory, tree) = (context.directory(), context.tree());
        let full = directory.join(&named);
        let path = without_dots(&full);
        let (real, whereabouts) = match tree.map(|tree| tree.look(&full)) {
            Some(Ok(found)) => {
                let is_guarded = is_guarded_at(&found.root, &found.inside)
                    || tree.is_some_and(|tree| tree.is_guarded_by_name(&path));
                let whereabouts = match is_guarded {
                    _ if found.is_hidden => Whereabouts::Hidden,
                    true => Whereabouts::Guarded,
                    false => Whereabouts::Inside,
                };
                (Some(found.root.join(found.inside)), whereabouts)
            }
            // A link inside has led out: what it leads to is not known, so no rule can be about it.
            Some(Err(FileError::Outside)) if tree.is_some_and(|tree| tree.names(&path)) => {
                (None, Whereabouts::Outside)
            }
            Some(Err(FileError::Outside)) | None => (real_path(&full), Whereabouts::Outside),
            // Whatever else is wrong, the tool itself will say so.
            Some(Err(_)) => (None, Whereabouts::Inside),
        };
        let directory = directory.to_owned();
        FileFacts { access, named, path, real, whereabouts, directory }
    }
}

pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(tidy.pop()),
            Component::CurDir => {}
            other => tidy.push(other),
        }
    }
    tidy
}
