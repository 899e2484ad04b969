//! The names of protected paths, which other programs (mainly git, editors, shells and agents)
//! later run or trust outside the sandbox.

use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path};

/// Startup files of shells, protected in every folder.
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

/// Settings in a git directory. `branches` and `remotes` are not listed: usually they are empty,
/// and only their contents matter.
pub(crate) const OF_GIT: [&str; 8] = [
    "hooks",
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "info/attributes",
    OF_LAZYGIT,
    "sl/config",
];

/// In a git directory: lazygit runs the pager and the commands that it names.
pub(super) const OF_LAZYGIT: &str = "lazygit.yml";
/// The same for Sapling, with hooks that it runs.
pub(super) const OF_SAPLING: [&str; 2] = ["sl", "config"];

/// Protected at the top of every root, in addition to the startup files of shells: what a program
/// runs or trusts as soon as the user starts it in that folder. Each name costs a lookup before and
/// after every command, and a mount if it exists.
pub(crate) const TOP: [&str; 118] = [
    // Agents: instructions, and settings that name programs to run.
    ".agents",
    ".aider.conf.yml",
    ".aider.model.settings.yml",
    ".amazonq",
    ".amp",
    ".augment",
    ".claude",
    ".clinerules",
    ".codex",
    ".continue",
    ".continuerules",
    ".crush.json",
    ".cursor",
    ".cursorrules",
    ".factory",
    ".forge",
    ".gemini",
    ".github/agents",
    ".github/chatmodes",
    ".github/copilot-instructions.md",
    ".github/hooks",
    ".github/instructions",
    ".github/prompts",
    ".github/skills",
    ".goosehints",
    ".grok",
    ".ikigai",
    ".junie",
    ".kilocode",
    ".kiro",
    ".mcp.json",
    ".opencode",
    ".openhands",
    ".pi",
    ".qwen",
    ".roo",
    ".roomodes",
    ".roorules",
    ".rules",
    ".trae",
    ".windsurf",
    ".windsurfrules",
    "AGENT.md",
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.local.md",
    "CLAUDE.md",
    "CRUSH.md",
    "GEMINI.md",
    "QWEN.md",
    "WARP.md",
    "crush.json",
    "forge.yaml",
    "opencode.json",
    "opencode.jsonc",
    // Editors: tasks, language servers, containers and scripts of a folder.
    ".devcontainer",
    ".devcontainer.json",
    ".dir-locals-2.el",
    ".dir-locals.el",
    ".gdbinit",
    ".exrc",
    ".gvimrc",
    ".helix",
    ".idea",
    ".lite_project.lua",
    ".lvimrc",
    ".nvim.lua",
    ".nvimrc",
    ".theia",
    ".vim/coc-settings.json",
    ".vimrc",
    ".vscode",
    ".zed",
    // Shells and debuggers of languages: scripts that they run when they start. R restores
    // `.RData`, and runs the function `.First` in it.
    "$irbrc",
    ".RData",
    ".Renviron",
    ".Rprofile",
    ".byebugrc",
    ".ghci",
    ".iex.exs",
    ".irbrc",
    ".ocamlinit",
    ".octaverc",
    ".pdbrc",
    ".perldb",
    ".pryrc",
    ".psysh.php",
    "_irbrc",
    "irb.rc",
    // Shells, tool managers and build tools. With `path:DIR` in `.tool-versions`, asdf runs what is
    // in that folder.
    ".cargo/config",
    ".cargo/config.toml",
    ".config/fish",
    ".config/mise",
    ".config/mise.local.toml",
    ".config/mise.toml",
    ".config/miserc.toml",
    ".lazygit.yml",
    // It says where git-lfs sends files.
    ".lfsconfig",
    ".mise",
    ".mise.local.toml",
    ".mise.toml",
    ".miserc.toml",
    ".prototools",
    ".tool-versions",
    ".yarnrc",
    ".yarnrc.yml",
    "mise.local.toml",
    "mise.toml",
    "mise/conf.d",
    "mise/config.local.toml",
    "mise/config.toml",
    // Repository settings. The rest of `.hg` and `.jj` is data that commands need to write.
    ".gitmodules",
    ".hg/hgrc",
    ".hg/hgrc-not-shared",
    ".hg/sharedpath",
    ".jj/repo/config.toml",
    ".jj/workspace-config.toml",
    ".sl/config",
];

/// Ordinary data of git, in which names have no meaning.
const DATA_OF_GIT: [&str; 3] = ["logs", "objects", "refs"];

/// Whether a path, relative to a root and without links, is protected by its name.
///
/// Repositories can be nested, so `.git` counts at any depth. A `.git` file names a git directory
/// and counts as well.
pub(crate) fn is_guarded(path: &Path) -> bool {
    let names = names_of(path);
    let Some(last) = names.last() else {
        return false;
    };
    let in_git = |(at, name): (usize, &String)| name == ".git" && is_setting(&names[at + 1..]);
    last == ".git"
        || last == "agents.md"
        || START_UP.contains(&last.as_str())
        || names.iter().any(|name| name == ".ikigai")
        || names.windows(2).any(|pair| pair == [".config", "fish"])
        || names.iter().enumerate().any(in_git)
        || is_at_top(&names)
}

/// The same, including repositories without a `.git`, which are only recognized by their contents.
pub(crate) fn is_guarded_at(root: &Path, inside: &Path) -> bool {
    is_guarded(inside) || is_setting_at(root, inside)
}

/// Whether an absolute path is not protected by its name, but now is one of git's settings, or
/// would turn its surroundings into a repository. This may have changed since it was written.
pub(crate) fn has_become_setting(path: &Path) -> bool {
    let root = Path::new("/");
    path.strip_prefix(root).is_ok_and(|inside| !is_guarded(inside) && is_setting_at(root, inside))
}

fn is_setting_at(root: &Path, inside: &Path) -> bool {
    let names = names_of(inside);
    inside.ancestors().enumerate().skip(1).any(|(depth, folder)| {
        let (folder, names) = (root.join(folder), &names[names.len() - depth..]);
        is_setting(names) && is_repository(&folder) || makes_repository(&folder, names)
    })
}

/// Whether writing a path would turn a folder into a repository, and thus existing files into
/// settings.
fn makes_repository(folder: &Path, names: &[String]) -> bool {
    let is_there = |name: &str| fs::symlink_metadata(folder.join(name)).is_ok();
    let is_written = |name: &str| names.first().is_some_and(|first| first == name);
    let will_be = |name: &str| is_there(name) || is_written(&name.to_lowercase());
    !is_repository(folder) && will_be("HEAD") && (will_be("objects") || will_be("commondir"))
}

/// Whether a path, relative to a git directory, is one of git's settings.
fn is_setting(names: &[String]) -> bool {
    let Some((first, rest)) = names.split_first() else {
        return false;
    };
    match first.as_str() {
        "hooks" | "commondir" | "gitdir" | "branches" | "remotes" | OF_LAZYGIT => true,
        "info" => rest.first().is_some_and(|name| name == "attributes"),
        "sl" => rest.first().is_some_and(|name| name == OF_SAPLING[1]),
        // Data, in which a forged name or number leads git or a prompt astray; only git writes it.
        "index" | "merge_rr" => rest.is_empty(),
        "rebase-merge" => is_one_of(rest, ["msgnum", "end"]),
        "rebase-apply" => is_one_of(rest, ["next", "last"]),
        // The name of a submodule may contain slashes.
        "modules" | "worktrees" => (0..rest.len()).any(|at| is_setting(&rest[at..])),
        name if DATA_OF_GIT.contains(&name) => false,
        name => {
            rest.is_empty()
                && ["config", "sharedindex."].iter().any(|start| name.starts_with(start))
        }
    }
}

fn is_one_of(rest: &[String], names: [&str; 2]) -> bool {
    rest.first().is_some_and(|first| names.contains(&first.as_str()))
}

fn is_at_top(names: &[String]) -> bool {
    TOP.iter().any(|top| {
        let mut names = names.iter();
        let is_next = |part: &str| names.next().is_some_and(|name| part.eq_ignore_ascii_case(name));
        top.split('/').all(is_next)
    })
}

/// Whether git considers a folder a repository, slightly more lenient than git itself.
fn is_repository(folder: &Path) -> bool {
    let has = |name: &str| fs::symlink_metadata(folder.join(name)).is_ok();
    has("HEAD") && (has("objects") || has("commondir"))
}

fn names_of(path: &Path) -> Vec<String> {
    let name = |component| match component {
        Component::Normal(name) => Some(folded(name)),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

/// A name folded as by file systems that ignore case and invisible characters.
pub(super) fn folded(name: &OsStr) -> String {
    let is_seen = |c: &char| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    name.to_string_lossy().chars().filter(is_seen).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{START_UP, TOP, is_guarded, is_guarded_at};

    #[test]
    fn what_is_run_or_believed_later_is_guarded_at_any_depth() {
        for path in [
            ".git/hooks/pre-commit",
            ".git/hooks",
            ".git/config",
            ".git/config.worktree",
            ".git/config.lock",
            ".git/commondir",
            ".git/gitdir",
            ".git/info/attributes",
            ".git/remotes/origin",
            ".git/lazygit.yml",
            ".git/sl/config",
            ".git/index",
            ".git/sharedindex.7790f60d",
            ".git/MERGE_RR",
            ".git/rebase-merge/msgnum",
            ".git/rebase-apply/last",
            "sub/.git/modules/a/index",
            ".git/modules/a/hooks/pre-push",
            ".git/modules/a/b/config",
            ".git/modules/refs/config",
            ".git/worktrees/a/gitdir",
            ".git",
            "sub/.git/config",
            "sub/.git",
            ".git/refs/.git/config",
            ".ikigai/config.toml",
            "sub/.ikigai/a/b",
            "AGENTS.md",
            "sub/agents.md",
            ".bashrc",
            "home/.zshenv",
            "sub/.envrc",
            ".config/fish/functions/a.fish",
            ".GIT/Hooks/x",
            ".g\u{200c}it/config",
        ] {
            assert!(is_guarded(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn what_editors_and_agents_read_is_guarded_at_the_top_of_a_root() {
        for path in [
            ".gitmodules",
            ".vscode/tasks.json",
            ".VSCode",
            ".idea/a/b",
            ".claude/settings.json",
            ".codex",
            ".cursor/rules",
            ".agents/x",
            ".mcp.json",
            "CLAUDE.md",
            "CLAUDE.local.md",
            "AGENTS.override.md",
            "AGENT.md",
            "gemini.md",
            ".gemini/settings.json",
            "QWEN.md",
            ".qwen/settings.json",
            ".cursorrules",
            ".windsurfrules",
            ".windsurf/rules/a.md",
            ".clinerules",
            ".clinerules/a.md",
            ".roo/mcp.json",
            ".roorules",
            ".roomodes",
            ".aider.conf.yml",
            ".amazonq/default.json",
            ".augment/rules",
            ".continue/rules",
            ".junie/guidelines.md",
            ".kiro/hooks/a",
            "opencode.json",
            "opencode.jsonc",
            ".opencode/plugin/a.ts",
            "crush.json",
            ".crush.json",
            "CRUSH.md",
            ".goosehints",
            ".github/copilot-instructions.md",
            ".github/instructions/a.md",
            ".github/agents/a.md",
            ".github/hooks/a.json",
            ".github/prompts/a.md",
            ".github/skills/a/SKILL.md",
            ".exrc",
            ".vimrc",
            ".gvimrc",
            ".nvimrc",
            ".nvim.lua",
            ".dir-locals.el",
            ".dir-locals-2.el",
            ".zed/settings.json",
            ".helix/languages.toml",
            ".devcontainer/devcontainer.json",
            ".devcontainer.json",
            ".cargo/config.toml",
            ".cargo/config",
            "mise.toml",
            ".mise.toml",
            "mise.local.toml",
            ".mise.local.toml",
            ".mise/config.toml",
            "mise/config.toml",
            "mise/config.local.toml",
            "mise/conf.d/a.toml",
            ".config/mise/config.toml",
            ".config/mise.toml",
            ".config/mise.local.toml",
            ".tool-versions",
            ".miserc.toml",
            ".config/miserc.toml",
            ".lazygit.yml",
            ".lfsconfig",
            ".yarnrc",
            ".yarnrc.yml",
            ".irbrc",
            ".iex.exs",
            ".pryrc",
            ".ocamlinit",
            ".octaverc",
            ".Renviron",
            ".vim/coc-settings.json",
            ".theia/tasks.json",
            ".pi/extensions/a.ts",
            ".hg/hgrc",
            ".hg/hgrc-not-shared",
            ".hg/sharedpath",
            ".jj/repo/config.toml",
            ".jj/workspace-config.toml",
            ".RData",
            ".perldb",
            ".byebugrc",
            ".psysh.php",
            "irb.rc",
            "_irbrc",
            "$irbrc",
            ".lite_project.lua",
            ".prototools",
            ".forge/a",
            "forge.yaml",
            ".grok/settings.json",
            ".aider.model.settings.yml",
        ] {
            assert!(is_guarded(Path::new(path)), "{path}");
            let below = Path::new("sub").join(path);
            assert!(!is_guarded(&below), "{}", below.display());
        }
    }

    #[test]
    fn each_name_is_in_the_list_once_and_none_lies_in_another() {
        let names: Vec<&str> = TOP.into_iter().chain(START_UP).collect();
        for (at, name) in names.iter().enumerate() {
            let mut others = names.iter().enumerate().filter(|(other, _)| *other != at);
            let around = others.find(|(_, other)| Path::new(name).starts_with(other));
            assert_eq!(around, None, "{name}");
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
            ".git/HEAD",
            ".git/refs/heads/hooks/config",
            ".git/logs/refs/heads/config",
            ".git/rebase-merge/done",
            ".gitignore",
            ".github",
            ".github/config",
            ".github/workflows/ci.yml",
            ".hg",
            ".hg/store/00changelog.i",
            ".jj",
            ".jj/repo",
            ".jj/repo/op_heads/heads/a",
            ".jj/working_copy/checkout",
            ".config/other",
            "mise/src/main.rs",
            "rust-toolchain.toml",
            "a.code-workspace",
            ".rgignore",
            ".cargo/bin/x",
            ".cargo",
            "AGENTS.md.bak",
            "ikigai/x",
            "bashrc",
        ] {
            assert!(!is_guarded(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_repository_without_a_git_folder_is_known_by_a_look_at_it() {
        let root = tempfile::tempdir().unwrap();
        let is_guarded_there = |path: &str| is_guarded_at(root.path(), Path::new(path));
        fs::create_dir_all(root.path().join("half/objects")).unwrap();
        fs::create_dir_all(root.path().join("src/hooks")).unwrap();
        fs::write(root.path().join("src/HEAD"), "").unwrap();
        for (path, expected) in [
            ("half/HEAD", true),
            ("half/head", true),
            ("half/objects/x", false),
            ("src/objects/x", true),
            ("src/commondir", true),
            ("src/hooks/x", false),
            ("other/HEAD", false),
            ("other/objects/x", false),
        ] {
            assert_eq!(is_guarded_at(root.path(), Path::new(path)), expected, "{path}");
        }
        fs::create_dir_all(root.path().join("a/bare/objects")).unwrap();
        for path in ["a/bare/config", "a/bare/hooks/update", "a/bare/modules/x/config"] {
            assert!(!is_guarded_there(path), "{path}");
        }
        fs::write(root.path().join("a/bare/HEAD"), "").unwrap();
        for path in ["a/bare/config", "a/bare/hooks/update", "a/bare/modules/x/config"] {
            assert!(is_guarded_there(path), "{path}");
        }
        for path in ["a/bare/HEAD", "a/config", "a/bare/refs/heads/config", "hooks/a"] {
            assert!(!is_guarded_there(path), "{path}");
        }
        fs::write(root.path().join("HEAD"), "").unwrap();
        fs::write(root.path().join("commondir"), "").unwrap();
        assert!(is_guarded_there("config"));
    }
}
