//! What can be wrong with a configuration, in words for the person who wrote it.
//!
//! The fields hold text that is already fit to be shown: masked, escaped, cut. So neither `Display`
//! nor `Debug` of an error can give a secret away.

use std::path::PathBuf;

use super::escape::{escape_path, excerpt};
use super::place::Place;

/// So many faults of one layer are printed; the rest is counted.
const SHOWN_FAULTS: usize = 10;

/// Where the right names are.
const LIST: &str = "('ikigai config' lists all settings)";

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("{}: there is no such file, but --config names it", escape_path(.path))]
    NoSuchFile { path: PathBuf },
    #[error("{}: not a regular file", escape_path(.path))]
    NotRegular { path: PathBuf },
    #[error("{}: larger than 1 MiB, so this is no configuration", escape_path(.path))]
    TooLarge { path: PathBuf },
    #[error("{}:{line}: not UTF-8", escape_path(.path))]
    NotUtf8 { path: PathBuf, line: usize },
    #[error("{}: cannot be read", escape_path(.path))]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{}:{line}:{column}: {message}", escape_path(.path))]
    Syntax { path: PathBuf, line: usize, column: usize, message: String },
    /// All that is wrong in one layer.
    #[error("{}", render_faults(.0))]
    Faults(Vec<Fault>),
}

impl ConfigError {
    /// Whether a file was refused, not wrong.
    pub(crate) fn is_refused(&self) -> bool {
        let refused = std::io::ErrorKind::PermissionDenied;
        matches!(self, ConfigError::Unreadable { source, .. } if source.kind() == refused)
    }

    /// Whether it was typed on the command line.
    pub(crate) fn is_in_a_flag(&self) -> bool {
        let in_a_flag = |fault: &Fault| matches!(fault, Fault::Value { place: Place::Flag(_), .. });
        matches!(self, ConfigError::Faults(faults) if faults.iter().any(in_a_flag))
    }
}

/// No folder is known in which the database could be, and no other is set.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no place for the database, since neither XDG_DATA_HOME nor HOME names a folder: \
     set one of them, or choose a place with --db sqlite://PATH"
)]
pub(crate) struct NoDatabase;

/// One wrong entry of a layer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("{place}: unknown setting '{key}'{} {LIST}", did_you_mean(.nearest))]
    UnknownSetting { place: Place, key: String, nearest: Option<String> },
    #[error("unknown variable {name}{} {LIST}", did_you_mean(.nearest))]
    UnknownVariable { name: String, nearest: Option<String> },
    #[error("{place}: {key} is a table of settings, not a value {LIST}")]
    NotATable { place: Place, key: String },
    #[error("{}: {wrong}", .place.with_key(.key))]
    Value { place: Place, key: String, wrong: Box<Wrong> },
    #[error(
        "{place}: {key} may not be set by a project, whose file comes with a clone and is not \
         trusted; set it in {user_file}"
    )]
    Untrusted { place: Place, key: String, user_file: String },
}

impl Fault {
    /// The fault of a wrong value.
    pub(super) fn value(place: Place, key: &str, wrong: Wrong) -> Fault {
        Fault::Value { place, key: excerpt(key), wrong: Box::new(wrong) }
    }
}

/// What is wrong with a value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Wrong {
    #[error("{found} is given, but {wanted} is needed")]
    Type { found: &'static str, wanted: String },
    #[error("the value is not UTF-8")]
    NotUtf8,
    #[error("'{shown}' is no whole number, allowed is {least} to {most}")]
    NoNumber { shown: String, least: u64, most: u64 },
    #[error("{shown} is out of range, allowed is {least} to {most}")]
    OutOfRange { shown: String, least: u64, most: u64 },
    #[error("'{shown}' is not allowed, use one of {}", .allowed.join(", "))]
    NoChoice { shown: String, allowed: &'static [&'static str] },
    #[error("'{shown}' is no tool{} (known are {known})", did_you_mean(.nearest))]
    NoTool { shown: String, nearest: Option<String>, known: String },
    #[error("'{shown}' is no full path, it must begin with / or ~/")]
    NoFullPath { shown: String },
    /// The value is not shown: it may be the key itself.
    #[error(
        "this is no name of a variable; write the name of the variable that holds the key, \
         never the key"
    )]
    NoVariableName,
    #[error(
        "a variable whose name begins with IKIGAI_ is a setting of its own, \
         use another name for the key's"
    )]
    ReservedVariableName,
    #[error("'{masked}' is not allowed, {why}")]
    Address { masked: String, why: &'static str },
    #[error(
        "'{shown}' is no name for a provider, use lower-case letters, digits and single '-' or '_'"
    )]
    NoProviderName { shown: String },
    #[error("a provider that is not built in needs a base_url, the address of its server")]
    NoBaseUrl,
    #[error("'{shown}' is no model, write provider/name")]
    NoModel { shown: String },
    #[error("'{shown}' is no provider{} (known are {known})", did_you_mean(.nearest))]
    UnknownProvider { shown: String, nearest: Option<String>, known: String },
    #[error(
        "it is not clear whose model '{shown}' is, write provider/{shown}; \
         known providers are {known}"
    )]
    UnclearProvider { shown: String, known: String },
    #[error("rules cannot be set here, write them as [[rules]] in the user's file")]
    RulesBelongInAFile,
    #[error("{field}: {wrong}")]
    RuleField { field: &'static str, wrong: Box<Wrong> },
    #[error("'{shown}' is no pattern: {why}")]
    NoPattern { shown: String, why: String },
    #[error("'network' is only for bash, {tool} can have allow or trust")]
    NoNetwork { tool: String },
    #[error("unknown field '{shown}', a rule has tool, match and decision")]
    UnknownRuleField { shown: String },
    #[error("{field} is missing, a rule has tool, match and decision")]
    MissingRuleField { field: &'static str },
    #[error(
        "a project may only lower this limit ({limit} from {place}), not raise it to {given}; \
         set it in {user_file}"
    )]
    Raised { limit: u64, place: Place, given: u64, user_file: String },
    #[error(
        "a project may only narrow this list, and '{tool}' is not in it (set by {place}); \
         set it in {user_file}"
    )]
    Widened { tool: String, place: Place, user_file: String },
}

/// All entries of a layer, or everything that is wrong in it.
pub(super) fn all_or_faults<T>(
    entries: impl Iterator<Item = Result<T, Fault>>,
) -> Result<Vec<T>, ConfigError> {
    let mut good = Vec::new();
    let mut faults = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => good.push(entry),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(good) } else { Err(ConfigError::Faults(faults)) }
}

fn render_faults(faults: &[Fault]) -> String {
    let mut lines: Vec<String> = faults.iter().take(SHOWN_FAULTS).map(Fault::to_string).collect();
    if faults.len() > SHOWN_FAULTS {
        lines.push(format!("and {} more", faults.len() - SHOWN_FAULTS));
    }
    lines.join("\n")
}

fn did_you_mean(nearest: &Option<String>) -> String {
    match nearest {
        Some(nearest) => format!("; did you mean '{nearest}'?"),
        None => String::new(),
    }
}
