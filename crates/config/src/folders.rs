//! The folders of the XDG base directory specification that ikigai needs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folders where ikigai looks for files and keeps its own.
#[derive(Debug)]
pub struct Folders {
    pub(crate) home: Option<PathBuf>,
    config: Option<PathBuf>,
    data: Option<PathBuf>,
    state: Option<PathBuf>,
}

impl Folders {
    pub(crate) fn find(variables: &BTreeMap<OsString, OsString>) -> Folders {
        let home = absolute(variables, "HOME");
        let folder = |variable, under_home| {
            absolute(variables, variable)
                .or_else(|| home.as_ref().map(|home| home.join(under_home)))
        };
        Folders {
            config: folder("XDG_CONFIG_HOME", ".config"),
            data: folder("XDG_DATA_HOME", ".local/share"),
            state: folder("XDG_STATE_HOME", ".local/state"),
            home,
        }
    }

    /// The home directory, if there is one.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The folders where ikigai keeps its own files. They need not exist.
    pub fn own(&self) -> Vec<PathBuf> {
        let folders = [&self.config, &self.data, &self.state];
        folders.into_iter().flatten().map(|folder| folder.join("ikigai")).collect()
    }

    /// Where files that commands put into protected paths are moved.
    pub fn quarantine(&self) -> Option<PathBuf> {
        self.data.as_ref().map(|folder| folder.join("ikigai/quarantine"))
    }

    pub(crate) fn user_file(&self) -> Option<PathBuf> {
        self.config.as_ref().map(|folder| folder.join("ikigai/config.toml"))
    }

    /// Where the user's keys are stored.
    pub(crate) fn credentials_file(&self) -> Option<PathBuf> {
        self.config.as_ref().map(|folder| folder.join("ikigai/credentials.toml"))
    }

    /// Where traces are written.
    pub fn trace_file(&self) -> Option<PathBuf> {
        self.state.as_ref().map(|folder| folder.join("ikigai/trace.log"))
    }

    /// Where the list of a provider's models is kept.
    pub fn model_list(&self, provider: &str) -> Option<PathBuf> {
        let folder = self.state.as_ref()?.join("ikigai/models");
        Some(folder.join(format!("{provider}.json")))
    }

    /// Where the input history is kept across sessions.
    pub fn history_file(&self) -> Option<PathBuf> {
        self.data.as_ref().map(|folder| folder.join("ikigai/history"))
    }

    /// The default address of the database. `None` also if the folder's name is not UTF-8, because
    /// an address is text.
    pub(crate) fn database_url(&self) -> Option<String> {
        let path = self.data.as_ref()?.join("ikigai/ikigai.db");
        Some(format!("sqlite://{}", path.to_str()?))
    }
}

/// A folder from a variable. An empty or relative one counts as unset, as the XDG specification
/// requires.
fn absolute(variables: &BTreeMap<OsString, OsString>, name: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(variables.get(&OsString::from(name))?);
    folder.is_absolute().then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], user_file: Option<&str>, database_url: Option<&str>) {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let folders = Folders::find(&variables);
        assert_eq!(folders.user_file(), user_file.map(PathBuf::from));
        assert_eq!(folders.database_url().as_deref(), database_url);
    }

    #[test]
    fn xdg_folders_take_precedence_over_those_under_home() {
        check(
            &[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c"), ("XDG_DATA_HOME", "/d")],
            Some("/c/ikigai/config.toml"),
            Some("sqlite:///d/ikigai/ikigai.db"),
        );
        let under_home = Some("/h/.config/ikigai/config.toml");
        let database = Some("sqlite:///h/.local/share/ikigai/ikigai.db");
        check(&[("HOME", "/h")], under_home, database);
        check(
            &[("HOME", "/h"), ("XDG_CONFIG_HOME", ""), ("XDG_DATA_HOME", "")],
            under_home,
            database,
        );
        check(
            &[("HOME", "/h"), ("XDG_CONFIG_HOME", "c"), ("XDG_DATA_HOME", "./d")],
            under_home,
            database,
        );
        check(&[], None, None);
        check(&[("HOME", "")], None, None);
    }
}
