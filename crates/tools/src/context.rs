//! What a tool may use of the world around it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use crate::commands::Commands;
use crate::file_error::FileError;
use crate::output::OutputSize;
use crate::sandbox::Sandbox;

/// The surroundings of a call. Cheap to clone; all clones share the same commands and interrupt.
#[derive(Debug, Clone)]
pub struct Context {
    /// Absolute; relative paths in arguments are relative to it.
    directory: Arc<Path>,
    pub(crate) output_size: OutputSize,
    pub(crate) commands: Arc<Commands>,
    pub(crate) interrupt: CancellationToken,
    /// The walls around commands; none unless they are asked for.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
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
        Context { directory: directory.into(), output_size, commands, interrupt, sandbox: None }
    }

    /// The same, for calls whose commands are to run in `sandbox`. One that cannot be set up is a failure
    /// of the call; a command is never run without it instead.
    #[must_use]
    pub fn with_sandbox(self, sandbox: Arc<Sandbox>) -> Context {
        Context { sandbox: Some(sandbox), ..self }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where `path`, as a model gave it, leads.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        self.directory.join(path)
    }

    /// Where `path` leads, if it is to be a file: the empty path names none.
    pub(crate) fn resolve_file(&self, path: &str) -> Result<PathBuf, FileError> {
        if path.is_empty() { Err(Errno::NOENT.into()) } else { Ok(self.resolve(path)) }
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.is_cancelled()
    }
}
