//! Ways around the file system and the network: other interfaces of the kernel, and other
//! processes.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use ikigai_tools::SandboxKind;

use crate::support::sandboxed::{Isolation, REACHED, in_each_sandbox, in_sandbox, python};
use crate::support::skip;

#[test]
fn a_process_outside_is_neither_signalled_nor_traced() {
    in_each_sandbox(|fixture| {
        let pid = Victim::new();
        let pid = pid.0.id();
        for attempt in [
            format!("kill -0 {pid}"),
            format!("kill -CONT {pid}"),
            format!("kill -CONT -- -{pid}"),
            format!("ls /proc/{pid}/root/ >/dev/null"),
            format!("ls /proc/{pid}/cwd/ >/dev/null"),
            format!("ls -l /proc/{pid}/fd/0 >/dev/null"),
            format!("cat /proc/{pid}/fd/0 >/dev/null"),
            format!("ls /proc/{pid}/map_files >/dev/null"),
        ] {
            fixture.refuses(&format!("{attempt} && echo {REACHED}"));
        }
        let calls = "import ctypes, os, signal\nlibc = ctypes.CDLL(None)";
        for attempt in [
            format!("if libc.ptrace(16, {pid}, None, None) == 0: print('{REACHED}')"),
            format!("open('/proc/{pid}/mem', 'rb') and print('{REACHED}')"),
            format!(
                "signal.pidfd_send_signal(os.pidfd_open({pid}), signal.SIGCONT)
print('{REACHED}')"
            ),
        ] {
            fixture.refuses(&python(&format!("{calls}\n{attempt}")));
        }
    });
}

/// It waits for all others, and the watchdog relies on that. A command that took it over could leave its group, and outlive
/// ikigai.
#[test]
fn the_first_process_of_a_sandbox_is_not_traced_and_debuggers_work() {
    in_sandbox(SandboxKind::Bubblewrap, |fixture| {
        let attempt = python(
            "import ctypes, subprocess
libc = ctypes.CDLL(None, use_errno=True)
seize = lambda pid: (libc.ptrace(0x4206, pid, None, None), ctypes.get_errno())
print(seize(1))
try: open('/proc/1/mem', 'r+b')
except OSError as error: print(error.errno)
child = subprocess.Popen(['sleep', '1000'])
print(seize(child.pid)[0])
child.kill()",
        );
        let (not_permitted, read_only) = ("(-1, 1)", 30);
        assert_eq!(fixture.prints(&attempt), format!("{not_permitted}\n{read_only}\n0\n"));
    });
}

/// The keys are in the environment and memory of the program, which is the parent of the watchdog.
#[test]
fn the_environment_of_the_program_and_its_watchdog_is_not_read() {
    in_each_sandbox(|fixture| {
        let victim = Victim::new();
        let own = std::process::id();
        for pid in [victim.0.id().to_string(), own.to_string()] {
            fixture.refuses(&format!("cat /proc/{pid}/environ >/dev/null && echo {REACHED}"));
            fixture.refuses(&format!("head -c1 /proc/{pid}/maps >/dev/null && echo {REACHED}"));
        }
        // Everything that is visible, including the watchdog.
        let all = "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done 2>/dev/null";
        let seen = fixture
            .bash(&format!("{all} | grep -c ^CARGO_MANIFEST_DIR; true"), Isolation::Sandboxed);
        assert_eq!(seen["data"]["output"], "0\n", "{}", fixture.kind);
    });
}

/// A folder is constantly replaced with a link while a command writes into it.
#[test]
fn a_folder_that_becomes_a_link_leads_nowhere() {
    in_each_sandbox(|fixture| {
        let outside = fixture.root().join("outside");
        let race = format!(
            "mkdir -p real; ln -sfn {} link; mkdir -p way
             (for i in $(seq 300); do mv -T way aside; mv -T link way; mv -T way link; mv -T aside way; done) &
             for i in $(seq 2000); do echo new > way/file; done; wait; true",
            outside.display()
        );
        fixture.bash(&format!("{{ {race}; }} 2>/dev/null"), Isolation::Sandboxed);
        let after = std::fs::read_to_string(outside.join("file")).unwrap();
        assert_eq!(after, "old\n", "{}", fixture.kind);
    });
}

#[test]
fn there_is_no_io_uring() {
    in_each_sandbox(|fixture| {
        let attempt = python(
            "import ctypes
libc = ctypes.CDLL(None, use_errno=True)
parameters = ctypes.create_string_buffer(120)
found = libc.syscall(425, 4, parameters)
print(found, ctypes.get_errno())",
        );
        const NO_SUCH_CALL: &str = "-1 38\n";
        assert_eq!(fixture.prints(&attempt), NO_SUCH_CALL, "{}", fixture.kind);
    });
}

#[cfg(target_arch = "x86_64")]
#[test]
fn wide_doors_into_the_kernel_are_shut() {
    in_each_sandbox(|fixture| {
        for (call, name) in [
            (250, "keyctl"),
            (298, "perf_event_open"),
            (304, "open_by_handle_at"),
            (321, "bpf"),
            (323, "userfaultfd"),
            (438, "pidfd_getfd"),
        ] {
            let attempt = python(&format!(
                "import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall({call}, 0, 0, 0, 0, 0), ctypes.get_errno())"
            ));
            assert_eq!(fixture.prints(&attempt), "-1 1\n", "{}: {name}", fixture.kind);
        }
    });
}

/// A process that opens a leased file has to wait for most of a minute.
#[test]
fn no_lease_is_taken_on_a_file_of_the_user() {
    let attempt = "import fcntl, os\nfcntl.fcntl(os.open('../outside/file', os.O_RDONLY), 1024, fcntl.F_RDLCK)\nprint('reached')";
    in_each_sandbox(|fixture| {
        assert!(fixture.try_to(&python(attempt), Isolation::Unconfined), "no attempt");
        assert!(!fixture.try_to(&python(attempt), Isolation::Sandboxed), "{}", fixture.kind);
    });
}

/// Landlock has no rule for these.
#[test]
fn bubblewrap_shows_no_process_and_keeps_modes_and_times() {
    in_each_sandbox(|fixture| {
        if fixture.kind != SandboxKind::Bubblewrap {
            return;
        }
        let victim = Victim::new();
        for attempt in [
            format!("test -e /proc/{}", victim.0.id()),
            "chmod 600 ../outside/file".to_owned(),
            "touch -d 2001-01-01 ../outside/file".to_owned(),
            "chown $(id -u) ../outside/file".to_owned(),
        ] {
            fixture.refuses(&format!("{attempt} && echo {REACHED}"));
        }
    });
}

/// The alternative numbers of the same calls on x86-64; most kernels do not support them.
#[cfg(target_arch = "x86_64")]
#[test]
fn calls_by_their_other_numbers_are_refused() {
    in_each_sandbox(|fixture| {
        let attempt = python(
            "import ctypes
libc = ctypes.CDLL(None, use_errno=True)
x32 = 0x40000000
for call in [41, 165, 514, 521]:
    print(libc.syscall(x32 | call, 2, 1, 0), ctypes.get_errno())",
        );
        assert_eq!(fixture.prints(&attempt), "-1 38\n".repeat(4), "{}", fixture.kind);
    });
}

/// The filter checks the request before the kernel checks whether it is a terminal.
#[test]
fn nothing_is_typed_into_a_terminal() {
    in_each_sandbox(|fixture| {
        let attempt = python(
            "import errno, fcntl
for request in [0x5412, 0x541C, 0x100005412]:
    try: fcntl.ioctl(0, request, b'x')
    except OSError as error: print(errno.errorcode[error.errno])",
        );
        let without = fixture.bash(&attempt, Isolation::Unconfined);
        assert_eq!(without["data"]["output"], "ENOTTY\n".repeat(3));
        assert_eq!(fixture.prints(&attempt), "EPERM\n".repeat(3), "{}", fixture.kind);
    });
}

/// A process of the test, which ends with it.
struct Victim(Child);

impl Victim {
    fn new() -> Victim {
        let mut child = Command::new("bash");
        child.args(["-c", "echo; exec sleep 1000"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child =
            std::os::unix::process::CommandExt::process_group(&mut child, 0).spawn().unwrap();
        let mut line = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        Victim(child)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is shared by number is shared with all processes, unless the sandbox has its own namespace.
#[test]
fn what_system_v_shares_outside_is_not_reached() {
    in_each_sandbox(|fixture| {
        let made = fixture.bash("ipcmk -M 64 -p 600 | grep -o '[0-9]*$'", Isolation::Unconfined);
        let Ok(id) = made["data"]["output"].as_str().unwrap().trim().parse::<u32>() else {
            return skip(&format!("ipcmk does not work here: {made}"));
        };
        fixture.refuses(&format!("ipcrm -m {id} && echo {REACHED}"));
    });
}
