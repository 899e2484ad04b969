//! `ikigai mail send` as a whole program: alone, and from 8 processes at once on one database.
//!
//! `cargo bench --bench mail` prints a table. The database is in the target folder, so that the disk is a
//! real one.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench prints, and starts programs"
)]
#![allow(missing_docs, reason = "nobody links against a bench")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const IKIGAI: &str = env!("CARGO_BIN_EXE_ikigai");

fn main() {
    // `cargo test --benches` runs this with another flag: that it builds is enough there.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let folder = fresh_folder();
    run(&folder, &["agents", "add"]);
    println!("| what | median ms | p99 ms | slowest ms |");
    println!("| --- | --- | --- | --- |");
    row("`true`", times(300, || finish(Command::new("true").spawn())));
    row("`ikigai --version`", times(300, || run(&folder, &["--version"])));
    row("`ikigai mail send`, alone", times(300, || send(&folder)));
    run(&folder, &["agents", "add"]);
    let all: Vec<Duration> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..8).map(|_| scope.spawn(|| times(60, || send(&folder)))).collect();
        senders.into_iter().flat_map(|sender| sender.join().expect("it ends")).collect()
    });
    row("`ikigai mail send`, 8 processes at a time", all);
}

fn send(folder: &Path) {
    run(folder, &["mail", "send", "1/", "a short message to another agent"]);
}

fn run(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new(IKIGAI);
    command.args(arguments).current_dir(folder).env("HOME", folder).env_remove("XDG_DATA_HOME");
    command.env(
        "IKIGAI_DATABASE_URL",
        format!("sqlite://{}/.local/share/ikigai/bench.db", folder.display()),
    );
    finish(command.stdout(Stdio::null()).spawn());
}

fn finish(child: std::io::Result<std::process::Child>) {
    let status = child.expect("it starts").wait().expect("it ends");
    assert!(status.success(), "{status}");
}

fn times(runs: usize, mut work: impl FnMut()) -> Vec<Duration> {
    (0..runs)
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed()
        })
        .collect()
}

fn row(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (median, p99) = (ms(times[times.len() / 2]), ms(times[times.len() * 99 / 100]));
    println!("| {name} | {median:.2} | {p99:.2} | {:.2} |", ms(times[times.len() - 1]));
}

fn fresh_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-mail");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}
