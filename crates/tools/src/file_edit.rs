//! `file_edit`: one piece of a file replaced by another, byte by byte.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::sync::Arc;

use ikigai_conversation::{EffectKind, Preview};
use memchr::memchr_iter;
use memchr::memmem::Finder;

use crate::arguments::Arguments;
use crate::call::Call;
use crate::context::Context;
use crate::declaration::tool;
use crate::diff::COMPARED_BYTES;
use crate::effect::Effect;
use crate::file_error::{FileError, shorten};
use crate::file_use::KEPT_BYTES;
use crate::inexact::{InexactEdit, SHOWN, find, listed};
use crate::present::{Present, whole_change};
use crate::replace::{Target, read_up_to};
use crate::result::{Execution, REPAIRED, ToolResult};
use crate::similar_names::describe;
use crate::tool::{BuiltIn, Tool};
use crate::written::WrittenFile;

pub(crate) fn tool<S: 'static>() -> Arc<dyn Tool<S>> {
    BuiltIn::new(FileEdit::declaration(), &[EffectKind::Write], prepare)
        .repairing(FileEdit::PARAMETERS)
        .shared()
}

fn prepare<S>(arguments: &Arguments) -> Result<Call<S>, ToolResult> {
    let call = Arc::new(FileEdit::parse(arguments)?);
    let (effect, path) = (Effect::Write(call.path.clone()), call.path.clone());
    let previewed = Arc::clone(&call);
    Ok(Call::blocking(move |context| call.execute(context))
        .with_effects([effect])
        .shown_as("Edit", &path)
        .with_preview(move |context| previewed.preview(context)))
}

tool! {
    /// Replace a string in a file; it must occur exactly once unless replace_all is true
    struct FileEdit = "file_edit" {
        /// File to edit
        path: String,
        /// Text to replace, exactly as it stands there
        old_string: String,
        /// Text to put in its place
        new_string: String,
        /// Replace every occurrence
        replace_all: Option<bool>,
    }
}

/// Why a file stays as it is.
enum EditError {
    /// The text is not in the file; with advice, if there is any.
    NotFound(Option<String>),
    /// It is there more than once, first in these lines.
    Several {
        count: u64,
        lines: Vec<u64>,
    },
    File(FileError),
}

impl<E: Into<FileError>> From<E> for EditError {
    fn from(error: E) -> EditError {
        EditError::File(error.into())
    }
}

/// Which bytes of a file are replaced.
enum Plan {
    /// All of these occurrences.
    Exact { count: u64 },
    /// A place that matches in another way.
    Inexact(InexactEdit),
}

impl FileEdit {
    /// Against the file where the edit would succeed as the file is now; else only what it replaces by what.
    fn preview(&self, context: &Context) -> Preview {
        let (path, old, new) = (&self.path, &self.old_string, &self.new_string);
        let is_everywhere = self.replace_all == Some(true);
        let remark = is_everywhere.then(|| format!("wherever it stands in {path}"));
        match Present::of(context, path) {
            Present::Text(text) if !old.is_empty() => match text.matches(old).count() {
                0 => match find(text.as_bytes(), old, new) {
                    Ok(edit) => {
                        let after = edit.pieces(text.as_bytes()).concat();
                        whole_change(path, remark, &text, &String::from_utf8_lossy(&after))
                    }
                    Err(_) => whole_change(path, remark, old, new),
                },
                1 => whole_change(path, remark, &text, &text.replace(old, new)),
                2.. if is_everywhere => whole_change(path, remark, &text, &text.replace(old, new)),
                _ => whole_change(path, remark, old, new),
            },
            Present::Text(_) | Present::Nothing | Present::NotShown { .. } | Present::Unknown => {
                whole_change(path, remark, old, new)
            }
        }
    }

    fn execute(&self, context: &Context) -> Execution {
        if self.old_string.is_empty() {
            return ToolResult::failure("old_string cannot be empty").into();
        }
        if self.old_string == self.new_string {
            return ToolResult::failure("old_string and new_string are identical").into();
        }
        let path = shorten(&self.path);
        let failure = match self.edit(context) {
            Ok((plan, written)) => {
                let success = self.success(&plan);
                let after = |before: &[u8]| self.applied_to(before, &plan).map(Cow::Owned);
                return written.execution(context, &self.path, success, after);
            }
            Err(EditError::NotFound(advice)) => {
                let advice = advice.map(|advice| format!("\n{advice}")).unwrap_or_default();
                format!("String not found in {path}{advice}")
            }
            Err(EditError::Several { count, lines }) => {
                let more = if count > lines.len() as u64 { ", …" } else { "" };
                format!(
                    "String found {count} times in {path}, use replace_all to replace all\n{}{more}",
                    listed(&lines)
                )
            }
            Err(EditError::File(error)) => describe(context, &error, &self.path),
        };
        ToolResult::failure(&failure).into()
    }

    fn success(&self, plan: &Plan) -> ToolResult {
        let count = match plan {
            Plan::Exact { count } => *count,
            Plan::Inexact(_) => 1,
        };
        let output = format!("Replaced {count} occurrence(s) in {}", shorten(&self.path));
        let success = ToolResult::output(output).with("replacements", count);
        match plan {
            Plan::Exact { .. } => success,
            Plan::Inexact(edit) => success.with(REPAIRED, vec![edit.note]),
        }
    }

    /// What a file holds after the edit that held this before, unless that is too large to be compared.
    fn applied_to(&self, before: &[u8], plan: &Plan) -> Option<Vec<u8>> {
        if let Plan::Inexact(edit) = plan {
            return Some(edit.pieces(before).concat());
        }
        let mut after = Vec::with_capacity(before.len());
        scan(&mut &*before, &Finder::new(&self.old_string), |piece| {
            after.extend_from_slice(match piece {
                Piece::Other(bytes) => bytes,
                Piece::Found => self.new_string.as_bytes(),
            });
            match after.len() {
                0..=COMPARED_BYTES => Ok(()),
                _ => Err(io::ErrorKind::FileTooLarge.into()),
            }
        })
        .ok()?;
        Some(after)
    }

    /// Counts first and writes then: a refused edit costs no writing.
    fn edit(&self, context: &Context) -> Result<(Plan, WrittenFile), EditError> {
        let _turn = context.turn_to_write();
        let mut target = Target::lock(context.place_to_write(&self.path)?)?;
        let file = target.existing().ok_or(io::Error::from(rustix::io::Errno::NOENT))?;
        let mut reader = file.try_clone()?;
        let finder = Finder::new(&self.old_string);
        let (count, lines) = occurrences(&mut reader, &finder)?;
        let (plan, replaced) = match count {
            0 => {
                // A larger file would be held in memory, several times.
                let content = read_up_to(&reader, KEPT_BYTES)?.ok_or(EditError::NotFound(None))?;
                let edit = find(&content, &self.old_string, &self.new_string)
                    .map_err(EditError::NotFound)?;
                let write = |output: &mut dyn Write| {
                    Ok(edit
                        .pieces(&content)
                        .iter()
                        .try_for_each(|piece| output.write_all(piece))?)
                };
                let replaced = target.replace(context.keep(), write)?;
                (Plan::Inexact(edit), replaced)
            }
            2.. if self.replace_all != Some(true) => {
                return Err(EditError::Several { count, lines });
            }
            count => {
                let write =
                    |output: &mut dyn Write| self.write(&mut reader, &finder, output, count);
                (Plan::Exact { count }, target.replace(context.keep(), write)?)
            }
        };
        let written = WrittenFile { path: target.real_path(), replaced, new_folders: 0 };
        drop(target);
        Ok((plan, written.unless_guarded(context)?))
    }

    fn write(
        &self,
        reader: &mut File,
        finder: &Finder<'_>,
        output: &mut dyn Write,
        expected: u64,
    ) -> Result<(), FileError> {
        reader.rewind()?;
        let mut output = io::BufWriter::new(output);
        let mut count = 0;
        scan(reader, finder, |piece| match piece {
            Piece::Other(bytes) => output.write_all(bytes),
            Piece::Found => {
                count += 1;
                output.write_all(self.new_string.as_bytes())
            }
        })?;
        output.flush()?;
        if count == expected { Ok(()) } else { Err(FileError::ChangedMeanwhile) }
    }
}

/// How often the needle occurs, and in which lines the first occurrences begin.
fn occurrences(reader: &mut File, finder: &Finder<'_>) -> io::Result<(u64, Vec<u64>)> {
    let line_ends = |bytes: &[u8]| memchr_iter(b'\n', bytes).count() as u64;
    let within = line_ends(finder.needle());
    let (mut count, mut line, mut lines) = (0, 1, Vec::new());
    scan(reader, finder, |piece| {
        match piece {
            _ if lines.len() == SHOWN => count += u64::from(matches!(piece, Piece::Found)),
            Piece::Other(bytes) => line += line_ends(bytes),
            Piece::Found => {
                count += 1;
                lines.push(line);
                line += within;
            }
        }
        Ok(())
    })?;
    Ok((count, lines))
}

/// A part of a scanned file.
enum Piece<'a> {
    Other(&'a [u8]),
    Found,
}

/// Takes a file apart into occurrences of the needle, left to right and not overlapping, and what lies
/// between them, holding no more than a chunk and the needle's length in memory.
fn scan(
    reader: &mut impl Read,
    finder: &Finder<'_>,
    mut visit: impl FnMut(Piece<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let needle = finder.needle().len();
    let chunk = needle.max(64 * 1024);
    let mut buffer: Vec<u8> = Vec::with_capacity(chunk + needle);
    loop {
        let read = reader.by_ref().take(chunk as u64).read_to_end(&mut buffer)?;
        let mut from = 0;
        while let Some(at) = finder.find(&buffer[from..]) {
            visit(Piece::Other(&buffer[from..from + at]))?;
            visit(Piece::Found)?;
            from += at + needle;
        }
        if read == 0 {
            return visit(Piece::Other(&buffer[from..]));
        }
        // An occurrence may begin in the last bytes and end in the next chunk.
        let sure = buffer.len().saturating_sub(needle - 1).max(from);
        visit(Piece::Other(&buffer[from..sure]))?;
        buffer.drain(..sure);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use memchr::memmem::Finder;
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    use super::{Piece, scan};

    /// A file that is read in pieces of these sizes, again and again, as a network file system may.
    struct Pieces<'a> {
        rest: &'a [u8],
        sizes: Vec<usize>,
        next: usize,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let size = self.sizes[self.next % self.sizes.len()];
            self.next += 1;
            if size == 0 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let size = size.min(buffer.len());
            self.rest.read(&mut buffer[..size])
        }
    }

    fn replace(content: &[u8], sizes: &[usize], old: &[u8], new: &[u8]) -> (Vec<u8>, usize) {
        let mut reader = Pieces { rest: content, sizes: sizes.to_vec(), next: 0 };
        let (mut output, mut count) = (Vec::new(), 0);
        scan(&mut reader, &Finder::new(old), |piece| {
            match piece {
                Piece::Other(bytes) => output.extend_from_slice(bytes),
                Piece::Found => {
                    count += 1;
                    output.extend_from_slice(new);
                }
            }
            Ok(())
        })
        .unwrap();
        (output, count)
    }

    /// The same, the simplest way.
    fn naive(content: &[u8], old: &[u8], new: &[u8]) -> (Vec<u8>, usize) {
        let (mut output, mut count, mut at) = (Vec::new(), 0, 0);
        while at < content.len() {
            if content[at..].starts_with(old) {
                output.extend_from_slice(new);
                (count, at) = (count + 1, at + old.len());
            } else {
                output.push(content[at]);
                at += 1;
            }
        }
        (output, count)
    }

    #[track_caller]
    fn check(content: &[u8], old: &[u8]) {
        for sizes in [&[usize::MAX][..], &[1], &[7, 0, 4_096]] {
            assert!(
                replace(content, sizes, old, b"<new>") == naive(content, old, b"<new>"),
                "{} bytes in {content_length}, read by {sizes:?}",
                old.len(),
                content_length = content.len()
            );
        }
    }

    /// Two letters only, so that beginnings of the needle are everywhere.
    fn letters(count: usize) -> Vec<u8> {
        (0..count).map(|number| if number % 3 == 0 { b'a' } else { b'b' }).collect()
    }

    #[test]
    fn nothing_and_the_whole_file_are_found() {
        check(b"", b"a");
        check(b"a", b"a");
        check(b"a", b"aa");
        check(b"aaaaa", b"aa");
    }

    #[test]
    fn an_occurrence_at_every_place_around_the_end_of_a_chunk_is_found() {
        let chunk = 64 * 1024;
        for needle in [&b"x"[..], b"xyz", b"xxxxxxxxxxxxxxxy"] {
            for before in chunk - needle.len() - 1..=chunk + 1 {
                check(&[&letters(before)[..], needle, &letters(100)].concat(), needle);
            }
        }
    }

    #[test]
    fn a_needle_longer_than_a_chunk_is_found() {
        let needle = letters(150_001);
        check(&[b"c", &needle[..], &needle[..], b"c", &needle[..150_000]].concat(), &needle);
        check(&needle[..150_000], &needle);
    }

    proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

        #[test]
        fn any_pieces_give_what_the_simplest_way_gives(
            content in prop::collection::vec(b'a'..=b'c', 0..400),
            repeated in 1..400_usize,
            old in prop::collection::vec(b'a'..=b'c', 1..6),
            new in prop::collection::vec(b'a'..=b'c', 0..6),
            sizes in prop::collection::vec(1..5_000_usize, 1..5),
        ) {
            let content = content.repeat(repeated);
            prop_assert_eq!(replace(&content, &sizes, &old, &new), naive(&content, &old, &new));
        }
    }
}
