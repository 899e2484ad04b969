//! The tour: a scripted model, and everything else real; nothing of it stays.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Signal, kill_process};

use crate::support::terminal::Terminal;
use crate::support::{Ended, Workspace, ended, finish, pid, wait_for};

/// The whole walk, as it is printed without a terminal.
const WALK: &str = include_str!("tour/walk.txt");

/// The tour in `/tmp`, so that its lines are as long everywhere.
fn tour(workspace: &Workspace) -> Command {
    let mut command = workspace.ikigai();
    command.arg("tour").env("TMPDIR", "/tmp");
    command
}

/// What differs from walk to walk is replaced: the folder's name and the numbers of processes.
fn without_chance(text: &str) -> String {
    let mut lines = Vec::new();
    let mut killed = None;
    for line in text.lines() {
        let mut line = line.to_owned();
        if let Some((before, number)) = line.split_once("(process ") {
            assert!(number.trim_end_matches(')').parse::<u32>().is_ok(), "{line}");
            line = format!("{before}(process PID)");
        }
        if let Some((before, rest)) = line.split_once("ikigai-tour-") {
            assert!(rest[..8].chars().all(|c| c.is_ascii_hexdigit()), "{line}");
            line = format!("{before}ikigai-tour-NAME{}", &rest[8..]);
        }
        if line.parse::<u32>().is_ok() && killed.is_none() {
            killed = Some(format!("kill -9 {line}"));
            line = "PID".to_owned();
        }
        if let Some(killed) = killed.as_ref().filter(|killed| line.ends_with(killed.as_str())) {
            line = line.replace(killed.as_str(), "kill -9 PID");
        }
        lines.push(line);
    }
    lines.join("\n") + "\n"
}

#[track_caller]
fn check_whole((code, stdout, stderr): Ended) {
    assert_eq!((code, &*stderr), (0, ""));
    assert_eq!(without_chance(&stdout), WALK);
}

/// Everything below a folder.
fn everything_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| [path.clone()].into_iter().chain(below(&path))).collect()
}

fn below(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() { everything_in(path) } else { Vec::new() }
}

/// Processes that work in a folder or below it.
fn processes_in(folder: &Path) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let works_there = |process: &PathBuf| {
        fs::read_link(process.join("cwd")).is_ok_and(|place| place.starts_with(folder))
    };
    processes.filter(works_there).collect()
}

/// Nothing was left in any folder that is the user's, nor does anything run there.
#[track_caller]
fn check_nothing_left(workspace: &Workspace) {
    let left = |folder: PathBuf| everything_in(&folder);
    assert_eq!(left(workspace.home()), Vec::<PathBuf>::new());
    wait_for("the end of all processes in the folder of the tour", || {
        processes_in(&workspace.home()).is_empty().then_some(())
    });
}

#[test]
fn the_walk_is_printed_at_once_where_there_is_no_terminal() {
    check_whole(ended(&mut tour(&Workspace::new())));
}

#[test]
fn it_says_at_the_beginning_and_at_the_end_that_the_model_is_scripted() {
    assert!(WALK.lines().next().unwrap().contains("the model is scripted"));
    assert!(WALK.lines().last().unwrap().contains("Everything else was real"));
}

#[test]
fn no_line_is_wider_than_the_narrowest_terminal() {
    let widest = WALK.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}");
}

#[test]
fn it_needs_no_environment_at_all() {
    let workspace = Workspace::new();
    let mut command = workspace.ikigai();
    check_whole(ended(command.arg("tour").env_clear()));
}

/// Whose programs may not look at each other, as those of root may.
#[test]
fn it_works_for_a_plain_user() {
    check_whole(ended(&mut tour(&Workspace::of_plain_user())));
}

#[test]
fn it_leaves_nothing_behind() {
    let workspace = Workspace::new();
    let (code, stdout, stderr) = ended(workspace.ikigai().arg("tour"));
    assert_eq!((code, &*stderr), (0, ""));
    let folder = workspace.home().join("ikigai-tour-");
    assert!(stdout.contains(folder.to_str().unwrap()), "{stdout}");
    check_nothing_left(&workspace);
    assert_eq!(workspace.names(), Vec::<String>::new());
}

/// Neither a configuration that is wrong nor the session of an agent in whose command it runs matters.
#[test]
fn nothing_of_the_users_has_a_say_in_it() {
    let workspace = Workspace::with_agents(2);
    workspace.write_config("broken = [").write(".ikigai/config.toml", "also = [");
    workspace.write("AGENTS.md", "Be rude.");
    let before = workspace.rows();
    let mut command = tour(&workspace);
    command
        .env("IKIGAI_AGENT", "1/")
        .env("IKIGAI_SESSION", "none")
        .env("IKIGAI_MODE", "nonsense")
        .env("BASH_ENV", workspace.path("AGENTS.md"))
        .env("HTTP_PROXY", "http://127.0.0.1:1")
        .env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
    check_whole(ended(&mut command));
    assert_eq!(workspace.rows(), before);
}

/// A bash that comes before the real one in the path; `script` has the real one as `/bin/bash`.
fn with_own(program: &str, workspace: &Workspace, script: &str) -> String {
    workspace.write("own", format!("#!/bin/bash\n{script}\nexec /bin/{program} \"$@\"\n"));
    workspace.folder("bin");
    // Another process copies it: were it open for writing in this one, it could not be started.
    let copied = ended(&mut workspace.script(&format!("install -m 755 own bin/{program}")));
    assert_eq!(copied, (0, String::new(), String::new()));
    format!("{}:/usr/local/bin:/usr/bin:/bin", workspace.text("bin"))
}

/// The script of the model knows nothing of this bash; only what really runs can.
#[test]
fn commands_are_really_run_and_see_no_key() {
    let workspace = Workspace::new();
    let script =
        format!("env >> {}\n[[ \"$*\" = *sum.sh\\ 4 ]] && echo 11 && exit", workspace.text("seen"));
    let path = with_own("bash", &workspace, &script);
    let mut command = tour(&workspace);
    command.args(["--mode", "full"]);
    let (code, stdout, stderr) =
        ended(command.env("PATH", path).env("OPENAI_API_KEY", "sk-mine").env("MINE", "sk-mine"));
    assert!(stdout.contains("but sum.sh says 11 (process "), "{stdout}");
    assert_eq!(
        (code, &*stderr),
        (1, "ikigai: the test still fails: is the bash in your PATH the real one?\n")
    );
    assert!(!stdout.contains("The test passes"), "{stdout}");
    let seen = workspace.read_text("seen");
    assert!(seen.contains("IKIGAI_AGENT=0/") && !seen.contains("sk-mine"), "{seen}");
}

#[test]
fn the_mail_of_each_agent_is_in_the_box_of_the_other() {
    let inbox = |agent: &str, mail: &str| format!("Inbox for agent {agent}:\n  {mail}\n");
    let to_1 = r##"#1 [unread] from 0/ - "Please review the loop in sum.sh""##;
    let to_0 = r##"#2 from 1/ - "Right also for 1 and for 100""##;
    assert!(WALK.contains(&inbox("1/", to_1)));
    assert!(WALK.contains(&inbox("0/", to_0)));
}

/// Interrupts the tour while it runs the program with `cue` in its arguments.
#[track_caller]
fn check_interrupt(program: &str, cue: &str, signal: Signal) {
    let workspace = Workspace::new();
    let (number, name) = (workspace.text("tour-pid"), signal.as_raw());
    let script = format!(
        "if [[ \"$*\" = *{cue}* ]]; then\n\
         until [ -s {number} ]; do sleep 0.01; done\n\
         kill -{name} $(<{number})\nexec sleep 31415\nfi"
    );
    let path = with_own(program, &workspace, &script);
    let mut tour = workspace.ikigai();
    tour.args(["tour", "--mode", "full"]).env("PATH", path);
    let tour = tour.spawn().unwrap();
    workspace.write("new-pid", format!("{}\n", tour.id()));
    fs::rename(workspace.path("new-pid"), workspace.path("tour-pid")).unwrap();
    let output = finish(tour);
    assert_eq!(
        (output.status.code(), String::from_utf8(output.stderr).unwrap()),
        (Some(130), String::new())
    );
    check_nothing_left(&workspace);
}

#[test]
fn an_interrupt_in_an_agents_command_leaves_nothing_behind() {
    check_interrupt("bash", "test.sh", Signal::INT);
}

#[test]
fn an_interrupt_in_the_persons_command_leaves_nothing_behind() {
    check_interrupt("cat", "run.log", Signal::INT);
}

/// Another process works in the background by then.
#[test]
fn an_interrupt_beside_the_second_process_leaves_nothing_behind() {
    check_interrupt("bash", "slow.sh", Signal::TERM);
}

/// Nobody reads, so the tour is stuck in printing, and only a second signal ends it.
#[test]
fn a_second_interrupt_ends_even_a_tour_that_is_stuck() {
    let workspace = Workspace::new();
    let (reader, mut writer) = std::io::pipe().unwrap();
    fcntl_setpipe_size(&writer, 4096).unwrap();
    writer.write_all(&[b'x'; 4096]).unwrap();
    let mut tour = workspace.ikigai().arg("tour").stdout(writer).spawn().unwrap();
    wait_for("the folder", || (!everything_in(&workspace.home()).is_empty()).then_some(()));
    let status = wait_for("the end", || {
        let ended = tour.try_wait().unwrap();
        if ended.is_none() {
            kill_process(pid(&tour), Signal::INT).unwrap();
        }
        ended
    });
    assert_eq!(status.code(), Some(130));
    drop(reader);
    check_nothing_left(&workspace);
}

#[test]
fn a_reader_that_has_seen_enough_ends_it() {
    let workspace = Workspace::new();
    let (code, stdout, stderr) =
        ended(&mut workspace.script("\"$IKIGAI\" tour | head -n 1; exit ${PIPESTATUS[0]}"));
    assert_eq!((code, &*stderr), (0, ""));
    assert_eq!(stdout.lines().collect::<Vec<_>>(), [WALK.lines().next().unwrap()]);
    check_nothing_left(&workspace);
}

#[test]
fn a_failure_says_what_it_is_and_what_to_do() {
    let workspace = Workspace::new();
    let told = |name: &str, value: &str| {
        let (code, _, stderr) = ended(workspace.ikigai().arg("tour").env(name, value));
        assert_eq!(code, 1);
        stderr
    };
    assert_eq!(
        told("TMPDIR", "/nowhere"),
        "ikigai: cannot make a folder for the tour in /nowhere: No such file or directory (os error 2); \
         set TMPDIR to a writable folder\n"
    );
    assert_eq!(
        told("PATH", "/nowhere"),
        "ikigai: the test still fails: is the bash in your PATH the real one?\n"
    );
    check_nothing_left(&workspace);
}

/// The tour on a terminal.
fn on_terminal(workspace: &Workspace, variables: &[(&str, &str)]) -> Terminal {
    Terminal::start(workspace.ikigai().args(["tour", "--plain"]).envs(variables.iter().copied()))
}

/// Interrupts it, and returns its exit code and all that it has shown.
fn leave(tour: Terminal) -> (Option<i32>, String) {
    tour.interrupt();
    tour.finish("Its folder is removed.")
}

#[test]
fn on_a_terminal_enter_goes_on_and_an_interrupt_leaves_cleanly() {
    let workspace = Workspace::new();
    let mut tour = on_terminal(&workspace, &[("TERM", "xterm")]);
    tour.wait_for("(Press Enter)");
    assert!(!tour.text().contains("1. An agent fixes a bug"));
    tour.type_line("");
    tour.wait_for("\x1b[2m  ✗ exit 1");
    let (code, shown) = leave(tour);
    assert_eq!(code, Some(130));
    assert!(shown.contains("\x1b[1m1. An agent fixes a bug\x1b[0m"), "{shown:?}");
    assert!(shown.contains("\x1b[2mThe tour was left. Its folder is removed."), "{shown:?}");
    check_nothing_left(&workspace);
}

#[test]
fn there_are_no_colours_where_they_are_not_wanted() {
    let workspace = Workspace::new();
    for variables in [[("TERM", "xterm"), ("NO_COLOR", "1")], [("TERM", "dumb"), ("X", "")]] {
        let tour = on_terminal(&workspace, &variables);
        tour.wait_for("(Press Enter)");
        let (code, shown) = leave(tour);
        assert_eq!(code, Some(130));
        // Taking the line of the hint back is no colour.
        assert!(!shown.replace("\x1b[K", "").contains('\x1b'), "{shown:?}");
    }
    check_nothing_left(&workspace);
}
