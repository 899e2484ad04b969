//! What a sandbox adds to the shortest command, each kind beside a command without one in the same run.
//!
//! `cargo bench --bench sandbox` prints a table.
#![allow(clippy::print_stdout, reason = "a bench prints")]
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on fails")]
#![allow(missing_docs, reason = "nobody links against a bench")]

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ikigai_tools::{
    Commands, Context, Dispatcher, OutputSize, Prepared, Sandbox, SandboxKind, secret_places,
};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 30;

fn main() {
    // `cargo test --benches` runs this with another flag: that it builds is enough there.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let path = ("PATH".into(), "/usr/bin:/bin".into());
        let program = Path::new(env!("CARGO_BIN_EXE_ikigai"));
        let commands = Arc::new(Commands::new(program, OsStr::new("__watchdog"), vec![path]));
        let folder = tempfile::tempdir().unwrap();
        let kinds = [None, Some(SandboxKind::Bubblewrap), Some(SandboxKind::Landlock)];
        let contexts = kinds.map(|kind| context(&commands, folder.path(), kind));
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            // One after the other, so that what else the machine does hits all of them.
            for (context, times) in contexts.iter().zip(&mut times) {
                times.push(run(context).await);
            }
        }
        commands.close().await;
        println!("| `bash -c true` | median ms | fastest ms |\n| --- | --- | --- |");
        for (kind, mut times) in kinds.into_iter().zip(times) {
            times.sort();
            let milliseconds = |time: Duration| time.as_secs_f64() * 1_000.0;
            let name = kind.map_or("no sandbox".to_owned(), |kind| kind.to_string());
            let (median, fastest) = (milliseconds(times[ROUNDS / 2]), milliseconds(times[0]));
            println!("| {name} | {median:.1} | {fastest:.1} |");
        }
    });
}

fn context(commands: &Arc<Commands>, folder: &Path, kind: Option<SandboxKind>) -> Context {
    let size = OutputSize::new(10_000).unwrap();
    let context = Context::new(folder, size, Arc::clone(commands), CancellationToken::new());
    let Some(kind) = kind else { return context };
    context.with_sandbox(Arc::new(Sandbox {
        write: vec![folder.to_owned()],
        hidden: secret_places(folder),
        kind: Some(kind),
        ..Sandbox::default()
    }))
}

async fn run(context: &Context) -> Duration {
    let dispatcher = Dispatcher::<()>::new(Vec::new());
    let Ok(Prepared::Call(call)) = dispatcher.dispatch("bash", br#"{"command":"true"}"#) else {
        unreachable!("the arguments are right");
    };
    let started = Instant::now();
    let result = call.run(context).await.result.to_string();
    let took = started.elapsed();
    assert!(result.contains(r#""exit_code":0"#), "{result}");
    took
}
