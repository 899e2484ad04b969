//! Private networks: a loopback for the commands of each agent, on which nobody else is.
//!
//! A server that one command starts is reached by the next one of the same agent; nothing outside reaches it, and it
//! reaches nothing outside. Such a network is a namespace that a thread of the watchdog enters before it starts `bwrap`,
//! which takes less time than to have `bwrap` make a new one for every command.
//!
//! To make namespaces a process needs capabilities, and a user has them only in a user namespace of its own. So the
//! watchdog of sandboxed commands enters one when it starts. Commands outside the sandbox have another watchdog, since
//! `sudo` and its like do not work in there.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sched::{CloneFlags, unshare};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use rustix::process::{DumpableBehavior, getgid, getuid, set_dumpable_behavior};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// How many networks are kept. One takes some 100 KB of the kernel; one whose commands have all ended is given up for
/// another agent, which costs the next command of its agent a millisecond.
const MOST_KEPT: usize = 32;

/// Gives this process the right to make namespaces. It must have one thread.
///
/// # Errors
/// When the system does not allow it. The process is good for nothing after that.
pub(super) fn enter_user_namespace() -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // The files of a process whose memory is hidden belong to root, and no other user could write them. No secret is
    // in this memory, and no command was started yet.
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

/// A network, which is there as long as somebody holds it or is in it.
pub(super) type Network = Arc<OwnedFd>;

impl Networks {
    /// Brings the current thread, and what it starts, into the network of an agent.
    pub(super) fn enter(&self, agent: &OsStr) -> io::Result<Network> {
        // Whatever panicked while it held them, they are complete.
        let mut networks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = networks.iter().position(|(owner, _)| owner == agent);
        let network = match known {
            Some(number) => {
                let (_, network) = networks.remove(number);
                move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
                network
            }
            None => Arc::new(make_network()?),
        };
        // The last one used is the last in the list.
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

/// Moves the current thread to a new network, of which only the loopback is there.
fn make_network() -> io::Result<OwnedFd> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    raise_loopback()?;
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

/// Turns the loopback on, by a message to the kernel: it has the number 1 in every network.
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
    // A sequence number and our address, which nobody needs; then a family and a type, which are not asked for.
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
