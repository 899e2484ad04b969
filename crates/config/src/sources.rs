//! What the settings are made from.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::project::ProjectFile;
use crate::tools::KnownTools;

/// What the process was given from outside. It holds keys and passwords, hence no `Debug`.
pub struct Sources {
    /// The whole environment.
    pub variables: BTreeMap<OsString, OsString>,
    /// `--config FILE`: read instead of the user's file, and must exist; absolute.
    pub config_flag: Option<PathBuf>,
    /// Where the project's file may be, from the working directory outwards. The first one that is there is read.
    pub project_files: Vec<ProjectFile>,
    /// The flags that stand for a setting.
    pub flags: Vec<Flag>,
    /// The tools that settings can name.
    pub tools: KnownTools,
}

/// A flag that stands for a setting, such as `--model NAME`.
pub struct Flag {
    /// The setting's key.
    pub key: &'static str,
    /// Its value as it is typed.
    pub value: String,
    /// The flag's name, for messages: `--model`.
    pub name: &'static str,
}
