//! Changes a file of the user, which keeps its comments and its format.

use std::fs;
use std::io;
use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, value};

use crate::file::{Document, replace};

/// Sets texts in a configuration file, by their dotted keys.
///
/// # Errors
/// When the file cannot be read or written, or is not TOML. It is as it was.
pub fn save_values(path: &Path, values: &[(&str, &str)]) -> io::Result<()> {
    edit(path, |document| {
        for (key, text) in values {
            set(document.as_table_mut(), key, text);
        }
    })
}

/// Changes a TOML file at once. A link stays one.
pub(crate) fn edit(path: &Path, change: impl FnOnce(&mut DocumentMut)) -> io::Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let document = Document::read(&path).map_err(io::Error::other)?;
    let text = document.map(|document| document.text).unwrap_or_default();
    // The parser's own error would repeat the text, which may have secrets.
    let mut document: DocumentMut = text.parse().map_err(|_| io::Error::other("it is not TOML"))?;
    change(&mut document);
    replace(&path, &document.to_string())
}

fn set(table: &mut Table, key: &str, text: &str) {
    let Some((first, rest)) = key.split_once('.') else {
        table[key] = value(text);
        return;
    };
    let mut inner = Table::new();
    inner.set_implicit(true);
    match table.entry(first).or_insert(Item::Table(inner)) {
        Item::Table(inner) => set(inner, rest, text),
        // An inline table, or something wrong, which the next start reports.
        other => other[rest] = value(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ikigai/config.toml");
        if !before.is_empty() {
            fs::create_dir(file.parent().unwrap()).unwrap();
            fs::write(&file, before).unwrap();
        }
        let values =
            [("model", "ollama/small"), ("providers.ollama.base_url", "http://127.0.0.1:11434/v1")];
        save_values(&file, &values).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    }

    #[test]
    fn values_are_set_and_nothing_else_changes() {
        let provider = "[providers.ollama]\nbase_url = \"http://127.0.0.1:11434/v1\"\n";
        check("", &format!("model = \"ollama/small\"\n\n{provider}"));
        check(
            "# Mine.\nmode = 'read' # careful\n\n[tools]\nenabled = ['core']\n",
            &format!(
                "# Mine.\nmode = 'read' # careful\nmodel = \"ollama/small\"\n\n[tools]\nenabled = ['core']\n\n{provider}"
            ),
        );
        let old = "model = 'openai/x'\n[providers.ollama]\nbase_url = 'http://old'\n";
        check(old, &format!("model = \"ollama/small\"\n{provider}"));
    }
}
