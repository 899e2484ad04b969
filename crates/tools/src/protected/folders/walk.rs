//! One walk over the folders beneath a root: what has not changed is taken from the old list.

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
use super::{Closed, Folders, Found, MOST_NAMED, Node, UNSETTLED};
use crate::change_time::{is_exact, is_settled};
use crate::protected::beneath::{
    LONGEST_STRETCH, Look, Root, TO_ENTER, TO_LIST, for_each_entry, open_beneath,
};
use crate::protected::moving::plain_mode;

/// Ten times as many as large projects have; they take some 30 MB.
const MOST_FOLDERS: usize = 500_000;
/// Bytes of all their names, which are 20 times as long as usual then.
const MOST_NAMES: usize = 128 * 1024 * 1024;
/// Entries of all folders that are listed in one update, which takes about a second then.
const MOST_ENTRIES: usize = 3_000_000;
/// So deep no program works: a path of one letter a folder has 2,000 letters.
const MOST_DEPTH: usize = 1_000;

pub(super) struct Walk<'a> {
    root: BorrowedFd<'a>,
    root_path: &'a Path,
    old: &'a Folders,
    pub(super) new: Folders,
    pub(super) found: Found,
    /// Where the walk is.
    path: Vec<u8>,
    /// Open folders on the way, since a path may be longer than the system takes.
    anchors: Vec<Anchor>,
    /// The folders that the walk is in.
    frames: Vec<Frame>,
    entries: usize,
    /// Which devices keep exact change times.
    exact: HashMap<u64, bool>,
    now: SystemTime,
    closed: Closed,
}

struct Anchor {
    /// Where in the path begins what is relative to it.
    start: usize,
    folder: OwnedFd,
}

struct Frame {
    /// The length of the path without this folder.
    parent_length: usize,
    /// Its place in the new list.
    node: usize,
    flags: u8,
    children: Children,
}

enum Children {
    /// An unchanged folder: those of the old list from here to there.
    Old { next: usize, end: usize },
    /// A folder that was listed; each with its place in the old list.
    New(std::vec::IntoIter<(Box<[u8]>, Option<usize>)>),
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        root: &'a Root,
        old: &'a Folders,
        now: SystemTime,
        closed: Closed,
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
            found: Found::default(),
            path: Vec::new(),
            anchors: Vec::new(),
            frames: Vec::new(),
            entries: 0,
            exact: HashMap::new(),
            now,
            closed,
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

    /// `None` if the folder is gone, another one too many, or to be left alone.
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
            // A link on the way may lead elsewhere, but not to the same inode: nothing else is taken from this.
            let is_same = |look: Look| {
                (look.device, look.inode, nanoseconds(look))
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

    /// Of what the path names now. Links on the way are followed: only for comparing.
    fn stat(&self) -> Result<Look, Errno> {
        let (folder, path) = self.here();
        match path {
            b"" => Look::of_open(folder),
            path => Look::at(folder, OsStr::from_bytes(path)),
        }
    }

    fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        let (folder, path) = self.here();
        open_beneath(folder, Path::new(OsStr::from_bytes(path)), flags)
    }

    /// An open folder, and the rest of the path from there.
    fn here(&self) -> (BorrowedFd<'_>, &[u8]) {
        match self.anchors.last() {
            Some(anchor) => (anchor.folder.as_fd(), &self.path[anchor.start..]),
            None => (self.root, &self.path),
        }
    }

    fn list(&mut self, name: &[u8], old: Option<usize>) -> Option<(Node, Children)> {
        let is_known = old.is_some_and(|at| self.old.nodes[at].flags & UNREADABLE != 0);
        let open = || self.open(TO_LIST).and_then(|folder| Ok((Look::of_open(&folder)?, folder)));
        let mut opened = open();
        let may_enter = |look: Look| look.mode & 0o500 == 0o500;
        if self.closed == Closed::Opened
            && !is_known
            && !opened.as_ref().is_ok_and(|(look, _)| may_enter(*look))
            && self.allow_listing().is_ok()
        {
            opened = open();
        }
        let (look, folder) = match opened {
            Ok(opened) => opened,
            // It is gone, or a link by now.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return None,
            Err(error) => return Some(self.unreadable(name, old, error)),
        };
        let settled = is_settled(look.changed, self.now)
            && *self.exact.entry(look.device).or_insert_with(|| is_exact(&folder));
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
        let changed = if settled { nanoseconds(look) } else { UNSETTLED };
        let flags = flags(name, around, &marks);
        let node = Node { changed, flags, ..Node::of(look) };
        Some((node, Children::New(self.match_old(names, old).into_iter())))
    }

    /// The root is not opened again: without the right to enter a folder, `.` cannot be opened in it either.
    fn allow_listing(&self) -> Result<(), Errno> {
        match self.here() {
            (root, b"") => allow_listing(root),
            _ => allow_listing(self.open(TO_ENTER)?.as_fd()),
        }
    }

    /// A folder that was unreadable before is not told again; the user may have such.
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
        let look = self.stat().ok();
        let node = look.map_or(Node::UNKNOWN, Node::of);
        (Node { changed: UNSETTLED, flags, ..node }, Children::Old { next: 0, end: 0 })
    }

    /// Finds the names in the old list.
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

    /// Puts a folder into the new list, and goes into it if there is something in it.
    fn add(&mut self, name: &[u8], mut node: Node, children: Children, parent_length: usize) {
        // What is around it may have become a repository since.
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

    /// Something in the folder that the walk is in is left out, which has to be told every time.
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

/// Lets the owner of a folder list and enter it, whatever it is called by now.
#[cfg(target_os = "linux")]
fn allow_listing(folder: BorrowedFd<'_>) -> Result<(), Errno> {
    let mode = plain_mode(Look::of_open(folder)?.mode) | Mode::RUSR | Mode::XUSR;
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    chmodat(CWD, path, mode, AtFlags::empty())
}

/// Elsewhere there is no sandbox.
#[cfg(not(target_os = "linux"))]
fn allow_listing(_folder: BorrowedFd<'_>) -> Result<(), Errno> {
    Err(Errno::ACCESS)
}

fn nanoseconds(look: Look) -> i64 {
    look.changed.0.saturating_mul(1_000_000_000).saturating_add(look.changed.1)
}
