//! An environment for tests: a home directory, a repository and variables in a temporary folder.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use ikigai_tools::{CORE, Decision, Dispatcher, Owners, Rule, built_in, project_folders};

use crate::{ConfigError, Flag, KnownTools, ProjectFile, Settings, Sources};

pub(crate) struct World {
    folder: tempfile::TempDir,
    variables: BTreeMap<OsString, OsString>,
    config_flag: Option<PathBuf>,
    directory: PathBuf,
    flags: Vec<(&'static str, String, &'static str)>,
}

/// A home directory, and beside it a repository with a folder `src`, which is the working
/// directory.
pub(crate) fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("repo/.git")).unwrap();
    std::fs::create_dir_all(folder.path().join("repo/src")).unwrap();
    let directory = folder.path().join("repo/src");
    World { variables: BTreeMap::new(), config_flag: None, directory, flags: Vec::new(), folder }
        .variable("HOME", "HOME")
}

/// The tools, as the program passes them.
pub(crate) fn known_tools() -> KnownTools {
    let others = ["file_edit", "fork", "wait", "kill", "agents"];
    let core = CORE.map(str::to_owned).to_vec();
    KnownTools {
        names: core.iter().cloned().chain(others.map(str::to_owned)).collect(),
        core,
        commands: vec!["bash".to_owned()],
        check_pattern: |tool, pattern| {
            let tools = Dispatcher::<()>::new(built_in());
            Rule::new(tool, tools.effects_of(tool), pattern, Decision::Ask).map(drop)
        },
    }
}

impl World {
    /// Writes the user's file.
    pub(crate) fn user(self, text: &str) -> World {
        self.file("home/.config/ikigai/config.toml", text)
    }

    /// Writes the project's file.
    pub(crate) fn project(self, text: &str) -> World {
        self.file("repo/.ikigai/config.toml", text)
    }

    pub(crate) fn file(self, path: &str, text: impl AsRef<[u8]>) -> World {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// Sets a variable. `HOME` at the start of the value stands for the home directory.
    pub(crate) fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> World {
        let value = match value.as_ref().to_str().and_then(|value| value.strip_prefix("HOME")) {
            Some(rest) => format!("{}{rest}", self.path("home").display()).into(),
            None => value.as_ref().to_owned(),
        };
        self.variables.insert(name.into(), value);
        self
    }

    pub(crate) fn without_variable(mut self, name: &str) -> World {
        self.variables.remove(OsStr::new(name));
        self
    }

    pub(crate) fn flag(mut self, typed: &'static str, key: &'static str, value: &str) -> World {
        self.flags.push((key, value.to_owned(), typed));
        self
    }

    pub(crate) fn config_flag(mut self, path: impl AsRef<Path>) -> World {
        self.config_flag = Some(self.directory.join(path));
        self
    }

    pub(crate) fn directory(mut self, path: &str) -> World {
        self.directory = self.path(path);
        std::fs::create_dir_all(&self.directory).unwrap();
        self
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn load(&self) -> Result<Settings, ConfigError> {
        let flags =
            self.flags.iter().map(|(key, value, name)| Flag { key, value: value.clone(), name });
        let owners = Owners::of(&self.directory);
        let is_foreign = |path: &Path| owners.check(path).is_err();
        let folders = project_folders(&self.directory, owners).into_iter();
        let project_files = folders.map(|folder| ProjectFile::in_folder(folder, is_foreign));
        Settings::load(&Sources {
            variables: self.variables.clone(),
            config_flag: self.config_flag.clone(),
            project_files: project_files.collect(),
            flags: flags.collect(),
            tools: known_tools(),
        })
    }

    /// Compares the whole error as the binary prints it. `USER`, `PROJECT` and `ROOT` stand for the
    /// two files and the temporary folder.
    #[track_caller]
    pub(crate) fn refused(&self, expected: &str) {
        let error = anyhow::Error::from(self.load().unwrap_err());
        assert_eq!(self.named(&format!("{error:#}")), expected);
    }

    /// Compares lines of the listing, ignoring the number of spaces between value and source.
    #[track_caller]
    pub(crate) fn shows(&self, expected: &[&str]) {
        let listing = self.listing();
        let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = listing.lines().map(squeeze).collect();
        for line in expected {
            assert!(lines.iter().any(|shown| shown == line), "no line {line:?} in:\n{listing}");
        }
    }

    /// The output of `ikigai config`, with folders named as in `refused`.
    #[track_caller]
    pub(crate) fn listing(&self) -> String {
        let settings = self.load().unwrap_or_else(|error| panic!("{error}"));
        self.named(&settings.render())
    }

    fn named(&self, text: &str) -> String {
        let root = self.folder.path().display().to_string();
        text.replace(&format!("{root}/home/.config/ikigai/config.toml"), "USER")
            .replace(&format!("{root}/repo/.ikigai/config.toml"), "PROJECT")
            .replace(&root, "ROOT")
    }
}
