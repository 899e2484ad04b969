//! What an agent remembers of files, so that it does not overwrite what it has not seen.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::file_use::Sight;
use crate::looks::Fingerprint;

/// How files looked when an agent has last read or written them.
#[derive(Debug, Default)]
pub struct FileMemory {
    seen: Mutex<HashMap<PathBuf, Fingerprint>>,
}

impl FileMemory {
    /// So many files are remembered, more than an agent reads; of further ones some are forgotten, and then have
    /// to be read again before they are overwritten.
    pub const LIMIT: usize = 10_000;

    /// Remembers a file as it was seen last.
    pub fn note(&self, sight: Sight) {
        let mut seen = self.lock();
        if seen.len() >= FileMemory::LIMIT
            && !seen.contains_key(&sight.path)
            && let Some(path) = seen.keys().next().cloned()
        {
            seen.remove(&path);
        }
        seen.insert(sight.path, sight.looks);
    }

    /// How a file looked, if it was ever seen.
    pub(crate) fn recall(&self, path: &Path) -> Option<Fingerprint> {
        self.lock().get(path).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Fingerprint>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
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
        assert_eq!(memory.lock().len(), FileMemory::LIMIT);
    }
}
