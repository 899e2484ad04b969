//! A real bash, with two programs in its `PATH` that record how they are run. Whatever it runs can
//! only write to a separate folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use landlock::{
    ABI, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, path_beneath_rules,
};
use tempfile::TempDir;

/// What `good` and `bad` do: they record their name, the number of arguments, and the arguments.
const PROGRAM: &str =
    "#!/bin/sh\nprintf '%s\\0' \"${0##*/}\" \"$#\" \"$@\" >> \"$RECORD\"\nexit $EXIT_CODE\n";

/// Runs a command and waits for everything it starts, also in the background: `cat` ends when all
/// writers of the pipe are gone. A command that never ends proves nothing, and is killed with its
/// group.
const UNTIL_ALL_ENDED: &str = "/bin/bash -c \"$1\" 2>&1 | /bin/cat";

pub(super) struct RealBash {
    folder: TempDir,
    runs: AtomicU64,
}

/// The effects of a command.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// The programs that ran, each with its arguments.
    pub(super) programs: Vec<Vec<String>>,
    /// The files that were created.
    pub(super) files: Vec<String>,
}

impl Trace {
    pub(super) fn ran(&self, name: &str) -> bool {
        self.programs.iter().any(|program| program[0] == name)
    }
}

impl RealBash {
    pub(super) fn new() -> RealBash {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        for name in ["good", "bad"] {
            let path = folder.path().join("bin").join(name);
            fs::write(&path, PROGRAM).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        RealBash { folder, runs: AtomicU64::new(0) }
    }

    /// How many commands were run.
    pub(super) fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// Runs a command in an empty folder; `good` and `bad` end with `exit_code`.
    pub(super) fn run(&self, command: &str, exit_code: u8) -> Trace {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        // A separate folder, since a command may leave processes running.
        let own = self.folder.path().join(run.to_string());
        let (work, record) = (own.join("work"), own.join("record"));
        fs::create_dir_all(&work).unwrap();
        let mut bash = Command::new("/usr/bin/timeout");
        bash.args(["-s", "KILL", "10", "/bin/sh", "-c", UNTIL_ALL_ENDED, "sh", command]);
        bash.current_dir(&work).env_clear();
        bash.env("PATH", self.folder.path().join("bin")).env("HOME", &own).env("TMPDIR", &own);
        bash.env("RECORD", &record).env("EXIT_CODE", exit_code.to_string());
        bash.env("LC_ALL", if run.is_multiple_of(2) { "C" } else { "C.UTF-8" });
        bash.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        thread::scope(|scope| scope.spawn(|| run_confined(&mut bash, &own)).join().unwrap());
        let files = fs::read_dir(&work).unwrap();
        let files = files.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        let trace = Trace {
            programs: programs(&fs::read(&record).unwrap_or_default()),
            files: files.collect(),
        };
        // A process that redirects its output may still run and continue to write there.
        drop(fs::remove_dir_all(&own));
        trace
    }
}

/// Runs a command that can only write to `folder`. This restricts the current thread for good.
fn run_confined(command: &mut Command, folder: &Path) {
    let writing = AccessFs::from_write(ABI::V3);
    let ruleset = Ruleset::default().handle_access(writing).unwrap().create().unwrap();
    let ruleset = ruleset.add_rules(path_beneath_rules([folder], writing)).unwrap();
    let null = path_beneath_rules(["/dev/null"], AccessFs::WriteFile);
    let status = ruleset.add_rules(null).unwrap().restrict_self().unwrap();
    // Random commands, possibly as root, must not run without it.
    assert_ne!(status.ruleset, RulesetStatus::NotEnforced, "landlock is needed");
    command.status().unwrap();
}

fn programs(record: &[u8]) -> Vec<Vec<String>> {
    let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    let mut fields = record.split(|byte| *byte == 0).map(text);
    let mut programs = Vec::new();
    while let Some(name) = fields.next().filter(|name| !name.is_empty()) {
        let count: usize = fields.next().unwrap().parse().unwrap();
        programs.push(std::iter::once(name).chain(fields.by_ref().take(count)).collect());
    }
    programs
}
