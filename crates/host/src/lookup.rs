//! Resolving a path through folders and links.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// A path resolved as the kernel does it, link by link.
pub(crate) struct Lookup {
    /// The real paths of the folders in which a name was looked up. A process that can write to one
    /// of them can change where the path leads.
    pub(crate) folders: Vec<PathBuf>,
    /// Where the path leads, whether or not the file exists.
    pub(crate) end: PathBuf,
    /// The links that were followed.
    pub(crate) links: Vec<PathBuf>,
}

impl Lookup {
    pub(crate) fn of(path: &Path) -> Lookup {
        /// Linux follows no more.
        const MOST_LINKS: usize = 40;
        let (folders, links) = (Vec::new(), Vec::new());
        let mut lookup = Lookup { folders, end: PathBuf::from("/"), links };
        let mut rest = path.to_owned();
        while let Some(component) = rest.components().next() {
            let behind: PathBuf = rest.components().skip(1).collect();
            match component {
                Component::RootDir | Component::Prefix(_) => lookup.end = PathBuf::from("/"),
                Component::CurDir => {}
                Component::ParentDir => drop(lookup.end.pop()),
                Component::Normal(name) => {
                    lookup.folders.push(lookup.end.clone());
                    let named = lookup.end.join(name);
                    match fs::read_link(&named) {
                        Ok(target) if lookup.links.len() < MOST_LINKS => {
                            lookup.links.push(named);
                            rest = target.join(behind);
                            continue;
                        }
                        Ok(_) | Err(_) => lookup.end = named,
                    }
                }
            }
            rest = behind;
        }
        lookup
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_is_followed_as_the_system_does() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("tree/sub")).unwrap();
        fs::create_dir(top.join("safe")).unwrap();
        symlink("../safe", top.join("tree/out")).unwrap();
        symlink(top.join("tree/sub"), top.join("in")).unwrap();
        symlink("loop", top.join("loop")).unwrap();
        let check = |path: &str, end: &str, in_tree: bool| {
            let lookup = Lookup::of(&top.join(path));
            assert_eq!(lookup.end, top.join(end), "{path}");
            let tree = top.join("tree");
            assert_eq!(lookup.folders.iter().any(|at| at.starts_with(&tree)), in_tree, "{path}");
        };
        check("safe/a.db", "safe/a.db", false);
        check("tree/../safe/a.db", "safe/a.db", false);
        check("treeish/a.db", "treeish/a.db", false);
        check("tree", "tree", false);
        check("tree/a.db", "tree/a.db", true);
        check("tree/not/there/a.db", "tree/not/there/a.db", true);
        check("tree/out/a.db", "safe/a.db", true);
        check("in/a.db", "tree/sub/a.db", true);
        check("in/../../safe/a.db", "safe/a.db", true);
        check("loop/a.db", "loop/a.db", false);
        let links = Lookup::of(&top.join("in/../out/a.db")).links;
        assert_eq!(links, ["in", "tree/out"].map(|name| top.join(name)));
    }
}
