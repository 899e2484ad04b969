//! The landlock rules of a sandbox.
//!
//! Landlock can only allow, and what it allows holds for everything below a folder. So a path is
//! hidden by not allowing any of its parents: its siblings are allowed one by one, and so are those
//! of each parent. The parents cannot be listed, since that right would extend to the hidden path.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{AtFlags, CWD, Dir, DirEntry, FileType, Mode, OFlags, open, openat, statat};
use rustix::io::Errno;

use crate::sandbox::Sandbox;
use crate::sandbox::access_map::{AccessMap, OpenRoots, PathAccess};
use crate::sandbox::path_state::PathState;

/// Without the right to truncate (Linux 6.2), a command could empty every file of the user.
const LEAST: ABI = ABI::V3;
/// The latest version used; older kernels apply what they support.
const NEWEST: ABI = ABI::V7;

const DEVICE_FOLDER: &str = "/dev";
/// The only devices. Disks and memory would expose hidden files, terminals the user's input.
const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Each is opened when rules are made. A home with more entries next to secrets is unusual.
const MOST_SIBLINGS: usize = 50_000;

/// Rules that do not allow anything yet.
pub(super) fn no_rules(network: bool) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    if !network {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    rules.create()
}

/// The access map with devices hidden, since they are allowed one by one.
pub(super) fn access_map_of(sandbox: &Sandbox) -> io::Result<(AccessMap, OpenRoots)> {
    let (mut access_map, opened) = AccessMap::of(sandbox)?;
    access_map.hide(PathBuf::from(DEVICE_FOLDER));
    Ok((access_map, opened))
}

/// Makes the rules, and returns the state of the paths that they depend on. `None` stands for a
/// path whose changes cannot be detected.
pub(super) fn make_rules(
    access_map: &AccessMap,
    opened: OpenRoots,
    network: bool,
) -> io::Result<(RulesetCreated, Vec<Option<PathState>>)> {
    let rules = no_rules(network).map_err(io::Error::other)?;
    let mut builder = RulesBuilder { access_map, opened, rules, states: Vec::new(), siblings: 0 };
    builder.read_around(Path::new("/"))?;
    for (path, access) in access_map.iter() {
        builder.allow_path(path, access)?;
    }
    for device in DEVICES {
        let doing = AccessFs::from_file(NEWEST) & !BitFlags::from(AccessFs::Execute);
        builder.allow(at(CWD, Path::new(device)), doing)?;
    }
    builder.states.push(PathState::of_contents(Path::new(DEVICE_FOLDER)));
    Ok((builder.rules, builder.states))
}

struct RulesBuilder<'a> {
    access_map: &'a AccessMap,
    opened: OpenRoots,
    rules: RulesetCreated,
    states: Vec<Option<PathState>>,
    /// How many entries were made readable one by one.
    siblings: usize,
}

impl RulesBuilder<'_> {
    fn allow_path(&mut self, path: &Path, access: PathAccess) -> io::Result<()> {
        if access == PathAccess::Hidden {
            return Ok(());
        }
        self.states.push(PathState::of_path(path));
        if access == PathAccess::Read {
            return self.read_around(path);
        }
        match self.access_map.hidden_inside(path) {
            Some(hidden) => Err(cannot_hide(hidden, path)),
            None => {
                let root = self.opened.remove(path).map_or_else(|| at(CWD, path), Ok);
                self.allow(root, writing())
            }
        }
    }

    /// Makes `folder` readable. If something in it is hidden, allows everything else one by one.
    fn read_around(&mut self, folder: &Path) -> io::Result<()> {
        if self.access_map.hidden_inside(folder).is_none() {
            return self.read(at(CWD, folder));
        }
        self.states.push(PathState::of_contents(folder));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = match open(folder, flags, Mode::empty()) {
            // What the user cannot list, the sandbox cannot list either.
            Err(Errno::ACCESS) => return Ok(()),
            listed => listed?,
        };
        let leading = self.access_map.names_in(folder);
        for entry in Dir::read_from(&listed)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            // The target of a link has its own path.
            if [".", ".."].map(OsStr::new).contains(&name) || is_link(&listed, &entry) {
                continue;
            }
            if !leading.contains(name) {
                self.read(at(&listed, Path::new(name)))?;
            } else if self.access_map.access(&folder.join(name)) == PathAccess::Read {
                self.read_around(&folder.join(name))?;
            }
        }
        Ok(())
    }

    fn read(&mut self, path: rustix::io::Result<OwnedFd>) -> io::Result<()> {
        self.siblings += 1;
        if self.siblings > MOST_SIBLINGS {
            return Err(io::Error::other("too many files beside hidden ones"));
        }
        self.allow(path, AccessFs::from_read(NEWEST))
    }

    /// What is gone or out of reach needs no rule.
    fn allow(
        &mut self,
        path: rustix::io::Result<OwnedFd>,
        doing: BitFlags<AccessFs>,
    ) -> io::Result<()> {
        let Ok(path) = path else { return Ok(()) };
        let allowed = (&mut self.rules).add_rule(PathBeneath::new(path, doing));
        allowed.map(drop).map_err(io::Error::other)
    }
}

/// Opens the subject of a rule.
fn at(folder: impl std::os::fd::AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    openat(folder, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

fn is_link(folder: &OwnedFd, entry: &DirEntry) -> bool {
    let kind = match entry.file_type() {
        // Not all file systems report the type when listing.
        FileType::Unknown => statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
            .map_or(FileType::Unknown, |seen| FileType::from_raw_mode(seen.st_mode)),
        kind => kind,
    };
    matches!(kind, FileType::Symlink | FileType::Unknown)
}

/// All rights except creating and controlling devices.
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
