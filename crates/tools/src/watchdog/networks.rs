//! Private networks: a loopback shared only by the commands of one agent.
//!
//! A server started by one command can be reached by the next command of the same agent, but not
//! from outside, nor can it reach anything outside. Such a network is a namespace that a thread of
//! the watchdog enters before it starts `bwrap`. That is faster than a new one for every command.
//!
//! Creating namespaces requires capabilities, which a user only has inside a user namespace. So the
//! watchdog of sandboxed commands enters one when it starts. Commands outside the sandbox have
//! another watchdog, since `sudo` and similar programs do not work in there.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};

use nix::sched::{CloneFlags, unshare};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use rustix::process::{DumpableBehavior, getgid, getuid, set_dumpable_behavior};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::lock::lock;

/// How many networks are kept. One takes some 100 KB of kernel memory. One without running commands
/// is dropped for another agent; recreating it takes a millisecond.
const MOST_KEPT: usize = 32;

/// Enters a user namespace, which permits creating other namespaces. The process must be
/// single-threaded.
///
/// # Errors
/// If the system forbids it. The process is unusable then.
pub(super) fn enter_user_namespace() -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // The /proc files of a non-dumpable process belong to root, so others could not write them.
    // This memory holds no secrets, and no command has started yet.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let mapped = fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| fs::write("/proc/self/uid_map", format!("{user} {user} 1")))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("{group} {group} 1")));
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    mapped
}

/// The networks of the agents.
#[derive(Debug, Default)]
pub(super) struct Networks(Mutex<Vec<(OsString, Network)>>);

/// A network namespace; it exists as long as it is referenced or has processes.
pub(super) type Network = Arc<OwnedFd>;

impl Networks {
    /// Moves the current thread, and what it starts, into the network of an agent.
    pub(super) fn enter(&self, agent: &OsStr) -> io::Result<Network> {
        let mut networks = lock(&self.0);
        let known = networks.iter().position(|(owner, _)| owner == agent);
        let network = match known {
            Some(number) => {
                let (_, network) = networks.remove(number);
                move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
                network
            }
            None => Arc::new(make_network()?),
        };
        // Ordered by last use.
        networks.push((agent.to_owned(), Arc::clone(&network)));
        let is_unused = |(_, network): &(OsString, Network)| Arc::strong_count(network) == 1;
        while networks.len() > MOST_KEPT
            && let Some(number) = networks.iter().position(is_unused)
        {
            networks.remove(number);
        }
        Ok(network)
    }
}

/// Moves the current thread into a new network namespace with only a loopback.
fn make_network() -> io::Result<OwnedFd> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    raise_loopback()?;
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

/// Brings up the loopback, which is interface 1 in every namespace, with a netlink message.
fn raise_loopback() -> io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_WITH_ANSWER: u16 = 1 | 4;
    const UP: u32 = 1;
    const LENGTH: u32 = 32;
    const ANSWER_HEADER: usize = 16;
    let mut message = Vec::new();
    message.extend(LENGTH.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_WITH_ANSWER.to_ne_bytes());
    // Sequence number and port are unused, and so are family and type.
    message.extend([0; 12]);
    message.extend(1_i32.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    let family = AddressFamily::NETLINK;
    let kernel = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&kernel, &message, SendFlags::empty())?;
    let mut answer = [0; 256];
    let (_, length) = recv(&kernel, &mut answer, RecvFlags::empty())?;
    let code = answer[..length].get(ANSWER_HEADER..).and_then(<[u8]>::first_chunk);
    match code.map(|code| i32::from_ne_bytes(*code)) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::Error::other("the kernel did not answer about the loopback")),
    }
}
