//! Enclosing the current thread, and what it starts, by landlock and a filter of system calls.

mod kept;
mod rules;

use std::io;

use landlock::{RulesetCreated, RulesetStatus};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

pub(crate) use kept::KeptRules;

use super::{Kind, Sandbox, seccomp};

/// The half of the walls that is the same for all commands. It still allows to [`enclose`].
pub(crate) fn filter_calls(network: bool) -> io::Result<()> {
    let sockets = seccomp::Sockets::of(&Sandbox { network, ..Sandbox::default() });
    let filter = seccomp::filter(Kind::Landlock, sockets)?;
    seccompiler::apply_filter(&filter).map_err(io::Error::other)
}

/// The other half.
pub(crate) fn enclose(rules: RulesetCreated) -> io::Result<()> {
    let status = rules.restrict_self().map_err(io::Error::other)?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err(io::Error::other("the kernel did not take the rules"));
    }
    drop_capabilities()
}

/// Whether the kernel takes such rules.
pub(super) fn is_there() -> bool {
    rules::no_rules(false).is_ok()
}

/// Root has them, and some reach around the rules. With no new privileges they never come back.
fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(set_capabilities(None, sets)?)
}
