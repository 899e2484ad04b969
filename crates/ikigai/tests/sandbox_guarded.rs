//! What other programs run later cannot be written in the sandbox, and git still works.
//!
//! Only bubblewrap can make part of the tree read-only; landlock cannot, and the documentation
//! lists that as not covered.

use ikigai_tools::SandboxKind;

use crate::support::sandboxed::{Isolation, REACHED, SandboxFixture, in_each_sandbox, open};

const HINT: &str = r#"[ikigai sandbox: git's settings and hooks, .ikigai, AGENTS.md and start-up files cannot be changed; call bash with "sandbox": false to ask for it]"#;

fn in_a_repository(test: impl Fn(SandboxFixture)) {
    in_each_sandbox(|fixture| {
        if fixture.kind != SandboxKind::Bubblewrap {
            return;
        }
        let made = "git init -q -b main . && git config user.name a && git config user.email a@b &&
            echo x > file && git add file && git commit -qm first && echo start > .bashrc && echo told > AGENTS.md &&
            mkdir .ikigai && echo old > .ikigai/config.toml && echo hook > .git/hooks/old";
        assert_eq!(fixture.bash(made, Isolation::Unconfined)["data"]["exit_code"], 0);
        test(fixture);
    });
}

#[test]
fn what_runs_outside_is_not_written_inside() {
    in_a_repository(|fixture| {
        for attempt in [
            "echo x > .git/hooks/pre-commit",
            "echo x > .git/hooks/old",
            "ln -s ../../file .git/hooks/post-commit",
            "git config core.pager ./file",
            "echo '[core]' >> .git/config",
            "echo x > new && mv new .git/config",
            "echo x >> .bashrc",
            "rm .bashrc",
            "echo x >> AGENTS.md",
            "echo x > new && mv new AGENTS.md",
            "echo x > .ikigai/config.toml",
            "cd .git && echo x > hooks/other",
            "ln -sfn .git way && echo x > way/hooks/through-a-link",
            "cp -r .git copy && mv .git/hooks .git/aside && cp -r copy/hooks .git/hooks && rm -r copy",
            "cp -r .git other && mv .git aside && mv other .git",
        ] {
            fixture.refuses(&format!("{attempt} && echo {REACHED}"));
        }
    });
}

#[test]
fn git_works_where_its_settings_are_guarded() {
    in_a_repository(|fixture| {
        for command in [
            "git status --short",
            "git checkout -q -b side && echo y > other && git add other && git commit -qm second",
            "git checkout -q main && git merge -q side && git tag v1",
            "echo z >> file && git stash -q && git stash pop -q && git commit -qam third",
            "git rebase -q HEAD~1 && git reset -q --hard HEAD~1 && git branch -D side",
            "git gc -q && git fsck && git log --oneline && git diff HEAD~1",
            "git worktree add -q ../tmp/beside && git -C ../tmp/beside status --short",
            "git clone -q . ../tmp/clone && git -C ../tmp/clone config user.name b",
            "git init -q sub && git -C sub config user.name c",
        ] {
            fixture.prints(command);
        }
    });
}

#[test]
fn a_refused_change_of_gits_settings_is_explained() {
    in_a_repository(|fixture| {
        for command in [
            "git config user.name c",
            "git remote add origin /nowhere",
            "echo x > .git/hooks/pre-push",
            "echo x >> .bashrc",
        ] {
            let result = fixture.bash(command, Isolation::Sandboxed);
            let output = result["data"]["output"].as_str().unwrap();
            assert_eq!(output.lines().last(), Some(HINT), "{command}: {result}");
        }
    });
}

#[test]
fn a_git_file_and_the_settings_of_a_submodule_are_guarded_too() {
    in_a_repository(|fixture| {
        let made = "git init -q ../outside/lib && cd ../outside/lib && git config user.name a &&
            git config user.email a@b && echo x > f && git add f && git commit -qm first && cd - &&
            git -c protocol.file.allow=always submodule --quiet add ../outside/lib group/lib &&
            git commit -qm sub && git worktree add -q ../outside/side";
        let made = fixture.bash(made, Isolation::Unconfined);
        assert_eq!(made["data"]["exit_code"], 0, "{made}");
        fixture.refuses(&format!("git -C group/lib config x.y z && echo {REACHED}"));
        fixture.refuses(&format!(
            "echo x > .git/modules/group/lib/hooks/pre-commit && echo {REACHED}"
        ));
        fixture.prints(
            "cd group/lib && echo y > f && git -c user.name=a -c user.email=b commit -qam 2",
        );
    });
    in_a_repository(|mut fixture| {
        let side = fixture.root().join("outside/side");
        fixture.bash("git worktree add -q ../outside/side", Isolation::Unconfined);
        fixture.sandbox.write.push(open(&side));
        fixture.refuses(&format!("echo x > ../outside/side/.git && echo {REACHED}"));
        let attempt = format!("cd ../outside && mv side/.git side/aside && echo {REACHED}");
        assert!(!fixture.try_to(&attempt, Isolation::Sandboxed));
    });
}

/// A command need not write the settings if it can replace them, or hide them from those who look
/// for them.
#[test]
fn a_submodule_is_not_put_aside_with_its_settings() {
    in_a_repository(|fixture| {
        let made = "rm -rf .git/modules .git/old; mkdir -p .git/modules/a/lib/hooks && cd .git/modules/a/lib && cp ../../../config . && touch HEAD";
        let change = "echo x >> .git/modules/a/lib/config";
        for before in [
            "mv .git/modules/a/lib .git/old; cp -r .git/old .git/modules/a/lib",
            "mv .git/modules .git/old; cp -r .git/old .git/modules",
            "rm .git/modules/a/lib/HEAD",
            "ln -sf refs/heads/none .git/modules/a/lib/HEAD",
        ] {
            fixture.bash(made, Isolation::Unconfined);
            let at_once = format!("{before}; {change} && echo {REACHED}");
            assert!(!fixture.try_to(&at_once, Isolation::Sandboxed), "{before}");
            // The next command finds what this one has left.
            assert!(
                !fixture.try_to(&format!("{change} && echo {REACHED}"), Isolation::Sandboxed),
                "{before}"
            );
            fixture.bash(made, Isolation::Unconfined);
            assert!(fixture.try_to(&at_once, Isolation::Unconfined), "no attempt: {before}");
        }
    });
}

/// It leads outside the mounted folders, and once made every later command fail.
#[test]
fn a_link_among_the_submodules_is_passed_over() {
    in_a_repository(|fixture| {
        fixture.bash(
            "mkdir -p ../outside/x && touch ../outside/x/HEAD ../outside/x/config",
            Isolation::Unconfined,
        );
        fixture.prints("ln -s $PWD/../outside .git/modules");
        fixture.prints("git status --short");
    });
}

/// A command can create folders of any depth and number where submodules are looked up. That once
/// ended the watchdog, and with it the supervision of all commands.
#[test]
fn folders_that_a_command_makes_among_the_submodules_neither_end_the_watchdog_nor_hide_one() {
    in_a_repository(|fixture| {
        fixture.bash(
            "mkdir -p .git/modules/lib/hooks && touch .git/modules/lib/HEAD",
            Isolation::Unconfined,
        );
        let attempt = format!("echo x > .git/modules/lib/hooks/new && echo {REACHED}");
        for folders in ["deep$(printf /a%.0s {1..1000})", "many/{1..2000}"] {
            fixture.prints(&format!("mkdir -p .git/modules/{folders}"));
            assert!(!fixture.try_to(&attempt, Isolation::Sandboxed), "{folders}");
            fixture.prints("git status --short && echo y >> file && git commit -qam more");
            fixture.bash("rm -r .git/modules/[dm]*", Isolation::Unconfined);
        }
        fixture.refuses(&attempt);
    });
}

#[test]
fn a_guarded_place_that_is_asked_for_by_its_path_can_be_written() {
    in_a_repository(|mut fixture| {
        fixture.sandbox.write.push(open(&fixture.workspace.path(".git/hooks")));
        fixture.prints("echo x > .git/hooks/pre-commit");
        assert!(
            !fixture.try_to(&format!("git config a.b c && echo {REACHED}"), Isolation::Sandboxed)
        );
    });
}
