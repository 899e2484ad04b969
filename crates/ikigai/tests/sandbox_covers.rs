//! Covers stay on: what somebody outside replaces while a command runs is still out of the command's reach.

use std::fs;
use std::process::Command;
use std::time::Duration;

use ikigai_tools::SandboxKind;

use crate::support::enclosed::{Enclosed, Walls, content, in_each_sandbox, in_sandbox};
use crate::support::wait_for;

/// Goes on in the background until there is a file `stop`: each time around, `command` is run, and a line with its
/// output is added to `seen`.
fn go_on(enclosed: &Enclosed, command: &str) {
    enclosed.prints(&format!(
        "while [ ! -e stop ]; do echo \"<$({command} 2>&1)>\" >> seen; sleep 0.01; done > /dev/null 2>&1 &"
    ));
}

/// Waits until the last ten lines are all as they should be.
#[track_caller]
fn wait_for_last(enclosed: &Enclosed, is_right: impl Fn(&str) -> bool) {
    let seen = || fs::read_to_string(enclosed.workspace.path("seen")).unwrap_or_default();
    let before = seen().lines().count();
    wait_for(&format!("ten right lines under {}", enclosed.kind), || {
        let lines = seen();
        let new: Vec<&str> = lines.lines().skip(before).collect();
        let last = new.len().checked_sub(10).map(|start| &new[start..])?;
        last.iter().all(|line| is_right(line)).then_some(())
    });
}

fn stop(enclosed: &Enclosed) {
    enclosed.workspace.write("stop", "");
    enclosed.close();
}

fn git(enclosed: &Enclosed, arguments: &[&str]) {
    assert!(try_git(enclosed, arguments));
}

/// Whether git could do it: not while somebody is writing its settings.
fn try_git(enclosed: &Enclosed, arguments: &[&str]) -> bool {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(enclosed.workspace.directory());
    git.status().unwrap().success()
}

#[test]
fn a_secret_that_is_replaced_while_a_command_runs_stays_hidden() {
    in_each_sandbox(|enclosed| {
        go_on(&enclosed, "cat $HOME/.netrc");
        wait_for_last(&enclosed, |line| !line.contains("SECRET"));
        for name in ["first", "second"] {
            enclosed.workspace.write(format!("../home/{name}"), "SECRET\n");
            fs::rename(
                enclosed.root().join("home").join(name),
                enclosed.root().join("home/.netrc"),
            )
            .unwrap();
            wait_for_last(&enclosed, |line| !line.contains("SECRET"));
        }
        stop(&enclosed);
    });
}

#[test]
fn a_secret_that_comes_to_be_while_a_command_runs_is_hidden() {
    in_each_sandbox(|enclosed| {
        go_on(&enclosed, "cat $HOME/.aws/credentials $HOME/.pgpass");
        enclosed.workspace.write("../home/.aws/credentials", "SECRET\n");
        enclosed.workspace.write("../home/.pgpass", "SECRET\n");
        wait_for_last(&enclosed, |line| !line.contains("SECRET"));
        stop(&enclosed);
    });
}

#[test]
fn settings_of_git_that_are_replaced_while_a_command_runs_stay_read_only() {
    in_sandbox(SandboxKind::Bubblewrap, |enclosed| {
        git(&enclosed, &["init", "-q", "."]);
        go_on(&enclosed, "echo >> .git/config && echo written");
        wait_for_last(&enclosed, |line| !line.contains("written"));
        git(&enclosed, &["config", "user.name", "first"]);
        wait_for_last(&enclosed, |line| !line.contains("written"));
        // In the middle of it the command may make a file there again.
        let remove = || fs::remove_dir_all(enclosed.workspace.path(".git")).ok();
        wait_for("the end of the repository", remove);
        git(&enclosed, &["init", "-q", "."]);
        wait_for_last(&enclosed, |line| !line.contains("written"));
        stop(&enclosed);
    });
}

#[test]
fn a_program_that_a_command_adds_to_replaced_settings_is_gone_when_it_has_ended() {
    in_each_sandbox(|enclosed| {
        git(&enclosed, &["init", "-q", "."]);
        let add = "printf '[core]\\n\\tpager = evil\\n' >> .git/config && echo written";
        enclosed.prints(&format!("while [ ! -e stop ]; do {add}; done > /dev/null 2>&1 &"));
        for number in 0..20 {
            wait_for("git", || {
                try_git(&enclosed, &["config", "user.name", &number.to_string()]).then_some(())
            });
            std::thread::sleep(Duration::from_millis(5));
        }
        stop(&enclosed);
        let config = content(enclosed.workspace.path(".git/config"));
        assert!(!config.contains("evil"), "{}: {config}", enclosed.kind);
    });
}

#[test]
fn what_the_user_changes_while_a_command_runs_is_kept() {
    in_each_sandbox(|enclosed| {
        enclosed.workspace.write("AGENTS.md", "old\n");
        git(&enclosed, &["init", "-q", "."]);
        go_on(&enclosed, "true");
        git(&enclosed, &["config", "user.name", "somebody"]);
        if enclosed.kind == SandboxKind::Bubblewrap {
            // In place: a command could not do this. Under landlock nobody can tell.
            enclosed.workspace.write("AGENTS.md", "new\n");
        }
        enclosed.bash("true", Walls::Up);
        stop(&enclosed);
        assert!(content(enclosed.workspace.path(".git/config")).contains("somebody"));
        if enclosed.kind == SandboxKind::Bubblewrap {
            assert_eq!(content(enclosed.workspace.path("AGENTS.md")), "new\n");
        }
    });
}

/// When it started, the file did not exist, so it has no cover on it. Another command, which has one, ends a moment later
/// and takes the change for the user's.
#[test]
fn a_command_from_before_an_approved_write_cannot_change_the_file() {
    in_each_sandbox(|enclosed| {
        let change = "until [ -e go ]; do sleep 0.01; done; echo evil > AGENTS.md; touch done";
        enclosed.prints(&format!("({change}; sleep 1000) > /dev/null 2>&1 &"));
        enclosed.write_with_approval("AGENTS.md", "approved\n", || {});
        enclosed.prints("touch go; until [ -e done ]; do sleep 0.01; done");
        let after = content(enclosed.workspace.path("AGENTS.md"));
        assert_eq!(after, "approved\n", "{}", enclosed.kind);
        enclosed.close();
    });
}

/// What counts as approved is what the file tool has written, and not what is found there afterwards.
#[test]
fn what_a_command_puts_in_the_place_of_an_approved_file_is_not_approved() {
    in_each_sandbox(|enclosed| {
        let change =
            "until [ -e AGENTS.md ]; do :; done; sleep 0.1; echo evil > AGENTS.md; touch done";
        enclosed.prints(&format!("({change}; sleep 1000) > /dev/null 2>&1 &"));
        enclosed.write_with_approval("AGENTS.md", "approved\n", || {
            let is_done = || enclosed.workspace.path("done").exists().then_some(());
            wait_for("the command", is_done);
        });
        enclosed.prints("true");
        enclosed.close();
        let after = fs::read_to_string(enclosed.workspace.path("AGENTS.md"));
        assert_ne!(after.ok().as_deref(), Some("evil\n"), "{}", enclosed.kind);
    });
}
