//! Paths that exist, named to a model that gave one that does not. They are never used instead.

use std::path::{Component, Path, PathBuf};

use rustix::fs::Dir;
use similar::get_close_matches;

use crate::context::Context;
use crate::file_error::FileError;
use crate::place::open_without_links;

/// More would hide the one that was meant.
const SHOWN: usize = 3;
/// A folder with more names holds generated files, and comparing them takes milliseconds.
const COMPARED: usize = 2_000;
/// Each is looked into for the missing name.
const MOST_FOLDERS: usize = 200;
/// How alike two names are, from 0 to 1: `parse.rs` and `parser.rs` are 0.94.
const ALIKE: f32 = 0.7;

/// The message for an error at a path that the model gave, with similar paths if there is no file.
pub(crate) fn describe(context: &Context, error: &FileError, path: &str) -> String {
    let message = error.describe(path);
    let similar = if error.is_missing() { similar(context, path) } else { Vec::new() };
    match similar.split_last() {
        None => message,
        Some((only, [])) => format!("{message}. Did you mean {only}?"),
        Some((last, first)) => format!("{message}. Did you mean {} or {last}?", first.join(", ")),
    }
}

/// Existing paths that may be meant, in the form in which the model gave its own.
fn similar(context: &Context, path: &str) -> Vec<String> {
    if path.contains('\0') {
        return Vec::new();
    }
    let (folder, missing, rest) = first_missing(context, Path::new(path));
    let Some(missing) = missing.and_then(|name| name.as_os_str().to_str().map(str::to_owned))
    else {
        return Vec::new();
    };
    let names = names_in(context, &folder).unwrap_or_default();
    let exists = |path: &PathBuf| exists(context, path);
    let shown = |paths: &mut dyn Iterator<Item = PathBuf>| -> Vec<String> {
        paths.filter(exists).take(SHOWN).map(|path| path.display().to_string()).collect()
    };
    let behind = |name: &&String| with_rest(folder.join(name), &rest);
    let alike = shown(&mut alike(&missing, &names).iter().map(behind));
    if !alike.is_empty() {
        return alike;
    }
    // A folder in front that is not here, or separators of another system.
    let normal = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_)));
    let parts: Vec<Component<'_>> = normal.collect();
    let shorter = (1..parts.len()).map(|from| parts[from..].iter().collect::<PathBuf>());
    let other_system = path.contains('\\').then(|| PathBuf::from(path.replace('\\', "/")));
    let elsewhere = shorter.chain(other_system);
    let elsewhere = shown(&mut elsewhere.take(1 + parts.len()));
    if !elsewhere.is_empty() {
        return elsewhere.into_iter().take(1).collect();
    }
    // A folder that was left out.
    let inside = |name: &String| with_rest(folder.join(name).join(&missing), &rest);
    shown(&mut names.iter().take(MOST_FOLDERS).map(inside))
}

/// Without a slash at the end.
fn with_rest(path: PathBuf, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { path } else { path.join(rest) }
}

/// The folder that exists, the first name that is not in it, and what comes behind that.
fn first_missing<'a>(
    context: &Context,
    path: &'a Path,
) -> (PathBuf, Option<Component<'a>>, PathBuf) {
    let mut folder = PathBuf::new();
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        let next = folder.join(part);
        // The folder above may be out of reach, and the one that the path leads to is not.
        let is_above = part == Component::ParentDir;
        if parts.as_path().as_os_str().is_empty() || !is_above && !is_folder(context, &next) {
            let missing = matches!(part, Component::Normal(_)).then_some(part);
            return (folder, missing, parts.as_path().to_owned());
        }
        folder = next;
    }
    (folder, None, PathBuf::new())
}

fn is_folder(context: &Context, path: &Path) -> bool {
    context.is_folder(&context.directory().join(path)).unwrap_or(false)
}

fn exists(context: &Context, path: &Path) -> bool {
    is_folder(context, path) || context.open_resolved(&context.directory().join(path)).is_ok()
}

/// The names in a folder that the call may list, sorted; `None` if it may not.
fn names_in(context: &Context, folder: &Path) -> Option<Vec<String>> {
    let (folder, path) = context.start_of_walk(&context.directory().join(folder)).ok()?;
    context.require_destination(|| Ok(path.clone())).ok()?;
    let entries = Dir::read_from(open_without_links(&folder, Path::new("")).ok()?).ok()?;
    let names =
        entries.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    let is_seen = |name: &String| {
        let is_hidden = context.tree().is_some_and(|tree| tree.hides(&path.join(name)));
        name != "." && name != ".." && !is_hidden
    };
    let mut names: Vec<String> = names.filter(is_seen).take(COMPARED).collect();
    names.sort();
    Some(names)
}

/// The names that are most like `missing`, whatever their case, the most similar first.
fn alike<'a>(missing: &str, names: &'a [String]) -> Vec<&'a String> {
    let others: Vec<(String, &String)> = names
        .iter()
        .filter(|name| *name != missing)
        .map(|name| (name.to_lowercase(), name))
        .collect();
    let mut lower: Vec<&str> = others.iter().map(|(lower, _)| lower.as_str()).collect();
    lower.sort_unstable();
    lower.dedup();
    let close = get_close_matches(missing.to_lowercase().as_str(), &lower, SHOWN, ALIKE);
    let with_case = |close| others.iter().filter(move |(lower, _)| lower == close);
    close.into_iter().flat_map(with_case).map(|(_, name)| *name).collect()
}
