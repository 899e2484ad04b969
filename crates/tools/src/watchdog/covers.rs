//! Keeps covers in place: the mounts on paths that a command in bubblewrap may not write or see.
//!
//! A mount disappears with the file it covers, even if that is replaced from outside by a rename,
//! as an ordinary `git config` does. A running command would then see the new file. So the parent
//! folders are watched, and replaced paths are covered again from outside. In between, for less
//! than a millisecond, a command can access them: protected paths that were replaced are checked as
//! if there were no cover. If a path cannot be covered again, the command is ended.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{AtFlags, CWD, StatVfsMountFlags, StatxAttributes, StatxFlags, statvfs, statx};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount, mount_bind, mount_remount};
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::sandboxed::STACK;
use crate::lock::lock;
use crate::sandbox::{Cover, PathAccess};

/// How often all covers are checked if folders cannot be watched, for example because the system's
/// inotify limit is reached.
const LOOK: Duration = Duration::from_millis(100);
/// How long `bwrap` may take to set up a sandbox while something is being replaced.
const PATIENCE: Duration = Duration::from_secs(10);
/// The polling interval for that.
const PAUSE: Duration = Duration::from_millis(1);

/// Events by which a file is replaced or moved away.
const REPLACED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::ONLYDIR);

/// The covers of all commands.
#[derive(Debug, Clone, Default)]
pub(super) struct CoverWatcher(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Created with the first command.
    inotify: Option<Arc<OwnedFd>>,
    /// By watch descriptor.
    folders: HashMap<i32, PathBuf>,
    commands: Vec<Weak<CommandCovers>>,
    /// Whether a thread polls all covers, since some folders could not be watched.
    is_looking: bool,
}

/// The covers of one command.
#[derive(Debug)]
pub(super) struct CommandCovers {
    all: CoverWatcher,
    covers: Vec<Cover>,
    /// The status output of `bwrap`; only peeked at.
    report: UnixStream,
    /// Paths that were replaced.
    fallen: Mutex<BTreeSet<PathBuf>>,
    /// Why the command was ended.
    ended: Mutex<Option<String>>,
}

impl CoverWatcher {
    /// Starts watching the covers that a command is about to get.
    pub(super) fn watch(
        &self,
        covers: Vec<Cover>,
        report: UnixStream,
    ) -> io::Result<Arc<CommandCovers>> {
        let (fallen, ended) = (Mutex::default(), Mutex::default());
        let covered = Arc::new(CommandCovers { all: self.clone(), covers, report, fallen, ended });
        let mut state = lock(&self.0);
        state.commands.push(Arc::downgrade(&covered));
        if state.inotify.is_none()
            && let Ok(inotify) = inotify::init(CreateFlags::CLOEXEC)
        {
            let inotify = Arc::new(inotify);
            state.inotify = Some(Arc::clone(&inotify));
            let covers = self.clone();
            spawn(move || covers.follow(&inotify))?;
        }
        if !state.watch_folders(&covered) && !state.is_looking {
            state.is_looking = true;
            let covers = self.clone();
            spawn(move || covers.look())?;
        }
        Ok(covered)
    }

    /// Covers replaced paths again, as long as the watchdog lives.
    fn follow(&self, inotify: &OwnedFd) {
        while let Ok(replaced) = read(inotify) {
            let mut state = lock(&self.0);
            for covered in state.commands() {
                let covers = replaced
                    .iter()
                    .flat_map(|replaced| replaced.covers_of(&covered, &state.folders));
                let fallen: BTreeSet<PathBuf> = covers.collect();
                if fallen.is_empty() {
                    continue;
                }
                // A replaced folder needs a new watch.
                let mut around = covered.covers.iter().filter_map(|cover| cover.path.parent());
                let is_folder = around.any(|folder| fallen.contains(folder));
                lock(&covered.fallen).extend(fallen);
                cover_in_background(&covered);
                if is_folder {
                    state.watch_folders(&covered);
                    // In case something in it was replaced before the watch.
                    cover_in_background(&covered);
                }
            }
        }
    }

    /// Polls all covers as long as there are any.
    fn look(&self) {
        loop {
            thread::sleep(LOOK);
            let mut state = lock(&self.0);
            let commands = state.commands();
            if commands.is_empty() {
                state.is_looking = false;
                return;
            }
            for covered in commands {
                lock(&covered.fallen).extend(covered.covers.iter().map(|cover| cover.path.clone()));
                cover_in_background(&covered);
            }
        }
    }
}

impl State {
    /// The commands that are still running.
    fn commands(&mut self) -> Vec<Arc<CommandCovers>> {
        self.commands.retain(|command| command.strong_count() > 0);
        self.commands.iter().filter_map(Weak::upgrade).collect()
    }

    /// Whether every folder in which something could be replaced is watched.
    fn watch_folders(&mut self, covered: &CommandCovers) -> bool {
        let Some(inotify) = &self.inotify else { return false };
        let folders: BTreeSet<&Path> =
            covered.covers.iter().filter_map(|cover| cover.path.parent()).collect();
        let mut is_complete = true;
        for folder in folders {
            match inotify::add_watch(inotify, folder, REPLACED) {
                Ok(number) => drop(self.folders.insert(number, folder.to_owned())),
                // Nothing exists there that could be replaced, or no command can reach it.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
                Err(_) => is_complete = false,
            }
        }
        is_complete
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().stack_size(STACK).spawn(work).map(drop)
}

/// An event in a watched folder.
enum ReplaceEvent {
    Name {
        watch: i32,
        name: Vec<u8>,
    },
    /// The event queue overflowed.
    Anything,
}

impl ReplaceEvent {
    fn covers_of(&self, covered: &CommandCovers, folders: &HashMap<i32, PathBuf>) -> Vec<PathBuf> {
        let covers = covered.covers.iter().map(|cover| &cover.path);
        match self {
            ReplaceEvent::Anything => covers.cloned().collect(),
            ReplaceEvent::Name { watch, name } => {
                let Some(folder) = folders.get(watch) else { return Vec::new() };
                let path = folder.join(OsStr::from_bytes(name));
                covers.filter(|cover| **cover == path).cloned().collect()
            }
        }
    }
}

/// Waits for events and returns all that are available.
fn read(inotify: &OwnedFd) -> io::Result<Vec<ReplaceEvent>> {
    let mut buffer = [MaybeUninit::uninit(); 8 * 1024];
    let mut reader = inotify::Reader::new(inotify, &mut buffer);
    let mut replaced = Vec::new();
    loop {
        match reader.next() {
            Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => {
                replaced.push(ReplaceEvent::Anything);
            }
            Ok(event) => {
                let name = event.file_name().map(|name| name.to_bytes().to_vec());
                replaced
                    .push(ReplaceEvent::Name { watch: event.wd(), name: name.unwrap_or_default() });
            }
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        if reader.is_buffer_empty() {
            return Ok(replaced);
        }
    }
}

impl CommandCovers {
    /// Whether no command could write to a path, so that a change of it is the user's: neither this one nor any
    /// other that runs. One that was started before the file existed has no cover on it and can write it.
    pub(super) fn was_read_only(&self, path: &Path) -> bool {
        let others = lock(&self.all.0).commands();
        self.keeps_from_writing(path) && others.iter().all(|other| other.keeps_from_writing(path))
    }

    /// Whether the command never could write to it: nothing there, above or below was replaced.
    fn keeps_from_writing(&self, path: &Path) -> bool {
        let is_cover =
            |cover: &Cover| cover.access == PathAccess::Read && path.starts_with(&cover.path);
        let is_near = |fallen: &PathBuf| fallen.starts_with(path) || path.starts_with(fallen);
        self.covers.iter().any(is_cover) && !lock(&self.fallen).iter().any(is_near)
    }

    /// Stops watching folders that no other command needs. When the process exits, the kernel would
    /// take some 10 ms for that, and the user would wait.
    pub(super) fn release(&self) {
        let mut state = lock(&self.all.0);
        state.commands.retain(|other| !ptr::eq(other.as_ptr(), self) && other.strong_count() > 0);
        if state.commands.is_empty()
            && let Some(inotify) = state.inotify.clone()
        {
            for (number, _) in state.folders.drain() {
                // A watch disappears with its folder.
                let _ = inotify::remove_watch(&inotify, number);
            }
        }
    }

    /// Why the command was ended; returned once.
    pub(super) fn take_reason(&self) -> Option<String> {
        lock(&self.ended).take()
    }

    /// Whether only the init process of the sandbox is left, which just waits for others.
    pub(super) fn is_deserted(&self) -> bool {
        let Some(first) = self.first_process() else { return false };
        let children = fs::read(format!("/proc/{first}/task/{first}/children"));
        match children {
            Ok(children) => children.is_empty(),
            Err(_) => !fs::exists(format!("/proc/{first}")).unwrap_or(true),
        }
    }

    /// The init process of the sandbox, once `bwrap` has reported it.
    fn first_process(&self) -> Option<Pid> {
        let mut bytes = [0; 1024];
        let (_, length) =
            recv(&self.report, &mut bytes, RecvFlags::PEEK | RecvFlags::DONTWAIT).ok()?;
        let report = String::from_utf8_lossy(&bytes[..length]);
        let (_, behind) = report.split_once("\"child-pid\":")?;
        let digits: String = behind.trim_start().chars().take_while(char::is_ascii_digit).collect();
        Pid::from_raw(digits.parse().ok()?)
    }

    /// Kills the whole command through its init process.
    fn end(&self, first: Pid, error: &io::Error) {
        if fs::exists(format!("/proc/{first}")).unwrap_or(true) {
            let _ = kill_process(first, Signal::KILL);
            *lock(&self.ended) = Some(format!(
                "The command was ended: a protected or hidden file was replaced while it ran, and could not be covered again ({error})"
            ));
        }
    }

    /// Enters the mount namespace of the sandbox and covers bare paths. The thread must do nothing
    /// else afterwards.
    fn cover(&self, first: Pid) -> io::Result<()> {
        let mounts = File::open(format!("/proc/{first}/ns/mnt"))?;
        unshare(CloneFlags::CLONE_FS)?;
        move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
        self.covers.iter().try_for_each(put_on)
    }
}

/// Runs on its own thread: a file system may hang, and a thread cannot leave the sandbox again.
fn cover_in_background(covered: &Arc<CommandCovers>) {
    let covering = Arc::clone(covered);
    let started = spawn(move || {
        if let Some(first) = wait_for_setup(&covering)
            && let Err(error) = covering.cover(first)
        {
            covering.end(first, &error);
        }
    });
    if let Err(error) = started
        && let Some(first) = covered.first_process()
    {
        covered.end(first, &error);
    }
}

/// The init process of a sandbox once that is set up; `None` if it has ended.
fn wait_for_setup(covered: &Arc<CommandCovers>) -> Option<Pid> {
    for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
        if let Some(first) = covered.first_process() {
            // It starts the command after the setup.
            match fs::read(format!("/proc/{first}/task/{first}/children")) {
                Ok(children) if children.is_empty() => {}
                Ok(_) => return Some(first),
                Err(_) => return fs::exists(format!("/proc/{first}")).ok()?.then_some(first),
            }
        }
        // The last reference: the command has ended.
        if Arc::strong_count(covered) == 1 {
            return None;
        }
        thread::sleep(PAUSE);
    }
    covered.first_process()
}

/// Covers a path, unless it is covered or does not exist.
fn put_on(cover: &Cover) -> io::Result<()> {
    let (path, flags) = (&cover.path, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT);
    let found = match statx(CWD, path, flags, StatxFlags::TYPE) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let kind = rustix::fs::FileType::from_raw_mode(found.stx_mode.into());
    // A link cannot be covered; its target has its usual access.
    if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) || kind.is_symlink() {
        return Ok(());
    }
    match cover.access {
        PathAccess::Hidden if kind.is_dir() => {
            let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
            Ok(mount("tmpfs", path, "tmpfs", flags, Some(c"mode=0755"))?)
        }
        PathAccess::Hidden => Ok(mount_bind("/dev/null", path)?),
        PathAccess::Write => Ok(mount_bind(path, path)?),
        PathAccess::Read => {
            mount_bind(path, path)?;
            let mut flags =
                MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
            // A mount flag set outside cannot be cleared here.
            if statvfs(path)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
                flags |= MountFlags::NOEXEC;
            }
            Ok(mount_remount(path, flags, c"")?)
        }
    }
}
