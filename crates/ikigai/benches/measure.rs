//! One run of a program: how long it took, how much it worked, how much memory it had.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a run took.
pub(crate) struct Measure {
    pub(crate) wall: Duration,
    /// In the program and in the children that it waited for.
    #[allow(dead_code, reason = "not every bench shows it")]
    pub(crate) cpu: Duration,
    pub(crate) peak_kb: i64,
}

/// Runs a program to its end. What it prints is read and forgotten.
pub(crate) fn run(command: &mut Command) -> Measure {
    let started = Instant::now();
    #[expect(clippy::zombie_processes, reason = "wait_for_usage waits for it")]
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut output = child.stdout.take().expect("it is piped");
    let mut sink = vec![0; 1024 * 1024];
    while output.read(&mut sink).is_ok_and(|count| count > 0) {}
    let usage = wait_for_usage(child.id());
    let time = |time: libc::timeval| {
        Duration::from_micros(u64::try_from(time.tv_sec * 1_000_000 + time.tv_usec).unwrap_or(0))
    };
    let cpu = time(usage.ru_utime) + time(usage.ru_stime);
    Measure { wall: started.elapsed(), cpu, peak_kb: usage.ru_maxrss }
}

/// Waits for a child's end, and returns what it used. The standard library waits without asking for that.
#[allow(unsafe_code, reason = "wait4 has no safe form anywhere in the tree")]
fn wait_for_usage(pid: u32) -> libc::rusage {
    let mut status = 0;
    // SAFETY: `rusage` is plain data for which zeroes are valid, and both pointers live through the call.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::wait4(pid.cast_signed(), &raw mut status, 0, &raw mut usage);
        usage
    }
}
