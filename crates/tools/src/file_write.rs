//! `file_write`: a file's whole content, in one step.

use std::borrow::Cow;
use std::sync::Arc;

use ikigai_conversation::{EffectKind, Preview};

use crate::arguments::{Arguments, FileContent};
use crate::call::Call;
use crate::context::Context;
use crate::declaration::tool;
use crate::effect::Effect;
use crate::file_error::{FileError, shorten};
use crate::file_use::{FileUse, Sight, Stale};
use crate::present::{Present, whole_change};
use crate::replace::Target;
use crate::result::{Execution, ToolResult};
use crate::tool::{BuiltIn, Tool};
use crate::written::WrittenFile;

pub(crate) fn tool<S: 'static>() -> Arc<dyn Tool<S>> {
    BuiltIn::new(FileWrite::declaration(), &[EffectKind::Write], prepare)
        .repairing(FileWrite::PARAMETERS)
        .shared()
}

fn prepare<S>(arguments: &Arguments) -> Result<Call<S>, ToolResult> {
    let call = Arc::new(FileWrite::parse(arguments)?);
    let (effect, path) = (Effect::Write(call.path.clone()), call.path.clone());
    let previewed = Arc::clone(&call);
    Ok(Call::blocking(move |context| call.execute(context))
        .with_effects([effect])
        .shown_as("Write", &path)
        .with_preview(move |context| previewed.preview(context)))
}

tool! {
    /// Create or replace a file, with missing folders
    struct FileWrite = "file_write" {
        /// File to write
        path: String,
        /// Whole content
        content: FileContent,
    }
}

/// How often a file that another process has just created is looked at again.
const ATTEMPTS: u32 = 10;

impl FileWrite {
    fn preview(&self, context: &Context) -> Preview {
        let path = &self.path;
        let (old, remark) = match Present::of(context, path) {
            Present::Nothing => (String::new(), None),
            Present::Text(old) => (old, None),
            Present::NotShown { bytes } => {
                let remark = format!("{path}: all {bytes} bytes of the file are replaced by");
                (String::new(), Some(remark))
            }
            Present::Unknown => {
                (String::new(), Some(format!("{path}: its content is replaced by")))
            }
        };
        whole_change(path, remark, &old, &self.content.0)
    }

    fn execute(&self, context: &Context) -> Execution {
        let mut attempts = 1..=ATTEMPTS;
        loop {
            attempts.next();
            return match self.write(context) {
                Ok(written) => {
                    let after = Some(Cow::Borrowed(self.content.0.as_bytes()));
                    written.execution(context, &self.path, self.success(), |_| after)
                }
                Err(Refused::Overtaken) if !attempts.is_empty() => continue,
                Err(Refused::Overtaken) => {
                    ToolResult::failure(&FileError::ChangedMeanwhile.describe(&self.path)).into()
                }
                Err(Refused::File(error)) => {
                    ToolResult::failure(&error.describe(&self.path)).into()
                }
                Err(Refused::Stale(stale)) => {
                    let result = ToolResult::failure(&FileError::Stale.describe(&self.path));
                    Execution { file: Some(FileUse::Stale(stale)), ..result.into() }
                }
            };
        }
    }

    fn success(&self) -> ToolResult {
        let bytes = self.content.0.len();
        let output = format!("Wrote {bytes} bytes to {}", shorten(&self.path));
        ToolResult::output(output).with("bytes", bytes)
    }

    fn write(&self, context: &Context) -> Result<WrittenFile, Refused> {
        let _turn = context.turn_to_write();
        let mut target = Target::lock(context.place_to_write(&self.path)?)?;
        self.require_seen(context, &target)?;
        let folders = target.create_folders()?;
        let content = self.content.0.as_bytes();
        let is_new = target.looks().is_none();
        let replaced = target.replace(context.keep(), |file| Ok(file.write_all(content)?));
        let replaced = replaced.map_err(|error| match error {
            FileError::ChangedMeanwhile if is_new => Refused::Overtaken,
            error => Refused::File(error),
        })?;
        let written =
            WrittenFile { path: target.real_path(), replaced, new_folders: folders.keep() };
        drop(target);
        Ok(written.unless_guarded(context)?)
    }

    /// Checked under the lock. A program that ignores the lock is noticed when the file is replaced. So only
    /// what the agent has seen is overwritten.
    fn require_seen(&self, context: &Context, target: &Target) -> Result<(), Refused> {
        let (Some(memory), Some(looks)) = (context.memory(), target.looks()) else {
            return Ok(());
        };
        let path = target.real_path().map_err(FileError::from)?;
        match memory.recall(&path) {
            None => Err(FileError::NotSeen.into()),
            Some(seen) if seen == looks => Ok(()),
            Some(_) => {
                let now = Sight { path, looks };
                Err(Refused::Stale(Stale { named: self.path.clone(), now }))
            }
        }
    }
}

/// Why nothing was written.
enum Refused {
    /// There was no file, and now there is one.
    Overtaken,
    File(FileError),
    Stale(Stale),
}

impl From<FileError> for Refused {
    fn from(error: FileError) -> Refused {
        Refused::File(error)
    }
}
