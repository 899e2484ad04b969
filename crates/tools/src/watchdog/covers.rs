//! Keeping covers on: what a command in bubblewrap may not write or see has a mount on it.
//!
//! A mount goes away with the file that it lies on, also when somebody outside renames another file over that: an
//! ordinary `git config` does so. A command that is still running would find the new file bare. So the folders around
//! are watched, and what was replaced is covered again from outside. In the moment between, which takes less than a
//! millisecond, a command can reach it: protected paths that were replaced are checked as if there had been no cover.
//! A command that cannot be kept out any more is ended.

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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
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

use super::enclosed::STACK;
use crate::sandbox::{Cover, Place};

/// Where folders cannot be watched, for instance since other programs have used up the system's limit, all covers are
/// looked at this often.
const LOOK: Duration = Duration::from_millis(100);
/// How long `bwrap` may take to set up a sandbox in which something was replaced meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks whether it has.
const PAUSE: Duration = Duration::from_millis(1);

/// What replaces a file, or moves it away.
const REPLACED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::ONLYDIR);

/// The covers of all commands.
#[derive(Debug, Clone, Default)]
pub(super) struct Covers(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Made with the first command.
    inotify: Option<Arc<OwnedFd>>,
    /// By the number of the watch.
    folders: HashMap<i32, PathBuf>,
    commands: Vec<Weak<Covered>>,
    /// Whether a thread looks at all covers, since not all of their folders could be watched.
    is_looking: bool,
}

/// The covers of one command.
#[derive(Debug)]
pub(super) struct Covered {
    all: Covers,
    covers: Vec<Cover>,
    /// What `bwrap` tells comes out of here; it is only looked at.
    report: UnixStream,
    /// What was replaced.
    fallen: Mutex<BTreeSet<PathBuf>>,
    /// Why the command was ended.
    ended: Mutex<Option<String>>,
}

impl Covers {
    /// Watches over the covers that a command is about to get.
    pub(super) fn watch(&self, covers: Vec<Cover>, report: UnixStream) -> io::Result<Arc<Covered>> {
        let (fallen, ended) = (Mutex::default(), Mutex::default());
        let covered = Arc::new(Covered { all: self.clone(), covers, report, fallen, ended });
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

    /// Covers again what was replaced, for as long as the watchdog lives.
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
                // Folders that were replaced are other ones now.
                let mut around = covered.covers.iter().filter_map(|cover| cover.path.parent());
                let is_folder = around.any(|folder| fallen.contains(folder));
                lock(&covered.fallen).extend(fallen);
                cover_in_background(&covered);
                if is_folder {
                    state.watch_folders(&covered);
                    // In case something was replaced in them before they were watched.
                    cover_in_background(&covered);
                }
            }
        }
    }

    /// Looks at all covers, as long as there are some.
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
    /// Those that still run.
    fn commands(&mut self) -> Vec<Arc<Covered>> {
        self.commands.retain(|command| command.strong_count() > 0);
        self.commands.iter().filter_map(Weak::upgrade).collect()
    }

    /// Whether all folders are watched in which something may be replaced.
    fn watch_folders(&mut self, covered: &Covered) -> bool {
        let Some(inotify) = &self.inotify else { return false };
        let folders: BTreeSet<&Path> =
            covered.covers.iter().filter_map(|cover| cover.path.parent()).collect();
        let mut is_complete = true;
        for folder in folders {
            match inotify::add_watch(inotify, folder, REPLACED) {
                Ok(number) => drop(self.folders.insert(number, folder.to_owned())),
                // Nothing is there that could be replaced, or that a command could reach.
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
enum Replaced {
    Name {
        watch: i32,
        name: Vec<u8>,
    },
    /// There were too many to tell.
    Anything,
}

impl Replaced {
    fn covers_of(&self, covered: &Covered, folders: &HashMap<i32, PathBuf>) -> Vec<PathBuf> {
        let covers = covered.covers.iter().map(|cover| &cover.path);
        match self {
            Replaced::Anything => covers.cloned().collect(),
            Replaced::Name { watch, name } => {
                let Some(folder) = folders.get(watch) else { return Vec::new() };
                let path = folder.join(OsStr::from_bytes(name));
                covers.filter(|cover| **cover == path).cloned().collect()
            }
        }
    }
}

/// The next events, as many as are there; it waits for the first one.
fn read(inotify: &OwnedFd) -> io::Result<Vec<Replaced>> {
    let mut buffer = [MaybeUninit::uninit(); 8 * 1024];
    let mut reader = inotify::Reader::new(inotify, &mut buffer);
    let mut replaced = Vec::new();
    loop {
        match reader.next() {
            Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => {
                replaced.push(Replaced::Anything);
            }
            Ok(event) => {
                let name = event.file_name().map(|name| name.to_bytes().to_vec());
                replaced.push(Replaced::Name { watch: event.wd(), name: name.unwrap_or_default() });
            }
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        if reader.is_buffer_empty() {
            return Ok(replaced);
        }
    }
}

impl Covered {
    /// Whether commands could only read what is at a path, so that a change of it is the user's: this command, and all
    /// others that run. One that was started before the file existed has no cover on it, and can write it.
    pub(super) fn was_read_only(&self, path: &Path) -> bool {
        let others = lock(&self.all.0).commands();
        self.keeps_from_writing(path) && others.iter().all(|other| other.keeps_from_writing(path))
    }

    /// Whether the command could only read it, all the time: nothing there, around or in it was replaced.
    fn keeps_from_writing(&self, path: &Path) -> bool {
        let is_cover = |cover: &Cover| cover.place == Place::Read && path.starts_with(&cover.path);
        let is_near = |fallen: &PathBuf| fallen.starts_with(path) || path.starts_with(fallen);
        self.covers.iter().any(is_cover) && !lock(&self.fallen).iter().any(is_near)
    }

    /// Stops watching folders if no other command needs it. At the end of the process the kernel would need some 10 ms for
    /// that, while everybody waits.
    pub(super) fn release(&self) {
        let mut state = lock(&self.all.0);
        state.commands.retain(|other| !ptr::eq(other.as_ptr(), self) && other.strong_count() > 0);
        if state.commands.is_empty()
            && let Some(inotify) = state.inotify.clone()
        {
            for (number, _) in state.folders.drain() {
                // It goes away with its folder, too.
                let _ = inotify::remove_watch(&inotify, number);
            }
        }
    }

    /// Why the command was ended, told once.
    pub(super) fn take_reason(&self) -> Option<String> {
        lock(&self.ended).take()
    }

    /// Whether nothing but the first process in the sandbox is left, which only waits for others.
    pub(super) fn is_deserted(&self) -> bool {
        let Some(first) = self.first_process() else { return false };
        let children = fs::read(format!("/proc/{first}/task/{first}/children"));
        match children {
            Ok(children) => children.is_empty(),
            Err(_) => !fs::exists(format!("/proc/{first}")).unwrap_or(true),
        }
    }

    /// The first process in the sandbox, once `bwrap` has told of it.
    fn first_process(&self) -> Option<Pid> {
        let mut bytes = [0; 1024];
        let (_, length) =
            recv(&self.report, &mut bytes, RecvFlags::PEEK | RecvFlags::DONTWAIT).ok()?;
        let report = String::from_utf8_lossy(&bytes[..length]);
        let (_, behind) = report.split_once("\"child-pid\":")?;
        let digits: String = behind.trim_start().chars().take_while(char::is_ascii_digit).collect();
        Pid::from_raw(digits.parse().ok()?)
    }

    /// Ends all of the command by its first process.
    fn end(&self, first: Pid, error: &io::Error) {
        if fs::exists(format!("/proc/{first}")).unwrap_or(true) {
            let _ = kill_process(first, Signal::KILL);
            *lock(&self.ended) = Some(format!(
                "The command was ended: a protected or hidden file was replaced while it ran, and could not be covered again ({error})"
            ));
        }
    }

    /// Enters the sandbox, and covers what is bare. The thread is good for nothing after that.
    fn cover(&self, first: Pid) -> io::Result<()> {
        let mounts = File::open(format!("/proc/{first}/ns/mnt"))?;
        unshare(CloneFlags::CLONE_FS)?;
        move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
        self.covers.iter().try_for_each(put_on)
    }
}

/// Not by the watchdog's own thread: a file system may hang, and there is no way back from a sandbox.
fn cover_in_background(covered: &Arc<Covered>) {
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

/// The first process of a sandbox that is set up; `None` when there is none any more.
fn wait_for_setup(covered: &Arc<Covered>) -> Option<Pid> {
    for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
        if let Some(first) = covered.first_process() {
            // It starts the command when all is done.
            match fs::read(format!("/proc/{first}/task/{first}/children")) {
                Ok(children) if children.is_empty() => {}
                Ok(_) => return Some(first),
                Err(_) => return fs::exists(format!("/proc/{first}")).ok()?.then_some(first),
            }
        }
        // Nobody but us knows of the command: it has ended.
        if Arc::strong_count(covered) == 1 {
            return None;
        }
        thread::sleep(PAUSE);
    }
    covered.first_process()
}

/// Covers a path, unless it is covered or nothing is there.
fn put_on(cover: &Cover) -> io::Result<()> {
    let (path, flags) = (&cover.path, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT);
    let found = match statx(CWD, path, flags, StatxFlags::TYPE) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let kind = rustix::fs::FileType::from_raw_mode(found.stx_mode.into());
    // A link cannot be covered; what it leads to is as it is elsewhere.
    if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) || kind.is_symlink() {
        return Ok(());
    }
    match cover.place {
        Place::Hidden if kind.is_dir() => {
            let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
            Ok(mount("tmpfs", path, "tmpfs", flags, Some(c"mode=0755"))?)
        }
        Place::Hidden => Ok(mount_bind("/dev/null", path)?),
        Place::Write => Ok(mount_bind(path, path)?),
        Place::Read => {
            mount_bind(path, path)?;
            let mut flags =
                MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
            // What was taken away outside cannot be given here.
            if statvfs(path)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
                flags |= MountFlags::NOEXEC;
            }
            Ok(mount_remount(path, flags, c"")?)
        }
    }
}

/// Whatever panicked while it held it, it is complete.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
