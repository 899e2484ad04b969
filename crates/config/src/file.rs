//! Reads a configuration file. A project's file is not trusted: it may be an endless pipe or a
//! device, and must neither block ikigai nor fill its memory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::error::{ConfigError, Problem};

const MAX_BYTES: u64 = 1024 * 1024;

/// A file that was read.
pub(crate) struct Document {
    pub(crate) path: Arc<Path>,
    pub(crate) text: String,
}

/// The result of looking for a file.
#[derive(Debug)]
pub(crate) enum ConfigFile {
    Found(Document),
    /// The file does not exist.
    Missing(PathBuf),
    /// There is no path for it: no folder is known for the user's file, or the project's file would
    /// be the same as the user's.
    Nowhere,
}

impl ConfigFile {
    /// Where the file is, or would be.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            ConfigFile::Found(document) => Some(&document.path),
            ConfigFile::Missing(path) => Some(path),
            ConfigFile::Nowhere => None,
        }
    }
}

impl Document {
    /// Reads a file; `None` when it does not exist.
    pub(crate) fn read(path: &Path) -> Result<Option<Document>, ConfigError> {
        let Some(file) = open(path)? else { return Ok(None) };
        let bytes = read_bounded(file, path)?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(Document { path: path.into(), text })),
            Err(error) => {
                let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
                Err(Problem::NotUtf8 { path: path.into(), line }.into())
            }
        }
    }
}

/// Shows only the path: the text may contain a password.
impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Document").field(&self.path).finish()
    }
}

fn open(path: &Path) -> Result<Option<File>, ConfigError> {
    // A device is not even opened, because opening can have side effects. If
    // another file takes its place a moment later, the open does not block,
    // and the type of the open file is checked again.
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Problem::NotRegular { path: path.into() }.into());
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let unreadable = |source| Problem::Unreadable { path: path.into(), source };
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => {
            let metadata = file.metadata().map_err(unreadable)?;
            if !metadata.is_file() {
                return Err(Problem::NotRegular { path: path.into() }.into());
            }
            Ok(Some(file))
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(unreadable(error).into()),
    }
}

fn read_bounded(file: File, path: &Path) -> Result<Vec<u8>, ConfigError> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| Problem::Unreadable { path: path.into(), source })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Problem::TooLarge { path: path.into() }.into());
    }
    Ok(bytes)
}

/// Replaces a file at once, with the permissions that it had.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let mode = fs::metadata(path).map_or(0o600, |metadata| metadata.permissions().mode());
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}", std::process::id()));
    let write = || {
        // Left by a crash, or by an agent: the file may be in a tree, and a link would be followed.
        let _ = fs::remove_file(&temporary);
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(fs::Permissions::from_mode(mode & 0o777))?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&temporary)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode};
    use std::os::unix::fs::PermissionsExt;

    #[track_caller]
    fn check_error(path: &Path, expected: &str) {
        let error = anyhow::Error::from(Document::read(path).map(|_| ()).unwrap_err());
        assert_eq!(format!("{error:#}"), format!("{}{expected}", path.display()));
    }

    #[test]
    fn a_missing_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        for missing in ["nothing", "no/folder", "file/beneath"] {
            assert!(Document::read(&folder.path().join(missing)).unwrap().is_none(), "{missing}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_the_temporary_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("victim"), "old").unwrap();
        let temporary = at(&format!(".settings.{}", std::process::id()));
        std::os::unix::fs::symlink(at("victim"), temporary).unwrap();
        replace(&at("settings"), "new").unwrap();
        let texts = ["victim", "settings"].map(|name| fs::read_to_string(at(name)).unwrap());
        assert_eq!(texts, ["old", "new"]);
        assert!(!at("settings").is_symlink());
    }

    #[test]
    fn a_fifo_is_refused_and_does_not_hang() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        rustix::fs::mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        check_error(&path, ": not a regular file");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        check_error(&link, ": not a regular file");
    }

    #[test]
    fn folders_and_devices_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        check_error(folder.path(), ": not a regular file");
        check_error(Path::new("/dev/zero"), ": not a regular file");
    }

    #[test]
    fn a_file_over_one_mebibyte_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        let limit = usize::try_from(MAX_BYTES).unwrap();
        std::fs::write(&path, vec![b'#'; limit]).unwrap();
        assert_eq!(Document::read(&path).unwrap().unwrap().text.len(), limit);
        std::fs::write(&path, vec![b'#'; limit + 1]).unwrap();
        check_error(&path, ": larger than 1 MiB, which is too large for a configuration file");
    }

    #[test]
    fn the_error_for_invalid_utf8_names_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latin1");
        std::fs::write(&path, b"# one\nmodel = \"gr\xf6\xdfe\"\n").unwrap();
        check_error(&path, ":2: not UTF-8");
    }

    #[test]
    fn the_error_for_an_unreadable_file_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("closed");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
        if rustix::process::geteuid().is_root() {
            return; // Root may read everything.
        }
        check_error(&path, ": cannot be read: Permission denied (os error 13)");
    }

    #[test]
    fn debug_does_not_show_the_text() {
        let document = Document { path: Path::new("/f").into(), text: "hunter2".to_owned() };
        assert_eq!(format!("{document:?}"), "Document(\"/f\")");
    }
}
