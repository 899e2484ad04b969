//! Commands as a hostile or an ordinary agent runs them, with the real git, under a guard.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tempfile::TempDir;

use super::{
    Change, Finding, Guard, MoveOutcome, ProtectedPaths, Record, RestoreOutcome, put_back,
    quarantined,
};

/// A root with a repository `.git` and its worktree `linked`, a nested one `sub/.git`, and a bare
/// one; and a quarantine next to the root.
struct World {
    folder: TempDir,
    root: PathBuf,
    quarantine: PathBuf,
    paths: ProtectedPaths,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (root, quarantine) = (base.join("root"), base.join("quarantine"));
        for folder in [&root, &quarantine] {
            fs::create_dir(folder).unwrap();
        }
        let world = World { folder, root, quarantine, paths: ProtectedPaths::new() };
        world.sh("git init -q -b main . && git init -q -b main sub && git init -q --bare bare");
        // Only settings are restored.
        world.sh("rm -f {.git,sub/.git,bare}/{hooks/*.sample,info/exclude}");
        world.sh("echo 1 > a && git add a && git commit -qm 1 && git worktree add -q linked");
        world.sh("cd sub && echo 1 > a && git add a && git commit -qm 1");
        world
    }

    fn guard(&self) -> Guard {
        self.paths.guard(std::slice::from_ref(&self.root), &self.quarantine).unwrap()
    }

    /// Runs a script in the root as an agent with a plain git configuration.
    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "the real git is tried")]
    fn sh(&self, script: &str) {
        let home = self.folder.path().join("home");
        fs::create_dir_all(&home).unwrap();
        let settings = "[user]\nname=A\nemail=a@b\n[protocol \"file\"]\nallow=always\n";
        fs::write(home.join(".gitconfig"), settings).unwrap();
        let output = Command::new("bash")
            .args(["-e", "-c", script])
            .current_dir(&self.root)
            .env("HOME", &home)
            .env("OUTSIDE", self.folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok()
    }
}

/// The paths of findings, relative to the root.
fn paths(world: &World, findings: &[Finding]) -> Vec<String> {
    let relative = |finding: &Finding| finding.path.strip_prefix(&world.root).unwrap().to_owned();
    findings.iter().map(relative).map(|path| path.to_str().unwrap().to_owned()).collect()
}

/// Every file of a tree with its mode and content, and the targets of links.
fn contents(path: &Path) -> Vec<(PathBuf, u32, String)> {
    let mut all = Vec::new();
    let mut left = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let content = match found.file_type() {
            kind if kind.is_symlink() => fs::read_link(&path).unwrap().display().to_string(),
            kind if kind.is_dir() => {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                String::new()
            }
            kind if kind.is_file() => fs::read_to_string(&path).unwrap_or_default(),
            _ => "neither file, link nor folder".to_owned(),
        };
        all.push((path, found.permissions().mode(), content));
    }
    all.sort();
    all
}

#[test]
fn ordinary_work_with_git_is_no_finding() {
    for script in [
        "git init -q new && git init -q --bare new.git",
        "git clone -q sub copy && cd copy && git commit -q --allow-empty -m 2 && git push -q origin HEAD:other",
        "git clone -q \"file://$PWD/sub\" copy",
        "git clone -q --bare sub copy.git && git clone -q --mirror sub mirror.git",
        "git clone -q --depth 1 \"file://$PWD/sub\" copy",
        "git worktree add -q tree && cd tree && git commit -q --allow-empty -m 2",
        "git worktree add -q tree && git worktree move tree moved && git worktree remove moved",
        "git worktree add -q tree && rm -rf tree && git worktree prune",
        "cd sub && git submodule --quiet add ../bare inner 2>/dev/null || true",
        "cd sub && git submodule --quiet add \"$PWD\" inner && git commit -qm 2 && git submodule --quiet update --init",
        "echo 2 >> a && git stash -q && git stash pop -q && git commit -qam 2",
        "git switch -qc other && git commit -q --allow-empty -m 2 && git switch -q main && git merge -q other && git branch -d other",
        "git branch --track other main && git config branch.other.description x && git branch -m other third",
        "git remote add origin https://example.org/a.git && git config pull.rebase true",
        "git rebase -q HEAD && git gc -q && git tag v1 && git fsck",
        "git config user.name B && git config core.autocrlf input && git sparse-checkout set d",
        "rm -rf sub bare",
        "rm -rf sub/.git",
        "mkdir -p x/y && echo x > x/y/AGENTS.md && mkdir x/.vscode && echo 1 > x/.vscode/tasks.json",
        "echo x > .git/hooks/pre-commit.sample && chmod +x .git/hooks/pre-commit.sample",
        "echo x > .git/hooks/notes",
        "mkdir tree .git/worktrees/tree && echo 'gitdir: ../.git/worktrees/tree' > tree/.git",
        "mv sub other",
    ] {
        let world = World::new();
        let guard = world.guard();
        world.sh(script);
        let check = guard.check();
        assert_eq!(check.findings, [], "{script}");
        assert_eq!(check.incomplete, [""; 0], "{script}");
    }
}

#[test]
fn what_git_or_others_would_run_or_believe_is_quarantined_and_restored() {
    for (script, path) in [
        ("git -C sub config core.fsmonitor ./x", "sub/.git/config"),
        ("git config core.fsmonitor ./x", ".git/config"),
        ("git -C bare config core.fsmonitor ./x", "bare/config"),
        ("git config include.path ../x", ".git/config"),
        ("git config filter.x.smudge ./x", ".git/config"),
        ("git config diff.external ./x", ".git/config"),
        ("git config core.hooksPath x", ".git/config"),
        ("git config gpg.program ./x", ".git/config"),
        ("git config alias.st '!./x'", ".git/config"),
        ("git config credential.helper ./x", ".git/config"),
        ("git config core.worktree /etc", ".git/config"),
        ("git config remote.x.url 'ext::sh -c x'", ".git/config"),
        (
            "git config extensions.worktreeConfig true && git config --worktree core.pager ./x",
            ".git/config.worktree",
        ),
        ("printf '[core' > .git/config", ".git/config"),
        (
            "mkdir modules && git init -q --bare modules/x && git config -f modules/x/config core.worktree ../../.git/hooks",
            "modules/x/config",
        ),
        (
            "mkdir modules && git init -q --bare modules/x && git config -f modules/x/config core.worktree ../../.git/hooks && echo 'gitdir: ../../modules/x' > .git/hooks/.git",
            "modules/x/config",
        ),
        (
            "mkdir modules && git init -q --bare modules/x && git config -f modules/x/config core.worktree ../..",
            "modules/x/config",
        ),
        ("echo 'git: {paging: {pager: ./x}}' > sub/.git/lazygit.yml", "sub/.git/lazygit.yml"),
        ("mkdir sub/.git/sl; echo '[hooks]' > sub/.git/sl/config", "sub/.git/sl/config"),
        ("head -c 2000000 /dev/zero | tr '\\0' '\\n' >> .git/config", ".git/config"),
        ("mv .git/config c && ln -s ../c .git/config", ".git/config"),
        ("git init -q new && git -C new config core.fsmonitor ./x", "new/.git/config"),
        ("git init -q --bare n && git -C n config core.fsmonitor ./x", "n/config"),
        (
            "mkdir n && cd n && mkdir objects refs && echo 'ref: refs/heads/a' > HEAD && printf '[core]\\nfsmonitor=./x\\n' > config",
            "n/config",
        ),
        ("echo ../sub/.git > .git/commondir", ".git/commondir"),
        ("mkdir e && echo \"$PWD/e\" > sub/.git/commondir", "sub/.git/commondir"),
        (
            "echo ../../../sub/.git > .git/worktrees/linked/commondir",
            ".git/worktrees/linked/commondir",
        ),
        ("echo /etc/.git > .git/worktrees/linked/gitdir", ".git/worktrees/linked/gitdir"),
        (
            "echo x > .git/hooks/post-checkout && chmod +x .git/hooks/post-checkout",
            ".git/hooks/post-checkout",
        ),
        (
            "mkdir -p sub/.git/hooks && ln -s ../../a sub/.git/hooks/pre-push",
            "sub/.git/hooks/pre-push",
        ),
        ("rm -rf .git/hooks && mkdir h && ln -s ../h .git/hooks", ".git/hooks"),
        (
            "mkdir -p sub/.git/info && echo '* filter=x' > sub/.git/info/attributes",
            "sub/.git/info/attributes",
        ),
        ("mkdir i && rm -rf .git/info && ln -s ../i .git/info", ".git/info"),
        (
            "mkdir -p .git/remotes && echo 'URL: ext::x' > .git/remotes/origin",
            ".git/remotes/origin",
        ),
        ("mkdir e && echo \"gitdir: $OUTSIDE/quarantine\" > e/.git", "e/.git"),
        ("mkdir e && echo 'gitdir: ../a' > e/.git", "e/.git"),
        ("mkdir e && ln -s ../sub/.git e/.git", "e/.git"),
        ("mkdir -p .git/modules && ln -s \"$OUTSIDE\" .git/modules/sub", ".git/modules/sub"),
        ("echo x > .gitmodules", ".gitmodules"),
        ("echo x > AGENTS.md", "AGENTS.md"),
        ("ln -s a CLAUDE.md", "CLAUDE.md"),
        ("mkdir .vscode && echo x > .vscode/tasks.json", ".vscode"),
        ("mkdir .cargo && echo x > .cargo/config.toml", ".cargo/config.toml"),
        ("mkdir c && ln -s c .cargo", ".cargo"),
        ("echo x > .envrc", ".envrc"),
        ("mkfifo .bashrc", ".bashrc"),
    ] {
        let world = World::new();
        let guard = world.guard();
        let before = contents(&world.path(path));
        world.sh(script);
        let found = guard.check().findings;
        assert_eq!(paths(&world, &found), [path], "{script}: {found:?}");
        let records = guard.quarantine(&found, &world.quarantine);
        assert_eq!(records.len(), 1, "{script}");
        assert_eq!(records[0].moved, MoveOutcome::ToQuarantine, "{script}");
        assert_eq!(contents(&world.path(path)), before, "{script}");
        assert_eq!(guard.check().findings, [], "{script}");
        assert_eq!(quarantined(&world.quarantine).unwrap(), records, "{script}");
    }
}

#[test]
fn what_was_there_before_and_is_dangerous_stays_but_may_not_be_changed() {
    let world = World::new();
    world.sh(
        "git config alias.st '!x' && echo 1 > .git/hooks/pre-push && chmod +x .git/hooks/pre-push",
    );
    world.sh("mkdir .git/hooks/lib && echo 1 > .git/hooks/lib/a && echo 1 > AGENTS.md && mkdir .vscode && echo 1 > .vscode/a");
    let before = contents(&world.root);
    let guard = world.guard();
    world.sh("git config branch.x.merge refs/heads/x && git config --unset branch.x.merge && git commit -qm x --allow-empty");
    assert_eq!(guard.check().findings, []);
    world.sh("git config --unset alias.st && rm .git/hooks/pre-push && echo 2 > .git/hooks/lib/a && rm AGENTS.md");
    world.sh("echo 2 >> .vscode/a && echo 1 > .vscode/b");
    let found = guard.check().findings;
    let expected = [
        ".vscode/a",
        ".vscode/b",
        "AGENTS.md",
        ".git/config",
        ".git/hooks/lib/a",
        ".git/hooks/pre-push",
    ];
    assert_eq!(paths(&world, &found), expected);
    let records = guard.quarantine(&found, &world.quarantine);
    let done: Vec<_> = records.iter().map(|record| (&record.moved, &record.restored)).collect();
    let (moved, gone) = (&MoveOutcome::ToQuarantine, &MoveOutcome::Gone);
    let (yes, none) = (&RestoreOutcome::Yes, &RestoreOutcome::NoPrevious);
    let expected =
        [(moved, yes), (moved, none), (gone, yes), (moved, yes), (moved, yes), (gone, yes)];
    assert_eq!(done, expected);
    let settings = |all: Vec<(PathBuf, u32, String)>| {
        let is_setting = |path: &Path| {
            let path = path.to_str().unwrap();
            ["hooks/", ".vscode/", "AGENTS", ".git/config"].iter().any(|part| path.contains(part))
        };
        all.into_iter().filter(|(path, ..)| is_setting(path)).collect::<Vec<_>>()
    };
    let (mut before, mut after) = (settings(before), settings(contents(&world.root)));
    // Git leaves an empty section of a branch behind, which is harmless and stays.
    let is_config = |entry: &(PathBuf, u32, String)| entry.0 == world.path(".git/config");
    before.retain(|entry| !is_config(entry));
    after.retain(|entry| !is_config(entry));
    assert_eq!(after, before);
    assert!(world.text(".git/config").unwrap().contains("st = !x"));
}

#[test]
fn a_repository_that_is_replaced_by_a_file_or_a_link_is_found() {
    let world = World::new();
    let guard = world.guard();
    world.sh("mv .git g && echo 'gitdir: g' > .git");
    let found = guard.check().findings;
    assert_eq!(paths(&world, &found), [".git"]);
    let records = guard.quarantine(&found, &world.quarantine);
    assert_eq!(
        records[0].restored,
        RestoreOutcome::Not("its repository was moved or deleted".into())
    );
    world.sh("mv g .git");
    assert_eq!(guard.check().findings, []);
    world.sh("mv sub \"$OUTSIDE/elsewhere\" && ln -s \"$OUTSIDE/elsewhere\" sub");
    let found = guard.check().findings;
    assert_eq!(paths(&world, &found), ["sub"]);
    guard.quarantine(&found, &world.quarantine);
    assert!(fs::symlink_metadata(world.path("sub")).is_err());
    assert_eq!(guard.check().findings, []);
}

#[test]
fn what_is_put_back_is_what_was_found_and_is_accepted() {
    let world = World::new();
    world.sh("echo 1 > AGENTS.md && echo 1 > .envrc");
    let guard = world.guard();
    world.sh("echo 2 > AGENTS.md && rm .envrc && mkdir .vscode && echo 3 > .vscode/a && chmod +x .vscode/a");
    world.sh("ln -s nowhere CLAUDE.md");
    let after = contents(&world.root);
    let found = guard.check().findings;
    guard.quarantine(&found, &world.quarantine);
    assert_eq!(world.text("AGENTS.md").as_deref(), Some("1\n"));
    assert_ne!(contents(&world.root), after);
    let records = quarantined(&world.quarantine).unwrap();
    assert_eq!(records.len(), 4);
    for record in &records {
        let path = put_back(&world.quarantine, &record.id).unwrap();
        assert_eq!(
            paths(&world, &guard.check().findings),
            paths(&world, std::slice::from_ref(&record.finding))
        );
        guard.accept(&path);
        assert_eq!(guard.check().findings, []);
    }
    assert_eq!(contents(&world.root), after);
    assert_eq!(quarantined(&world.quarantine).unwrap(), []);
    assert!(put_back(&world.quarantine, &records[0].id).is_err());
    assert!(put_back(&world.quarantine, "../x").is_err());
}

#[test]
fn what_a_file_tool_wrote_with_approval_is_restored_to_later() {
    let world = World::new();
    let guard = world.guard();
    world.sh("mkdir .vscode && echo 1 > .vscode/a");
    guard.accept(&world.path(".vscode/a"));
    assert_eq!(guard.check().findings, []);
    world.sh("echo 2 > .vscode/a && echo 2 > .vscode/b");
    let found = guard.check().findings;
    assert_eq!(paths(&world, &found), [".vscode/a", ".vscode/b"]);
    assert_eq!([found[0].change, found[1].change], [Change::Changed, Change::New]);
    guard.quarantine(&found, &world.quarantine);
    assert_eq!(world.text(".vscode/a").as_deref(), Some("1\n"));
}

#[test]
fn a_command_that_starts_meanwhile_does_not_take_what_was_planted_for_the_users() {
    let world = World::new();
    let first = world.guard();
    world.sh("git config core.fsmonitor ./x");
    let second = world.guard();
    let found = first.check().findings;
    first.quarantine(&found, &world.quarantine);
    drop(first);
    assert_eq!(second.check().findings, []);
    world.sh("git config core.fsmonitor ./x");
    assert_eq!(paths(&world, &second.check().findings), [".git/config"]);
    drop(second);
    assert_eq!(world.guard().check().findings, []);
}

#[test]
fn two_guards_that_find_the_same_quarantine_it_once() {
    let world = World::new();
    let (first, second) = (world.guard(), world.guard());
    world.sh("git config core.fsmonitor ./x");
    let (a, b) = (first.check().findings, second.check().findings);
    assert_eq!(a, b);
    assert_eq!(first.quarantine(&a, &world.quarantine).len(), 1);
    assert_eq!(second.quarantine(&b, &world.quarantine), []);
}

#[test]
fn harmless_settings_from_before_a_harmful_one_are_restored() {
    let world = World::new();
    let guard = world.guard();
    world.sh("git init -q new && git -C new remote add origin https://a/b");
    assert_eq!(guard.check().findings, []);
    let config = world.text("new/.git/config").unwrap();
    world.sh("git -C new config core.fsmonitor ./x");
    let found = guard.check().findings;
    guard.quarantine(&found, &world.quarantine);
    assert_eq!(world.text("new/.git/config"), Some(config));
}

#[test]
fn what_a_protected_link_leads_to_is_protected() {
    let world = World::new();
    world.sh("mkdir docs h && echo 1 > docs/a.md && ln -s docs/a.md AGENTS.md");
    world.sh("rm -rf sub/.git/hooks && ln -s ../../h sub/.git/hooks");
    let guard = world.guard();
    assert_eq!(guard.check().findings, []);
    world.sh("echo 2 > docs/a.md && echo x > h/pre-push && chmod +x h/pre-push");
    let found = guard.check().findings;
    assert_eq!(paths(&world, &found), ["docs/a.md", "h/pre-push"]);
    guard.quarantine(&found, &world.quarantine);
    assert_eq!(world.text("docs/a.md").as_deref(), Some("1\n"));
}

#[test]
fn a_link_in_the_way_is_not_followed_when_something_is_moved_or_restored() {
    let world = World::new();
    world.sh(
        "mkdir -p .vscode/d && echo 1 > .vscode/d/a && mkdir -p \"$OUTSIDE/o/d\" && echo 1 > \"$OUTSIDE/o/d/a\"",
    );
    let guard = world.guard();
    world.sh("echo 2 > .vscode/d/a");
    let found = guard.check().findings;
    assert_eq!(paths(&world, &found), [".vscode/d/a"]);
    let outside = world.folder.path().join("o");
    fs::rename(world.path(".vscode"), world.path("v")).unwrap();
    symlink(&outside, world.path(".vscode")).unwrap();
    let records = guard.quarantine(&found, &world.quarantine);
    assert!(matches!(records[0].moved, MoveOutcome::Not(_)), "{records:?}");
    assert_eq!(fs::read_to_string(outside.join("d/a")).unwrap(), "1\n");
    let found = guard.check().findings;
    assert_eq!(paths(&world, &found), [".vscode"]);
    guard.quarantine(&found, &world.quarantine);
    assert_eq!(world.text(".vscode/d/a").as_deref(), Some("1\n"));
    assert_eq!(fs::read_to_string(outside.join("d/a")).unwrap(), "1\n");
}

#[test]
fn a_folder_that_changes_into_a_link_all_the_time_leads_nowhere() {
    let world = World::new();
    world.sh(
        "mkdir -p .vscode/d v \"$OUTSIDE/o\" && echo 1 > .vscode/d/a && echo 1 > \"$OUTSIDE/o/a\"",
    );
    let outside = world.folder.path().join("o");
    let before = contents(&outside);
    let guard = world.guard();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _ = fs::write(world.path(".vscode/d/b"), "x");
                let _ = fs::rename(world.path(".vscode"), world.path("v/v"));
                let _ = symlink(&outside, world.path(".vscode"));
                let _ = fs::remove_file(world.path(".vscode"));
                let _ = fs::rename(world.path("v/v"), world.path(".vscode"));
            }
        });
        for _ in 0..60 {
            let found = guard.check().findings;
            guard.quarantine(&found, &world.quarantine);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // The other thread may write through its own link.
    let _ = fs::remove_file(outside.join("d/b"));
    assert_eq!(contents(&outside), before);
    let found = guard.check().findings;
    guard.quarantine(&found, &world.quarantine);
    assert_eq!(guard.check().findings, []);
    assert_eq!(world.text(".vscode/d/a").as_deref(), Some("1\n"));
}

#[test]
fn what_cannot_be_restored_is_reported_once() {
    let world = World::new();
    world.sh("head -c 2000000 /dev/zero > AGENTS.md");
    let guard = world.guard();
    world.sh("rm AGENTS.md");
    let found = guard.check().findings;
    let records = guard.quarantine(&found, &world.quarantine);
    let reason = "it was not kept";
    assert_eq!(records[0].restored, RestoreOutcome::Not(reason.to_owned()));
    let sentence =
        format!("Could not restore {} ({reason}), because it was deleted", found[0].path.display());
    assert_eq!(records[0].to_string(), sentence);
    assert_eq!(guard.check().findings, []);
    assert_eq!(quarantined(&world.quarantine).unwrap(), []);
}

#[test]
fn what_is_in_a_folder_without_write_permission_is_moved() {
    let world = World::new();
    let guard = world.guard();
    world.sh("mkdir -p sub/.git/hooks && cd sub/.git/hooks && echo x > update && chmod +x update && chmod 500 .");
    let found = guard.check().findings;
    let records = guard.quarantine(&found, &world.quarantine);
    assert_eq!(records[0].moved, MoveOutcome::ToQuarantine);
    assert_eq!(guard.check().findings, []);
}

#[cfg(target_os = "linux")]
#[test]
fn a_quarantine_on_another_file_system_gets_a_copy_unless_that_is_too_large() {
    let world = World::new();
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    let guard = world.guard();
    world.sh("mkdir -p .vscode/a && echo 1 > .vscode/a/b && ln -s b .vscode/a/c && mkfifo .idea");
    world.sh(
        "chmod 700 .vscode/a/b && ln -s x CLAUDE.md && mkdir .cursor && truncate -s 65M .cursor/a",
    );
    let after = contents(&world.root);
    let found = guard.check().findings;
    assert_eq!(paths(&world, &found), [".cursor", ".idea", ".vscode", "CLAUDE.md"]);
    let records = guard.quarantine(&found, elsewhere.path());
    assert_eq!(guard.check().findings, []);
    if device(elsewhere.path()) != device(&world.root) {
        let MoveOutcome::Aside(aside) = &records[0].moved else { panic!("{records:?}") };
        assert_eq!(records[0].id, "", "a command may have changed it before it is put back");
        fs::rename(aside, world.path(".cursor")).unwrap();
    }
    assert!(
        records[1..].iter().all(|record| record.moved == MoveOutcome::ToQuarantine),
        "{records:?}"
    );
    for record in quarantined(elsewhere.path()).unwrap() {
        let is_pipe = record.finding.path.ends_with(".idea");
        assert_eq!(put_back(elsewhere.path(), &record.id).is_ok(), !is_pipe, "{record}");
    }
    let is_pipe = |entry: &(PathBuf, u32, String)| entry.0.ends_with(".idea");
    let after: Vec<_> = after.into_iter().filter(|entry| !is_pipe(entry)).collect();
    assert!(contents(&world.root) == after);
}

#[test]
fn a_quarantine_in_a_root_is_left_alone() {
    let world = World::new();
    world.sh("mkdir -p hidden/quarantine");
    let quarantine = world.path("hidden/quarantine");
    let guard = world.paths.guard(std::slice::from_ref(&world.root), &quarantine).unwrap();
    world.sh("git init -q sub && git -C sub config core.fsmonitor evil && ln -s x other.git");
    world.sh("mkdir nested && ln -s x nested/.git");
    let found = guard.check().findings;
    assert!(!found.is_empty());
    guard.quarantine(&found, &quarantine);
    assert_eq!(guard.check().findings, []);
    assert!(fs::read_dir(&quarantine).unwrap().count() > 0);
}

#[test]
fn a_worktree_in_another_root_is_ordinary() {
    let world = World::new();
    let other = world.folder.path().canonicalize().unwrap().join("other");
    fs::create_dir(&other).unwrap();
    let guard = world.paths.guard(&[world.root.clone(), other.clone()], &world.quarantine).unwrap();
    world.sh("git worktree add -q \"$OUTSIDE/other/tree\"");
    assert_eq!(guard.check().findings, []);
    fs::write(other.join("AGENTS.md"), "x").unwrap();
    let found = guard.check().findings;
    assert_eq!(
        found.iter().map(|found| &found.path).collect::<Vec<_>>(),
        [&other.join("AGENTS.md")]
    );
    let records: Vec<Record> = guard.quarantine(&found, &world.quarantine);
    assert_eq!(records[0].finding.root, other);
    assert_eq!(guard.check().findings, []);
}

#[test]
fn findings_are_bounded_and_the_next_check_finds_the_rest() {
    let world = World::new();
    let guard = world.guard();
    world.sh("mkdir many && for i in {1..250}; do mkdir -p many/$i && ln -s x many/$i/.git; done");
    let mut rounds = Vec::new();
    loop {
        let found = guard.check().findings;
        if found.is_empty() {
            break;
        }
        rounds.push(guard.quarantine(&found, &world.quarantine).len());
    }
    assert_eq!(rounds, [200, 50]);
}

#[test]
fn no_folder_of_a_repository_hides_another_one() {
    for folder in ["objects/pack/zz", "objects/ab/x", "info/x", "refs/x", "logs/x"] {
        let world = World::new();
        let guard = world.guard();
        world.sh(&format!(
            "git init -q .git/{folder} && git -C .git/{folder} config core.fsmonitor x"
        ));
        let found = guard.check().findings;
        assert!(
            found.iter().any(|found| found.reason.contains("core.fsmonitor")),
            "{folder}: {found:?}"
        );
    }
}

#[test]
fn a_folder_that_a_command_closes_is_opened_and_checked() {
    let world = World::new();
    let guard = world.guard();
    world.sh("git init -q new && git -C new config core.fsmonitor x && chmod 0311 new/.git new");
    world.sh("printf '#!/bin/sh' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && chmod 0311 .git/hooks");
    world.sh("chmod 0311 .");
    let check = guard.check();
    let paths: Vec<_> = check.findings.iter().map(|found| found.path.clone()).collect();
    assert_eq!(paths, [world.path(".git/hooks/pre-commit"), world.path("new/.git/config")]);
    assert_eq!(check.incomplete, [] as [String; 0]);
}

/// Root can read it anyway.
#[test]
fn a_tree_whose_top_a_command_closes_is_opened_and_checked() {
    for mode in ["0311", "0600", "0200", "0000"] {
        let world = World::new();
        let guard = world.guard();
        world.sh(&format!("echo evil > AGENTS.md; chmod {mode} ."));
        let check = guard.check();
        assert_eq!(paths(&world, &check.findings), ["AGENTS.md"], "{mode}: {check:?}");
        assert_eq!(check.incomplete, [] as [String; 0], "{mode}");
    }
}

#[test]
fn a_folder_with_too_much_in_it_is_moved_as_a_whole() {
    let world = World::new();
    let guard = world.guard();
    world.sh("for i in {1..2100}; do echo > .git/hooks/x$i; done");
    world.sh("printf '#!/bin/sh' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit");
    let found = guard.check().findings;
    assert_eq!(found.len(), 1, "{found:?}");
    guard.quarantine(&found, &world.quarantine);
    assert!(!world.path(".git/hooks/pre-commit").exists());
}

#[test]
fn links_in_the_data_of_git_are_found() {
    for link in ["logs/HEAD", "COMMIT_EDITMSG", "FETCH_HEAD", "refs/heads/x", "refs/new/y/z"] {
        let world = World::new();
        let guard = world.guard();
        world.sh(&format!(
            "cd .git && mkdir -p $(dirname {link}) && ln -sf \"$OUTSIDE/home/x\" {link}"
        ));
        let found = guard.check().findings;
        assert_eq!(found.len(), 1, "{link}: {found:?}");
        assert_eq!(
            (&found[0].path, &*found[0].reason),
            (&world.path(&format!(".git/{link}")), "it is a link")
        );
    }
}

#[test]
fn what_another_process_undoes_is_not_brought_back() {
    let world = World::new();
    let first = world.guard();
    world.sh("git -C sub config core.fsmonitor x && echo 1 > AGENTS.md");
    let other = ProtectedPaths::new();
    let second = other.guard(std::slice::from_ref(&world.root), &world.quarantine).unwrap();
    let found = first.check().findings;
    first.quarantine(&found, &world.quarantine);
    assert_eq!(second.check().findings, []);
    world.sh("git -C sub config core.pager x");
    assert_eq!(second.check().findings.len(), 1);
    drop((first, second));
    let third = other.guard(std::slice::from_ref(&world.root), &world.quarantine).unwrap();
    world.sh("git -C sub config --unset core.pager");
    assert_eq!(third.check().findings.len(), 1, "alone it brings back what was deleted");
}

#[test]
fn what_a_hook_of_the_users_leads_to_is_protected() {
    let world = World::new();
    world.sh("mkdir scripts && echo good > scripts/check.sh && chmod +x scripts/check.sh");
    world.sh("mkdir -p .git/hooks && ln -s ../../scripts/check.sh .git/hooks/pre-commit");
    let guard = world.guard();
    world.sh("echo evil > scripts/check.sh");
    assert_eq!(paths(&world, &guard.check().findings), ["scripts/check.sh"]);
}

/// A forged index makes git write, read or enter what it names.
#[test]
fn an_index_that_leads_out_of_the_tree_is_found() {
    let world = World::new();
    world.sh("mkdir XX && touch XX/home && git add XX/home");
    let guard = world.guard();
    world.sh("touch more && git add more");
    assert_eq!(guard.check().findings, []);
    world.sh("sed -i 's,XX/home,../home,' .git/index");
    let found = guard.check().findings;
    assert_eq!(paths(&world, &found), [".git/index"]);
    assert!(found[0].reason.starts_with("it names files outside the working tree"));
    guard.quarantine(&found, &world.quarantine);
    assert!(!world.path(".git/index").exists());
}

/// Git reads it together with the index that names it, which need not change.
#[test]
fn a_shared_index_that_leads_out_of_the_tree_is_found() {
    let world = World::new();
    world.sh("mkdir XX && touch XX/home && git add XX/home && git update-index --split-index");
    let guard = world.guard();
    world.sh(
        "touch more && git add more && touch a && git status && git update-index --split-index",
    );
    assert_eq!(guard.check().findings, []);
    drop(guard);
    let guard = world.guard();
    assert_eq!(guard.check().findings, []);
    world.sh("sed -i 's,XX/home,../home,' .git/sharedindex.*");
    assert_eq!(paths(&world, &guard.check().findings), [".git/index"]);
}

/// The working tree of a submodule is where its `.git` file is.
#[test]
fn a_submodule_keeps_its_working_tree() {
    let world = World::new();
    world.sh("cd sub && git submodule --quiet add \"$PWD\" inner && git commit -qm 2");
    let guard = world.guard();
    world.sh("git -C sub/.git/modules/inner config core.worktree \"$PWD/sub/inner\"");
    assert_eq!(guard.check().findings, []);
    for elsewhere in ["../../hooks", "../../../.git", "../../../../.git/hooks", "../../../.."] {
        world.sh(&format!("git config -f sub/.git/modules/inner/config core.worktree {elsewhere}"));
        let found = guard.check().findings;
        assert_eq!(paths(&world, &found), ["sub/.git/modules/inner/config"], "{elsewhere}");
        guard.quarantine(&found, &world.quarantine);
    }
}

#[test]
fn the_state_of_a_merge_or_a_rebase_is_no_way_out() {
    let world = World::new();
    let guard = world.guard();
    world.sh("mkdir .git/rebase-merge && echo 1 > .git/rebase-merge/msgnum");
    world.sh("printf 'abc\\tsrc/a\\0' > .git/MERGE_RR");
    assert_eq!(guard.check().findings, []);
    world.sh("echo '$(evil)1' > .git/rebase-merge/msgnum");
    world.sh("printf 'abc\\tsrc/a\\0def\\t../home/.ssh/id\\0' > .git/MERGE_RR");
    let found = guard.check().findings;
    assert_eq!(paths(&world, &found), [".git/MERGE_RR", ".git/rebase-merge/msgnum"]);
}

/// Through another hard link, a later command could change it even if its path is read-only.
#[test]
fn a_protected_file_is_parted_from_a_second_name() {
    let world = World::new();
    let guard = world.guard();
    world.sh("ln sub/.git/config keep");
    assert_eq!(guard.check().findings, []);
    world.sh("printf '[core]\\n\\tfsmonitor = evil\\n' >> keep");
    assert_eq!(guard.check().findings, []);
    let text = fs::read_to_string(world.path("sub/.git/config")).unwrap();
    assert!(!text.contains("evil"), "{text}");
    drop(guard);
    // One that existed before is the user's.
    world.sh("rm keep && ln sub/.git/config keep");
    let guard = world.guard();
    world.sh("printf '[core]\\n\\tfsmonitor = evil\\n' >> keep");
    let found = guard.check().findings;
    assert!(guard.has_other_names(&found[0]));
}

/// A process with the file open or another hard link could change what the user is asked about.
#[test]
fn what_is_in_quarantine_is_a_copy() {
    let world = World::new();
    let guard = world.guard();
    world.sh("echo nice > AGENTS.md && ln AGENTS.md keep");
    let records = guard.quarantine(&guard.check().findings, &world.quarantine);
    world.sh("echo evil > keep");
    put_back(&world.quarantine, &records[0].id).unwrap();
    assert_eq!(fs::read_to_string(world.path("AGENTS.md")).unwrap(), "nice\n");
}

#[test]
fn all_keys_that_need_approval_are_named() {
    let world = World::new();
    let guard = world.guard();
    world.sh("git -C sub config core.excludesFile x && git -C sub config core.fsmonitor evil");
    let reason = &guard.check().findings[0].reason;
    assert!(reason.contains("core.excludesfile") && reason.contains("core.fsmonitor"), "{reason}");
}

/// The second guard starts after the first command has changed it.
#[test]
fn what_another_process_restores_is_not_replaced_by_what_its_command_had_put_there() {
    let world = World::new();
    world.sh("echo the user > AGENTS.md");
    let first = world.guard();
    world.sh("echo evil > AGENTS.md");
    let other = ProtectedPaths::new();
    let second = other.guard(std::slice::from_ref(&world.root), &world.quarantine).unwrap();
    first.quarantine(&first.check().findings, &world.quarantine);
    assert_eq!(fs::read_to_string(world.path("AGENTS.md")).unwrap(), "the user\n");
    second.quarantine(&second.check().findings, &world.quarantine);
    let text = fs::read_to_string(world.path("AGENTS.md")).unwrap_or_default();
    assert!(!text.contains("evil"), "{text}");
}

#[test]
fn without_a_quarantine_a_thing_gets_another_name() {
    let world = World::new();
    let guard = world.guard();
    world.sh("echo 1 > AGENTS.md");
    let found = guard.check().findings;
    fs::write(world.folder.path().join("file"), "").unwrap();
    let records = guard.quarantine(&found, &world.folder.path().join("file/quarantine"));
    let MoveOutcome::Aside(aside) = &records[0].moved else { panic!("{records:?}") };
    assert!(aside.exists() && !world.path("AGENTS.md").exists());
    assert_eq!(guard.check().findings, []);
}

#[test]
fn a_repository_that_becomes_a_link_is_found() {
    let world = World::new();
    let guard = world.guard();
    world.sh("mv bare real && ln -s real bare");
    assert_eq!(paths(&world, &guard.check().findings), ["bare"]);
}
