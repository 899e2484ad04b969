//! What a tool may use of the world around it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};

use rustix::fs::CWD;
use rustix::io::Errno;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::commands::Commands;
use crate::file_error::FileError;
use crate::files::{open_anywhere, open_at};
use crate::gate::{Reach, without_dots};
use crate::live_output::LiveSink;
use crate::memory::FileMemory;
use crate::output::OutputSize;
use crate::place::{Links, Place, open_folder, path_of, require_readable};
use crate::protected::{has_become_setting, is_guarded_at};
use crate::replace::Keep;
use crate::sandbox::{Root, Sandbox};
use crate::tree::Tree;
use crate::words::Variables;

/// The surroundings of a call. Cheap to clone; all clones share the same commands and interrupt.
#[derive(Debug, Clone)]
pub struct Context {
    /// Absolute; relative paths in arguments are relative to it.
    directory: Arc<Path>,
    /// What file tools are confined to; `None` lets them go wherever the user may.
    tree: Option<Arc<Tree>>,
    /// Whether those places may be written that a person is always asked for.
    guarded_too: bool,
    /// Where the paths of the call have to lead, links followed; `None` lets them lead anywhere.
    destinations: Option<Arc<[PathBuf]>>,
    pub(crate) output_size: OutputSize,
    pub(crate) commands: Arc<Commands>,
    pub(crate) interrupt: CancellationToken,
    /// The walls around commands; none unless they are asked for.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
    /// Whose calls they are; those of one agent share a loopback.
    pub(crate) agent: OsString,
    /// Folders that agents can write: a command outside the sandbox finds no program there.
    pub(crate) avoided: Vec<Root>,
    /// What the agent knows of files; without it nothing is checked and nothing kept.
    memory: Option<Arc<FileMemory>>,
    /// Rings when the running command is to continue in the background. `None` if none can: the
    /// program ends with the call.
    pub(crate) leave: Option<Arc<Notify>>,
    /// What commands have in their environment beyond, or instead of, what all of `commands` have.
    pub(crate) variables: Arc<Variables>,
    /// Receives what a command prints while it runs.
    pub(crate) live: Option<LiveSink>,
}

impl Context {
    /// A context for calls that work in `directory`, an absolute path. Cancelling `interrupt` ends a
    /// running call.
    pub fn new(
        directory: &Path,
        output_size: OutputSize,
        commands: Arc<Commands>,
        interrupt: CancellationToken,
    ) -> Context {
        Context {
            directory: directory.into(),
            tree: None,
            guarded_too: false,
            destinations: None,
            output_size,
            commands,
            interrupt,
            sandbox: None,
            agent: OsString::new(),
            avoided: Vec::new(),
            memory: None,
            leave: None,
            variables: Arc::default(),
            live: None,
        }
    }

    /// The same, for a call whose output is shown while it runs.
    #[must_use]
    pub fn with_live_output(self, sink: LiveSink) -> Context {
        Context { live: Some(sink), ..self }
    }

    /// The same, for calls whose commands are to run in `sandbox`. One that cannot be set up is a failure
    /// of the call; a command is never run without it instead.
    #[must_use]
    pub fn with_sandbox(self, sandbox: Arc<Sandbox>) -> Context {
        Context { sandbox: Some(sandbox), ..self }
    }

    /// The same, for an agent that remembers files: it overwrites none that it has not seen, and of every call
    /// it is told what it did to [files](crate::Execution::file).
    #[must_use]
    pub fn remembering(self, memory: Arc<FileMemory>) -> Context {
        Context { memory: Some(memory), ..self }
    }

    /// The same, for calls whose commands can continue in the background. One that runs goes there
    /// when `leave` rings.
    #[must_use]
    pub fn with_background(self, leave: Arc<Notify>) -> Context {
        Context { leave: Some(leave), ..self }
    }

    /// The same, for calls of this agent.
    #[must_use]
    pub fn of_agent(self, agent: OsString) -> Context {
        Context { agent, ..self }
    }

    /// Whose calls they are.
    pub fn agent(&self) -> &OsStr {
        &self.agent
    }

    /// The same, for calls whose commands have these variables in their environment, too. They go before
    /// those that all commands have: agents that share their commands can be told apart by them.
    #[must_use]
    pub fn with_variables(self, variables: Vec<(OsString, OsString)>) -> Context {
        Context { variables: Arc::new(variables), ..self }
    }

    /// The same, with file tools confined to `tree`.
    pub fn confined(self, tree: Arc<Tree>) -> Context {
        Context { tree: Some(tree), ..self }
    }

    /// The same for one call that may reach so far.
    pub fn reaching(self, reach: Reach) -> Context {
        match reach {
            Reach::Tree => Context { guarded_too: false, ..self },
            Reach::TreeAndGuarded => Context { guarded_too: true, ..self },
            Reach::Network => {
                let sandbox = self.sandbox.as_deref();
                let with_network =
                    sandbox.map(|sandbox| Sandbox { network: true, ..sandbox.clone() });
                // What was granted is the program that the user has, not one of the same name in the tree.
                let avoided = sandbox.map(|sandbox| sandbox.write.clone()).unwrap_or_default();
                let sandbox = with_network.map(Arc::new);
                Context { guarded_too: false, sandbox, avoided, ..self }
            }
            Reach::Anywhere => {
                let avoided = self.sandbox.map(|sandbox| sandbox.write.clone()).unwrap_or_default();
                Context { tree: None, sandbox: None, avoided, ..self }
            }
            Reach::Full => Context { tree: None, sandbox: None, ..self },
        }
    }

    /// The same for one call whose paths have to lead [there](crate::Call::destinations): what was approved are those
    /// files, and a link may be changed in the meantime. A call that names no path may use any.
    #[must_use]
    pub fn leading_to(self, destinations: Vec<PathBuf>) -> Context {
        let destinations = (!destinations.is_empty()).then(|| destinations.into());
        Context { destinations, ..self }
    }

    /// Compares an open folder or file, or a place in an open folder, with what was approved: nothing that happens
    /// later changes where that is.
    pub(crate) fn require_destination(
        &self,
        found: impl FnOnce() -> io::Result<PathBuf>,
    ) -> Result<(), FileError> {
        match &self.destinations {
            Some(approved) if !approved.contains(&found()?) => Err(FileError::LeadsElsewhere),
            Some(_) | None => Ok(()),
        }
    }

    /// Lets the next command begin sooner. For when there is time.
    ///
    /// # Cancel safety
    /// What is not ready then is made ready by the next call.
    pub async fn get_ready(&self) {
        if let Some(sandbox) = &self.sandbox {
            self.commands.get_ready(sandbox).await;
        }
    }

    pub(crate) fn memory(&self) -> Option<&FileMemory> {
        self.memory.as_deref()
    }

    /// Whether what a write replaces is wanted later.
    pub(crate) fn keep(&self) -> Keep {
        match self.memory {
            Some(_) => Keep::Content,
            None => Keep::Nothing,
        }
    }

    pub(crate) fn tree(&self) -> Option<&Tree> {
        self.tree.as_deref()
    }

    /// Whether commands in the sandbox have the network without asking for it.
    pub(crate) fn has_network(&self) -> bool {
        self.sandbox.as_ref().is_some_and(|sandbox| sandbox.network)
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where `path`, as a model gave it, leads.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        self.directory.join(path)
    }

    /// Where `path` leads, if it is to be a file: the empty path names none.
    fn resolve_file(&self, path: &str) -> Result<PathBuf, FileError> {
        match path.is_empty() || path.contains('\0') {
            true => Err(Errno::NOENT.into()),
            false => Ok(self.resolve(path)),
        }
    }

    /// Opens a regular file for reading, together with its length at that moment.
    pub(crate) fn open_to_read(&self, path: &str) -> Result<(File, u64), FileError> {
        self.open_resolved(&self.resolve_file(path)?)
    }

    /// The same for an absolute path.
    pub(crate) fn open_resolved(&self, path: &Path) -> Result<(File, u64), FileError> {
        let (file, length) = match &self.tree {
            Some(tree) => open_at(&tree.place(path)?)?,
            None => open_anywhere(path)?,
        };
        self.require_destination(|| path_of(&file))?;
        Ok((file, length))
    }

    /// Waits for the turn to judge a path of the tree and write it.
    pub(crate) fn turn_to_write(&self) -> Option<MutexGuard<'_, ()>> {
        self.tree.as_ref().map(|tree| tree.turn_to_write())
    }

    /// Whether a file that was just written has become one of git's settings meanwhile, without approval: a
    /// command may have made a repository of the folder.
    pub(crate) fn has_become_guarded(&self, path: &Path) -> bool {
        self.tree.is_some() && !self.guarded_too && has_become_setting(path)
    }

    /// The place of a file that is to be written.
    pub(crate) fn place_to_write(&self, path: &str) -> Result<Place, FileError> {
        let path = self.resolve_file(path)?;
        let place = match &self.tree {
            Some(tree) => tree.find(&path).and_then(|found| {
                let is_guarded = || {
                    is_guarded_at(&found.root, &found.inside)
                        || tree.is_guarded_by_name(&without_dots(&path))
                };
                match !self.guarded_too && is_guarded() {
                    true => Err(FileError::Guarded),
                    false => Ok(found.place),
                }
            }),
            None => Place::anywhere(&path),
        };
        let place = place.map_err(FileError::of_a_folder)?;
        self.require_destination(|| place.real_path())?;
        Ok(place)
    }

    /// Whether the absolute `path` is a folder, and not a file. It has to be one whose names may be read.
    pub(crate) fn is_folder(&self, path: &Path) -> Result<bool, FileError> {
        match &self.tree {
            Some(tree) => match tree.find_folder(path) {
                Ok((folder, _)) => Ok(require_readable(folder).map(|()| true)?),
                Err(FileError::NotDirectory) => Ok(false),
                Err(error) => Err(error),
            },
            None => match std::fs::metadata(path)?.is_dir() {
                true => Ok(std::fs::read_dir(path).map(|_| true)?),
                false => Ok(false),
            },
        }
    }

    /// The folder at the absolute `path` for a walk, and its path without links.
    pub(crate) fn start_of_walk(&self, path: &Path) -> Result<(Arc<OwnedFd>, PathBuf), FileError> {
        match &self.tree {
            Some(tree) => {
                let (folder, path) = tree.find_folder(path)?;
                // Without a slash at its end.
                Ok((folder, path.components().collect()))
            }
            None => {
                let folder = open_folder(CWD, path, Links::Follow)?;
                let path = path_of(&folder)?;
                Ok((Arc::new(folder), path))
            }
        }
    }

    /// Waits for a future; `None` if the call is interrupted first.
    pub async fn until_interrupted<F: Future>(&self, work: F) -> Option<F::Output> {
        self.interrupt.run_until_cancelled(work).await
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.is_cancelled()
    }
}
