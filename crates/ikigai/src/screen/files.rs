//! The files that can stand after an `@`.

use std::path::Path;
use std::time::{Duration, Instant};

/// More than anybody completes; a larger tree is listed in part.
const FILES: usize = 100_000;
/// So long a list is worth waiting for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The files below a folder, without what git ignores, as relative paths. Names that are no text are left out.
pub(super) fn list_files(directory: &Path) -> Vec<String> {
    ikigai_tools::list_files(directory, FILES, Instant::now() + PATIENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_ignores_is_not_offered() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [(".gitignore", "target/\n"), ("b.rs", ""), ("a.rs", "")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        std::fs::create_dir(folder.path().join("target")).unwrap();
        std::fs::write(folder.path().join("target/x"), "").unwrap();
        assert_eq!(list_files(folder.path()), ["a.rs", "b.rs"]);
    }
}
