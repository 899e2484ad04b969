//! A cache of landlock rules between commands.
//!
//! A rule refers to an open file, and a home directory has hundreds of them next to its secrets:
//! opening them all takes longer than starting bash. So rules are reused as long as they would turn
//! out the same. To find out, the cache checks the paths they refer to, the folders that were
//! listed, and the mounts.

use std::fs::File;
use std::io;
use std::sync::Mutex;
use std::time::SystemTime;

use landlock::RulesetCreated;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::rules::{access_map_of, make_rules};
use crate::lock::lock;
use crate::sandbox::Sandbox;
use crate::sandbox::access_map::AccessMap;
use crate::sandbox::path_state::PathState;

/// The rules of the last command. They are taken out while being validated, since that may take
/// long; other commands make new ones meanwhile.
#[derive(Debug, Default)]
pub(crate) struct RulesCache(Mutex<Option<CachedRules>>);

#[derive(Debug)]
struct CachedRules {
    rules: RulesetCreated,
    network: bool,
    access_map: AccessMap,
    states: Vec<PathState>,
    /// Polled for mounts that were added since it was opened.
    mounts: File,
}

impl RulesCache {
    /// The rules for a command in this sandbox.
    pub(crate) fn rules_for(&self, sandbox: &Sandbox) -> io::Result<RulesetCreated> {
        self.rules_at(sandbox, SystemTime::now())
    }

    fn rules_at(&self, sandbox: &Sandbox, now: SystemTime) -> io::Result<RulesetCreated> {
        let (access_map, opened) = access_map_of(sandbox)?;
        // The kernel reports a new mount only once.
        if let Some(cached) = self.take().filter(|cached| cached.is_valid(sandbox, &access_map)) {
            let rules = cached.rules.try_clone();
            self.keep(cached);
            return rules;
        }
        // Opened before any path is inspected, so that no change is missed in between.
        let mounts = File::open("/proc/self/mountinfo")?;
        let mut with_missing = access_map.clone();
        with_missing.hide_missing(&sandbox.hidden);
        let (rules, states) = make_rules(&with_missing, opened, sandbox.network)?;
        // If a path could not be inspected, its changes would go unnoticed.
        if let Some(states) = states.into_iter().collect::<Option<Vec<PathState>>>()
            && states.iter().all(|states| states.will_show_changes(now))
        {
            let (rules, network) = (rules.try_clone()?, sandbox.network);
            self.keep(CachedRules { rules, network, access_map, states, mounts });
        }
        Ok(rules)
    }

    fn take(&self) -> Option<CachedRules> {
        lock(&self.0).take()
    }

    fn keep(&self, cached: CachedRules) {
        *lock(&self.0) = Some(cached);
    }
}

impl CachedRules {
    /// Whether the same rules would be made now.
    fn is_valid(&self, sandbox: &Sandbox, access_map: &AccessMap) -> bool {
        self.network == sandbox.network
            && self.access_map == *access_map
            && self.states.iter().all(PathState::is_unchanged)
            && !self.has_new_mounts()
    }

    fn has_new_mounts(&self) -> bool {
        let mut asked = [PollFd::new(&self.mounts, PollFlags::PRI)];
        poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) != Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};
    use std::time::{Duration, SystemTime};

    use super::super::is_there;
    use super::{RulesCache, Sandbox, access_map_of};
    use crate::change_time::STEP;
    use crate::sandbox::Root;

    /// Makes rules for a home with a secret, changes something, and checks whether they are still
    /// valid. Other activity on the machine may invalidate them as well, so this is retried.
    #[track_caller]
    fn check(what: &str, is_valid: bool, change: impl Fn(&Path, &mut Sandbox)) {
        const PATIENCE: usize = 50;
        let mut tries = (0..PATIENCE).filter_map(|_| {
            let folder = tempfile::tempdir().unwrap();
            let (home, mut sandbox) = home_in(folder.path());
            until(last_change(&home) + STEP);
            let rules = RulesCache::default();
            rules.rules_for(&sandbox).unwrap();
            let cached = rules.take()?;
            change(&home, &mut sandbox);
            Some(
                access_map_of(&sandbox)
                    .is_ok_and(|(access_map, _)| cached.is_valid(&sandbox, &access_map)),
            )
        });
        let came_out = match is_valid {
            true => tries.any(|good| good),
            // Rules invalidated by other activity count as invalid here.
            false => tries.next() == Some(false) && tries.next() == Some(false),
        };
        assert!(came_out, "{what}");
    }

    fn home_in(folder: &Path) -> (PathBuf, Sandbox) {
        let home = folder.canonicalize().unwrap();
        for name in [".ssh", "around/tree", "other", "plain"] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        let secrets = [".ssh", ".netrc", "other/.netrc"].map(|name| home.join(name));
        let sandbox = Sandbox {
            write: vec![Root::open(&home.join("around/tree")).unwrap()],
            read: vec![Root::open(&home).unwrap()],
            // Other tests must not matter.
            hidden: [secrets.to_vec(), vec![std::env::temp_dir()]].concat(),
            ..Sandbox::default()
        };
        (home, sandbox)
    }

    fn last_change(folder: &Path) -> SystemTime {
        let seen = folder.metadata().unwrap();
        let since = Duration::new(seen.ctime() as u64, seen.ctime_nsec() as u32);
        SystemTime::UNIX_EPOCH + since
    }

    /// Two changes within one clock tick have the same time.
    fn until(time: SystemTime) {
        while SystemTime::now() <= time {
            std::thread::yield_now();
        }
    }

    #[test]
    fn rules_are_kept_until_they_would_come_out_differently() {
        if !is_there() {
            return;
        }
        let write = |path: &Path| fs::write(path, "").unwrap();
        check("nothing", true, |_, _| {});
        check("work in the tree", true, |home, _| write(&home.join("around/tree/new")));
        check("a file elsewhere", true, |home, _| write(&home.join("plain/new")));
        check("in a secret place", true, |home, _| write(&home.join(".ssh/new")));
        check("beside a secret place", false, |home, _| write(&home.join("new")));
        check("beside a possible secret", false, |home, _| write(&home.join("other/new")));
        check("a new secret", false, |home, _| write(&home.join("other/.netrc")));
        check("no secret any more", false, |home, _| fs::remove_dir(home.join(".ssh")).unwrap());
        check("a folder put away", false, |home, _| {
            fs::rename(home.join("other"), home.join(".ssh/other")).unwrap();
        });
        // The parent folder is not watched, and the inode number may be reused.
        check("the tree made anew", false, |home, _| {
            fs::remove_dir(home.join("around/tree")).unwrap();
            fs::create_dir(home.join("around/tree")).unwrap();
        });
        check("one more tree", false, |home, sandbox| {
            sandbox.write.push(Root::open(&home.join("other")).unwrap());
        });
        check("a network", false, |_, sandbox| sandbox.network = true);
    }

    #[test]
    fn rules_of_a_folder_that_changed_just_now_are_not_kept() {
        if !is_there() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (home, sandbox) = home_in(folder.path());
        let rules = RulesCache::default();
        rules.rules_at(&sandbox, last_change(&home)).unwrap();
        assert!(rules.take().is_none());
    }
}
