//! The system calls that a command may not make.
//!
//! The list contains calls that ordinary programs do not need and that either bypass other parts of
//! the sandbox or have a history of kernel vulnerabilities. All others are allowed: an allowlist
//! would break programs with every new kernel.
//!
//! Calls of other architectures kill the process; those of x32 are all refused.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::{Kind, Sandbox};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Opcodes of BPF programs.
const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
/// The offset of the system call number in the filter's input.
const NUMBER: u32 = 0;

/// The same on every architecture; the crate lacks it.
const OPEN_TREE_ATTR: i64 = 467;

/// Refused whatever the arguments are.
const REFUSED: [i64; 37] = [
    // Namespaces and mounts, which could replace the sandbox.
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // Opens a file by handle instead of path.
    libc::SYS_open_by_handle_at,
    // The session's keyring.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Large attack surface in the kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_syslog,
    // Affects the whole machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_vhangup,
    libc::SYS_pidfd_getfd,
];

/// Refused where other processes of the user are visible.
const TRACING: [i64; 4] =
    [libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_kcmp];

/// The first process in a sandbox is of bubblewrap. The watchdog believes that it does nothing but wait for others, and that
/// it stays in its group, so no command may take it over. What else is in sight is the command's own: debuggers and leak
/// checkers trace that.
const FIRST_PROCESS: u64 = 1;
/// Calls that trace a process or write its memory, and the index of the argument that has its number.
const TRACING_BY_NUMBER: [(i64, u8); 3] =
    [(libc::SYS_ptrace, 1), (libc::SYS_process_vm_readv, 0), (libc::SYS_process_vm_writev, 0)];

/// Shared memory, semaphores and message queues, addressed by number or name. Refused where they
/// are shared with processes outside.
const SHARED: [i64; 14] = [
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmdt,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
];

/// Fail as on an older kernel, so that programs fall back. The flags of `clone3` and the mode of
/// `openat2` are in memory, which a filter cannot read.
const UNKNOWN: [i64; 5] = [
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Injecting terminal input, and console control. The types of libc's constants differ between C
/// libraries.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541C;

/// Creating, snapshotting, deleting and changing btrfs subvolumes, by ioctl type and number.
/// Landlock ignores them, and the contents of a read-only subvolume cannot be moved away.
const SUBVOLUMES: [u64; 8] = [0x9401, 0x940e, 0x940f, 0x9417, 0x9418, 0x941a, 0x943f, 0x9425];

/// Turning on fs-verity for a file, or encryption for an empty folder, by ioctl type and number. Both
/// only need a file that is open for reading, and cannot be undone.
const SEALING: [u64; 2] = [0x6685, 0x6613];

/// With a lease on a readable file of the user, a command could make other programs wait that open
/// the file, each for most of a minute.
const F_SETLEASE: u64 = 1024;

/// The same on every architecture; the crate lacks it on some.
const FCHMODAT2: i64 = 452;

/// Calls that set a file's mode: the index of the mode argument, and for calls that may also open
/// an existing file, the index of the flags.
#[cfg(target_arch = "x86_64")]
const MODES: [(i64, u8, Option<u8>); 9] = [
    (libc::SYS_chmod, 1, None),
    (libc::SYS_fchmod, 1, None),
    (libc::SYS_fchmodat, 2, None),
    (FCHMODAT2, 2, None),
    (libc::SYS_creat, 1, None),
    (libc::SYS_open, 2, Some(1)),
    (libc::SYS_openat, 3, Some(2)),
    (libc::SYS_mknod, 1, None),
    (libc::SYS_mknodat, 2, None),
];
#[cfg(not(target_arch = "x86_64"))]
const MODES: [(i64, u8, Option<u8>); 5] = [
    (libc::SYS_fchmod, 1, None),
    (libc::SYS_fchmodat, 2, None),
    (FCHMODAT2, 2, None),
    (libc::SYS_openat, 3, Some(2)),
    (libc::SYS_mknodat, 2, None),
];

/// Which sockets a command can create.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sockets {
    network: bool,
    unix: bool,
}

impl Sockets {
    pub(super) fn of(sandbox: &Sandbox) -> Sockets {
        Sockets { network: sandbox.network, unix: sandbox.unix_sockets }
    }
}

/// The BPF program that the kernel runs on every system call.
pub(super) fn filter(kind: Kind, sockets: Sockets) -> io::Result<BpfProgram> {
    let mut whole = without_x32();
    let by_arguments =
        [(libc::EPERM, by_arguments(kind)?), (libc::EAFNOSUPPORT, by_family(kind, sockets)?)];
    for (error, rules) in by_arguments {
        whole.extend(part(error, rules)?);
        // Each part ends with one instruction that allows the call; the next part replaces it.
        whole.pop();
    }
    let of_all = match kind {
        Kind::Bubblewrap => Vec::new(),
        Kind::Landlock => [&TRACING[..], &SHARED].concat(),
    };
    whole.extend(refuse(libc::EPERM, &[&REFUSED, &of_all[..]].concat()));
    whole.extend(refuse(libc::ENOSYS, &UNKNOWN));
    whole.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    Ok(whole)
}

/// Refuses up to 256 calls whatever their arguments are, with one instruction per call: before
/// accepting a filter, the kernel walks all of it for every system call number.
fn refuse(error: i32, calls: &[i64]) -> BpfProgram {
    let mut program = vec![step(LOAD_WORD, 0, 0, NUMBER)];
    let calls = calls.iter().enumerate().rev();
    program.extend(calls.map(|(left, call)| {
        let past_refusal = u8::from(left == 0);
        step(JUMP_IF_EQUAL, left as u8, past_refusal, *call as u32)
    }));
    program.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | error.cast_unsigned()));
    program
}

fn part(error: i32, rules: Rules) -> io::Result<BpfProgram> {
    let target = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let refusal = SeccompAction::Errno(error.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, target);
    filter.and_then(BpfProgram::try_from).map_err(io::Error::other)
}

/// Refused depending on the arguments.
fn by_arguments(kind: Kind) -> io::Result<Rules> {
    let mut rules = Rules::new();
    match kind {
        Kind::Bubblewrap => {
            for (call, process) in TRACING_BY_NUMBER {
                rules.insert(call, vec![all([(process, SeccompCmpOp::Eq, FIRST_PROCESS)])?]);
            }
        }
        Kind::Landlock => {
            // The limits of other processes; zero means the caller.
            rules.insert(libc::SYS_prlimit64, vec![all([(0, SeccompCmpOp::Ne, 0)])?]);
        }
    }
    let new_user = libc::CLONE_NEWUSER as u64;
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        rules.insert(call, vec![all([(0, SeccompCmpOp::MaskedEq(new_user), new_user)])?]);
    }
    for (call, mode, flags) in MODES {
        rules.insert(call, setting_user(mode, flags)?);
    }
    rules.insert(libc::SYS_fcntl, vec![all([(1, SeccompCmpOp::Eq, F_SETLEASE)])?]);
    let typing = [TIOCSTI, TIOCLINUX].map(|request| all([(1, SeccompCmpOp::Eq, request)]));
    let others = SUBVOLUMES.into_iter().chain(SEALING);
    let others = others.map(|request| all([(1, SeccompCmpOp::MaskedEq(0xffff), request)]));
    let requests = typing.into_iter().chain(others);
    rules.insert(libc::SYS_ioctl, requests.collect::<io::Result<_>>()?);
    Ok(rules)
}

/// A setuid or setgid file would pass on the command's rights to anyone who runs it later.
fn setting_user(mode: u8, flags: Option<u8>) -> io::Result<Vec<SeccompRule>> {
    let has = |index, bit: libc::c_int| {
        let bit = u64::from(bit.cast_unsigned());
        (index, SeccompCmpOp::MaskedEq(bit), bit)
    };
    let bits = [libc::S_ISUID, libc::S_ISGID].map(u32::cast_signed);
    // Without these flags the call takes no mode, and the argument may hold anything.
    let making = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];
    let rules = bits.into_iter().flat_map(|bit| match flags {
        None => vec![all([has(mode, bit)])],
        Some(flags) => making.map(|flag| all([has(flags, flag), has(mode, bit)])).into(),
    });
    rules.collect()
}

/// A filter cannot see where a Unix socket connects to. So only connected pairs are allowed, and of
/// types that cannot send to an address. Bubblewrap provides a private loopback; without it there
/// are no sockets at all. Families that ignore namespaces, or are rarely needed, are always
/// refused.
fn by_family(kind: Kind, sockets: Sockets) -> io::Result<Rules> {
    let mut families = Vec::new();
    if kind == Kind::Bubblewrap || sockets.network {
        families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    let has_unix = kind == Kind::Bubblewrap && sockets.unix;
    families.extend(has_unix.then_some(libc::AF_UNIX));
    let others = families.iter().map(|family| (0, SeccompCmpOp::Ne, *family as u64));
    let mut rules = Rules::new();
    rules.insert(
        libc::SYS_socket,
        if families.is_empty() { Vec::new() } else { vec![all(others)?] },
    );
    if !has_unix {
        const TYPE: u64 = 0xf;
        let addressed = [libc::SOCK_DGRAM, libc::SOCK_RAW]
            .map(|kind| all([(1, SeccompCmpOp::MaskedEq(TYPE), kind as u64)]));
        let mut pairs = addressed.into_iter().collect::<io::Result<Vec<_>>>()?;
        pairs.push(all([(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64)])?);
        rules.insert(libc::SYS_socketpair, pairs);
    }
    Ok(rules)
}

/// A rule that matches if all comparisons of arguments (by index) hold.
fn all(comparisons: impl IntoIterator<Item = (u8, SeccompCmpOp, u64)>) -> io::Result<SeccompRule> {
    let conditions = comparisons.into_iter().map(|(index, comparison, value)| {
        // The kernel reads these arguments as 32 bits, so the upper half must not matter.
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, comparison, value)
    });
    let conditions = conditions.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
    SeccompRule::new(conditions).map_err(io::Error::other)
}

/// Refuses all calls of x32, an alternative numbering of x86-64 system calls that hardly any system
/// uses. Separate rules for them would double the filter, and the kernel walks all of it for every
/// system call number before accepting it.
fn without_x32() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    if !cfg!(target_arch = "x86_64") {
        return BpfProgram::new();
    }
    let refusal = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    vec![
        step(LOAD_WORD, 0, 0, NUMBER),
        step(JUMP_IF_AT_LEAST, 0, 1, X32),
        step(RETURN, 0, 0, refusal),
    ]
}

/// A comparison skips `jt` instructions if it holds, and `jf` otherwise.
fn step(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// The encoding that `bwrap` expects.
pub(super) fn bytes(program: &BpfProgram) -> Vec<u8> {
    let instruction = |step: &sock_filter| {
        let [code, number] = [step.code.to_ne_bytes().to_vec(), step.k.to_ne_bytes().to_vec()];
        [code, vec![step.jt, step.jf], number].concat()
    };
    program.iter().flat_map(instruction).collect()
}

#[cfg(test)]
mod tests {
    use seccompiler::sock_filter;

    use super::{Kind, REFUSED, SHARED, Sockets, TRACING, UNKNOWN, filter};

    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;

    /// The filter's verdict on a call, computed as the kernel would.
    fn verdict(program: &[sock_filter], call: i64, arguments: [u64; 4]) -> u32 {
        let architecture: u32 =
            if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
        let mut data = [call as u32, architecture, 0, 0].to_vec();
        data.extend(arguments.iter().flat_map(|value| [*value as u32, (*value >> 32) as u32]));
        let (mut next, mut loaded) = (0, 0);
        loop {
            let step = &program[next];
            let jump = |holds: bool| usize::from(if holds { step.jt } else { step.jf });
            next += 1;
            match step.code {
                0x20 => loaded = data[step.k as usize / 4],
                0x54 => loaded &= step.k,
                0x05 => next += step.k as usize,
                0x15 => next += jump(loaded == step.k),
                0x25 => next += jump(loaded > step.k),
                0x35 => next += jump(loaded >= step.k),
                0x06 => return step.k,
                other => panic!("no such step: {other:#x}"),
            }
        }
    }

    fn refused_with(error: i32) -> u32 {
        libc::SECCOMP_RET_ERRNO | error.cast_unsigned()
    }

    #[test]
    fn calls_are_refused_as_they_are_listed_and_all_others_are_allowed() {
        for (kind, network) in [(Kind::Bubblewrap, false), (Kind::Landlock, true)] {
            let program = filter(kind, Sockets { network, unix: false }).unwrap();
            for call in 0..1_000 {
                let reaches_others = TRACING.contains(&call) || SHARED.contains(&call);
                let is_refused = reaches_others && kind == Kind::Landlock;
                let expected = if REFUSED.contains(&call) || is_refused {
                    refused_with(libc::EPERM)
                } else if UNKNOWN.contains(&call) {
                    refused_with(libc::ENOSYS)
                } else {
                    ALLOWED
                };
                let family = match call {
                    libc::SYS_socket => libc::AF_INET,
                    libc::SYS_socketpair => libc::AF_UNIX,
                    _ => 0,
                };
                // Not the first process.
                let second = if call == libc::SYS_ptrace { 2 } else { 1 };
                let found = verdict(&program, call, [family as u64, second, 0, 0]);
                assert_eq!(found, expected, "{kind}, call {call}");
            }
        }
    }

    #[track_caller]
    fn check(kind: Kind, unix: bool, call: i64, arguments: [u64; 4], expected: Option<i32>) {
        let program = filter(kind, Sockets { network: false, unix }).unwrap();
        let expected = expected.map_or(ALLOWED, refused_with);
        assert_eq!(verdict(&program, call, arguments), expected, "{kind} {call} {arguments:?}");
    }

    #[test]
    fn only_the_first_process_in_bubblewrap_is_not_traced() {
        for (process, expected) in
            [(1, Some(libc::EPERM)), (1 | 1 << 32, Some(libc::EPERM)), (2, None)]
        {
            let check = |call, arguments| check(Kind::Bubblewrap, false, call, arguments, expected);
            check(libc::SYS_ptrace, [16, process, 0, 0]);
            check(libc::SYS_process_vm_readv, [process, 0, 0, 0]);
            check(libc::SYS_process_vm_writev, [process, 0, 0, 0]);
        }
    }

    #[test]
    fn some_calls_are_refused_by_their_arguments() {
        let refused = Some(libc::EPERM);
        let check = |call, [first, second]: [u64; 2], expected| {
            check(Kind::Landlock, false, call, [first, second, 0, 0], expected);
        };
        let new_user = libc::CLONE_NEWUSER as u64;
        let above = 1 << 32;
        check(libc::SYS_unshare, [new_user | 1, 0], refused);
        check(libc::SYS_clone, [new_user | above, 0], refused);
        check(libc::SYS_ioctl, [0, super::TIOCSTI | above], refused);
        check(libc::SYS_ioctl, [0, super::TIOCLINUX], refused);
        check(libc::SYS_ioctl, [0, 0x5000_9417 | above], refused);
        check(libc::SYS_ioctl, [0, 0x4080_6685], refused);
        check(libc::SYS_fcntl, [0, super::F_SETLEASE | above], refused);
        check(libc::SYS_fcntl, [0, libc::F_SETLK as u64], None);
        // A copy that shares blocks (reflink).
        check(libc::SYS_ioctl, [0, 0x4004_9409], None);
        check(libc::SYS_prlimit64, [7, 0], refused);
        check(libc::SYS_unshare, [0x2_0000, 0], None);
    }

    #[test]
    fn unix_sockets_are_refused_but_for_connected_pairs() {
        let (refused, unix) = (Some(libc::EAFNOSUPPORT), libc::AF_UNIX as u64);
        for kind in Kind::ALL {
            check(kind, false, libc::SYS_socket, [unix, 1, 0, 0], refused);
            check(kind, false, libc::SYS_socketpair, [unix, 2, 0, 0], refused);
            check(kind, false, libc::SYS_socketpair, [unix, 1 | 0x800, 0, 0], None);
        }
        check(Kind::Bubblewrap, true, libc::SYS_socket, [unix, 1, 0, 0], None);
        check(Kind::Bubblewrap, true, libc::SYS_socketpair, [unix, 2, 0, 0], None);
        check(Kind::Landlock, true, libc::SYS_socket, [unix, 1, 0, 0], refused);
        check(Kind::Bubblewrap, false, libc::SYS_socket, [libc::AF_INET as u64, 1, 0, 0], None);
        check(Kind::Landlock, false, libc::SYS_socket, [libc::AF_INET as u64, 1, 0, 0], refused);
    }

    #[test]
    fn no_call_sets_the_bits_that_make_a_file_run_as_its_owner() {
        let (create, temporary) = (libc::O_CREAT as u64, libc::O_TMPFILE as u64);
        for kind in Kind::ALL {
            for bit in [0o4000, 0o2000] {
                let refused = |call, arguments| {
                    check(kind, false, call, arguments, Some(libc::EPERM));
                };
                refused(libc::SYS_fchmod, [3, 0o755 | bit, 0, 0]);
                refused(libc::SYS_fchmodat, [3, 0, 0o755 | bit, 0]);
                refused(super::FCHMODAT2, [3, 0, 0o755 | bit, 0]);
                refused(libc::SYS_openat, [3, 0, create, 0o755 | bit]);
                refused(libc::SYS_openat, [3, 0, temporary, 0o755 | bit]);
                refused(libc::SYS_mknodat, [3, 0, 0o100_755 | bit, 0]);
                check(kind, false, libc::SYS_openat, [3, 0, 0, bit], None);
            }
            check(kind, false, libc::SYS_fchmod, [3, 0o1777, 0, 0], None);
            check(kind, false, libc::SYS_openat, [3, 0, create, 0o777], None);
        }
    }
}
