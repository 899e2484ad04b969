//! The input for the settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::project::ProjectFile;
use crate::tools::KnownTools;

/// Everything from outside the process. It contains keys and passwords, hence no `Debug`.
pub struct Sources {
    /// The whole environment.
    pub variables: BTreeMap<OsString, OsString>,
    /// `--config FILE`: an absolute path, read instead of the user's file. The file must exist.
    pub config_flag: Option<PathBuf>,
    /// Where the project's file may be, from the working directory outwards. The first one that
    /// exists is read.
    pub project_files: Vec<ProjectFile>,
    /// Flags that set a setting.
    pub flags: Vec<Flag>,
    /// The tools that settings can name.
    pub tools: KnownTools,
}

/// A flag that sets a setting, such as `--model NAME`.
pub struct Flag {
    /// The setting's key.
    pub key: &'static str,
    /// The value as the user typed it.
    pub value: String,
    /// The name of the flag, for messages: `--model`.
    pub name: &'static str,
}
