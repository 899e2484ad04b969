//! The git settings that a command may create or change: those that make git neither run nor trust
//! anything. This is an allowlist, so unknown keys are refused.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::git_config::{Settings, split};

/// Two-part keys that may have any value.
const PLAIN: [&str; 94] = [
    "author.email",
    "author.name",
    "branch.autosetupmerge",
    "branch.autosetuprebase",
    "branch.sort",
    "checkout.defaultremote",
    "checkout.guess",
    "clone.defaultremotename",
    "clone.filtersubmodules",
    "commit.cleanup",
    "commit.status",
    "commit.verbose",
    "committer.email",
    "committer.name",
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.bigfilethreshold",
    "core.checkroundtripencoding",
    "core.checkstat",
    "core.commentchar",
    "core.commitgraph",
    "core.compression",
    "core.eol",
    "core.filemode",
    "core.fscache",
    "core.fsync",
    "core.fsyncmethod",
    "core.hidedotfiles",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.longpaths",
    "core.loosecompression",
    "core.multipackindex",
    "core.packedrefstimeout",
    "core.precomposeunicode",
    "core.preloadindex",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.sharedrepository",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
    "core.trustctime",
    "core.untrackedcache",
    "core.warnambiguousrefs",
    "core.whitespace",
    "diff.algorithm",
    "diff.context",
    "diff.ignoresubmodules",
    "diff.indentheuristic",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "diff.submodule",
    "extensions.compatobjectformat",
    "extensions.noop",
    "extensions.objectformat",
    "extensions.preciousobjects",
    "extensions.refstorage",
    "extensions.relativeworktrees",
    "extensions.worktreeconfig",
    "fetch.parallel",
    "fetch.prune",
    "fetch.prunetags",
    "fetch.recursesubmodules",
    "fetch.writecommitgraph",
    "gc.auto",
    "gc.autodetach",
    "gc.autopacklimit",
    "gc.pruneexpire",
    "gc.reflogexpire",
    "gc.reflogexpireunreachable",
    "index.sparse",
    "index.threads",
    "index.version",
    "init.defaultbranch",
    "lfs.repositoryformatversion",
    "maintenance.auto",
    "maintenance.strategy",
    "merge.conflictstyle",
    "merge.ff",
    "merge.log",
    "merge.renames",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "push.followtags",
    "push.recursesubmodules",
    "user.email",
    "user.name",
];
/// Sections in which two-part keys only affect output or the behavior of a command.
const PLAIN_SECTIONS: [&str; 8] =
    ["advice", "color", "column", "rebase", "rerere", "status", "stash", "tag"];
/// Exceptions in these sections, which name a program or a key.
const NOT_PLAIN: [&str; 3] = ["rebase.instructionformat", "tag.gpgsign", "tag.forcesignannotated"];
/// Keys that may only be turned off.
const ONLY_OFF: [&str; 3] = ["commit.gpgsign", "tag.forcesignannotated", "tag.gpgsign"];

/// The last part of three-part keys that may have any value.
const PLAIN_OF_REMOTE: [&str; 6] =
    ["fetch", "followremotehead", "prune", "prunetags", "skipfetchall", "tagopt"];
/// Allowed only in a new repository, such as a clone: they decide which server git contacts by
/// itself, or what is sent there.
const ONLY_NEW_OF_REMOTE: [&str; 3] = ["mirror", "partialclonefilter", "promisor"];
const PLAIN_OF_BRANCH: [&str; 4] = ["description", "merge", "rebase", "vscode-merge-base"];
const PLAIN_OF_SUBMODULE: [&str; 6] =
    ["active", "branch", "fetchrecursesubmodules", "ignore", "path", "shallow"];
const UPDATES: [&[u8]; 4] = [b"checkout", b"merge", b"none", b"rebase"];
/// Schemes that git handles itself; others run a program that the URL names.
const SCHEMES: [&str; 4] = ["git", "http", "https", "ssh"];

/// Checks where a path in a setting leads. Relative paths are relative to `folder`.
pub(super) trait PathBounds {
    /// Whether it leads into a root without links.
    fn leads_inside(&self, folder: &Path, path: &Path) -> bool;

    /// Whether it leads to a working tree of the repository in the folder, and not to where git would write settings.
    fn leads_to_working_tree(&self, repository: &Path, path: &Path) -> bool;
}

/// More keys would not be read.
const MOST_REASONS: usize = 5;

/// The location of the settings.
pub(super) struct ConfigLocation<'a> {
    pub(super) bounds: &'a dyn PathBounds,
    /// The git directory.
    pub(super) repository: &'a Path,
}

impl ConfigLocation<'_> {
    /// Returns the keys that may not be changed this way, with reasons.
    pub(super) fn judge(&self, before: &Settings, now: &Settings) -> Result<(), String> {
        let mut reasons: Vec<String> = Vec::new();
        let keys: BTreeSet<&Vec<u8>> = before.0.keys().chain(now.0.keys()).collect();
        for key in keys {
            let (was, is) = (before.values(key), now.values(key));
            if was == is {
                continue;
            }
            let rule = rule(key);
            let is_moved = match rule {
                // Removing it is refused as well: another command could then add a new one.
                Rule::Address => !was.is_empty(),
                Rule::RemoteName => !was.is_empty() && !is.is_empty(),
                Rule::OnlyNew | Rule::OnlyNewRemoteName => !before.0.is_empty(),
                Rule::PushAddress => !is.is_empty() && has_remote(before, key),
                _ => false,
            };
            if is_moved {
                reasons.push(format!("it changes {}, where data is sent", shown(key)));
                continue;
            }
            let is_fine = |value: &Option<Vec<u8>>| {
                was.contains(value) || self.allows(&rule, value.as_deref())
            };
            // Removing a disallowed key is refused as well: it may have restricted git.
            let is_allowed = !matches!(rule, Rule::Never) && is.iter().all(is_fine);
            if !is_allowed {
                reasons.push(format!("it sets {}, which git may run or trust", shown(key)));
            }
        }
        match reasons.len() {
            0 => Ok(()),
            count @ 1..=MOST_REASONS => Err(reasons[..count].join("; ")),
            count => {
                let left_out = count - MOST_REASONS;
                Err(format!("{}; and {left_out} more", reasons[..MOST_REASONS].join("; ")))
            }
        }
    }

    fn allows(&self, rule: &Rule, value: Option<&[u8]>) -> bool {
        let text = value.unwrap_or(b"true");
        match rule {
            Rule::Any | Rule::OnlyNew => true,
            Rule::Off => [&b"false"[..], b"no", b"off", b"0", b""].contains(&text),
            Rule::Update => UPDATES.contains(&text),
            Rule::RemoteName | Rule::OnlyNewRemoteName => text == b"." || is_remote_name(text),
            Rule::Address | Rule::PushAddress => {
                value.is_some_and(|address| self.allows_address(address))
            }
            Rule::Folder => {
                // Only git's own submodules need this; elsewhere the folder could become a link
                // later.
                let is_submodule = self.repository.iter().any(|name| name == "modules");
                let folder = Path::new(OsStr::from_bytes(text));
                is_submodule && self.bounds.leads_to_working_tree(self.repository, folder)
            }
            Rule::Never => false,
        }
    }

    fn allows_address(&self, address: &[u8]) -> bool {
        let Ok(text) = str::from_utf8(address) else { return false };
        let has_odd = text.chars().any(char::is_control) || text.starts_with(['-', '~']);
        if has_odd || text.is_empty() {
            return false;
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            return match scheme {
                "file" => self.is_local_inside(rest),
                scheme => SCHEMES.contains(&scheme) && !rest.starts_with('-') && !rest.is_empty(),
            };
        }
        let is_host_and_path = match (text.find(':'), text.find('/')) {
            (Some(colon), Some(slash)) => colon < slash,
            (colon, None) => colon.is_some(),
            (None, Some(_)) => false,
        };
        match is_host_and_path {
            true => !text.contains("::"),
            false => self.is_local_inside(text),
        }
    }

    /// Git resolves paths from the parent of `.git`, or from a bare repository itself.
    fn is_local_inside(&self, path: &str) -> bool {
        let is_bare = self.repository.file_name() != Some(OsStr::new(".git"));
        let folder = match self.repository.parent() {
            Some(parent) if !is_bare => parent,
            _ => self.repository,
        };
        self.bounds.leads_inside(folder, Path::new(path))
    }
}

enum Rule {
    Any,
    OnlyNew,
    OnlyNewRemoteName,
    Off,
    Update,
    RemoteName,
    Address,
    PushAddress,
    Folder,
    Never,
}

fn rule(key: &[u8]) -> Rule {
    let Ok(text) = str::from_utf8(key) else { return Rule::Never };
    let (section, subsection, name) = split(key);
    let Some(subsection) = subsection else { return rule_of_two(text, section) };
    let is_in = |list: &[&str]| list.iter().any(|known| known.as_bytes() == name);
    match (section, name) {
        (b"remote", _) if !is_remote_name(subsection) => Rule::Never,
        (b"remote", b"url") | (b"submodule", b"url") => Rule::Address,
        (b"remote", b"pushurl") => Rule::PushAddress,
        (b"remote", _) if is_in(&PLAIN_OF_REMOTE) => Rule::Any,
        (b"remote", _) if is_in(&ONLY_NEW_OF_REMOTE) => Rule::OnlyNew,
        (b"branch", b"pushremote") => Rule::OnlyNewRemoteName,
        (b"branch", b"remote") => Rule::RemoteName,
        (b"branch", _) if is_in(&PLAIN_OF_BRANCH) => Rule::Any,
        (b"submodule", b"update") => Rule::Update,
        (b"submodule", _) if is_in(&PLAIN_OF_SUBMODULE) => Rule::Any,
        (b"color", _) => Rule::Any,
        _ => Rule::Never,
    }
}

fn rule_of_two(key: &str, section: &[u8]) -> Rule {
    let is_plain_section = PLAIN_SECTIONS.iter().any(|known| known.as_bytes() == section);
    match key {
        "core.worktree" => Rule::Folder,
        "extensions.partialclone" | "remote.pushdefault" => Rule::OnlyNewRemoteName,
        "submodule.active" | "submodule.fetchjobs" | "submodule.recurse" => Rule::Any,
        key if ONLY_OFF.contains(&key) => Rule::Off,
        key if PLAIN.contains(&key) => Rule::Any,
        key if is_plain_section && !NOT_PLAIN.contains(&key) => Rule::Any,
        _ => Rule::Never,
    }
}

/// Whether the remote of a `pushurl` had a URL before.
fn has_remote(before: &Settings, key: &[u8]) -> bool {
    let stem = key.strip_suffix(b"pushurl").unwrap_or(key);
    let url = [stem, b"url"].concat();
    !before.values(&url).is_empty() || !before.values(key).is_empty()
}

/// Whether git cannot mistake a name for a URL or an option.
fn is_remote_name(name: &[u8]) -> bool {
    let Ok(name) = str::from_utf8(name) else { return false };
    let is_fine = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '+' | '@');
    !name.is_empty()
        && !name.starts_with(['-', '/', '.'])
        && name.chars().all(is_fine)
        && name.split('/').all(|part| !part.is_empty() && part != ".." && part != ".")
}

fn shown(key: &[u8]) -> Cow<'_, str> {
    /// A key may be as long as a file.
    const LONGEST: usize = 100;
    String::from_utf8_lossy(&key[..key.len().min(LONGEST)])
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path, PathBuf};

    use super::super::git_config::Settings;
    use super::{ConfigLocation, PathBounds};

    /// Accepts everything under `/root` by its name alone.
    struct Lexical;

    impl PathBounds for Lexical {
        fn leads_inside(&self, folder: &Path, path: &Path) -> bool {
            let mut to = PathBuf::new();
            for component in folder.join(path).components() {
                match component {
                    Component::ParentDir => drop(to.pop()),
                    other => to.push(other),
                }
            }
            to.starts_with("/root")
        }

        fn leads_to_working_tree(&self, repository: &Path, path: &Path) -> bool {
            self.leads_inside(repository, path)
        }
    }

    fn judge(before: &str, now: &str) -> Result<(), String> {
        let parse = |text: &str| Settings::parse(text.as_bytes()).unwrap();
        let place =
            ConfigLocation { bounds: &Lexical, repository: Path::new("/root/project/.git") };
        place.judge(&parse(before), &parse(now))
    }

    #[test]
    fn what_git_needs_passes() {
        for now in [
            "[core]\nrepositoryformatversion=0\nfilemode\nbare=false\nlogallrefupdates=true",
            "[remote \"origin\"]\nurl=https://a/b\nfetch=+refs/heads/*:refs/remotes/origin/*",
            "[remote \"origin\"]\nurl=git@github.com:a/b.git",
            "[remote \"origin\"]\nurl=ssh://git@host:22/a",
            "[remote \"origin\"]\nurl=../other\npushurl=/root/third",
            "[remote \"origin\"]\nurl=file:///root/third",
            "[branch \"main\"]\nremote=origin\nmerge=refs/heads/main",
            "[branch \"a.b/c\"]\nremote=.\nrebase=true",
            "[submodule \"a/b\"]\nurl=https://a/b\nactive=true\nupdate=rebase",
            "[user]\nname=A\nemail=a@b",
            "[remote \"origin\"]\nurl=https://a/b\npromisor=true\npartialclonefilter=blob:none",
            "[extensions]\nworktreeConfig=true",
            "[commit]\ngpgsign=false",
            "[pull]\nrebase=true\n[push]\ndefault=simple",
            "[advice]\ndetachedHead=false",
        ] {
            assert_eq!(judge("", now), Ok(()), "{now}");
        }
    }

    #[test]
    fn what_git_would_run_or_trust_fails() {
        for (now, key) in [
            ("[core]\nfsmonitor=x", "core.fsmonitor"),
            ("[core]\nfsmonitor=true", "core.fsmonitor"),
            ("[core]\nhooksPath=x", "core.hookspath"),
            ("[core]\neditor=x", "core.editor"),
            ("[core]\npager=x", "core.pager"),
            ("[core]\nsshCommand=x", "core.sshcommand"),
            ("[core]\naskPass=x", "core.askpass"),
            ("[core]\ngitProxy=x", "core.gitproxy"),
            ("[core]\nattributesFile=x", "core.attributesfile"),
            ("[core]\nexcludesFile=x", "core.excludesfile"),
            ("[core]\nalternateRefsCommand=x", "core.alternaterefscommand"),
            ("[core]\nworktree=../../../etc", "core.worktree"),
            ("[core]\nworktree=/etc", "core.worktree"),
            ("[core]\nworktree=../../sub", "core.worktree"),
            ("[core]\nprotectHFS=false", "core.protecthfs"),
            ("[include]\npath=x", "include.path"),
            ("[includeIf \"gitdir:x\"]\npath=x", "includeif.gitdir:x.path"),
            ("[alias]\nst=!x", "alias.st"),
            ("[filter \"x\"]\nclean=x", "filter.x.clean"),
            ("[diff \"x\"]\ntextconv=x", "diff.x.textconv"),
            ("[diff]\nexternal=x", "diff.external"),
            ("[merge \"x\"]\ndriver=x", "merge.x.driver"),
            ("[credential]\nhelper=x", "credential.helper"),
            ("[url \"x\"]\ninsteadOf=y", "url.x.insteadof"),
            ("[http]\nproxy=x", "http.proxy"),
            ("[gpg]\nprogram=x", "gpg.program"),
            ("[gpg \"ssh\"]\nprogram=x", "gpg.ssh.program"),
            ("[protocol \"ext\"]\nallow=always", "protocol.ext.allow"),
            ("[uploadpack]\npackObjectsHook=x", "uploadpack.packobjectshook"),
            ("[receive]\nfsckObjects=false", "receive.fsckobjects"),
            ("[submodule \"a\"]\nupdate=!x", "submodule.a.update"),
            ("[submodule \"a\"]\nurl=ext::x", "submodule.a.url"),
            ("[trailer \"a\"]\ncommand=x", "trailer.a.command"),
            ("[commit]\ngpgsign=true", "commit.gpgsign"),
            ("[commit]\ngpgsign", "commit.gpgsign"),
            ("[gc]\nrecentObjectsHook=x", "gc.recentobjectshook"),
            ("[pull]\ntwohead=x", "pull.twohead"),
            ("[remote \"a\"]\nuploadpack=x", "remote.a.uploadpack"),
            ("[remote \"a\"]\nvcs=x", "remote.a.vcs"),
            ("[remote \"ext::x\"]\nfetch=x", "remote.ext::x.fetch"),
            ("[remote \"a\"]\nurl=ext::sh -c x", "remote.a.url"),
            ("[remote \"a\"]\nurl=ftp://a", "remote.a.url"),
            ("[remote \"a\"]\nurl=/etc/x", "remote.a.url"),
            ("[remote \"a\"]\nurl=../../x", "remote.a.url"),
            ("[remote \"a\"]\nurl=file:///etc", "remote.a.url"),
            ("[remote \"a\"]\nurl=ssh://-oProxyCommand=x/y", "remote.a.url"),
            ("[remote \"a\"]\nurl=-x:y", "remote.a.url"),
            ("[remote \"a\"]\nurl=~root/x", "remote.a.url"),
            ("[remote \"a\"]\nurl", "remote.a.url"),
            ("[branch \"a\"]\nremote=ext::x", "branch.a.remote"),
            ("[branch \"a\"]\nremote=../x", "branch.a.remote"),
            ("[branch \"a\"]\npushRemote=/x", "branch.a.pushremote"),
            ("[branch \"a\"]\nmergeOptions=-sx", "branch.a.mergeoptions"),
            ("[unknown]\nkey=x", "unknown.key"),
        ] {
            let expected = format!("it sets {key}, which git may run or trust");
            assert_eq!(judge("", now), Err(expected), "{now}");
        }
    }

    #[test]
    fn only_what_is_new_or_changed_counts() {
        let before = "[core]\nfsmonitor=x\nbare=false\n[alias]\na=1\n[remote \"o\"]\nurl=ext::x\n";
        let runs = |key| Err(format!("it sets {key}, which git may run or trust"));
        let sends = |key| Err(format!("it changes {key}, where data is sent"));
        for (now, expected) in [
            (before.to_owned(), Ok(())),
            (before.replace("bare=false", "bare=true"), Ok(())),
            (before.replace("url=ext::x", ""), sends("remote.o.url")),
            (format!("{before}promisor=true\n"), sends("remote.o.promisor")),
            (format!("{before}mirror=true\n"), sends("remote.o.mirror")),
            (format!("{before}[remote]\npushDefault=p\n"), sends("remote.pushdefault")),
            (format!("{before}[branch \"a\"]\npushRemote=p\n"), sends("branch.a.pushremote")),
            (format!("{before}[branch \"a\"]\nremote=o\n"), Ok(())),
            (before.replace("fsmonitor=x", "fsmonitor=y"), runs("core.fsmonitor")),
            (before.replace("a=1", "a=1\na=2"), runs("alias.a")),
            (before.replace("a=1", ""), runs("alias.a")),
            (before.replace("ext::x", "https://x/y"), sends("remote.o.url")),
            (format!("{before}pushurl=https://x/y\n"), sends("remote.o.pushurl")),
        ] {
            assert_eq!(judge(before, &now), expected, "{now}");
        }
    }
}
