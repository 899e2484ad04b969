//! The keys that the user has stored, one per provider, in a file of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use toml::de::DeTable;
use toml_edit::value;

use crate::edit::edit;
use crate::error::{ConfigError, Problem};
use crate::file::Document;
use crate::lines::Lines;

/// The stored keys. `Debug` shows only whose they are.
#[derive(Clone, Default)]
pub struct Credentials {
    /// `None` if there is no folder for the file.
    path: Option<PathBuf>,
    keys: BTreeMap<String, String>,
}

impl Credentials {
    /// Reads the file. Without one, no key is stored.
    pub(crate) fn read(path: Option<PathBuf>) -> Result<Credentials, ConfigError> {
        let Some(document) = path.as_deref().map(Document::read).transpose()?.flatten() else {
            return Ok(Credentials { path, keys: BTreeMap::new() });
        };
        let keys = parse(&document)?;
        Ok(Credentials { path, keys })
    }

    /// Where the keys are, or would be.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The key of a provider.
    pub fn key(&self, provider: &str) -> Option<&str> {
        self.keys.get(provider).map(String::as_str)
    }

    /// The providers with a stored key.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.keys.keys().map(String::as_str)
    }

    /// Stores the key of a provider, or removes it. Only the user can read the file.
    ///
    /// # Errors
    /// When the file cannot be read or written, or there is no folder for it.
    pub fn store(&self, provider: &str, key: Option<&str>) -> io::Result<()> {
        let path = self.path.as_deref().ok_or_else(|| {
            io::Error::other("no folder is known for it: set XDG_CONFIG_HOME or HOME")
        })?;
        edit(path, |document| match key {
            Some(key) => document[provider] = value(key),
            None => drop(document.remove(provider)),
        })?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))
    }
}

fn parse(document: &Document) -> Result<BTreeMap<String, String>, ConfigError> {
    let lines = Lines::of(&document.text);
    let syntax = |at: usize, message: &str| {
        let (path, message) = (document.path.to_path_buf(), message.to_owned());
        ConfigError::from(Problem::Syntax { path, line: lines.line(at), column: 1, message })
    };
    // Messages of the parser name no values.
    let table = DeTable::parse(&document.text)
        .map_err(|error| syntax(error.span().map_or(0, |span| span.start), error.message()))?;
    let keys = table.get_ref().iter().map(|(provider, key)| match key.get_ref().as_str() {
        Some(text) => Ok((provider.get_ref().to_string(), text.to_owned())),
        None => Err(syntax(key.span().start, "a key is a text: anthropic = \"sk-…\"")),
    });
    keys.collect()
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.keys.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_stored_and_removed_and_only_the_user_can_read_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ikigai/credentials.toml");
        let read = || Credentials::read(Some(path.clone())).unwrap();
        assert_eq!(read().providers().count(), 0);
        read().store("anthropic", Some("sk-ant-1")).unwrap();
        read().store("my-server", Some("a \"quoted\" key")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let keys = read();
        assert_eq!(keys.key("my-server"), Some("a \"quoted\" key"));
        assert_eq!(keys.providers().collect::<Vec<_>>(), ["anthropic", "my-server"]);
        assert!(!format!("{keys:?}").contains("sk-ant-1"), "{keys:?}");
        // A file that others can read is not left like that.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        keys.store("my-server", None).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read().providers().collect::<Vec<_>>(), ["anthropic"]);
    }

    #[test]
    fn a_wrong_file_is_refused_without_showing_a_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials.toml");
        for text in ["\nanthropic = sk-ant-secret", "\nanthropic = [\"sk-ant-secret\"]"] {
            fs::write(&path, text).unwrap();
            let error = Credentials::read(Some(path.clone())).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(shown.contains("credentials.toml:2:") && !shown.contains("secret"), "{shown}");
        }
    }
}
