//! The scratch folder of the tour: created at the start, removed at the end.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use uuid::Uuid;

use crate::environment;
use crate::print;

/// A program with a bug, a test that fails because of it, and a slow test.
const FILES: [(&str, &str); 3] = [
    (
        "sum.sh",
        r#"# The sum of the numbers from 1 to $1.
sum=0
for ((i = 1; i < $1; i++)); do
    ((sum += i))
done
echo "$sum"
"#,
    ),
    (
        "test.sh",
        r#"sum=$(bash sum.sh 4)
[ "$sum" = 10 ] && echo "passed: 1 to 4 makes 10 (process $$)" && exit
echo "FAILED: 1 to 4 makes 10, but sum.sh says $sum (process $$)"
exit 1
"#,
    ),
    ("slow.sh", "echo $$ > started\nsleep 600\n"),
];

/// Advice if the folder cannot be used.
pub(super) const ELSEWHERE: &str = "set TMPDIR to a writable folder";

/// The scratch folder. Dropping it removes it.
pub(super) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// Creates the folder with its contents.
    pub(super) fn create(folder: PathBuf) -> anyhow::Result<Scratch> {
        let parent = folder.parent().unwrap_or(&folder).display().to_string();
        Scratch::create_at(folder).map_err(|error| {
            anyhow::anyhow!("cannot make a folder for the tour in {parent}: {error}; {ELSEWHERE}")
        })
    }

    fn create_at(folder: PathBuf) -> anyhow::Result<Scratch> {
        // Private to the user. Fails if the folder exists, since it would not be ours.
        DirBuilder::new().mode(0o700).create(&folder)?;
        let mut scratch = Scratch { folder };
        // Processes look up the session of a directory by its real path.
        scratch.folder = scratch.folder.canonicalize()?;
        scratch.populate()?;
        Ok(scratch)
    }

    fn populate(&self) -> anyhow::Result<()> {
        fs::create_dir(self.project())?;
        // Marks the root of the project, so that nothing above it is read.
        fs::create_dir(self.project().join(".git"))?;
        for (name, content) in FILES {
            fs::write(self.project().join(name), content)?;
        }
        fs::create_dir(self.programs())?;
        fs::create_dir(self.temporary())?;
        Ok(symlink(environment::executable()?, self.programs().join("ikigai"))?)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The working directory of the agents.
    pub(super) fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    /// The folder in `PATH` in which this program is found by name.
    pub(super) fn programs(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// The folder for temporary files.
    pub(super) fn temporary(&self) -> PathBuf {
        self.folder.join("tmp")
    }

    pub(super) fn database_url(&self) -> OsString {
        let mut url = OsString::from("sqlite://");
        url.push(self.folder.join("ikigai.db"));
        url
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// An unused path for the folder.
pub(super) fn new_path() -> PathBuf {
    let random = Uuid::now_v7().simple().to_string();
    environment::temporary_folder().join(format!("ikigai-tour-{}", &random[random.len() - 8..]))
}

/// Removes the folder, if it exists.
pub(super) fn remove(folder: &Path) {
    /// A command that is being killed may still create files, or two threads may remove the folder
    /// at once.
    const ATTEMPTS: usize = 100;
    const BETWEEN: Duration = Duration::from_millis(10);
    for _ in 0..ATTEMPTS {
        if fs::remove_dir_all(folder).is_ok() || fs::symlink_metadata(folder).is_err() {
            return;
        }
        thread::sleep(BETWEEN);
    }
    print::note(&format!("ikigai: {} could not be removed", folder.display()));
}
