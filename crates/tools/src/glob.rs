//! `glob`: files by the shape of their path.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use globset::GlobSet;

use ikigai_conversation::EffectKind;

use crate::arguments::Arguments;
use crate::call::Call;
use crate::context::Context;
use crate::declaration::tool;
use crate::effect::Effect;
use crate::file_error::FileError;
use crate::lines::SortedFindings;
use crate::pattern::shell_pattern;
use crate::result::{ToolResult, counted};
use crate::similar_names::describe;
use crate::tool::{BuiltIn, Tool};
use crate::walk::{Extent, FoundFile, Start, walk};

pub(crate) fn tool<S: 'static>() -> Arc<dyn Tool<S>> {
    BuiltIn::new(Glob::declaration(), &[EffectKind::Read], prepare)
        .repairing(Glob::PARAMETERS)
        .shared()
}

fn prepare<S>(arguments: &Arguments) -> Result<Call<S>, ToolResult> {
    let call = Glob::parse(arguments)?;
    let effect = Effect::Read(call.folder());
    let subject = match &call.path {
        Some(path) => format!("{} in {path}", call.pattern),
        None => call.pattern.clone(),
    };
    let work = move |context: &Context| call.execute(context).unless_interrupted(context);
    Ok(Call::blocking(work).with_effects([effect]).shown_as("Find", &subject))
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
    fn execute(&self, context: &Context) -> ToolResult {
        let (folder, pattern) = self.split(context);
        let matcher = match shell_pattern(&pattern) {
            Ok(matcher) => matcher,
            Err(reason) => {
                return ToolResult::failure(&format!("Invalid glob pattern: {reason}"));
            }
        };
        if let Err(error) = Start::new(context, self.path.as_deref()).require_directory(context) {
            let path = self.path.as_deref().unwrap_or(".");
            return ToolResult::failure(&describe(context, &error, path));
        }
        let start = Start::new(context, folder.as_deref());
        match self.find(context, &start, &pattern, &matcher) {
            Ok(findings) => {
                let (output, count) = findings.finish();
                found(output.finish().into(), count)
            }
            Err(error @ (FileError::Outside | FileError::Hidden)) => {
                ToolResult::failure(&error.describe(&self.pattern))
            }
            // With folders in the pattern it may only be a link there, and those are not entered.
            Err(error @ FileError::LeadsElsewhere) if literal_prefix(&pattern) == 0 => {
                ToolResult::failure(&error.describe(folder.as_deref().unwrap_or(".")))
            }
            // The pattern itself leads to no folder: nothing matches.
            Err(_) => found(ToolResult::output(String::new()), 0),
        }
    }

    fn find(
        &self,
        context: &Context,
        start: &Start,
        pattern: &str,
        matcher: &GlobSet,
    ) -> Result<SortedFindings, FileError> {
        start.require_directory(context)?;
        walk(context, start, &extent(pattern), || {
            |found: &FoundFile<'_>, findings: &mut SortedFindings| {
                if matcher.is_match(&found.relative) {
                    findings.add_path(start.show(&found.relative));
                }
            }
        })
    }

    /// The folder beneath which all that is found lies.
    fn folder(&self) -> String {
        let path = Path::new(&self.pattern);
        let names = path.components().take(literal_prefix(&self.pattern));
        let folder =
            Path::new(self.path.as_deref().unwrap_or(".")).join(names.collect::<PathBuf>());
        folder.to_string_lossy().into_owned()
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
        let folder: PathBuf = path.components().take(literal).collect();
        let beneath: PathBuf = path.components().skip(literal).collect();
        let folder = match &self.path {
            Some(path) => Path::new(path).join(folder),
            None => folder,
        };
        (Some(folder.to_string_lossy().into_owned()), beneath.to_string_lossy().into_owned())
    }
}

fn found(output: ToolResult, count: u64) -> ToolResult {
    output.with("count", count).summed_up(counted(count, "file", "files"))
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
