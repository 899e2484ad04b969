//! The folder in which the walk takes place: made at the beginning, removed at the end.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

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
    pub(super) fn make() -> anyhow::Result<Scratch> {
        let parent = environment::temporary_folder();
        Scratch::make_in(&parent).map_err(|error| {
            let parent = parent.display();
            anyhow::anyhow!("cannot make a folder for the tour in {parent}: {error}; {ELSEWHERE}")
        })
    }

    fn make_in(parent: &Path) -> anyhow::Result<Scratch> {
        let random = Uuid::now_v7().simple().to_string();
        let folder = parent.join(format!("ikigai-tour-{}", &random[random.len() - 8..]));
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

    pub(super) fn database_url(&self) -> OsString {
        let mut url = OsString::from("sqlite://");
        url.push(self.folder.join("ikigai.db"));
        url
    }

    /// Removes the folder for somebody who cannot wait for the end.
    pub(super) fn remover(&self) -> impl FnOnce() + Send + 'static {
        let folder = self.folder.clone();
        move || remove(&folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

fn remove(folder: &Path) {
    /// A command that is just being ended may make a file behind our back.
    const ATTEMPTS: usize = 5;
    let is_gone = (0..ATTEMPTS).any(|_| fs::remove_dir_all(folder).is_ok() || !folder.exists());
    if !is_gone {
        print::note(&format!("ikigai: {} could not be removed", folder.display()));
    }
}
