//! The folder for temporary files: one for file tools and commands alike.
//!
//! It is in a folder that only the user can write to: names in a folder that is open to all can be taken by others
//! first. It never lies in a folder that agents can write otherwise.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use ikigai_conversation::SessionId;
use ikigai_tools::CACHE_FOLDER;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open};
use uuid::Uuid;

use crate::environment::Environment;

/// A folder that exists as long as a process uses it.
pub struct TemporaryFolder {
    path: PathBuf,
    /// Held by every process that uses the folder; the last one gets it alone.
    lock: OwnedFd,
    leaving: Leaving,
}

/// What the last process does with the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    /// Removes it with all that is in it.
    Removed,
    /// Removes its caches, and the folder if it is empty then: a session continues where it was left.
    KeptUnlessEmpty,
}

impl TemporaryFolder {
    /// The folder of a session, for all its processes.
    pub(crate) fn of_session(
        environment: &Environment,
        session: SessionId,
    ) -> anyhow::Result<TemporaryFolder> {
        let (name, leaving) = (session.to_string(), Leaving::KeptUnlessEmpty);
        first_place(environment, |place| TemporaryFolder::open(place, &name, leaving))
    }

    /// A folder for this process alone.
    ///
    /// # Errors
    /// When no place is fit for it.
    pub fn of_process(environment: &Environment) -> anyhow::Result<TemporaryFolder> {
        let (name, leaving) = (Uuid::now_v7().to_string(), Leaving::Removed);
        first_place(environment, |place| TemporaryFolder::open(place, &name, leaving))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open(place: &Path, name: &str, leaving: Leaving) -> anyhow::Result<TemporaryFolder> {
        /// The last process may remove a folder just as this one makes it.
        const ATTEMPTS: usize = 100;
        let mut attempt = take(place, name);
        for _ in 1..ATTEMPTS {
            if attempt.is_ok() {
                break;
            }
            attempt = take(place, name);
        }
        let (path, lock) = attempt?;
        Ok(TemporaryFolder { path, lock, leaving })
    }
}

/// A folder in which things are kept for the user where there is no better place for them.
pub(crate) fn lasting_folder(environment: &Environment, name: &str) -> anyhow::Result<PathBuf> {
    first_place(environment, |place| {
        let path = own_folder(place)?.join(name);
        make(&path)?;
        Ok(path)
    })
}

/// Takes the first place for temporary files that will do.
fn first_place<T>(
    environment: &Environment,
    open: impl Fn(&Path) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let writable = environment.settings.paths("sandbox.write");
    let folders = environment.tree_folders().chain(writable.iter().map(PathBuf::as_path));
    let folders: Vec<PathBuf> = folders.filter_map(|path| path.canonicalize().ok()).collect();
    let mut why_not = Vec::new();
    for place in environment.temporary_folders() {
        let Ok(place) = place.canonicalize() else { continue };
        let inside = folders.iter().find(|folder| place.starts_with(folder));
        match inside {
            Some(folder) => {
                why_not.push(format!("{} is in {}", place.display(), folder.display()));
            }
            None => match open(&place) {
                Ok(opened) => return Ok(opened),
                Err(error) => why_not.push(format!("{error:#}")),
            },
        }
    }
    why_not.dedup();
    anyhow::bail!(
        "there is no folder for temporary files outside of what agents can write ({}): set TMPDIR to one, or start ikigai in the folder of your project",
        why_not.join("; ")
    )
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        // What cannot be removed is left to the system.
        let _ = match self.leaving {
            Leaving::Removed => fs::remove_dir_all(&self.path),
            Leaving::KeptUnlessEmpty => {
                // They can be large, and tools fill them again.
                let _ = fs::remove_dir_all(self.path.join(CACHE_FOLDER));
                fs::remove_dir(&self.path)
            }
        };
        // It is empty when no other process has a folder in it.
        let _ = self.path.parent().map(fs::remove_dir);
    }
}

/// Makes the folder, unless it is there, and takes the lock on it.
fn take(place: &Path, name: &str) -> anyhow::Result<(PathBuf, OwnedFd)> {
    let path = own_folder(place)?.join(name);
    make(&path)?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = open(&path, flags, Mode::empty())?;
    flock(&lock, FlockOperation::LockShared)?;
    anyhow::ensure!(fstat(&lock)?.st_nlink > 0, "{} was removed", path.display());
    Ok((path, lock))
}

/// The folder in which those of all sessions of the user are.
fn own_folder(place: &Path) -> anyhow::Result<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let path = place.join(format!("ikigai-{user}"));
    make(&path)?;
    let found = fs::symlink_metadata(&path)?;
    anyhow::ensure!(
        found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0,
        "{} is not a folder of yours alone: remove it, or set TMPDIR to another place",
        path.display()
    );
    Ok(path.canonicalize()?)
}

fn make(path: &Path) -> anyhow::Result<()> {
    let made = fs::DirBuilder::new().mode(0o700).create(path);
    match made {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made.with_context(|| {
            format!("cannot make the folder for temporary files {}: set TMPDIR", path.display())
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_folder_of_a_session_goes_with_the_last_process_unless_something_is_in_it() {
        let place = tempfile::tempdir().unwrap();
        let open = || TemporaryFolder::open(place.path(), "x", Leaving::KeptUnlessEmpty).unwrap();
        let (first, second) = (open(), open());
        let path = first.path().to_owned();
        fs::create_dir_all(path.join("ikigai-caches/npm")).unwrap();
        drop(first);
        assert!(path.join("ikigai-caches/npm").is_dir());
        fs::write(path.join("kept"), "x").unwrap();
        drop(second);
        assert!(path.join("kept").exists() && !path.join("ikigai-caches").exists());
        let third = open();
        fs::remove_file(path.join("kept")).unwrap();
        drop(third);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_folder_of_a_process_is_removed_with_all_that_is_in_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = TemporaryFolder::open(place.path(), "x", Leaving::Removed).unwrap();
        fs::write(folder.path().join("file"), "x").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let user = rustix::process::getuid().as_raw();
        let own = place.path().join(format!("ikigai-{user}"));
        fs::DirBuilder::new().mode(0o700).create(&own).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
        let Err(error) = TemporaryFolder::open(place.path(), "x", Leaving::Removed) else {
            panic!("it was taken");
        };
        assert!(error.to_string().contains("is not a folder of yours alone"), "{error}");
    }
}
