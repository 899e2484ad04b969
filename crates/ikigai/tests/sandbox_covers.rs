//! Covers stay in place: what is replaced from outside while a command runs stays out of the
//! command's reach.

use std::fs;
use std::process::Command;
use std::time::Duration;

use ikigai_tools::SandboxKind;

use crate::support::sandboxed::{Isolation, SandboxFixture, content, in_each_sandbox, in_sandbox};
use crate::support::wait_for;

/// Continues in the background until a file `stop` exists: in each round, `command` runs and a line
/// with its output is added to `seen`.
fn go_on(fixture: &SandboxFixture, command: &str) {
    fixture.prints(&format!(
        "while [ ! -e stop ]; do echo \"<$({command} 2>&1)>\" >> seen; sleep 0.01; done > /dev/null 2>&1 &"
    ));
}

/// Waits until the last ten lines are as expected.
#[track_caller]
fn wait_for_last(fixture: &SandboxFixture, is_right: impl Fn(&str) -> bool) {
    let seen = || fs::read_to_string(fixture.workspace.path("seen")).unwrap_or_default();
    let before = seen().lines().count();
    wait_for(&format!("ten right lines under {}", fixture.kind), || {
        let lines = seen();
        let new: Vec<&str> = lines.lines().skip(before).collect();
        let last = new.len().checked_sub(10).map(|start| &new[start..])?;
        last.iter().all(|line| is_right(line)).then_some(())
    });
}

fn stop(fixture: &SandboxFixture) {
    fixture.workspace.write("stop", "");
    fixture.close();
}

fn git(fixture: &SandboxFixture, arguments: &[&str]) {
    assert!(try_git(fixture, arguments));
}

/// Whether git succeeded: it fails while another process writes its settings.
fn try_git(fixture: &SandboxFixture, arguments: &[&str]) -> bool {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(fixture.workspace.directory());
    git.status().unwrap().success()
}

#[test]
fn a_secret_that_is_replaced_while_a_command_runs_stays_hidden() {
    in_each_sandbox(|fixture| {
        go_on(&fixture, "cat $HOME/.netrc");
        wait_for_last(&fixture, |line| !line.contains("SECRET"));
        for name in ["first", "second"] {
            fixture.workspace.write(format!("../home/{name}"), "SECRET\n");
            fs::rename(fixture.root().join("home").join(name), fixture.root().join("home/.netrc"))
                .unwrap();
            wait_for_last(&fixture, |line| !line.contains("SECRET"));
        }
        stop(&fixture);
    });
}

#[test]
fn a_secret_that_comes_to_be_while_a_command_runs_is_hidden() {
    in_each_sandbox(|fixture| {
        let secrets = [".aws/credentials", ".pgpass", ".config/gh/hosts.yml", ".cargo/credentials"];
        fixture.workspace.folder("../home/.config").write("../home/.cargo/open", "");
        let files = secrets.map(|secret| format!("$HOME/{secret}"));
        go_on(&fixture, &format!("cat {}", files.join(" ")));
        for secret in secrets {
            fixture.workspace.write(format!("../home/{secret}"), "SECRET\n");
        }
        wait_for_last(&fixture, |line| !line.contains("SECRET"));
        stop(&fixture);
    });
}

#[test]
fn settings_of_git_that_are_replaced_while_a_command_runs_stay_read_only() {
    in_sandbox(SandboxKind::Bubblewrap, |fixture| {
        git(&fixture, &["init", "-q", "."]);
        go_on(&fixture, "echo >> .git/config && echo written");
        wait_for_last(&fixture, |line| !line.contains("written"));
        git(&fixture, &["config", "user.name", "first"]);
        wait_for_last(&fixture, |line| !line.contains("written"));
        // In between, the command may create a file there again.
        let remove = || fs::remove_dir_all(fixture.workspace.path(".git")).ok();
        wait_for("the end of the repository", remove);
        git(&fixture, &["init", "-q", "."]);
        wait_for_last(&fixture, |line| !line.contains("written"));
        stop(&fixture);
    });
}

#[test]
fn a_program_that_a_command_adds_to_replaced_settings_is_gone_when_it_has_ended() {
    in_each_sandbox(|fixture| {
        git(&fixture, &["init", "-q", "."]);
        let add = "printf '[core]\\n\\tpager = evil\\n' >> .git/config && echo written";
        fixture.prints(&format!("while [ ! -e stop ]; do {add}; done > /dev/null 2>&1 &"));
        for number in 0..20 {
            wait_for("git", || {
                try_git(&fixture, &["config", "user.name", &number.to_string()]).then_some(())
            });
            std::thread::sleep(Duration::from_millis(5));
        }
        stop(&fixture);
        let config = content(fixture.workspace.path(".git/config"));
        assert!(!config.contains("evil"), "{}: {config}", fixture.kind);
    });
}

#[test]
fn what_the_user_changes_while_a_command_runs_is_kept() {
    in_each_sandbox(|fixture| {
        fixture.workspace.write("AGENTS.md", "old\n");
        git(&fixture, &["init", "-q", "."]);
        go_on(&fixture, "true");
        git(&fixture, &["config", "user.name", "somebody"]);
        if fixture.kind == SandboxKind::Bubblewrap {
            // In place: a command could not do this. Under landlock the two are indistinguishable.
            fixture.workspace.write("AGENTS.md", "new\n");
        }
        fixture.bash("true", Isolation::Sandboxed);
        stop(&fixture);
        assert!(content(fixture.workspace.path(".git/config")).contains("somebody"));
        if fixture.kind == SandboxKind::Bubblewrap {
            assert_eq!(content(fixture.workspace.path("AGENTS.md")), "new\n");
        }
    });
}

/// When it started, the file did not exist, so it has no cover on it. Another command, which has one, ends a moment later
/// and takes the change for the user's.
#[test]
fn a_command_from_before_an_approved_write_cannot_change_the_file() {
    in_each_sandbox(|fixture| {
        let change = "until [ -e go ]; do sleep 0.01; done; echo evil > AGENTS.md; touch done";
        fixture.prints(&format!("({change}; sleep 1000) > /dev/null 2>&1 &"));
        fixture.write_with_approval("AGENTS.md", "approved\n", || {});
        fixture.prints("touch go; until [ -e done ]; do sleep 0.01; done");
        let after = content(fixture.workspace.path("AGENTS.md"));
        assert_eq!(after, "approved\n", "{}", fixture.kind);
        fixture.close();
    });
}

/// What counts as approved is what the file tool has written, and not what is found there afterwards.
#[test]
fn what_a_command_puts_in_the_place_of_an_approved_file_is_not_approved() {
    in_each_sandbox(|fixture| {
        let change =
            "until [ -e AGENTS.md ]; do :; done; sleep 0.1; echo evil > AGENTS.md; touch done";
        fixture.prints(&format!("({change}; sleep 1000) > /dev/null 2>&1 &"));
        fixture.write_with_approval("AGENTS.md", "approved\n", || {
            let is_done = || fixture.workspace.path("done").exists().then_some(());
            wait_for("the command", is_done);
        });
        fixture.prints("true");
        fixture.close();
        let after = fs::read_to_string(fixture.workspace.path("AGENTS.md"));
        assert_ne!(after.ok().as_deref(), Some("evil\n"), "{}", fixture.kind);
    });
}
