//! `glob`: files by the shape of their path.

use std::fmt::Display;
use std::path::{Component, Path};

use globset::{ErrorKind, GlobBuilder, GlobSet};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::declaration::tool;
use crate::dispatcher::{Call, Tool};
use crate::files::shorten;
use crate::result::{Outcome, Refusal};
use crate::walk::{Extent, Start, walk};

pub(crate) const TOOL: Tool = Tool { declaration: &Glob::DECLARATION, prepare };

fn prepare(arguments: &Arguments) -> Result<Call, Refusal> {
    let call = Glob::parse(arguments)?;
    Ok(Call::blocking(move |context| call.execute(context)))
}

tool! {
    /// Find files; skips ignored and hidden ones
    struct Glob = "glob" {
        /// Shell pattern: *.c (top folder only), src/**/*.c
        pattern: String,
        /// Folder to start from
        path: Option<String>,
    }
}

impl Glob {
    fn execute(&self, context: &Context) -> Outcome {
        let (folder, pattern) = self.split(context);
        let matcher = match shell_pattern(&pattern) {
            Ok(matcher) => matcher,
            Err(reason) => return Outcome::Failure(format!("Invalid glob pattern: {reason}")),
        };
        if let Err(error) = Start::new(context, self.path.as_deref()).require_directory() {
            return Outcome::Failure(error.describe(self.path.as_deref().unwrap_or(".")));
        }
        let start = Start::new(context, folder.as_deref());
        if start.require_directory().is_err() {
            // The pattern itself leads to no folder: nothing matches.
            return Outcome::success(String::new().into()).with("count", 0);
        }
        let findings = walk(context, &start, extent(&pattern), || {
            |entry: &ignore::DirEntry, found: &mut crate::lines::SortedFindings| {
                let relative = entry.path().strip_prefix(&start.path).unwrap_or(entry.path());
                if matcher.is_match(relative) {
                    found.add_path(start.show(relative));
                }
            }
        });
        let (output, count) = findings.finish();
        Outcome::success(output.finish()).with("count", count)
    }

    /// The folder to start from, and the pattern beneath it. A pattern that leads out of its folder (an
    /// absolute one, `../…` or `a/../…`) brings its own.
    fn split(&self, context: &Context) -> (Option<String>, String) {
        let path = Path::new(&self.pattern);
        if let (None, Ok(beneath)) = (&self.path, path.strip_prefix(context.directory()))
            && path.is_absolute()
        {
            return (None, beneath.to_string_lossy().into_owned());
        }
        let literal = literal_prefix(&self.pattern);
        let leads_up = path.components().take(literal).any(|name| name == Component::ParentDir);
        if !path.is_absolute() && !leads_up {
            let pattern = self.pattern.trim_start_matches("./").to_owned();
            return (self.path.clone(), pattern);
        }
        let folder: std::path::PathBuf = path.components().take(literal).collect();
        let beneath: std::path::PathBuf = path.components().skip(literal).collect();
        let folder = match &self.path {
            Some(path) => Path::new(path).join(folder),
            None => folder,
        };
        (Some(folder.to_string_lossy().into_owned()), beneath.to_string_lossy().into_owned())
    }
}

/// A pattern as a shell reads it: `*` stays within a folder, `**` crosses folders.
pub(crate) fn shell_pattern(pattern: &str) -> Result<GlobSet, String> {
    let describe = |reason: &dyn Display| format!("{}: {reason}", shorten(pattern));
    if brace_depth(pattern) > DEEPEST_BRACES {
        return Err(describe(&format!("braces nest deeper than {DEEPEST_BRACES}")));
    }
    let built = GlobBuilder::new(&without_slash_in_classes(pattern))
        .literal_separator(true)
        .backslash_escape(true)
        .empty_alternates(true)
        .build()
        // A set of one: a matcher of its own panics when the pattern is too large to compile.
        .and_then(|glob| GlobSet::builder().add(glob).build());
    built.map_err(|error| match error.kind() {
        ErrorKind::Regex(_) => describe(&"too large"),
        kind => describe(kind),
    })
}

/// Adds the slash to what `[!…]` does not match. globset lets it match a slash, a shell does not.
fn without_slash_in_classes(pattern: &str) -> String {
    let mut changed = String::with_capacity(pattern.len() + 1);
    let mut rest = pattern.chars().peekable();
    while let Some(character) = rest.next() {
        changed.push(character);
        match character {
            '\\' => changed.extend(rest.next()),
            '[' => {
                let negation = rest.next_if(|c| matches!(c, '!' | '^'));
                // At the first place these two stand for themselves, so they stay there.
                let literal = rest.next_if(|c| matches!(c, ']' | '-'));
                changed.extend(negation.into_iter().chain(literal));
                changed.extend(negation.map(|_| '/'));
                while let Some(member) = rest.next_if(|c| *c != ']') {
                    changed.push(member);
                }
            }
            _ => {}
        }
    }
    changed
}

/// globset calls itself for every level of braces.
const DEEPEST_BRACES: usize = 64;

fn brace_depth(pattern: &str) -> usize {
    let mut depth: usize = 0;
    let mut deepest = 0;
    for byte in pattern.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// What a pattern says of where its files can be, so that the rest of the tree is not walked.
fn extent(pattern: &str) -> Extent {
    let names: Vec<&[u8]> =
        Path::new(pattern).components().map(|name| name.as_os_str().as_encoded_bytes()).collect();
    // A brace or an escaped slash may hide a separator, and then counting levels means nothing.
    let countable = !pattern.contains(['{', '\\', '[']) && !pattern.contains("**");
    let prefix = names.iter().take(literal_prefix(pattern)).map(|name| name.to_vec());
    Extent { prefix: prefix.collect(), depth: countable.then_some(names.len().max(1)) }
}

/// How many leading components of a pattern have nothing special, the last one left out: it names the
/// files.
fn literal_prefix(pattern: &str) -> usize {
    let special = |component: &Component<'_>| match component {
        Component::Normal(name) => {
            name.as_encoded_bytes().iter().any(|byte| b"*?[]{}\\!,".contains(byte))
        }
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            false
        }
    };
    let components: Vec<Component<'_>> = Path::new(pattern).components().collect();
    let literal = components.iter().take_while(|component| !special(component)).count();
    literal.min(components.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::without_slash_in_classes;

    #[test]
    fn a_negated_class_excludes_the_slash_and_nothing_else_changes() {
        #[track_caller]
        fn check(pattern: &str, expected: &str) {
            assert_eq!(without_slash_in_classes(pattern), expected);
        }
        check("", "");
        check("src/**/*.{c,h}", "src/**/*.{c,h}");
        check("[a-z]", "[a-z]");
        check("[!a-z]x[^b]", "[!/a-z]x[^/b]");
        check("[!]a]", "[!]/a]");
        check("[!-a]", "[!-/a]");
        check("[][!a]", "[][!a]");
        check("[[!a]", "[[!a]");
        check(r"\[!a]", r"\[!a]");
        check("[!", "[!/");
        check("[!a", "[!/a");
        check("\\", "\\");
        check("[!ä]", "[!/ä]");
    }
}
