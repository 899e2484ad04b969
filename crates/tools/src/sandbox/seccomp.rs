//! Which system calls a command may not make.
//!
//! What is listed here is what everyday programs do without, and what either leads around the other walls
//! or has a history of holes in the kernel. Everything else is allowed: a list of what is allowed would
//! break programs with every new kernel.
//!
//! The calls of other architectures end the process; those of x32 are all refused.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::Kind;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Steps of such a program.
const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
/// Where a filter sees the number of a call.
const NUMBER: u32 = 0;

/// Calls that are refused with any arguments.
const REFUSED: [i64; 36] = [
    // New ground under the walls: namespaces and mounts.
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // A file by its number instead of its path.
    libc::SYS_open_by_handle_at,
    // Keys of the session.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Wide doors into the kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_syslog,
    // The machine as a whole.
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

/// Refused where other processes of the user are in sight.
const TRACING: [i64; 4] =
    [libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_kcmp];

/// Memory, semaphores and queues that processes share by a number. Refused where they are those of all processes.
const SYSTEM_V: [i64; 12] = [
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

/// As if the kernel were older: programs have another way then. The flags of `clone3` lie in memory,
/// where a filter cannot look.
const UNKNOWN: [i64; 4] = [
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Typing into a terminal, and into a console. The type of libc's constants differs between its kinds.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541C;

/// The program that the kernel runs at every call.
pub(super) fn filter(kind: Kind, network: bool) -> io::Result<BpfProgram> {
    let mut whole = without_x32();
    let by_arguments =
        [(libc::EPERM, by_arguments(kind)?), (libc::EAFNOSUPPORT, sockets(kind, network)?)];
    for (error, rules) in by_arguments {
        whole.extend(part(error, rules)?);
        // Behind the last call of a part comes one step that allows: the next part takes its place.
        whole.pop();
    }
    let of_all = match kind {
        Kind::Bubblewrap => Vec::new(),
        Kind::Landlock => [&TRACING[..], &SYSTEM_V].concat(),
    };
    whole.extend(refuse(libc::EPERM, &[&REFUSED, &of_all[..]].concat()));
    whole.extend(refuse(libc::ENOSYS, &UNKNOWN));
    whole.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    Ok(whole)
}

/// Refuses up to 256 calls, whatever their arguments are. One step for each: the kernel goes through all of them for
/// every number there is before it takes a filter.
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

/// Calls that are refused with some arguments.
fn by_arguments(kind: Kind) -> io::Result<Rules> {
    let mut rules = Rules::new();
    if kind == Kind::Landlock {
        // The limits of others; zero is the process itself.
        rules.insert(libc::SYS_prlimit64, vec![all([(0, SeccompCmpOp::Ne, 0)])?]);
    }
    let new_user = libc::CLONE_NEWUSER as u64;
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        rules.insert(call, vec![all([(0, SeccompCmpOp::MaskedEq(new_user), new_user)])?]);
    }
    let typing = [TIOCSTI, TIOCLINUX].map(|request| all([(1, SeccompCmpOp::Eq, request)]));
    rules.insert(libc::SYS_ioctl, typing.into_iter().collect::<io::Result<_>>()?);
    Ok(rules)
}

/// Bubblewrap gives a network of its own, and Unix sockets by which services are not in sight; what is
/// refused there are families that know no namespaces or that hardly anybody needs.
///
/// Without it a filter is all there is, and it cannot see to whom a Unix socket connects. So there are
/// none, only pairs that are connected from the start, and none of those that can send to an address.
fn sockets(kind: Kind, network: bool) -> io::Result<Rules> {
    let families: &[i32] = match (kind, network) {
        (Kind::Bubblewrap, _) => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        (Kind::Landlock, true) => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        (Kind::Landlock, false) => &[],
    };
    let others = families.iter().map(|family| (0, SeccompCmpOp::Ne, *family as u64));
    let mut rules = Rules::new();
    rules.insert(
        libc::SYS_socket,
        if families.is_empty() { Vec::new() } else { vec![all(others)?] },
    );
    if kind == Kind::Landlock {
        const TYPE: u64 = 0xf;
        let addressed = [libc::SOCK_DGRAM, libc::SOCK_RAW]
            .map(|kind| all([(1, SeccompCmpOp::MaskedEq(TYPE), kind as u64)]));
        let mut pairs = addressed.into_iter().collect::<io::Result<Vec<_>>>()?;
        pairs.push(all([(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64)])?);
        rules.insert(libc::SYS_socketpair, pairs);
    }
    Ok(rules)
}

/// A rule that holds when all comparisons of an argument, by its index, hold.
fn all(comparisons: impl IntoIterator<Item = (u8, SeccompCmpOp, u64)>) -> io::Result<SeccompRule> {
    let conditions = comparisons.into_iter().map(|(index, comparison, value)| {
        // The kernel takes these arguments as 32 bits; what stands above them must not matter.
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, comparison, value)
    });
    let conditions = conditions.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
    SeccompRule::new(conditions).map_err(io::Error::other)
}

/// Refuses all calls of x32, the other numbers by which a program of x86-64 can make the same calls: hardly
/// any system has programs of that kind. Rules for each of them would make the filter twice as long, and
/// the kernel goes through all of it for every number there is before it takes it.
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

/// A comparison goes on behind `jt` more steps when it holds, else behind `jf`.
fn step(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// As `bwrap` takes it.
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

    use super::{Kind, REFUSED, SYSTEM_V, TRACING, UNKNOWN, filter};

    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;

    /// What the filter makes of a call on this machine, as the kernel would run it.
    fn verdict(program: &[sock_filter], call: i64, arguments: [u64; 2]) -> u32 {
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
            let program = filter(kind, network).unwrap();
            for call in 0..1_000 {
                let reaches_others = TRACING.contains(&call) || SYSTEM_V.contains(&call);
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
                let found = verdict(&program, call, [family as u64, 1]);
                assert_eq!(found, expected, "{kind}, call {call}");
            }
        }
    }

    #[test]
    fn some_calls_are_refused_by_their_arguments() {
        let program = filter(Kind::Landlock, false).unwrap();
        let check = |call, arguments, expected: Option<i32>| {
            let expected = expected.map_or(ALLOWED, refused_with);
            assert_eq!(verdict(&program, call, arguments), expected, "{call} {arguments:?}");
        };
        let new_user = libc::CLONE_NEWUSER as u64;
        let above = 1 << 32;
        check(libc::SYS_unshare, [new_user | 1, 0], Some(libc::EPERM));
        check(libc::SYS_clone, [new_user | above, 0], Some(libc::EPERM));
        check(libc::SYS_ioctl, [0, super::TIOCSTI | above], Some(libc::EPERM));
        check(libc::SYS_ioctl, [0, super::TIOCLINUX], Some(libc::EPERM));
        check(libc::SYS_prlimit64, [7, 0], Some(libc::EPERM));
        check(libc::SYS_socket, [libc::AF_UNIX as u64, 1], Some(libc::EAFNOSUPPORT));
        check(libc::SYS_socketpair, [libc::AF_UNIX as u64, 2], Some(libc::EAFNOSUPPORT));
        check(libc::SYS_socketpair, [libc::AF_UNIX as u64, 1 | 0x800], None);
        check(libc::SYS_unshare, [0x2_0000, 0], None);
    }
}
