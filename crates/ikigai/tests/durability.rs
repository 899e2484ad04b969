//! A file has its old or its new content at every moment, also when the program is killed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Signal, geteuid, kill_process};
use serde_json::{Value, json};

use crate::support::{Numbers, Workspace, finish, pid, result, skip};

const KILLS: usize = 60;

/// Kills the program at moments spread over the time that a whole call takes, and looks at the file each time.
#[track_caller]
fn check_kills(tool: &str, call: Value, old: &[u8], new: &[u8]) {
    let workspace = Workspace::new();
    let call = call.to_string();
    workspace.write("file", old);
    let started = Instant::now();
    workspace.tool(tool, &call);
    let whole_call = started.elapsed().as_micros() as u64;
    assert!(workspace.read("file") == new, "a call that nobody kills writes the new content");
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for kill in 0..KILLS {
        workspace.write("file", old);
        let mut command = workspace.tool_command(tool, &call);
        let child = command.spawn().unwrap();
        // Not to wait for anything, but to hit another moment each time.
        std::thread::sleep(Duration::from_micros(numbers.below(whole_call * 5 / 4)));
        let _ = kill_process(pid(&child), Signal::KILL);
        finish(child);
        let content = workspace.read("file");
        assert!(
            content == old || content == new,
            "after kill {kill} the file has neither its old nor its new content, but {} bytes",
            content.len()
        );
    }
}

#[test]
fn a_killed_file_write_leaves_the_old_or_the_new_content() {
    let old = "old content\n".repeat(150_000);
    let new = "the new content\n".repeat(200_000);
    let call = json!({"path": "file", "content": new});
    check_kills("file_write", call, old.as_bytes(), new.as_bytes());
}

#[test]
fn a_killed_file_edit_leaves_the_old_or_the_new_content() {
    let old = "an old line of the file\n".repeat(150_000);
    let new = old.replace("old", "brand new");
    let call = json!({"path": "file", "old_string": "old", "new_string": "brand new", "replace_all": true});
    check_kills("file_edit", call, old.as_bytes(), new.as_bytes());
}

/// What the program does to files that matters for a crash of the system, one word and a path each.
#[track_caller]
fn check_steps(workspace: &Workspace, tool: &str, call: Value, expected: &[&str]) {
    assert!(
        Command::new("strace").arg("-V").output().is_ok(),
        "strace is needed to see the order of flushes and renames: install the package strace"
    );
    let directory = workspace.directory();
    let calls = "trace=openat,fsync,fdatasync,rename,renameat,renameat2,mkdir,mkdirat";
    let file = directory.with_file_name("home").join("trace");
    let strace = ["strace", "-f", "-q", "-s", "4096", "-e", calls, "-o", file.to_str().unwrap()];
    let Some(become_root) = as_root() else {
        skip("only root can look into the program, and nobody here can become it");
        return;
    };
    let mut command = workspace.under("env", &[become_root, &strace].concat());
    command.args(["tool", tool, &call.to_string()]);
    let result = result(&mut command);
    assert!(result.starts_with(r#"{"success":true"#), "{result}");
    let trace = std::fs::read_to_string(file).unwrap();
    assert_eq!(steps(&trace, &directory), expected, "{trace}");
}

/// What makes somebody else root for a moment: the program lets only root look into its memory, where paths are.
fn as_root() -> Option<&'static [&'static str]> {
    if geteuid().is_root() {
        return Some(&[]);
    }
    let can_become = Command::new("unshare").args(["-r", "true"]).status();
    can_become.is_ok_and(|status| status.success()).then_some(&["unshare", "-r"])
}

/// The lines of strace as `flush PATH`, `create PATH`, `folder PATH` or `rename PATH PATH`, with paths relative
/// to the working directory and `TEMPORARY` for a name that nobody is to rely on.
fn steps(trace: &str, directory: &Path) -> Vec<String> {
    let show = |path: &Path| match path.strip_prefix(directory) {
        Ok(path) if path.extension().is_some_and(|extension| extension == "tmp") => {
            "TEMPORARY".to_owned()
        }
        Ok(path) if path.as_os_str().is_empty() => ".".to_owned(),
        Ok(path) => path.to_str().unwrap().to_owned(),
        Err(_) => path.to_str().unwrap().to_owned(),
    };
    let mut open: BTreeMap<&str, PathBuf> = BTreeMap::new();
    let mut steps = Vec::new();
    for line in trace.lines().filter(|line| !line.contains(" = -1 ")) {
        // `PID call(arguments) = result`
        let Some((call, rest)) = line.split_once('(') else { continue };
        let Some((arguments, result)) = rest.rsplit_once(") ") else { continue };
        let result = result.trim_start_matches(['=', ' ']);
        let paths = paths(arguments, &open);
        let step = match call.rsplit(' ').next().unwrap() {
            "fsync" | "fdatasync" => format!("flush {}", show(&open[arguments])),
            "openat" => {
                open.insert(result, paths[0].clone());
                if !arguments.contains("O_CREAT") {
                    continue;
                }
                format!("create {}", show(&paths[0]))
            }
            "mkdir" | "mkdirat" => format!("folder {}", show(&paths[0])),
            _ => format!("rename {} {}", show(&paths[0]), show(&paths[1])),
        };
        steps.push(step);
    }
    steps
}

/// The paths among the arguments of a call, each with the open folder before it: `9, "name"`.
fn paths(arguments: &str, open: &BTreeMap<&str, PathBuf>) -> Vec<PathBuf> {
    let quoted: Vec<&str> = arguments.split('"').collect();
    let path = |pair: &[&str]| {
        let folder = pair[0].trim_end_matches(", ").rsplit(", ").next().unwrap();
        let folder = open.get(folder).map(PathBuf::as_path).unwrap_or(Path::new(""));
        folder.join(pair[1]).components().collect()
    };
    quoted.chunks_exact(2).map(path).collect()
}

const REPLACED: [&str; 4] =
    ["create TEMPORARY", "flush TEMPORARY", "rename TEMPORARY file", "flush ."];

#[test]
fn content_is_flushed_before_the_rename_and_the_folder_after_it() {
    let workspace = Workspace::new();
    let write = json!({"path": "file", "content": "new"});
    check_steps(&workspace, "file_write", write.clone(), &REPLACED);
    check_steps(&workspace, "file_write", write, &REPLACED);
    let edit = json!({"path": "file", "old_string": "new", "new_string": "newer"});
    check_steps(&workspace, "file_edit", edit, &REPLACED);
    assert_eq!(workspace.read_text("file"), "newer");
}

#[test]
fn new_folders_are_flushed_into_their_parents() {
    let workspace = Workspace::new();
    let write = json!({"path": "a/b/file", "content": "new"});
    let steps = [
        "folder a",
        "flush .",
        "folder a/b",
        "flush a",
        "create TEMPORARY",
        "flush TEMPORARY",
        "rename TEMPORARY a/b/file",
        "flush a/b",
    ];
    check_steps(&workspace, "file_write", write, &steps);
}

/// A temporary file is beside its target: a rename across file systems would not be atomic.
#[test]
fn the_temporary_file_is_beside_the_target_of_a_link() {
    let workspace = Workspace::new();
    workspace.write("folder/file", "old").link("link", "folder/file");
    let write = json!({"path": "link", "content": "new"});
    let steps =
        ["create TEMPORARY", "flush TEMPORARY", "rename TEMPORARY folder/file", "flush folder"];
    check_steps(&workspace, "file_write", write, &steps);
}
