//! Protected paths: files that a command creates where other programs later run or trust them.

use std::fs;

use crate::support::sandboxed::{Isolation, SandboxFixture, content, in_each_sandbox};
use crate::support::wait_for;

fn files_in_quarantine(fixture: &SandboxFixture) -> usize {
    fs::read_dir(fixture.workspace.home().join("data/ikigai/quarantine")).unwrap().count()
}

#[track_caller]
fn told(fixture: &SandboxFixture, command: &str) -> String {
    let result = fixture.bash(command, Isolation::Sandboxed);
    result["data"]["output"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

#[test]
fn a_repository_with_a_program_in_its_settings_is_defused_and_told() {
    in_each_sandbox(|fixture| {
        let made = "git init -q sub && git -C sub config core.fsmonitor ./evil";
        let output = told(&fixture, made);
        assert!(output.contains("[ikigai: Moved "), "{}: {output}", fixture.kind);
        let config = fs::read_to_string(fixture.workspace.path("sub/.git/config"));
        assert!(!config.unwrap_or_default().contains("evil"), "{}", fixture.kind);
        assert!(files_in_quarantine(&fixture) > 0);
    });
}

/// A repository, or its folder of hooks, that is not there can be made by anybody.
#[test]
fn hooks_that_a_command_makes_are_not_run_by_the_users_git() {
    in_each_sandbox(|fixture| {
        let hook = "mkdir -p .git/hooks && printf '#!/bin/sh\ntouch ../ran\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit";
        let commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m 1";
        for before in ["rm -rf .git", "rm -rf .git && git init -q . && rm -rf .git/hooks"] {
            fixture.bash(before, Isolation::Unconfined);
            let output = told(&fixture, &format!("git init -q . && rm -rf .git/hooks; {hook}"));
            assert!(output.contains("[ikigai: Moved "), "{}: {before}: {output}", fixture.kind);
            fixture.bash(commit, Isolation::Unconfined);
            assert!(!fixture.root().join("ran").exists(), "{}: {before}", fixture.kind);
        }
        fixture.bash(&format!("{hook}; {commit}"), Isolation::Unconfined);
        assert!(fixture.root().join("ran").exists(), "no attempt");
    });
}

#[test]
fn a_protected_file_that_a_command_makes_is_moved_away() {
    in_each_sandbox(|fixture| {
        for name in [
            "AGENTS.md",
            ".vscode/tasks.json",
            ".envrc",
            ".gitmodules",
            ".mcp.json",
            "GEMINI.md",
            ".github/hooks/a.json",
            ".helix/languages.toml",
            "mise/config.toml",
            ".tool-versions",
            ".miserc.toml",
            ".lazygit.yml",
            ".yarnrc",
            ".irbrc",
            "irb.rc",
            ".RData",
            ".perldb",
            ".vim/coc-settings.json",
            ".hg/hgrc",
            ".jj/repo/config.toml",
        ] {
            let command = format!("mkdir -p $(dirname {name}) && echo evil > {name}");
            let output = told(&fixture, &command);
            assert!(output.contains("[ikigai: Moved "), "{name}: {output}");
            assert!(!fixture.workspace.path(name).exists(), "{}: {name}", fixture.kind);
        }
    });
}

#[test]
fn a_protected_file_that_a_command_changes_is_as_it_was() {
    in_each_sandbox(|fixture| {
        fixture.workspace.write("AGENTS.md", "old\n");
        fixture.prints("git init -q . && git init -q sub");
        let changes = [
            "echo evil > AGENTS.md; git config core.pager evil; true",
            "cd sub; git config core.sshCommand evil; true",
        ];
        let told = changes.map(|change| told(&fixture, change));
        assert!(told[1].contains("restored its previous version"), "{told:?}");
        assert_eq!(content(fixture.workspace.path("AGENTS.md")), "old\n", "{}", fixture.kind);
        for name in [".git/config", "sub/.git/config"] {
            let config = content(fixture.workspace.path(name));
            assert!(!config.contains("evil"), "{}: {config}", fixture.kind);
        }
    });
}

#[test]
fn a_folder_on_the_way_to_protected_files_does_not_become_a_link() {
    in_each_sandbox(|fixture| {
        for (folder, file) in [(".github", "hooks/a.json"), (".jj", "repo/config.toml")] {
            let made =
                format!("mkdir -p $(dirname x/{file}); echo evil > x/{file}; ln -s x {folder}");
            let output = told(&fixture, &made);
            assert!(output.contains("because it is a link"), "{folder}: {output}");
            assert!(!fixture.workspace.path(folder).exists(), "{}: {folder}", fixture.kind);
        }
    });
}

/// In `.github`, `.hg`, `.jj` and `.config`, only what other programs run or trust is protected.
#[test]
fn data_beside_protected_files_is_free() {
    in_each_sandbox(|fixture| {
        fixture
            .workspace
            .write(".hg/hgrc", "[ui]\n")
            .write(".jj/repo/config.toml", "")
            .write(".github/copilot-instructions.md", "old\n");
        let output = told(
            &fixture,
            "mkdir -p .github/workflows .hg/store .jj/repo/op_heads .jj/working_copy .config/other
            for file in .github/workflows/ci.yml .hg/store/a .hg/dirstate .jj/repo/op_heads/a .jj/working_copy/checkout .config/other/a; do
                echo new > $file.tmp && mv $file.tmp $file && cat $file || exit
            done",
        );
        assert_eq!(output, "new\n".repeat(6), "{}", fixture.kind);
        assert_eq!(files_in_quarantine(&fixture), 0);
    });
}

#[test]
fn everyday_git_moves_nothing() {
    in_each_sandbox(|fixture| {
        let commands = "git init -q . && git config user.name a && git config user.email a@b
            echo 1 > file && git add . && git commit -qm one && git switch -qc side && echo 2 > file
            git stash -q && git stash pop -q && git commit -qam two && git switch -q - && git merge -q side
            git worktree add -q ../tmp/other && git clone -q . clone && git status && git diff";
        let output = told(&fixture, commands);
        assert!(!output.contains("[ikigai"), "{}: {output}", fixture.kind);
        assert_eq!(files_in_quarantine(&fixture), 0);
    });
}

#[test]
fn what_a_daemon_plants_is_moved_away_too() {
    in_each_sandbox(|fixture| {
        fixture.prints("git init -q sub");
        fixture.prints(
            "(setsid bash -c 'sleep 0.3; git -C sub config core.fsmonitor evil; touch done' > /dev/null 2>&1 &)",
        );
        wait_for("the daemon", || fixture.workspace.path("done").exists().then_some(()));
        wait_for("the quarantine", || {
            let config = fs::read_to_string(fixture.workspace.path("sub/.git/config")).ok()?;
            (!config.contains("evil")).then_some(())
        });
        assert!(files_in_quarantine(&fixture) > 0);
    });
}

#[test]
fn a_worktree_is_not_led_to_other_settings() {
    in_each_sandbox(|fixture| {
        fixture.prints(
            "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m 1
            git worktree add -q wt && git init -q other",
        );
        let before = content(fixture.workspace.path(".git/worktrees/wt/commondir"));
        told(&fixture, "echo ../../../other/.git > .git/worktrees/wt/commondir");
        assert_eq!(content(fixture.workspace.path(".git/worktrees/wt/commondir")), before);
    });
}

#[test]
fn nothing_is_hidden_behind_many_others() {
    in_each_sandbox(|fixture| {
        told(
            &fixture,
            "for i in {1..2100}; do mkdir -p a/$i; ln -s x a/$i/.git; done; echo evil > AGENTS.md
            git init -q z && git -C z config core.fsmonitor evil",
        );
        assert!(!fixture.workspace.path("AGENTS.md").exists(), "{}", fixture.kind);
        assert!(!fixture.workspace.path("z/.git/config").exists(), "{}", fixture.kind);
    });
}
