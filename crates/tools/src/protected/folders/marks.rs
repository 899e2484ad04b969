//! What a folder means to git, by its name, its entries and its parents.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::FileType;

use crate::protected::names::folded;

/// The folder has a `.git` entry of any type.
pub(super) const HAS_GIT: u8 = 1;
/// Git considers the folder a repository, or its name is `.git`.
pub(super) const REPOSITORY: u8 = 2;
/// A folder that only contains repositories of submodules or worktrees.
pub(super) const NEST: u8 = 4;
/// It could not be listed.
pub(super) const UNREADABLE: u8 = 8;
/// It was not visited completely, since it is too large.
pub(super) const CUT: u8 = 16;

/// It is inside a repository.
pub(super) const INSIDE: u8 = 32;
/// It contains a link.
pub(super) const HAS_LINK: u8 = 64;
/// There is an index in it that others share.
pub(super) const HAS_SHARED: u8 = 128;

/// Which significant names a folder contains.
#[derive(Debug, Default)]
pub(super) struct Marks {
    git: bool,
    head: bool,
    objects: bool,
    commondir: bool,
    shared: bool,
    link: bool,
}

impl Marks {
    pub(super) fn note(&mut self, name: &[u8], kind: FileType) {
        self.link |= kind == FileType::Symlink;
        match name.len() {
            4 if is_name(name, ".git") => self.git = true,
            4 if is_name(name, "head") => self.head = true,
            7 if is_name(name, "objects") => self.objects = true,
            9 if is_name(name, "commondir") => self.commondir = true,
            13.. if is_shared_index(name) => self.shared = true,
            // A file system may ignore invisible characters in a name.
            5.. if !name.is_ascii() && is_name(name, ".git") => self.git = true,
            _ => {}
        }
    }
}

pub(super) fn flags(name: &[u8], around: u8, marks: &Marks) -> u8 {
    let is_repository = is_name(name, ".git") || (marks.head && (marks.objects || marks.commondir));
    let is_nest = !is_repository
        && match around {
            around if around & NEST != 0 => true,
            around if around & REPOSITORY != 0 => {
                is_name(name, "modules") || is_name(name, "worktrees")
            }
            _ => false,
        };
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let is_inside = is_repository || around & (REPOSITORY | INSIDE) != 0;
    flag(marks.git, HAS_GIT)
        | flag(is_repository, REPOSITORY)
        | flag(is_nest, NEST)
        | flag(is_inside, INSIDE)
        | flag(marks.link, HAS_LINK)
        | flag(marks.shared, HAS_SHARED)
}

/// Whether it is the name of an index that others share, with the hash behind it.
pub(in crate::protected) fn is_shared_index(name: &[u8]) -> bool {
    let prefix = name.get(..SHARED_INDEX.len());
    prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(SHARED_INDEX))
}

const SHARED_INDEX: &[u8] = b"sharedindex.";

/// Whether a file system may consider a name equal to this ASCII name.
fn is_name(found: &[u8], name: &str) -> bool {
    match found.is_ascii() {
        true => found.eq_ignore_ascii_case(name.as_bytes()),
        false => folded(OsStr::from_bytes(found)) == name,
    }
}
