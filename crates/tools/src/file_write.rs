//! `file_write`: a file's whole content, in one step.

use crate::arguments::Arguments;
use crate::context::Context;
use crate::declaration::tool;
use crate::dispatcher::{Call, Tool};
use crate::file_error::{FileError, file_name};
use crate::gate::Subject;
use crate::replace::Target;
use crate::result::{Achieved, Outcome, Refusal};
use crate::touched::{Sight, Stale, Touched};
use crate::written::WrittenFile;

pub(crate) const TOOL: Tool = Tool { declaration: &FileWrite::DECLARATION, prepare };

fn prepare(arguments: &Arguments) -> Result<Call, Refusal> {
    let call = FileWrite::parse(arguments)?;
    let subject = Subject::writes(&call.path);
    Ok(Call::blocking(subject, move |context| call.execute(context)))
}

tool! {
    /// Create or replace a file, with missing folders
    struct FileWrite = "file_write" {
        /// File to write
        path: String,
        /// Whole content
        content: String,
    }
}

/// How often a file is looked at anew that somebody has just created.
const ATTEMPTS: u32 = 10;

impl FileWrite {
    fn execute(&self, context: &Context) -> Achieved {
        let mut attempts = 1..=ATTEMPTS;
        loop {
            attempts.next();
            return match self.write(context) {
                Ok(written) => written.achieved(context, &self.path, self.success()),
                Err(Refused::Overtaken) if !attempts.is_empty() => continue,
                Err(Refused::Overtaken) => {
                    Outcome::Failure(FileError::ChangedMeanwhile.describe(&self.path)).into()
                }
                Err(Refused::File(error)) => Outcome::Failure(error.describe(&self.path)).into(),
                Err(Refused::Stale(stale)) => {
                    let outcome = Outcome::Failure(FileError::Stale.describe(&self.path));
                    Achieved { outcome, touched: Some(Touched::Stale(stale)) }
                }
            };
        }
    }

    fn success(&self) -> Outcome {
        let bytes = self.content.len();
        let output = format!("Wrote {bytes} bytes to {}", file_name(&self.path));
        Outcome::success(output.into()).with("bytes", bytes)
    }

    fn write(&self, context: &Context) -> Result<WrittenFile, Refused> {
        let _turn = context.turn_to_write();
        let mut target = Target::lock(context.place_to_write(&self.path)?)?;
        self.require_seen(context, &target)?;
        let folders = target.create_folders()?;
        let content = self.content.as_bytes();
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

    /// Under the lock, and whoever does not know of that is noticed when the file is replaced: so what is
    /// overwritten is what the agent has seen.
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
