//! The landlock sandbox: restricts the current thread, and what it starts, with landlock rules and
//! a seccomp filter.

mod rules;
mod rules_cache;

use std::io;

use landlock::{RulesetCreated, RulesetStatus};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

pub(crate) use rules_cache::RulesCache;

use super::{Kind, Sandbox, seccomp};

/// Installs the seccomp filter, which is the same for all commands and still permits
/// [`restrict_thread`].
pub(crate) fn install_filter(network: bool) -> io::Result<()> {
    let sockets = seccomp::Sockets::of(&Sandbox { network, ..Sandbox::default() });
    let filter = seccomp::filter(Kind::Landlock, sockets)?;
    seccompiler::apply_filter(&filter).map_err(io::Error::other)
}

/// Applies the landlock rules and drops all capabilities.
pub(crate) fn restrict_thread(rules: RulesetCreated) -> io::Result<()> {
    let status = rules.restrict_self().map_err(io::Error::other)?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err(io::Error::other("the kernel did not take the rules"));
    }
    drop_capabilities()
}

/// Whether the kernel supports such rules.
pub(super) fn is_there() -> bool {
    rules::no_rules(false).is_ok()
}

/// Root has capabilities, and some bypass landlock. With `no_new_privs` they cannot be regained.
fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(set_capabilities(None, sets)?)
}
