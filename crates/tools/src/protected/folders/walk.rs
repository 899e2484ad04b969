//! A walk over the folders of a root that reuses unchanged ones from the previous list.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, chmodat};
use rustix::io::Errno;

use super::marks::{
    CUT, HAS_GIT, HAS_LINK, HAS_SHARED, INSIDE, Marks, NEST, REPOSITORY, UNREADABLE, flags,
};
use super::{Folders, MOST_NAMED, Node, UNSETTLED, Unreadable, WalkResult};
use crate::change_time::{is_exact, is_settled};
use crate::protected::moving::plain_mode;
use crate::protected::safe_files::{
    FileStat, LONGEST_STRETCH, Root, TO_ENTER, TO_LIST, for_each_entry, open_inside,
};

/// Ten times as many as in large projects; they take some 30 MB.
const MOST_FOLDERS: usize = 500_000;
/// The total length of all names, 20 times the usual.
const MOST_NAMES: usize = 128 * 1024 * 1024;
/// Entries of all folders listed in one update, which takes about a second.
const MOST_ENTRIES: usize = 3_000_000;
/// No program works at this depth: even with one-letter names, the path has 2,000 characters.
const MOST_DEPTH: usize = 1_000;

pub(super) struct Walk<'a> {
    root: BorrowedFd<'a>,
    root_path: &'a Path,
    old: &'a Folders,
    pub(super) new: Folders,
    pub(super) found: WalkResult,
    /// The current path.
    path: Vec<u8>,
    /// Open folders along the path, since it may be too long for one system call.
    anchors: Vec<Anchor>,
    /// The folders from the root to the current one.
    frames: Vec<Frame>,
    entries: usize,
    /// Which devices keep exact change times.
    exact: HashMap<u64, bool>,
    now: SystemTime,
    unreadable: Unreadable,
}

struct Anchor {
    /// Where the part of the path relative to this folder starts.
    start: usize,
    folder: OwnedFd,
}

struct Frame {
    /// The length of the path without this folder.
    parent_length: usize,
    /// Its index in the new list.
    node: usize,
    flags: u8,
    children: Children,
}

enum Children {
    /// An unchanged folder: this range of the old list.
    Old { next: usize, end: usize },
    /// A folder that was listed, each child with its index in the old list.
    New(std::vec::IntoIter<(Box<[u8]>, Option<usize>)>),
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        root: &'a Root,
        old: &'a Folders,
        now: SystemTime,
        unreadable: Unreadable,
    ) -> Walk<'a> {
        Walk {
            root: root.folder.as_fd(),
            root_path: &root.path,
            new: Folders {
                nodes: Vec::with_capacity(old.nodes.len()),
                names: Vec::with_capacity(old.names.len()),
                skipped: old.skipped.clone(),
            },
            old,
            found: WalkResult::default(),
            path: Vec::new(),
            anchors: Vec::new(),
            frames: Vec::new(),
            entries: 0,
            exact: HashMap::new(),
            now,
            unreadable,
        }
    }

    pub(super) fn run(&mut self) {
        self.enter(b"", (!self.old.nodes.is_empty()).then_some(0));
        while let Some(frame) = self.frames.last_mut() {
            match &mut frame.children {
                Children::Old { next, end } if *next < *end => {
                    let at = *next;
                    *next += self.old.nodes[at].span as usize;
                    self.enter(self.old.name(at), Some(at));
                }
                Children::Old { .. } => self.leave(),
                Children::New(children) => match children.next() {
                    Some((name, old)) => self.enter(&name, old),
                    None => self.leave(),
                },
            }
        }
    }

    fn enter(&mut self, name: &[u8], old: Option<usize>) {
        let parent_length = self.path.len();
        if parent_length > 0 {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        let entered = self.look(name, old);
        match entered {
            Some((node, children)) => self.add(name, node, children, parent_length),
            None => self.path.truncate(parent_length),
        }
    }

    /// `None` if the folder is gone, over the limit, or to be skipped.
    fn look(&mut self, name: &[u8], old: Option<usize>) -> Option<(Node, Children)> {
        let skipped = self.old.skipped.as_ref().map(|path| path.as_os_str().as_bytes());
        if skipped == Some(&self.path) {
            return None;
        }
        let is_full =
            self.new.nodes.len() >= MOST_FOLDERS || self.new.names.len() + name.len() > MOST_NAMES;
        if is_full {
            self.cut(&format!("there are more than {MOST_FOLDERS} folders"));
            return None;
        }
        if let Some(at) = old {
            let node = self.old.nodes[at];
            let may_grow = node.flags & CUT != 0 && self.old.nodes.len() < MOST_FOLDERS;
            // A link on the path may lead elsewhere, but not to the same inode, and nothing else is
            // used.
            let is_same = |stat: FileStat| {
                (stat.device, stat.inode, nanoseconds(stat))
                    == (node.device, node.inode, node.changed)
            };
            if !may_grow && self.stat().is_ok_and(is_same) {
                if node.flags & CUT != 0 {
                    self.found.add_incomplete("there are too many folders");
                }
                return Some((node, Children::Old { next: at + 1, end: at + node.span as usize }));
            }
        }
        self.list(name, old)
    }

    /// Stats the current path. Links are followed, since the result is only compared.
    fn stat(&self) -> Result<FileStat, Errno> {
        let (folder, path) = self.here();
        match path {
            b"" => FileStat::of_open(folder),
            path => FileStat::at(folder, OsStr::from_bytes(path)),
        }
    }

    fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        let (folder, path) = self.here();
        open_inside(folder, Path::new(OsStr::from_bytes(path)), flags)
    }

    /// An open folder, and the rest of the current path relative to it.
    fn here(&self) -> (BorrowedFd<'_>, &[u8]) {
        match self.anchors.last() {
            Some(anchor) => (anchor.folder.as_fd(), &self.path[anchor.start..]),
            None => (self.root, &self.path),
        }
    }

    fn list(&mut self, name: &[u8], old: Option<usize>) -> Option<(Node, Children)> {
        let is_known = old.is_some_and(|at| self.old.nodes[at].flags & UNREADABLE != 0);
        let open =
            || self.open(TO_LIST).and_then(|folder| Ok((FileStat::of_open(&folder)?, folder)));
        let mut opened = open();
        let may_enter = |stat: FileStat| stat.mode & 0o500 == 0o500;
        if self.unreadable == Unreadable::Open
            && !is_known
            && !opened.as_ref().is_ok_and(|(stat, _)| may_enter(*stat))
            && self.allow_listing().is_ok()
        {
            opened = open();
        }
        let (stat, folder) = match opened {
            Ok(opened) => opened,
            // It is gone, or was replaced with a link.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return None,
            Err(error) => return Some(self.unreadable(name, old, error)),
        };
        let settled = is_settled(stat.changed, self.now)
            && *self.exact.entry(stat.device).or_insert_with(|| is_exact(&folder));
        let around = self.frames.last().map_or(0, |frame| frame.flags);
        let mut marks = Marks::default();
        let mut names: Vec<Box<[u8]>> = Vec::new();
        let room = MOST_FOLDERS.saturating_sub(self.new.nodes.len());
        let mut count = 0;
        let listed = for_each_entry(folder, |name, kind| {
            count += 1;
            marks.note(name, kind);
            if kind == FileType::Directory && names.len() <= room {
                names.push(name.into());
            }
        });
        if let Err(error) = listed {
            return Some(self.unreadable(name, old, error));
        }
        self.entries += count;
        let changed = if settled { nanoseconds(stat) } else { UNSETTLED };
        let flags = flags(name, around, &marks);
        let node = Node { changed, flags, ..Node::of(stat) };
        Some((node, Children::New(self.match_old(names, old).into_iter())))
    }

    /// The root is not reopened: without the right to enter a folder, its `.` cannot be opened
    /// either.
    fn allow_listing(&self) -> Result<(), Errno> {
        match self.here() {
            (root, b"") => allow_listing(root),
            _ => allow_listing(self.open(TO_ENTER)?.as_fd()),
        }
    }

    /// A folder that was unreadable before is not reported again; it may be the user's.
    fn unreadable(&mut self, name: &[u8], old: Option<usize>, error: Errno) -> (Node, Children) {
        let is_known = old.is_some_and(|at| self.old.nodes[at].flags & UNREADABLE != 0);
        if !is_known {
            self.found.unreadable += 1;
            if self.found.unreadable <= MOST_NAMED {
                let path = match &self.path[..] {
                    b"" => self.root_path.to_string_lossy(),
                    path => String::from_utf8_lossy(path),
                };
                self.found.add_incomplete(&format!("{path} cannot be read: {error}"));
            }
        }
        let around = self.frames.last().map_or(0, |frame| frame.flags);
        let flags = UNREADABLE | flags(name, around, &Marks::default());
        let stat = self.stat().ok();
        let node = stat.map_or(Node::UNKNOWN, Node::of);
        (Node { changed: UNSETTLED, flags, ..node }, Children::Old { next: 0, end: 0 })
    }

    /// Looks up the names in the old list.
    fn match_old(
        &self,
        names: Vec<Box<[u8]>>,
        old: Option<usize>,
    ) -> Vec<(Box<[u8]>, Option<usize>)> {
        let mut known: HashMap<&[u8], usize> = HashMap::new();
        if let Some(at) = old {
            let end = at + self.old.nodes[at].span as usize;
            let mut next = at + 1;
            while next < end {
                known.insert(self.old.name(next), next);
                next += self.old.nodes[next].span as usize;
            }
        }
        let find = |name: Box<[u8]>| {
            let old = known.get(&*name).copied();
            (name, old)
        };
        names.into_iter().map(find).collect()
    }

    /// Adds a folder to the new list, and enters it unless it is empty.
    fn add(&mut self, name: &[u8], mut node: Node, children: Children, parent_length: usize) {
        // A parent may have become a repository since.
        let around = self.frames.last().map_or(0, |frame| frame.flags);
        if around & (REPOSITORY | INSIDE) != 0 {
            node.flags |= INSIDE;
        } else if node.flags & REPOSITORY == 0 {
            node.flags &= !INSIDE;
        }
        self.note_found(node.flags);
        let at = self.new.nodes.len();
        let name_start = self.new.names.len() as u32;
        self.new.names.extend_from_slice(name);
        let name_length = name.len().try_into().unwrap_or(u16::MAX);
        self.new.nodes.push(Node { name: name_start, name_length, span: 1, ..node });
        let is_empty = match &children {
            Children::Old { next, end } => next == end,
            Children::New(children) => children.len() == 0,
        };
        if is_empty {
            return self.path.truncate(parent_length);
        }
        self.frames.push(Frame { parent_length, node: at, flags: node.flags, children });
        if let Err(reason) = self.may_descend() {
            self.cut(&reason);
            self.leave();
        }
    }

    fn may_descend(&mut self) -> Result<(), String> {
        if self.frames.len() > MOST_DEPTH {
            return Err(format!("folders are more than {MOST_DEPTH} deep"));
        }
        if self.entries > MOST_ENTRIES {
            return Err(format!("more than {MOST_ENTRIES} files are in folders that changed"));
        }
        let start = self.anchors.last().map_or(0, |anchor| anchor.start);
        if self.path.len() - start > LONGEST_STRETCH {
            let folder = self.open(TO_ENTER).map_err(|error| error.to_string())?;
            self.anchors.push(Anchor { start: self.path.len() + 1, folder });
        }
        Ok(())
    }

    /// Marks the current folder as incomplete, which is reported every time.
    fn cut(&mut self, reason: &str) {
        if let Some(frame) = self.frames.last() {
            self.new.nodes[frame.node].flags |= CUT;
        }
        self.found.add_incomplete(reason);
    }

    fn leave(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        self.new.nodes[frame.node].span = (self.new.nodes.len() - frame.node) as u32;
        self.path.truncate(frame.parent_length);
        while self.anchors.last().is_some_and(|anchor| anchor.start > self.path.len() + 1) {
            self.anchors.pop();
        }
    }

    fn note_found(&mut self, flags: u8) {
        let has_link = flags & INSIDE != 0 && flags & HAS_LINK != 0;
        if flags & (HAS_GIT | REPOSITORY | NEST) == 0 && !has_link {
            return;
        }
        let path = PathBuf::from(OsStr::from_bytes(&self.path));
        if flags & HAS_GIT != 0 {
            self.found.with_git.push(path.clone());
        }
        if flags & NEST != 0 || has_link {
            self.found.nests.push(path.clone());
        }
        if flags & REPOSITORY != 0 {
            if flags & HAS_SHARED != 0 {
                self.found.with_shared_index.push(path.clone());
            }
            self.found.repositories.push(path);
        }
    }
}

/// Lets the owner list and enter an open folder, whatever its current path is.
#[cfg(target_os = "linux")]
fn allow_listing(folder: BorrowedFd<'_>) -> Result<(), Errno> {
    let mode = plain_mode(FileStat::of_open(folder)?.mode) | Mode::RUSR | Mode::XUSR;
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    chmodat(CWD, path, mode, AtFlags::empty())
}

/// Other systems have no sandbox.
#[cfg(not(target_os = "linux"))]
fn allow_listing(_folder: BorrowedFd<'_>) -> Result<(), Errno> {
    Err(Errno::ACCESS)
}

fn nanoseconds(stat: FileStat) -> i64 {
    stat.changed.0.saturating_mul(1_000_000_000).saturating_add(stat.changed.1)
}
