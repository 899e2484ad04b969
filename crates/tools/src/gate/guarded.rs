//! Places inside the working tree for which a person is always asked before something is written: what is
//! there is run, or believed, later and outside the sandbox.

use std::path::{Component, Path};

/// Files that shells run when they start, whatever folder they are in.
pub(crate) const START_UP: [&str; 19] = [
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cshrc",
    ".envrc",
    ".inputrc",
    ".kshrc",
    ".login",
    ".logout",
    ".profile",
    ".tcshrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "config.fish",
];

/// What git itself runs, or reads commands from, in the folder of a repository.
pub(crate) const OF_GIT: [&str; 3] = ["hooks", "config", "config.worktree"];

/// Whether a path, relative to a root and without links, is one of these places.
///
/// Repositories may lie in one another, so `.git` counts at any depth; a `.git` that is a file names the
/// folder of a repository, and counts too.
pub(crate) fn is_guarded(path: &Path) -> bool {
    let names: Vec<String> = path.components().filter_map(name).collect();
    let Some(last) = names.last() else {
        return false;
    };
    let in_git = |names: &[String]| names.iter().any(|name| OF_GIT.contains(&name.as_str()));
    last == ".git"
        || last == "agents.md"
        || START_UP.contains(&last.as_str())
        || names.iter().any(|name| name == ".ikigai")
        || names.iter().position(|name| name == ".git").is_some_and(|git| in_git(&names[git..]))
        || names.windows(2).any(|pair| pair == [".config", "fish"])
}

/// A name as a file system may compare it that ignores case, and marks that are not seen.
fn name(component: Component<'_>) -> Option<String> {
    let Component::Normal(name) = component else {
        return None;
    };
    let is_seen = |c: &char| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    Some(name.to_string_lossy().chars().filter(is_seen).flat_map(char::to_lowercase).collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::is_guarded;

    #[test]
    fn what_is_run_or_believed_later_is_guarded_at_any_depth() {
        for path in [
            ".git/hooks/pre-commit",
            ".git/hooks",
            ".git/config",
            ".git/config.worktree",
            ".git/modules/a/hooks/pre-push",
            ".git",
            "sub/.git/config",
            "sub/.git",
            ".ikigai/config.toml",
            "sub/.ikigai/a/b",
            "AGENTS.md",
            "sub/agents.md",
            ".bashrc",
            "home/.zshenv",
            ".config/fish/functions/a.fish",
            ".GIT/Hooks/x",
            ".g\u{200c}it/config",
        ] {
            assert!(is_guarded(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn what_only_looks_like_it_is_free() {
        for path in [
            "",
            "src/main.rs",
            "hooks/pre-commit",
            "config",
            ".git/info/exclude",
            ".gitignore",
            ".github/config",
            "AGENTS.md.bak",
            "ikigai/x",
            "bashrc",
        ] {
            assert!(!is_guarded(Path::new(path)), "{path}");
        }
    }
}
