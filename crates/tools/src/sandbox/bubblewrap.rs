//! The bubblewrap sandbox: the arguments that make `bwrap` build a command's view of the machine.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use landlock::{CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, Scope};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};

use super::access_map::{AccessMap, Cover, OpenRoots, PathAccess};
use super::root::open_without_links;
use super::{Kind, Root, Sandbox, read_only, seccomp, sockets};
use crate::words::Variables;

/// The only paths searched. A `bwrap` found in `PATH` could have been planted by a command.
const PROGRAMS: [&str; 4] =
    ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"];

/// Separate namespaces, no capabilities, and the whole system readable.
///
/// Not `--die-with-parent`: background processes may outlive `bwrap`; the watchdog ends them in
/// time. Not `--new-session`: it would leave the process group by which the watchdog does that, and
/// the session has no terminal whose input could be faked.
const BASE: [&str; 15] = [
    "--unshare-user-try",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--chdir",
];

/// A call of `bwrap`.
#[derive(Debug)]
pub(crate) struct BwrapCall {
    pub(crate) arguments: Vec<OsString>,
    /// File descriptors that the arguments refer to by number; they must stay open in `bwrap`.
    pub(crate) fds: Vec<OwnedFd>,
    /// Paths that must stay covered while the command runs.
    pub(crate) covers: Vec<Cover>,
}

/// A command to run under bubblewrap.
#[derive(Debug)]
pub(crate) struct SandboxedCommand {
    pub(crate) sandbox: Sandbox,
    pub(crate) directory: OsString,
    /// Variables that `bwrap` sets for the command but must not have itself. Those of the dynamic
    /// loader could name a library in the working tree, which would then be loaded outside the
    /// sandbox.
    pub(crate) loader: Variables,
    pub(crate) namespace: NetworkNamespace,
}

/// Where a command without network access gets its loopback from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkNamespace {
    /// The calling thread is in a network namespace that has nothing but a loopback.
    Joined,
    /// `bwrap` creates a namespace for this command alone.
    New,
}

/// Builds the call of `bwrap`, to be completed with the command's arguments. Must run on the thread
/// that then starts it, and that thread must do nothing else afterwards. The status of `bwrap` goes
/// to `report`.
pub(crate) fn bwrap_call(sandboxed: &SandboxedCommand, report: OwnedFd) -> io::Result<BwrapCall> {
    let SandboxedCommand { sandbox, directory, loader, namespace } = sandboxed;
    let mut call = BwrapCall {
        arguments: BASE.map(OsString::from).into(),
        fds: Vec::new(),
        covers: Vec::new(),
    };
    call.arguments.push(directory.into());
    match (sandbox.network, namespace) {
        (true, _) if sandbox.unix_sockets => close_abstract_sockets()?,
        (true, _) | (false, NetworkNamespace::Joined) => {}
        (false, NetworkNamespace::New) => call.arguments.push("--unshare-net".into()),
    }
    let (mut access_map, opened) = AccessMap::of(sandbox)?;
    if sandbox.unix_sockets {
        sockets::hide(&mut access_map)?;
    }
    let is_protected = |root: &&Root| !sandbox.unprotected.iter().any(|path| path == root.path());
    read_only::protect(&mut access_map, sandbox.write.iter().filter(is_protected));
    access_map.pin_parents();
    call.covers = access_map.covers(sandbox);
    call.show(&access_map, opened)?;
    // For root, kernel settings are ordinary files, and some of them name a program for the kernel
    // to run.
    call.add("--remount-ro", &["/proc"]);
    for (name, value) in loader {
        call.add("--setenv", &[name, value]);
    }
    call.add_fd("--seccomp", filter(sandbox)?, None);
    call.add_fd("--json-status-fd", report, None);
    call.arguments.push("--".into());
    Ok(call)
}

/// The path of `bwrap`.
pub(crate) fn program() -> Option<&'static str> {
    PROGRAMS.into_iter().find(|program| Path::new(program).is_file())
}

/// Abstract sockets belong to the network namespace. Where that is shared, landlock blocks them if
/// the kernel can. A ruleset without any file rules does not keep `bwrap` from mounting.
fn close_abstract_sockets() -> io::Result<()> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::AbstractUnixSocket)
        .and_then(Ruleset::create)
        .and_then(RulesetCreated::restrict_self);
    rules.map(drop).map_err(io::Error::other)
}

fn filter(sandbox: &Sandbox) -> io::Result<OwnedFd> {
    let program = seccomp::filter(Kind::Bubblewrap, seccomp::Sockets::of(sandbox))?;
    let mut file = fs::File::from(memfd_create("filter", MemfdFlags::CLOEXEC)?);
    file.write_all(&seccomp::bytes(&program))?;
    file.rewind()?;
    Ok(file.into())
}

impl BwrapCall {
    fn show(&mut self, access_map: &AccessMap, mut opened: OpenRoots) -> io::Result<()> {
        let mut covers = Vec::new();
        for (path, access) in access_map.iter() {
            match access {
                PathAccess::Write | PathAccess::Read => {
                    // Do not follow a link that was swapped in meanwhile.
                    let source =
                        opened.remove(path).map_or_else(|| open_without_links(path), Ok)?;
                    self.add_fd(bind_option(access), source, Some(path));
                }
                PathAccess::Hidden if path.is_dir() => {
                    self.add("--tmpfs", &[path]);
                    covers.push(path);
                }
                // An empty file: many programs fail if they cannot read their settings.
                PathAccess::Hidden if path.is_file() => {
                    let nothing =
                        open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
                    self.add_fd("--ro-bind-data", nothing, Some(path));
                }
                PathAccess::Hidden => self.add("--ro-bind", &[Path::new("/dev/null"), path]),
            }
        }
        // Remounted last, since the mounts inside needed their mount points first.
        for path in covers {
            self.add("--remount-ro", &[path]);
        }
        Ok(())
    }

    fn add<A: AsRef<OsStr> + ?Sized>(&mut self, option: &str, values: &[&A]) {
        self.arguments.push(option.into());
        self.arguments.extend(values.iter().map(|value| value.as_ref().to_owned()));
    }

    fn add_fd(&mut self, option: &str, fd: OwnedFd, target: Option<&Path>) {
        let number = fd.as_raw_fd().to_string();
        self.arguments.extend([option.into(), number.into()]);
        self.arguments.extend(target.map(Into::into));
        self.fds.push(fd);
    }
}

/// The option that mounts an open folder or file, so what was checked is what is mounted. A path
/// could lead elsewhere by then.
fn bind_option(access: PathAccess) -> &'static str {
    match access {
        PathAccess::Write => "--bind-fd",
        PathAccess::Read | PathAccess::Hidden => "--ro-bind-fd",
    }
}
