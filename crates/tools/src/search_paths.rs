//! Variables by which programs find other programs and libraries.
//!
//! A command outside the sandbox must not run what an agent has put into the working tree: with
//! `.venv/bin` of the tree in `PATH`, a `git` planted there would run with all rights of the user.
//! So entries that lead into folders writable by agents are removed.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use crate::sandbox::Root;
use crate::words::Variables;

/// Lists of paths, of which some entries are removed.
const LISTS: [&str; 15] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LD_AUDIT",
    "DYLD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "PYTHONPATH",
    "PERL5LIB",
    "PERLLIB",
    "RUBYLIB",
    "GEM_PATH",
    "CLASSPATH",
    "NODE_PATH",
    "CDPATH",
    "MANPATH",
];

/// Single paths, which are set to an empty value: programs treat that as unset.
const SINGLE: [&str; 19] = [
    "BASH_ENV",
    "CARGO_HOME",
    "ENV",
    "GIT_ASKPASS",
    "GIT_CONFIG",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_SSH",
    "GIT_TEMPLATE_DIR",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTUP_HOME",
    "SSH_ASKPASS",
    "XDG_CONFIG_HOME",
];

/// The `variables` that have to change so that none leads into `avoided`, with their new values: for a
/// program started outside the sandbox. Relative paths are removed as well, since they depend on the
/// working directory. If nothing is avoided, nothing changes.
pub fn avoiding<'a>(
    avoided: &[Root],
    variables: impl Iterator<Item = &'a (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    if avoided.is_empty() {
        return Variables::new();
    }
    let changed = variables.filter_map(|(name, value)| {
        let safe = if LISTS.iter().any(|list| name == list) {
            safe_entries(avoided, name, value)
        } else if SINGLE.iter().any(|single| name == single) && !is_safe(avoided, value.as_bytes())
        {
            OsString::new()
        } else {
            return None;
        };
        (safe != *value).then(|| (name.clone(), safe))
    });
    changed.collect()
}

fn safe_entries(avoided: &[Root], name: &OsStr, list: &OsStr) -> OsString {
    // In LD_PRELOAD, the dynamic loader accepts spaces as separators.
    let is_end = |byte: &u8| *byte == b':' || (*byte == b' ' && name == "LD_PRELOAD");
    let entries = list.as_bytes().split(is_end);
    let safe: Vec<&[u8]> = entries.filter(|entry| is_safe(avoided, entry)).collect();
    OsString::from_vec(safe.join(&b':'))
}

/// Whether a path is absolute and leads into no avoided folder, neither as written nor with links
/// resolved.
fn is_safe(avoided: &[Root], path: &[u8]) -> bool {
    let path = Path::new(OsStr::from_bytes(path));
    let real = path.canonicalize().map_or(Cow::Borrowed(path), Cow::Owned);
    let leads_in = |path: &Path| avoided.iter().any(|root| path.starts_with(root.path()));
    path.is_absolute() && !leads_in(path) && !leads_in(&real)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::{OsString, Root, avoiding};

    #[test]
    fn nothing_leads_into_a_folder_that_agents_can_write() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("tree/bin")).unwrap();
        symlink(top.join("tree/bin"), top.join("link")).unwrap();
        let roots = [Root::open(&top.join("tree")).unwrap()];
        let at = |name: &str| top.join(name).display().to_string();
        let check = |name: &str, value: &str, expected: Option<&str>| {
            let variables = [(OsString::from(name), OsString::from(value))];
            let changed = avoiding(&roots, variables.iter());
            let value = changed.first().map(|(_, value)| value.to_str().unwrap());
            assert_eq!(value, expected, "{name}");
        };
        let path = [&at("tree/bin"), "/usr/bin", "", ".", "bin", &at("link"), "/bin"].join(":");
        check("PATH", &path, Some("/usr/bin:/bin"));
        check("PATH", "/usr/bin:/bin", None);
        check("LD_PRELOAD", &at("tree/x.so"), Some(""));
        check("LD_PRELOAD", &format!("/x.so {}", at("tree/y.so")), Some("/x.so"));
        check("BASH_ENV", &at("tree/env"), Some(""));
        check("XDG_CONFIG_HOME", &at("tree/config"), Some(""));
        check("BASH_ENV", "env", Some(""));
        check("BASH_ENV", "/etc/env", None);
        check("OTHER", &at("tree"), None);
        assert_eq!(avoiding(&[], [("PATH".into(), ".".into())].iter()), []);
    }
}
