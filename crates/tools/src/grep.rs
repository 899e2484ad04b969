//! `grep`: lines of files that match a regular expression.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use globset::GlobSet;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkFinish, SinkMatch,
};

use ikigai_conversation::EffectKind;

use crate::arguments::Arguments;
use crate::call::Call;
use crate::context::Context;
use crate::declaration::tool;
use crate::effect::Effect;
use crate::file_error::{FileError, shorten};
use crate::lines::SortedFindings;
use crate::pattern::shell_pattern;
use crate::result::{ToolResult, counted};
use crate::similar_names::describe;
use crate::tool::{BuiltIn, Tool};
use crate::walk::{Extent, FoundFile, Start, walk};

pub(crate) fn tool<S: 'static>() -> Arc<dyn Tool<S>> {
    BuiltIn::new(Grep::declaration(), &[EffectKind::Read], prepare)
        .repairing(Grep::PARAMETERS)
        .shared()
}

fn prepare<S>(arguments: &Arguments) -> Result<Call<S>, ToolResult> {
    let call = Grep::parse(arguments)?;
    let effect = Effect::Read(call.path.clone().unwrap_or_else(|| ".".to_owned()));
    let places = [call.path.as_deref(), call.glob.as_deref()].into_iter().flatten();
    let places: String = places.map(|place| format!(" in {place}")).collect();
    let subject = format!("\"{}\"{places}", call.pattern);
    let work = move |context: &Context| call.execute(context).unless_interrupted(context);
    Ok(Call::blocking(work).with_effects([effect]).shown_as("Search", &subject))
}

tool! {
    /// Search files; skips ignored, hidden and binary ones
    struct Grep = "grep" {
        /// Regular expression (Rust syntax)
        pattern: String,
        /// Only these files, like *.rs
        glob: Option<String>,
        /// Folder or file to search
        path: Option<String>,
    }
}

/// A file is searched up to a longer line: no person wrote it, and a line is held in memory.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

impl Grep {
    fn execute(&self, context: &Context) -> ToolResult {
        let matcher = match compile(&self.pattern) {
            Ok(matcher) => matcher,
            Err(reason) => return ToolResult::failure(&format!("Invalid pattern: {reason}")),
        };
        // An empty filter is how some models leave it out.
        let glob = self.glob.as_deref().filter(|glob| !glob.is_empty());
        let filter = match glob.map(NameFilter::new).transpose() {
            Ok(filter) => filter,
            Err(reason) => {
                return ToolResult::failure(&format!("Invalid glob pattern: {reason}"));
            }
        };
        let start = Start::new(context, self.path.as_deref());
        match search(context, &start, &matcher, filter.as_ref()) {
            Ok(findings) => {
                let (output, count) = findings.finish();
                let result = ToolResult::from(output.finish()).with("count", count);
                result.summed_up(counted(count, "match", "matches"))
            }
            Err(error) => {
                let path = self.path.as_deref().unwrap_or(".");
                ToolResult::failure(&describe(context, &error, path))
            }
        }
    }
}

fn compile(pattern: &str) -> Result<RegexMatcher, String> {
    /// For the compiled pattern and for what it keeps while it searches: enough for any that a person or a
    /// model writes.
    const LARGEST: usize = 10 * 1024 * 1024;
    RegexMatcherBuilder::new()
        .line_terminator(Some(b'\n'))
        .size_limit(LARGEST)
        .dfa_size_limit(LARGEST)
        .build(pattern)
        .map_err(|error| shorten(&error.to_string()))
}

/// Searches a folder, or one file.
fn search(
    context: &Context,
    start: &Start,
    matcher: &RegexMatcher,
    filter: Option<&NameFilter>,
) -> Result<SortedFindings, FileError> {
    if context.is_folder(&start.path)? {
        return walk(context, start, &Extent::ALL, || {
            let mut searcher = FileSearch::new(context, matcher);
            move |found: &FoundFile<'_>, findings: &mut SortedFindings| {
                if filter.is_none_or(|filter| filter.wants(&found.relative))
                    && let Ok(file) = found.open()
                {
                    // One that cannot be read to its end is searched as far as it goes.
                    let _ = searcher.search(&file, start.show(&found.relative), findings);
                }
            }
        });
    }
    let (file, _) = context.open_resolved(&start.path)?;
    let mut found = SortedFindings::new(context.output_size);
    let name = start.path.file_name().map(Path::new).unwrap_or(&start.path);
    if filter.is_none_or(|filter| filter.wants(name)) {
        FileSearch::new(context, matcher).search(&file, start.show(Path::new("")), &mut found)?;
    }
    Ok(found)
}

/// Narrows a search to some files: by their name at any depth, or with a slash by their path.
struct NameFilter {
    matcher: GlobSet,
    by_name: bool,
}

impl NameFilter {
    fn new(pattern: &str) -> Result<NameFilter, String> {
        let pattern = pattern.trim_start_matches("./");
        Ok(NameFilter { matcher: shell_pattern(pattern)?, by_name: !pattern.contains('/') })
    }

    fn wants(&self, relative: &Path) -> bool {
        match relative.file_name() {
            Some(name) if self.by_name => self.matcher.is_match(name),
            _ => self.matcher.is_match(relative),
        }
    }
}

/// Searches one file after another, with buffers that are used again.
struct FileSearch<'a> {
    context: &'a Context,
    matcher: &'a RegexMatcher,
    searcher: Searcher,
    limit: usize,
}

impl<'a> FileSearch<'a> {
    fn new(context: &'a Context, matcher: &'a RegexMatcher) -> FileSearch<'a> {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(LONGEST_LINE))
            // A file that is cut short while it is mapped would end the program (SIGBUS).
            .memory_map(MmapChoice::never())
            .build();
        FileSearch { context, matcher, searcher, limit: context.output_size.bytes() }
    }

    fn search(&mut self, file: &File, path: Vec<u8>, found: &mut SortedFindings) -> io::Result<()> {
        let mut matches = Matches {
            path: &path,
            limit: self.limit,
            lines: Vec::new(),
            length: 0,
            count: 0,
            is_binary: false,
        };
        let reader = UntilInterrupted { file, context: self.context };
        let searched = self.searcher.search_reader(self.matcher, reader, &mut matches);
        let Matches { lines, length, count, is_binary, .. } = matches;
        if !is_binary && count > 0 {
            found.add_lines(path, lines, length, count);
        }
        searched
    }
}

/// A file that seems to end when the call is interrupted: a search of a large one may find nothing for long.
struct UntilInterrupted<'a> {
    file: &'a File,
    context: &'a Context,
}

impl Read for UntilInterrupted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.context.is_interrupted() {
            true => Ok(0),
            false => self.file.read(buffer),
        }
    }
}

/// The matching lines of one file, as they are shown.
struct Matches<'a> {
    path: &'a [u8],
    limit: usize,
    /// At most `limit` bytes and a line, without the last line break.
    lines: Vec<u8>,
    /// What `lines` would hold, were it not limited.
    length: u64,
    count: u64,
    is_binary: bool,
}

impl Sink for Matches<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let number = found.line_number().unwrap_or(0).to_string();
        let text = without_line_break(found.bytes());
        let separator = u64::from(self.count > 0);
        let length = self.path.len() + 1 + number.len() + 2 + text.len();
        self.length += length as u64 + separator;
        self.count += 1;
        if self.lines.len() < self.limit {
            if separator > 0 {
                self.lines.push(b'\n');
            }
            for part in [self.path, b":", number.as_bytes(), b": ", text] {
                self.lines.extend_from_slice(part);
            }
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}

fn without_line_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
