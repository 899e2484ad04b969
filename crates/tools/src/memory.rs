//! Remembers the files that an agent has seen, so that it does not overwrite what it has not.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::file_use::Sight;
use crate::lock::lock;
use crate::looks::Fingerprint;

/// The files as an agent last read or wrote them.
#[derive(Debug, Default)]
pub struct FileMemory {
    seen: Mutex<HashMap<PathBuf, Fingerprint>>,
}

impl FileMemory {
    /// How many files are remembered, more than an agent reads. Beyond that some are forgotten, and
    /// must be read again before they are overwritten.
    pub const LIMIT: usize = 10_000;

    /// Remembers the current state of a file.
    pub fn note(&self, sight: Sight) {
        let mut seen = lock(&self.seen);
        if seen.len() >= FileMemory::LIMIT
            && !seen.contains_key(&sight.path)
            && let Some(path) = seen.keys().next().cloned()
        {
            seen.remove(&path);
        }
        seen.insert(sight.path, sight.looks);
    }

    /// The last known fingerprint of a file.
    pub(crate) fn recall(&self, path: &Path) -> Option<Fingerprint> {
        lock(&self.seen).get(path).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sight_counts_and_there_is_an_end_to_them() {
        let memory = FileMemory::default();
        let sight = |path: &str, looks: &str| Sight {
            path: PathBuf::from(path),
            looks: Fingerprint::from(looks.to_owned()),
        };
        for number in 0..FileMemory::LIMIT + 10 {
            memory.note(sight(&format!("/{number}"), "old"));
        }
        memory.note(sight("/last", "old"));
        memory.note(sight("/last", "new"));
        assert_eq!(memory.recall(Path::new("/last")), Some(Fingerprint::from("new".to_owned())));
        assert_eq!(memory.recall(Path::new("/none")), None);
        assert_eq!(memory.seen.lock().unwrap().len(), FileMemory::LIMIT);
    }
}
