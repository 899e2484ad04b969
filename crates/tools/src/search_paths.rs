//! Variables by which programs find other programs and libraries.
//!
//! A command outside the sandbox must not run what an agent has put into the working tree: with
//! `.venv/bin` of the tree in `PATH`, a `git` planted there would run with all rights of the user.
//! So entries that lead into folders writable by agents are removed.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use crate::place::real_path;
use crate::sandbox::Root;
use crate::words::Variables;

/// Lists of paths, of which some entries are removed.
const LISTS: [&str; 27] = [
    "BASH_LOADABLES_PATH",
    "CDPATH",
    "CLASSPATH",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "FPATH",
    "GCONV_PATH",
    "GEM_PATH",
    "GIO_EXTRA_MODULES",
    "GUILE_LOAD_PATH",
    "JULIA_DEPOT_PATH",
    "JULIA_LOAD_PATH",
    "KUBECONFIG",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "MANPATH",
    "NODE_PATH",
    "PATH",
    "PERL5LIB",
    "PERLLIB",
    "PHP_INI_SCAN_DIR",
    "PYTHONPATH",
    "RUBYLIB",
    "R_LIBS",
    "R_LIBS_USER",
    "XDG_CONFIG_DIRS",
];

/// Single paths, which are set to an empty value: programs treat that as unset.
const SINGLE: [&str; 36] = [
    "ANSIBLE_CONFIG",
    "AWS_CONFIG_FILE",
    "BASH_ENV",
    "CARGO_HOME",
    "CURL_HOME",
    "DOCKER_CONFIG",
    "ENV",
    "GEM_HOME",
    "GH_CONFIG_DIR",
    "GIT_ASKPASS",
    "GIT_CONFIG",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_SSH",
    "GIT_TEMPLATE_DIR",
    "GNUPGHOME",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PHPRC",
    "PIP_CONFIG_FILE",
    "PYTHONHOME",
    "PYTHONPYCACHEPREFIX",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTUP_HOME",
    "R_ENVIRON_USER",
    "R_PROFILE_USER",
    "SSH_ASKPASS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "ZDOTDIR",
];

/// Commands and options, which are set to an empty value if they mention a folder that agents can
/// write, or a relative path.
const COMMANDS: [&str; 21] = [
    "BROWSER",
    "EDITOR",
    "GIT_EDITOR",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH_COMMAND",
    "GOFLAGS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LESSCLOSE",
    "LESSOPEN",
    "LUA_CPATH",
    "LUA_PATH",
    "MANPAGER",
    "NODE_OPTIONS",
    "PAGER",
    "PERL5OPT",
    "RUBYOPT",
    "VISUAL",
    "_JAVA_OPTIONS",
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
        let is_in = |names: &[&str]| names.iter().any(|known| name == known);
        let is_unsafe = (is_in(&SINGLE) && !is_safe(avoided, value.as_bytes()))
            || (is_in(&COMMANDS) && !mentions_nothing(avoided, value.as_bytes()));
        let safe = match is_in(&LISTS) {
            true => safe_entries(avoided, name, value),
            false if is_unsafe => OsString::new(),
            false => return None,
        };
        (safe != *value).then(|| (name.clone(), safe))
    });
    changed.collect()
}

/// Whether a command mentions no avoided folder and no relative path.
fn mentions_nothing(avoided: &[Root], command: &[u8]) -> bool {
    /// What may come before a path, as in `-javaagent:PATH` and `--require=PATH`.
    const BEFORE_PATHS: [u8; 10] = *b" \t\n\"'=:;,|";
    let parts = command.split(|byte| BEFORE_PATHS.contains(byte));
    parts.filter(|part| part.contains(&b'/')).all(|part| {
        let start = part.iter().position(|byte| *byte == b'/').unwrap_or_default();
        // An option of one letter takes a path without a space.
        let is_option = matches!(part, [b'-', b'A'..=b'z', b'/', ..]);
        is_safe(avoided, if is_option { &part[start..] } else { part })
    })
}

fn safe_entries(avoided: &[Root], name: &OsStr, list: &OsStr) -> OsString {
    // In LD_PRELOAD, the dynamic loader accepts spaces as separators.
    let is_end = |byte: &u8| *byte == b':' || (*byte == b' ' && name == "LD_PRELOAD");
    let entries = list.as_bytes().split(is_end);
    let mut safe: Vec<&[u8]> = entries.filter(|entry| is_safe(avoided, entry)).collect();
    if safe.is_empty() && name == "PATH" {
        // Shells take an empty one for the working directory.
        safe.push(b"/usr/bin:/bin");
    }
    OsString::from_vec(safe.join(&b':'))
}

/// Whether a path is absolute and leads into no avoided folder, neither as written nor with links
/// resolved. It need not exist.
fn is_safe(avoided: &[Root], path: &[u8]) -> bool {
    let path = Path::new(OsStr::from_bytes(path));
    let real = real_path(path).map_or(Cow::Borrowed(path), Cow::Owned);
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
        check("PATH", &at("tree/bin"), Some("/usr/bin:/bin"));
        check("LD_PRELOAD", &at("tree/x.so"), Some(""));
        check("LD_PRELOAD", &format!("/x.so {}", at("tree/y.so")), Some("/x.so"));
        check("BASH_ENV", &at("tree/env"), Some(""));
        check("XDG_CONFIG_HOME", &at("tree/config"), Some(""));
        check("BASH_ENV", "env", Some(""));
        check("BASH_ENV", "/etc/env", None);
        check("EDITOR", "vim -f", None);
        check("EDITOR", "/usr/bin/vim -u /etc/vimrc", None);
        check("EDITOR", &format!("{} -w", at("tree/bin/ed")), Some(""));
        check("PAGER", "bin/page", Some(""));
        check(
            "NODE_OPTIONS",
            &format!("--max-old-space-size=4096 --require={}", at("tree/x")),
            Some(""),
        );
        check("NODE_OPTIONS", "--require ./x.js", Some(""));
        check("RUBYOPT", &format!("-r{}", at("link/x")), Some(""));
        check("JAVA_TOOL_OPTIONS", &format!("-javaagent:{}", at("tree/x.jar")), Some(""));
        check("KUBECONFIG", &format!("/etc/kube:{}", at("tree/kube")), Some("/etc/kube"));
        check("OPENSSL_CONF", &at("tree/openssl.cnf"), Some(""));
        check("OTHER", &at("tree"), None);
        assert_eq!(avoiding(&[], [("PATH".into(), ".".into())].iter()), []);
    }
}
