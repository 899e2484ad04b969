//! The input history, per user and across sessions. Several processes share the file: one JSON line
//! per entry, appended under a lock. Now and then it is rewritten without old and duplicate
//! entries.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ikigai_config::Settings;
use ikigai_tui::Update;
use rustix::fs::{FlockOperation, flock};

/// Longer entries are not kept; they are in the log.
const TEXT_BYTES: usize = 64 * 1024;
/// The limit on what is read of the file.
const FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The history file.
pub(super) struct HistoryFile {
    /// `None` if no history is kept.
    path: Option<PathBuf>,
    /// The number of entries to keep.
    size: usize,
}

impl HistoryFile {
    pub(super) fn of(settings: &Settings) -> HistoryFile {
        let size = settings.number("history_size") as usize;
        let path = settings.folders().history_file().filter(|_| size > 0);
        HistoryFile { path, size }
    }

    /// Loads the history. A file that cannot be read counts as empty.
    pub(super) fn load(&self) -> Update {
        let texts = self.path.as_deref().and_then(|path| read(path).ok()).unwrap_or_default();
        Update::History { texts: latest(texts, self.size), size: self.size }
    }

    /// Adds an entry in the background. A failure, such as a full disk, is only logged.
    pub(super) fn add(&self, text: String) {
        let Some(path) = self.path.clone().filter(|_| text.len() <= TEXT_BYTES) else { return };
        let size = self.size;
        tokio::task::spawn_blocking(move || {
            if let Err(error) = append(&path, &text, size) {
                tracing::warn!(%error, "history not written");
            }
        });
    }
}

fn read(path: &Path) -> io::Result<Vec<String>> {
    let lines = BufReader::new(File::open(path)?.take(FILE_BYTES)).split(b'\n');
    // Lines that are not ours are skipped.
    let text = |line: Vec<u8>| serde_json::from_slice::<String>(&line).ok();
    Ok(lines.map_while(Result::ok).filter_map(text).collect())
}

/// The latest entries without duplicates, ordered by last use.
fn latest(texts: Vec<String>, size: usize) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut kept: Vec<String> =
        texts.into_iter().rev().filter(|text| seen.insert(text.clone())).take(size).collect();
    kept.reverse();
    kept
}

fn append(path: &Path, text: &str, size: usize) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    // A separate lock file: the history file is sometimes replaced, which would invalidate a lock
    // on it.
    let lock = private().create(true).truncate(false).open(path.with_extension("lock"))?;
    flock(&lock, FlockOperation::LockExclusive)?;
    let texts = read(path).unwrap_or_default();
    // Rewrite only when half of it is old.
    if texts.len() >= size.saturating_mul(2) {
        let mut texts = latest(texts, size);
        texts.push(text.to_owned());
        return replace(path, &texts);
    }
    let mut file = private().read(true).create(true).append(true).open(path)?;
    let end = if is_truncated(&mut file)? { "\n" } else { "" };
    file.write_all(format!("{end}{}", line(text)).as_bytes())
}

/// Whether the last line is incomplete: its writer was killed, or the disk was full.
fn is_truncated(file: &mut File) -> io::Result<bool> {
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    Ok(last != [b'\n'])
}

fn replace(path: &Path, texts: &[String]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = private().create(true).truncate(true).open(&beside)?;
    file.write_all(texts.iter().map(|text| line(text)).collect::<String>().as_bytes())?;
    file.sync_all()?;
    fs::rename(beside, path)
}

fn private() -> OpenOptions {
    let mut options = File::options();
    options.write(true).mode(0o600);
    options
}

/// Encodes an entry as one line, which a single write appends.
fn line(text: &str) -> String {
    format!("{}\n", serde_json::Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(path: &Path, size: usize) -> Vec<String> {
        match (HistoryFile { path: Some(path.to_owned()), size }).load() {
            Update::History { texts, size: kept } if kept == size => texts,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_latest_entries_are_kept_without_duplicates() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made/history");
        for number in 0..50 {
            append(&path, &format!("text {}\nline 2", number % 7), 5).unwrap();
        }
        let kept = load(&path, 5);
        let expected = [3, 4, 5, 6, 0].map(|number| format!("text {number}\nline 2"));
        assert_eq!(kept, expected);
        assert!(fs::read_to_string(path).unwrap().lines().count() <= 11);
    }

    #[test]
    fn foreign_lines_in_the_file_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        fs::write(&path, b"\"a\"\nno json\n\xff\xfe\n{}\n\"b\"\n\"cut").unwrap();
        append(&path, "c", 9).unwrap();
        assert_eq!(load(&path, 9), ["a", "b", "c"]);
    }

    #[test]
    fn several_writers_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("history");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                scope.spawn(move || {
                    for number in 0..25 {
                        append(path, &format!("{writer} {number}"), 100).unwrap();
                    }
                });
            }
        });
        assert_eq!(load(path, 100).len(), 100);
    }
}
