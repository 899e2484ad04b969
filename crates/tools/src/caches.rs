//! Caches of build tools, for commands in the sandbox.
//!
//! Caches are in the home directory, where sandboxed commands cannot write. Some tools fail without
//! one: go, uv and ccache always, npm as soon as it downloads something. So their variables point
//! into the session's temporary folder.
//!
//! The list contains only caches that are useless when read-only. What cargo and go have downloaded
//! is read from the home directory.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::sandbox::Root;
use crate::words::Variables;

/// The folder of these caches in the session's temporary folder.
pub const CACHE_FOLDER: &str = "ikigai-caches";

/// The variable of a cache, its default location, and its name in [`CACHE_FOLDER`].
const CACHES: [(&str, &str, &str); 5] = [
    ("GOCACHE", ".cache/go-build", "go-build"),
    ("npm_config_cache", ".npm", "npm"),
    ("PIP_CACHE_DIR", ".cache/pip", "pip"),
    ("UV_CACHE_DIR", ".cache/uv", "uv"),
    ("CCACHE_DIR", ".cache/ccache", "ccache"),
];

/// The variables to set for a command that can only write to `writable`. Caches in there stay, and
/// so do those with a special value (`PIP_CACHE_DIR=off`).
pub(crate) fn writable_caches(environment: &Variables, writable: &[Root]) -> Variables {
    let is_writable = |path: &Path| writable.iter().any(|root| path.starts_with(root.path()));
    let folder = |name: &str| value(environment, name).map(|(_, value)| PathBuf::from(value));
    let (Some(temporary), Some(home)) = (folder("TMPDIR"), folder("HOME")) else {
        return Variables::new();
    };
    if !is_writable(&temporary) {
        return Variables::new();
    }
    let shared = folder("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache"));
    let replaced = CACHES.into_iter().filter_map(|(variable, usual, name)| {
        let usual = match usual.strip_prefix(".cache/") {
            Some(rest) => shared.join(rest),
            None => home.join(usual),
        };
        let set = value(environment, variable);
        let (variable, cache) = set.unwrap_or((OsStr::new(variable), usual.as_os_str()));
        let cache = Path::new(cache);
        let is_lost = cache.is_absolute() && !is_writable(cache);
        is_lost.then(|| (variable.to_owned(), temporary.join(CACHE_FOLDER).join(name).into()))
    });
    replaced.collect()
}

/// A non-empty variable with its name as spelled: npm accepts any case.
fn value<'a>(environment: &'a Variables, name: &str) -> Option<(&'a OsStr, &'a OsStr)> {
    let mut set = environment.iter().filter(|(_, value)| !value.is_empty());
    let found = set.find(|(set, _)| set.eq_ignore_ascii_case(name));
    found.map(|(name, value): &(OsString, OsString)| (name.as_os_str(), value.as_os_str()))
}

#[cfg(test)]
mod tests {
    use super::writable_caches;
    use crate::sandbox::{Identity, Root};

    #[track_caller]
    fn check(writable: &[&str], set: &[(&str, &str)], expected: &[(&str, &str)]) {
        let identity = Identity { device: 0, inode: 0 };
        let roots: Vec<Root> =
            writable.iter().map(|path| Root::known(path.into(), identity, true)).collect();
        let environment = set.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| (name.into(), value.into())).collect();
        assert_eq!(writable_caches(&environment, &roots), expected, "{set:?}");
    }

    const PLACES: [(&str, &str); 2] = [("HOME", "/home/me"), ("TMPDIR", "/tmp/s")];

    #[test]
    fn caches_that_cannot_be_written_are_in_the_temporary_folder() {
        let all = [
            ("GOCACHE", "/tmp/s/ikigai-caches/go-build"),
            ("npm_config_cache", "/tmp/s/ikigai-caches/npm"),
            ("PIP_CACHE_DIR", "/tmp/s/ikigai-caches/pip"),
            ("UV_CACHE_DIR", "/tmp/s/ikigai-caches/uv"),
            ("CCACHE_DIR", "/tmp/s/ikigai-caches/ccache"),
        ];
        check(&["/tree", "/tmp/s"], &PLACES, &all);
        check(&["/tree", "/tmp/s", "/home/me/.npm"], &PLACES, &[&all[..1], &all[2..]].concat());
        check(&["/home/me", "/tmp/s"], &PLACES, &[]);
        let elsewhere = [&PLACES[..], &[("XDG_CACHE_HOME", "/tree/cache")]].concat();
        check(&["/tree", "/tmp/s"], &elsewhere, &all[1..2]);
    }

    #[test]
    fn a_cache_that_the_user_has_chosen_stays_if_it_can_be_written() {
        let chosen = [
            ("GOCACHE", "/tree/go"),
            ("NPM_CONFIG_CACHE", "/data/npm"),
            ("PIP_CACHE_DIR", "off"),
            ("UV_CACHE_DIR", "/tmp/s/uv"),
            ("CCACHE_DIR", "/tree/ccache"),
        ];
        let expected = [("NPM_CONFIG_CACHE", "/tmp/s/ikigai-caches/npm")];
        check(&["/tree", "/tmp/s"], &[&PLACES[..], &chosen].concat(), &expected);
    }

    #[test]
    fn without_a_temporary_folder_nothing_is_set() {
        check(&["/tree"], &PLACES, &[]);
        check(&["/tree"], &PLACES[..1], &[]);
    }
}
