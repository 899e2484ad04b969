//! The folder in which the walk takes place: made at the beginning, removed at the end.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use uuid::Uuid;

use crate::environment;
use crate::print;

/// A program that is wrong, a test that says so, and a test that takes its time.
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

/// What helps when the folder is of no use.
pub(super) const ELSEWHERE: &str = "set TMPDIR to another folder, one that can be written to";

/// The scratch folder. Dropping it removes it.
pub(super) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// Makes the folder with all that is in it.
    pub(super) fn make(folder: PathBuf) -> anyhow::Result<Scratch> {
        let parent = folder.parent().unwrap_or(&folder).display().to_string();
        Scratch::make_at(folder).map_err(|error| {
            anyhow::anyhow!("cannot make a folder for the tour in {parent}: {error}; {ELSEWHERE}")
        })
    }

    fn make_at(folder: PathBuf) -> anyhow::Result<Scratch> {
        // Only for the user; and one that is there already is somebody else's.
        DirBuilder::new().mode(0o700).create(&folder)?;
        let mut scratch = Scratch { folder };
        // A process finds the session of its directory by the path without links.
        scratch.folder = scratch.folder.canonicalize()?;
        scratch.furnish()?;
        Ok(scratch)
    }

    fn furnish(&self) -> anyhow::Result<()> {
        fs::create_dir(self.project())?;
        // The border of the project: what lies above it is none of the walk's business.
        fs::create_dir(self.project().join(".git"))?;
        for (name, content) in FILES {
            fs::write(self.project().join(name), content)?;
        }
        fs::create_dir(self.programs())?;
        fs::create_dir(self.temporary())?;
        Ok(symlink(environment::own_file()?, self.programs().join("ikigai"))?)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the agents work.
    pub(super) fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    /// Where this program is found by its name.
    pub(super) fn programs(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// Where agents put what they need only for a while.
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

/// A place for the folder, where nothing is yet.
pub(super) fn new_place() -> PathBuf {
    let random = Uuid::now_v7().simple().to_string();
    environment::temporary_folder().join(format!("ikigai-tour-{}", &random[random.len() - 8..]))
}

/// Removes the folder, if it is there.
pub(super) fn remove(folder: &Path) {
    /// A command that is just being ended may make a file behind our back, or two of us remove the same.
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
