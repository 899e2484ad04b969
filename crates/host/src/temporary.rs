//! The folder for temporary files, shared by file tools and commands.
//!
//! Its parent is writable by the user only: in a world-writable folder, another user could take the
//! name first. It is never inside a folder that agents can write anyway.

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
    /// Shared by every process that uses the folder; the last one can lock it exclusively.
    lock: OwnedFd,
    on_last_exit: OnLastExit,
}

/// What the last process does with the folder when it exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnLastExit {
    /// Removes the folder and its contents.
    Remove,
    /// Removes the caches, and the folder if it is empty afterwards, so that a session can
    /// continue.
    KeepUnlessEmpty,
}

impl TemporaryFolder {
    /// The folder of a session, shared by its processes.
    pub(crate) fn of_session(
        environment: &Environment,
        session: SessionId,
    ) -> anyhow::Result<TemporaryFolder> {
        let (name, on_last_exit) = (session.to_string(), OnLastExit::KeepUnlessEmpty);
        first_place(environment, |place| TemporaryFolder::open(place, &name, on_last_exit))
    }

    /// A folder for this process alone.
    ///
    /// # Errors
    /// When no suitable place is found.
    pub fn of_process(environment: &Environment) -> anyhow::Result<TemporaryFolder> {
        let (name, on_last_exit) = (Uuid::now_v7().to_string(), OnLastExit::Remove);
        first_place(environment, |place| TemporaryFolder::open(place, &name, on_last_exit))
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open(place: &Path, name: &str, on_last_exit: OnLastExit) -> anyhow::Result<TemporaryFolder> {
        /// The last process may remove the folder while this one creates it.
        const ATTEMPTS: usize = 100;
        let mut attempt = create_and_lock(place, name);
        for _ in 1..ATTEMPTS {
            if attempt.is_ok() {
                break;
            }
            attempt = create_and_lock(place, name);
        }
        let (path, lock) = attempt?;
        Ok(TemporaryFolder { path, lock, on_last_exit })
    }
}

/// A permanent folder among the temporary files, if there is no better place.
pub(crate) fn permanent_folder(environment: &Environment, name: &str) -> anyhow::Result<PathBuf> {
    first_place(environment, |place| {
        let path = own_folder(place)?.join(name);
        create(&path)?;
        Ok(path)
    })
}

/// Opens the first suitable place for temporary files.
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
        "no folder for temporary files outside the working tree ({}): set TMPDIR to another \
            folder, or start ikigai in your project's folder",
        why_not.join("; ")
    )
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        // The system cleans up what cannot be removed here.
        let _ = match self.on_last_exit {
            OnLastExit::Remove => fs::remove_dir_all(&self.path),
            OnLastExit::KeepUnlessEmpty => {
                // Caches can be large, and tools refill them.
                let _ = fs::remove_dir_all(self.path.join(CACHE_FOLDER));
                fs::remove_dir(&self.path)
            }
        };
        // It is empty if no other process has a folder in it.
        let _ = self.path.parent().map(fs::remove_dir);
    }
}

/// Creates the folder if needed, and locks it.
fn create_and_lock(place: &Path, name: &str) -> anyhow::Result<(PathBuf, OwnedFd)> {
    let path = own_folder(place)?.join(name);
    create(&path)?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = open(&path, flags, Mode::empty())?;
    flock(&lock, FlockOperation::LockShared)?;
    anyhow::ensure!(fstat(&lock)?.st_nlink > 0, "{} was removed", path.display());
    Ok((path, lock))
}

/// The parent folder for all sessions of the user.
fn own_folder(place: &Path) -> anyhow::Result<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let path = place.join(format!("ikigai-{user}"));
    create(&path)?;
    let found = fs::symlink_metadata(&path)?;
    anyhow::ensure!(
        found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0,
        "{} is accessible to other users: remove it, or set TMPDIR to another folder",
        path.display()
    );
    Ok(path.canonicalize()?)
}

fn create(path: &Path) -> anyhow::Result<()> {
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
        let open =
            || TemporaryFolder::open(place.path(), "x", OnLastExit::KeepUnlessEmpty).unwrap();
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
        let folder = TemporaryFolder::open(place.path(), "x", OnLastExit::Remove).unwrap();
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
        let Err(error) = TemporaryFolder::open(place.path(), "x", OnLastExit::Remove) else {
            panic!("it was taken");
        };
        assert!(error.to_string().contains("is accessible to other users"), "{error}");
    }
}
