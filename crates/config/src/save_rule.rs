//! Adds a rule to the user's file, which keeps its comments and its format.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, Value};

use crate::error::ConfigError;
use crate::escape::escape_path;
use crate::file::{Document, replace};

/// Why a rule could not be saved. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SaveRuleError {
    /// What should be saved is not exactly one rule.
    #[error("this is not a rule")]
    NotRule,
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ConfigError),
    /// The file has a fault, which has to be corrected first.
    #[error("{}: {message}", escape_path(.path))]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The file cannot be written.
    #[error("{}: cannot be written: {source}", escape_path(.path))]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Adds a rule, given as a `[[rules]]` table, before all other rules of a configuration file: the
/// first rule that matches decides.
pub fn save_rule(file: &Path, rule: &str) -> Result<(), SaveRuleError> {
    let mut rule = parse_rule(rule).ok_or(SaveRuleError::NotRule)?;
    // A link stays one.
    let path = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let text = Document::read(&path)?.map(|document| document.text).unwrap_or_default();
    let syntax = |message: String| SaveRuleError::Syntax { path: path.clone(), message };
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| syntax(error.message().to_owned()))?;
    if !document.is_empty() {
        rule.decor_mut().set_prefix("\n");
    }
    let rules = document.entry("rules").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    match rules {
        Item::ArrayOfTables(rules) => insert_table(rules, rule),
        Item::Value(Value::Array(rules)) => insert_value(rules, rule),
        Item::Value(_) | Item::Table(_) | Item::None => {
            return Err(syntax("'rules' is not a list of rules".to_owned()));
        }
    }
    replace(&path, &document.to_string())
        .map_err(|source| SaveRuleError::Write { path: path.clone(), source })
}

/// The only rule of a text that has nothing else.
fn parse_rule(text: &str) -> Option<Table> {
    let mut document: DocumentMut = text.parse().ok()?;
    let rules = document.remove("rules")?.into_array_of_tables().ok()?;
    let rule = (rules.len() == 1 && document.is_empty()).then(|| rules.get(0).cloned())??;
    let is_text = |name| rule.get(name).is_some_and(Item::is_str);
    let is_rule = rule.len() == 3 && ["tool", "match", "decision"].into_iter().all(is_text);
    is_rule.then_some(rule)
}

fn insert_table(rules: &mut ArrayOfTables, mut rule: Table) {
    let others: Vec<Table> = rules.iter().cloned().collect();
    // It stands where the first rule stood.
    rule.set_position(others.first().and_then(Table::position));
    rules.clear();
    rules.push(rule);
    others.into_iter().for_each(|other| rules.push(other));
}

fn insert_value(rules: &mut Array, rule: Table) {
    rules.insert(0, rule.into_inline_table());
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const RULE: &str = "[[rules]]\ntool = \"bash\"\nmatch = \"git push\"\ndecision = \"allow\"\n";

    #[track_caller]
    fn check(before: &str, expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        fs::write(&file, before).unwrap();
        save_rule(&file, RULE).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_rule_comes_before_the_others_and_nothing_else_changes() {
        check("", RULE);
        let model = "# My model.\nmodel = 'openai/gpt-5' # the large one\n";
        check(model, &format!("{model}\n{RULE}"));
        let other =
            "\n# Never this.\n[[rules]]\ntool = 'bash'\nmatch = 'rm *'\ndecision = 'deny'\n";
        let providers = "\n[providers.local]\nbase_url = 'http://localhost'\n";
        check(&format!("{model}{other}{providers}"), &format!("{model}\n{RULE}{other}{providers}"));
        let inline = "rules = [{tool = 'bash', match = 'rm *', decision = 'deny'}]\n";
        let added = "{ tool = \"bash\", match = \"git push\", decision = \"allow\" }";
        check(inline, &inline.replace("[{", &format!("[{added},{{")));
    }

    #[test]
    fn what_is_no_rule_or_no_toml_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/config.toml");
        for no_rule in ["", "model = 'x'", "[[rules]]\ntool = 'bash'\n", &format!("{RULE}{RULE}")] {
            assert!(matches!(save_rule(&file, no_rule), Err(SaveRuleError::NotRule)), "{no_rule}");
        }
        assert!(!file.exists());
        save_rule(&file, RULE).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        for fault in ["model = ", "rules = 'none'\n"] {
            fs::write(&file, fault).unwrap();
            assert!(matches!(save_rule(&file, RULE), Err(SaveRuleError::Syntax { .. })));
            assert_eq!(fs::read_to_string(&file).unwrap(), fault);
        }
    }

    #[test]
    fn a_link_stays_one_and_permissions_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("dotfiles.toml"), folder.path().join("config.toml"));
        fs::write(&file, "mode = 'read'\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        save_rule(&link, RULE).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::read_to_string(&file).unwrap().ends_with(RULE));
    }
}
