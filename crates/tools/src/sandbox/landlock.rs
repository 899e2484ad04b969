//! Enclosing the current thread, and what it starts, by landlock and a filter of system calls.
//!
//! Landlock only allows, and what it allows holds for all that lies below. So a hidden place is one that
//! nothing above it was allowed for: its siblings are allowed one by one, and so are those of the folders
//! around it. Those folders themselves cannot be listed, since that right would reach into the hidden one.

mod kept;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

pub(crate) use kept::KeptRules;

use super::ground::Ground;
use super::places::{Place, Places};
use super::{Kind, Sandbox, seccomp};

/// Without the right to truncate (Linux 6.2) every file of the user could be emptied.
const LEAST: ABI = ABI::V3;
/// What is known here; an older kernel does what it can of it.
const NEWEST: ABI = ABI::V7;

const DEVICE_FOLDER: &str = "/dev";
/// The only devices. A disk or the memory would show what is hidden, a terminal what the person types.
const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Each is opened whenever the rules are made; a home with more entries than this beside its secrets is not usual.
const MOST_SIBLINGS: usize = 50_000;

/// The half of the walls that is the same for all commands. It still allows to [`enclose`].
pub(crate) fn filter_calls(network: bool) -> io::Result<()> {
    let filter = seccomp::filter(Kind::Landlock, network)?;
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
    rules(&Sandbox::default()).is_ok()
}

fn rules(sandbox: &Sandbox) -> Result<RulesetCreated, landlock::RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    if !sandbox.network {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    rules.create()
}

/// Where a process that is enclosed may do what.
#[derive(Debug, Default)]
struct Allowed {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
}

impl Allowed {
    /// Also what it was made from.
    fn of(places: &Places) -> io::Result<(Allowed, Vec<Option<Ground>>)> {
        let (mut allowed, mut ground) = (Allowed::default(), Vec::new());
        allowed.read_around(places, Path::new("/"), &mut ground)?;
        for (path, place) in places.iter().filter(|(_, place)| *place != Place::Hidden) {
            ground.push(Ground::itself(path));
            if place == Place::Read {
                allowed.read_around(places, path, &mut ground)?;
            } else if let Some(hidden) = places.hidden_below(path) {
                return Err(cannot_hide(hidden, path));
            } else {
                allowed.write.push(path.to_owned());
            }
        }
        Ok((allowed, ground))
    }

    /// Allows to read `folder`, or where something in it is hidden, all the rest of it.
    fn read_around(
        &mut self,
        places: &Places,
        folder: &Path,
        ground: &mut Vec<Option<Ground>>,
    ) -> io::Result<()> {
        if places.hidden_below(folder).is_none() {
            self.read.push(folder.to_owned());
            return if self.read.len() <= MOST_SIBLINGS {
                Ok(())
            } else {
                Err(io::Error::other("too many files beside hidden ones"))
            };
        }
        ground.push(Ground::listed(folder));
        let entries = match fs::read_dir(folder) {
            // Who may not list it now could not do so in the sandbox.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            // What a link leads to has a path of its own.
            let is_link = entry.file_type().map_or(true, |kind| kind.is_symlink());
            if !is_link && places.at(&path) == Place::Read {
                self.read_around(places, &path, ground)?;
            }
        }
        Ok(())
    }

    fn add_to(self, rules: RulesetCreated) -> Result<RulesetCreated, landlock::RulesetError> {
        let devices = AccessFs::from_file(NEWEST) & !BitFlags::from(AccessFs::Execute);
        rules
            .add_rules(path_beneath_rules(self.read, AccessFs::from_read(NEWEST)))?
            .add_rules(path_beneath_rules(self.write, writing()))?
            .add_rules(path_beneath_rules(DEVICES, devices))
    }
}

/// All but to make devices and to speak to them.
fn writing() -> BitFlags<AccessFs> {
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    AccessFs::from_all(NEWEST) & !devices
}

fn cannot_hide(hidden: &Path, writable: &Path) -> io::Error {
    let (hidden, writable) = (hidden.display(), writable.display());
    io::Error::other(format!(
        "landlock cannot hide {hidden} while {writable} can be written; install bubblewrap, or work in a folder without it"
    ))
}

/// Root has them, and some reach around the rules. With no new privileges they never come back.
fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(set_capabilities(None, sets)?)
}
