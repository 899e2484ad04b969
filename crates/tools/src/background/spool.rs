//! The output of a background command: a file without a name, of bounded size. Its start and its
//! end are kept. What comes between is counted and dropped.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// How much of the start is kept. Together with the end it is at most 16 MB.
const START: u64 = 8_000_000;
/// How much of the end is kept.
const END: u64 = 8_000_000;
/// Read at a time.
const CHUNK: usize = 64 * 1024;

/// The output of a command.
#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    /// How many bytes were printed in all.
    printed: u64,
    start: u64,
    end: u64,
}

impl Spool {
    /// Creates it in a folder, which is created if it does not exist. The file has no name, so that
    /// no command can find or replace it.
    pub(super) fn create(folder: &Path) -> io::Result<Spool> {
        Spool::sized(folder, START, END)
    }

    fn sized(folder: &Path, start: u64, end: u64) -> io::Result<Spool> {
        fs::create_dir_all(folder)?;
        Ok(Spool { file: unnamed_file(folder)?, printed: 0, start, end })
    }

    /// How many bytes were printed.
    pub(super) fn printed(&self) -> u64 {
        self.printed
    }

    /// Adds what was printed. It counts even if it cannot be written.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut at = self.printed;
        self.printed += bytes.len() as u64;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (place, room) = self.place_of(at);
            let (part, more) = rest.split_at(clamped(room).min(rest.len()));
            self.file.write_all_at(part, place)?;
            at += part.len() as u64;
            rest = more;
        }
        Ok(())
    }

    /// Passes on what was printed from `offset` on, and returns where that ends. A line says how
    /// much was dropped.
    pub(super) fn read_from(&self, offset: u64, mut take: impl FnMut(&[u8])) -> io::Result<u64> {
        let mut at = offset.min(self.printed);
        let kept_end = self.printed.saturating_sub(self.end).max(self.start);
        let mut chunk = vec![0; CHUNK];
        while at < self.printed {
            if at >= self.start && at < kept_end {
                take(format!("\n[Not kept: {} bytes]\n", kept_end - at).as_bytes());
                at = kept_end;
                continue;
            }
            let (place, room) = self.place_of(at);
            let limit = if at < self.start { self.start } else { self.printed };
            let length = room.min(limit.min(self.printed) - at);
            let part = &mut chunk[..clamped(length).min(CHUNK)];
            self.file.read_exact_at(part, place)?;
            take(part);
            at += part.len() as u64;
        }
        Ok(self.printed)
    }

    /// The last bytes that were printed, at most so many.
    pub(super) fn last_bytes(&self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let from = self.printed.saturating_sub(count as u64);
        self.read_from(from, |part| bytes.extend_from_slice(part))?;
        Ok(bytes)
    }

    /// Where in the file a byte is, and how much of what follows is next to it. The end is a ring.
    fn place_of(&self, at: u64) -> (u64, u64) {
        match at.checked_sub(self.start) {
            None => (at, self.start - at),
            Some(after) => {
                let place = after % self.end;
                (self.start + place, self.end - place)
            }
        }
    }
}

fn clamped(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

fn unnamed_file(folder: &Path) -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".output-{}-{number}", std::process::id()));
        let mut options = OpenOptions::new();
        match options.read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return fs::remove_file(&path).map(|()| file),
            // Left behind by a process that was killed right here.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], offset: u64, expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::sized(folder.path(), 4, 3).unwrap();
        pieces.iter().for_each(|piece| spool.push(piece.as_bytes()).unwrap());
        let mut read = Vec::new();
        let end = spool.read_from(offset, |part| read.extend_from_slice(part)).unwrap();
        assert_eq!(String::from_utf8(read).unwrap(), expected, "{pieces:?} from {offset}");
        assert_eq!(end, pieces.concat().len() as u64);
    }

    #[test]
    fn start_and_end_are_kept_and_the_rest_is_counted() {
        check(&[], 0, "");
        check(&["ab", "cd"], 0, "abcd");
        check(&["abcd", "efg"], 0, "abcdefg");
        check(&["abcdefgh"], 0, "abcd\n[Not kept: 1 bytes]\nfgh");
        check(&["abc", "defghijk", "lmn"], 0, "abcd\n[Not kept: 7 bytes]\nlmn");
    }

    #[test]
    fn reading_continues_at_any_offset() {
        check(&["abcdefghijklmn"], 2, "cd\n[Not kept: 7 bytes]\nlmn");
        check(&["abcdefghijklmn"], 6, "\n[Not kept: 5 bytes]\nlmn");
        check(&["abcdefghijklmn"], 12, "mn");
        check(&["abcdefghijklmn"], 99, "");
    }

    #[test]
    fn the_file_has_no_name_and_does_not_grow_beyond_its_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::create(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let chunk = vec![b'x'; 1_000_003];
        for _ in 0..100 {
            spool.push(&chunk).unwrap();
        }
        assert_eq!(spool.file.metadata().unwrap().size(), START + END);
        assert_eq!(spool.printed(), 100_000_300);
    }
}
