//! What a sandbox adds to the shortest command, each kind beside a command without one in the same run.
//!
//! `cargo bench --bench sandbox` prints a table.
#![allow(clippy::print_stdout, reason = "a bench prints")]
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on fails")]
#![allow(missing_docs, reason = "nobody links against a bench")]

mod home;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_tools::{
    Commands, Context, Dispatcher, OutputSize, Root, Sandbox, SandboxKind, Work, built_in,
    secret_places,
};
use tokio_util::sync::CancellationToken;

const TREE: &str = "work/tree";
const ROUNDS: usize = 40;
/// A model takes longer than this between two commands.
const PAUSE: Duration = Duration::from_millis(20);
const KINDS: [Option<SandboxKind>; 3] =
    [None, Some(SandboxKind::Landlock), Some(SandboxKind::Bubblewrap)];
/// Which command of a process it is.
const WHICH: [&str; 3] = ["the first", "one after a pause", "one at once"];

fn main() {
    // `cargo test --benches` runs this with another flag: that it builds is enough there.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut times = [const { [const { Vec::new() }; 3] }; 3];
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        home::furnish(folder.path());
        fs::create_dir_all(folder.path().join(TREE)).unwrap();
        for _ in 0..ROUNDS {
            // One after the other, so that what else the machine does hits all of them.
            for (kind, times) in KINDS.into_iter().zip(&mut times) {
                for (time, times) in three_commands(folder.path(), kind).await.iter().zip(times) {
                    times.push(*time);
                }
            }
        }
    });
    println!("| `bash -c true` | sandbox | median ms | fastest ms | added to the median |");
    println!("| --- | --- | --- | --- | --- |");
    for (which, name) in WHICH.into_iter().enumerate() {
        let mut without = None;
        for (kind, times) in KINDS.into_iter().zip(&mut times) {
            let times = &mut times[which];
            times.sort();
            let milliseconds = |time: Duration| time.as_secs_f64() * 1_000.0;
            let (median, fastest) = (milliseconds(times[ROUNDS / 2]), milliseconds(times[0]));
            let added = median - *without.get_or_insert(median);
            let kind = kind.map_or("none".to_owned(), |kind| kind.to_string());
            println!("| {name} | {kind} | {median:.1} | {fastest:.1} | {added:.1} |");
        }
    }
}

/// How long each of [`WHICH`] takes, in a process of their own.
async fn three_commands(home: &Path, kind: Option<SandboxKind>) -> [Duration; 3] {
    let path = ("PATH".into(), "/usr/bin:/bin".into());
    let program = Path::new(env!("CARGO_BIN_EXE_ikigai"));
    let quarantine = home.join("quarantine");
    let commands = Commands::new(program, OsStr::new("__watchdog"), vec![path]);
    let commands = Arc::new(commands.with_quarantine(quarantine));
    let context = context(&commands, home, kind);
    let first = run(&context).await;
    tokio::time::sleep(PAUSE).await;
    let times = [first, run(&context).await, run(&context).await];
    commands.close().await;
    times
}

fn context(commands: &Arc<Commands>, home: &Path, kind: Option<SandboxKind>) -> Context {
    let size = OutputSize::new(10_000).unwrap();
    let tree = home.join(TREE);
    let context = Context::new(&tree, size, Arc::clone(commands), CancellationToken::new());
    let Some(kind) = kind else { return context };
    // All of it lies among the temporary files of others, which are not to matter.
    let hidden = [secret_places(home), vec![std::env::temp_dir()]].concat();
    context.with_sandbox(Arc::new(Sandbox {
        write: vec![Root::open(&tree).expect("the tree is there")],
        read: vec![Root::open(home).expect("the home is there")],
        unprotected: Vec::new(),
        unix_sockets: false,
        hidden,
        network: false,
        kind: Some(kind),
    }))
}

async fn run(context: &Context) -> Duration {
    let dispatcher = Dispatcher::<()>::new(built_in());
    let call = dispatcher.dispatch("bash", br#"{"command":"true"}"#).expect("it is understood");
    let Work::Executor(executor) = call.work() else { unreachable!("bash is no step") };
    let started = Instant::now();
    let result = executor.run(context).await.result.to_string();
    let took = started.elapsed();
    assert!(result.contains(r#""exit_code":0"#), "{result}");
    took
}
