//! The git branch of the working directory, read from the files of the repository.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longer files are not ours to read.
const LIMIT: u64 = 4 * 1024;
/// What identifies a commit for a user.
const SHORT: usize = 7;

/// The name of the branch, or the start of the commit that is checked out; empty outside a
/// repository.
pub(super) fn branch(directory: &Path) -> String {
    let mut folders = directory.ancestors().map(|folder| folder.join(".git"));
    let Some(git) = folders.find(|git| git.exists()) else { return String::new() };
    let head = read(&repository(git).join("HEAD")).unwrap_or_default();
    match head.strip_prefix("ref: ") {
        Some(name) => name.strip_prefix("refs/heads/").unwrap_or(name).to_owned(),
        None => head.chars().take(SHORT).collect(),
    }
}

/// In a worktree `.git` is a file that names the folder.
fn repository(git: PathBuf) -> PathBuf {
    let named = read(&git).and_then(|text| text.strip_prefix("gitdir: ").map(PathBuf::from));
    match (named, git.parent()) {
        (Some(folder), Some(parent)) => parent.join(folder),
        (Some(folder), None) => folder,
        (None, _) => git,
    }
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(LIMIT).read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_branch_is_found_from_below_in_a_worktree_and_without_one() {
        let folder = tempfile::tempdir().unwrap();
        let (main, tree) = (folder.path().join("main"), folder.path().join("tree"));
        let own = main.join(".git/worktrees/tree");
        fs::create_dir_all(&own).unwrap();
        fs::create_dir_all(tree.join("src")).unwrap();
        fs::write(main.join(".git/HEAD"), "ref: refs/heads/topic/a\n").unwrap();
        fs::write(tree.join(".git"), "gitdir: ../main/.git/worktrees/tree\n").unwrap();
        fs::write(own.join("HEAD"), "0123456789abcdef\n").unwrap();
        let found = [&main, &tree.join("src"), folder.path()].map(branch);
        assert_eq!(found, ["topic/a", "0123456", ""]);
    }
}
