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
    SeccompRule, TargetArch,
};

use super::Kind;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

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
    let errors = [
        (libc::EPERM, refused(kind)?),
        (libc::ENOSYS, UNKNOWN.map(|call| (call, Vec::new())).into()),
        (libc::EAFNOSUPPORT, sockets(kind, network)?),
    ];
    let mut whole = BpfProgram::new();
    for (error, rules) in errors {
        // Behind the last call of a part comes one instruction that allows: the next part takes its place.
        whole.pop();
        whole.extend(part(error, rules)?);
    }
    Ok([without_x32(), whole].concat())
}

fn part(error: i32, rules: Rules) -> io::Result<BpfProgram> {
    let target = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let refusal = SeccompAction::Errno(error.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, target);
    filter.and_then(BpfProgram::try_from).map_err(io::Error::other)
}

fn refused(kind: Kind) -> io::Result<Rules> {
    let mut rules: Rules = REFUSED.map(|call| (call, Vec::new())).into();
    if kind == Kind::Landlock {
        rules.extend(TRACING.map(|call| (call, Vec::new())));
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
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    if !cfg!(target_arch = "x86_64") {
        return BpfProgram::new();
    }
    let step = |code, jf, k| seccompiler::sock_filter { code, jt: 0, jf, k };
    let refusal = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    // The number is the first word of what a filter sees.
    vec![step(LOAD_WORD, 0, 0), step(JUMP_IF_AT_LEAST, 1, X32), step(RETURN, 0, refusal)]
}

/// As `bwrap` takes it.
pub(super) fn bytes(program: &BpfProgram) -> Vec<u8> {
    let instruction = |step: &seccompiler::sock_filter| {
        let [code, number] = [step.code.to_ne_bytes().to_vec(), step.k.to_ne_bytes().to_vec()];
        [code, vec![step.jt, step.jf], number].concat()
    };
    program.iter().flat_map(instruction).collect()
}
