//! `file_write`: a file's whole content, in one step.

use crate::arguments::Arguments;
use crate::context::Context;
use crate::declaration::tool;
use crate::dispatcher::{Call, Tool};
use crate::file_error::{FileError, file_name};
use crate::gate::Subject;
use crate::replace::Target;
use crate::result::{Outcome, Refusal};

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

impl FileWrite {
    fn execute(&self, context: &Context) -> Outcome {
        if let Err(error) = self.write(context) {
            return Outcome::Failure(error.describe(&self.path));
        }
        let bytes = self.content.len();
        let output = format!("Wrote {bytes} bytes to {}", file_name(&self.path));
        Outcome::success(output.into()).with("bytes", bytes)
    }

    fn write(&self, context: &Context) -> Result<(), FileError> {
        let mut target = Target::lock(context.place_to_write(&self.path)?)?;
        let folders = target.create_folders()?;
        target.replace(|file| Ok(file.write_all(self.content.as_bytes())?))?;
        folders.keep();
        Ok(())
    }
}
