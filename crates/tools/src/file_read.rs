//! `file_read`: the text of a file, or some of its lines.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use rustix::fs::fstat;

use ikigai_conversation::EffectKind;

use crate::arguments::{Arguments, Whole};
use crate::call::Call;
use crate::context::Context;
use crate::declaration::tool;
use crate::effect::Effect;
use crate::file_error::FileError;
use crate::file_use::{FileUse, Sight};
use crate::looks::Fingerprint;
use crate::output::{Capture, Output};
use crate::place::path_of;
use crate::result::{Execution, ToolResult, counted};
use crate::similar_names::describe;
use crate::tool::{BuiltIn, Tool};

pub(crate) fn tool<S: 'static>() -> Arc<dyn Tool<S>> {
    BuiltIn::new(FileRead::declaration(), &[EffectKind::Read], prepare)
        .repairing(FileRead::PARAMETERS)
        .shared()
}

fn prepare<S>(arguments: &Arguments) -> Result<Call<S>, ToolResult> {
    let call = FileRead::parse(arguments)?;
    let (effect, subject) = (Effect::Read(call.path.clone()), call.subject());
    let work = move |context: &Context| call.execute(context);
    Ok(Call::blocking(work).with_effects([effect]).shown_as("Read", &subject))
}

tool! {
    /// Read a text file
    struct FileRead = "file_read" {
        /// File to read
        path: String,
        /// First line, counted from 1
        offset: Option<Whole<1, { u64::MAX }>>,
        /// Number of lines
        limit: Option<Whole<1, { u64::MAX }>>,
    }
}

/// Read at a time.
const CHUNK: usize = 64 * 1024;
/// A NUL within this many bytes of the beginning means that it is no text.
const PROBE: usize = 8 * 1024;
/// A file that claims to be shorter than this may go on growing up to here while it is read; beyond, only
/// what it held when it was opened counts. Files of /proc claim to be empty.
const GROWTH_LIMIT: u64 = 64 * 1024 * 1024;

impl FileRead {
    /// The path, and which lines of it.
    fn subject(&self) -> String {
        let first = self.offset.map(|first| format!(" from line {}", first.0));
        let count = self.limit.map(|count| format!(", {}", counted(count.0, "line", "lines")));
        [Some(self.path.clone()), first, count].into_iter().flatten().collect()
    }

    fn execute(&self, context: &Context) -> Execution {
        let opened = context.open_to_read(&self.path);
        // Before it is read: what is written to it meanwhile may not have been seen.
        let sight = opened.as_ref().ok().and_then(|(file, _)| self.sight(context, file));
        match opened.and_then(|(file, length)| self.read(context, file, length)) {
            Ok(output) => {
                let (lossy, line) = (output.lossy, lines_of(&output));
                let result = ToolResult::from(output).summed_up(line);
                let result = if lossy { result.with("lossy", true) } else { result };
                let result = result.unless_interrupted(context);
                let file = sight.filter(|_| result.is_success()).map(FileUse::Read);
                Execution { file, ..result.into() }
            }
            Err(error) => ToolResult::failure(&describe(context, &error, &self.path)).into(),
        }
    }

    fn sight(&self, context: &Context, file: &File) -> Option<Sight> {
        context.memory()?;
        let path = path_of(file).or_else(|_| context.resolve(&self.path).canonicalize()).ok()?;
        Some(Sight { path, looks: Fingerprint::of(&fstat(file).ok()?) })
    }

    fn read(&self, context: &Context, file: File, length: u64) -> Result<Output, FileError> {
        let mut file = file.take(length.max(GROWTH_LIMIT));
        let mut selection = Selection::new(self, Capture::beginning(context.output_size));
        let mut chunk = vec![0; CHUNK];
        let mut position: u64 = 0;
        while !selection.is_complete() && !context.is_interrupted() {
            let filled = read_full(&mut file, &mut chunk)?;
            if filled == 0 {
                break;
            }
            if position == 0 && chunk[..filled.min(PROBE)].contains(&0) {
                return Err(FileError::NotText);
            }
            position += filled as u64;
            selection.push(&chunk[..filled]);
            // A file that has grown, or one of /proc that claims to be empty, has to be read to be counted.
            if selection.wants_only_the_size() && position <= length {
                selection.output.skip(length - position);
                break;
            }
        }
        Ok(selection.output.finish())
    }
}

/// How many lines of the file it has, without the one that says where it was cut.
fn lines_of(output: &Output) -> String {
    let count = output.text.lines().count().saturating_sub(usize::from(output.truncated));
    counted(count as u64, "line", "lines")
}

/// The lines that were asked for, picked out of a stream of chunks.
struct Selection {
    lines_to_skip: u64,
    /// `None`: to the end.
    lines_to_take: Option<u64>,
    output: Capture,
}

impl Selection {
    fn new(call: &FileRead, output: Capture) -> Selection {
        Selection {
            lines_to_skip: call.offset.map_or(0, |first| first.0 - 1),
            lines_to_take: call.limit.map(|limit| limit.0),
            output,
        }
    }

    fn push(&mut self, mut bytes: &[u8]) {
        bytes = &bytes[end_of_lines(bytes, &mut self.lines_to_skip)..];
        if let Some(lines) = &mut self.lines_to_take {
            bytes = &bytes[..end_of_lines(bytes, lines)];
        }
        self.output.push(bytes);
    }

    fn is_complete(&self) -> bool {
        self.lines_to_take == Some(0)
    }

    /// Whether the rest need not be read, since the file's size tells how much of it there is.
    fn wants_only_the_size(&self) -> bool {
        self.lines_to_take.is_none() && self.output.is_full()
    }
}

/// Where the next `lines` lines end in `bytes`, taking off those that do end there.
fn end_of_lines(bytes: &[u8], lines: &mut u64) -> usize {
    if *lines == 0 {
        return 0;
    }
    for newline in memchr::memchr_iter(b'\n', bytes) {
        *lines -= 1;
        if *lines == 0 {
            return newline + 1;
        }
    }
    bytes.len()
}

/// Fills the buffer as far as the file goes.
fn read_full(file: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
