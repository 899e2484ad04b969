//! What can be wrong with a configuration, in terms that help its author.
//!
//! The fields hold text that is already safe to show: masked, escaped and cut. So neither `Display`
//! nor `Debug` of an error can reveal a secret.

use std::path::PathBuf;

use crate::escape::{escape_path, excerpt};
use crate::origin::Origin;

/// How many faults of one layer are printed. The rest are counted.
const SHOWN_FAULTS: usize = 10;

/// Where to find the right names.
const LIST: &str = "('ikigai config' lists all settings)";

/// Why the configuration could not be loaded. `Display` shows every fault of the first faulty layer
/// with its origin.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ConfigError(#[from] Problem);

impl ConfigError {
    /// Whether a file could not be read for lack of permission or an I/O error.
    pub fn is_permission_denied(&self) -> bool {
        let denied = std::io::ErrorKind::PermissionDenied;
        matches!(&self.0, Problem::Unreadable { source, .. } if source.kind() == denied)
    }

    /// Whether the value of a flag is wrong.
    pub fn is_in_flag(&self) -> bool {
        let in_flag = |fault: &Fault| matches!(fault, Fault::Value { origin: Origin::Flag(_), .. });
        matches!(&self.0, Problem::Faults(faults) if faults.iter().any(in_flag))
    }
}

/// Why a layer could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("{}: file not found (from --config)", escape_path(.path))]
    NoSuchFile { path: PathBuf },
    #[error("{}: not a regular file", escape_path(.path))]
    NotRegular { path: PathBuf },
    #[error("{}: larger than 1 MiB, which is too large for a configuration file", escape_path(.path))]
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
    /// Everything that is wrong in one layer.
    #[error("{}", render_faults(.0))]
    Faults(Vec<Fault>),
}

/// There is no folder for the database: no address is set, and no home directory is known.
#[derive(Debug, thiserror::Error)]
#[error(
    "no folder for the database: set XDG_DATA_HOME or HOME, or choose a path with --db \
        sqlite://PATH"
)]
pub struct NoDatabase;

/// One faulty entry of a layer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("{origin}: unknown setting '{key}'{} {LIST}", did_you_mean(.suggestion))]
    UnknownSetting { origin: Origin, key: String, suggestion: Option<String> },
    #[error("unknown variable {name}{} {LIST}", did_you_mean(.suggestion))]
    UnknownVariable { name: String, suggestion: Option<String> },
    #[error("{origin}: {key} is a table of settings, not a value {LIST}")]
    NotATable { origin: Origin, key: String },
    #[error("{}: {wrong}", .origin.with_key(.key))]
    Value { origin: Origin, key: String, wrong: Box<ValueError> },
    #[error(
        "{origin}: {key} cannot be set in a project's file, which is not trusted; set it in \
            {user_file}"
    )]
    Untrusted { origin: Origin, key: String, user_file: String },
}

impl Fault {
    /// The fault for a wrong value.
    pub(crate) fn value(origin: Origin, key: &str, wrong: ValueError) -> Fault {
        Fault::Value { origin, key: excerpt(key), wrong: Box::new(wrong) }
    }
}

/// What is wrong with a value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ValueError {
    #[error("expected {wanted}, found {found}")]
    Type { found: &'static str, wanted: String },
    #[error("the value is not UTF-8")]
    NotUtf8,
    #[error("'{shown}' is not a whole number from {least} to {most}")]
    NoNumber { shown: String, least: u64, most: u64 },
    #[error("{shown} is out of range ({least} to {most})")]
    OutOfRange { shown: String, least: u64, most: u64 },
    #[error("{shown} is not an amount in dollars from {least} to {most} with at most six decimals")]
    NoDollars { shown: String, least: String, most: String },
    #[error("{shown} is not a number from 0.1 to 1")]
    NoShare { shown: String },
    #[error("'{shown}' is not allowed: use one of {}", .allowed.join(", "))]
    NoChoice { shown: String, allowed: &'static [&'static str] },
    #[error("'{shown}' is not a tool{} (known: {known})", did_you_mean(.suggestion))]
    NoTool { shown: String, suggestion: Option<String>, known: String },
    #[error("'{shown}' is not an absolute path: it must start with / or ~/")]
    NoFullPath { shown: String },
    /// The value is not shown, because it may be the key itself.
    #[error("not a variable name; name the variable that holds the key, never the key itself")]
    NoVariableName,
    #[error("variables that start with IKIGAI_ are settings; use another variable for the key")]
    ReservedVariableName,
    #[error("'{masked}' is not allowed: {why}")]
    Url { masked: String, why: &'static str },
    #[error(
        "'{shown}' is not a valid provider name: use lower-case letters, digits and single '-' or '_'"
    )]
    NoProviderName { shown: String },
    #[error("a provider that is not built in needs a base_url")]
    NoBaseUrl,
    #[error("'{shown}' is not a model: write provider/name")]
    NoModel { shown: String },
    #[error("'{shown}' is not a provider{} (known: {known})", did_you_mean(.suggestion))]
    UnknownProvider { shown: String, suggestion: Option<String>, known: String },
    #[error(
        "the provider of '{shown}' is not clear: write provider/{shown} (known providers: {known})"
    )]
    UnclearProvider { shown: String, known: String },
    #[error("set both input and output, the prices of the model")]
    IncompletePrice,
    #[error("rules cannot be set here; add them as [[rules]] to the user's file")]
    RulesBelongInAFile,
    #[error("{field}: {wrong}")]
    RuleField { field: &'static str, wrong: Box<ValueError> },
    #[error("'{shown}' is not a valid pattern: {why}")]
    NoPattern { shown: String, why: String },
    #[error("'network' is only for bash; for {tool}, use allow or trust")]
    NoNetwork { tool: String },
    #[error("unknown field '{shown}', a rule has tool, match and decision")]
    UnknownRuleField { shown: String },
    #[error("{field} is missing, a rule has tool, match and decision")]
    MissingRuleField { field: &'static str },
    #[error(
        "a project can only lower this limit ({limit}, set by {origin}), not raise it to \
            {given}; set it in {user_file}"
    )]
    Raised { limit: String, origin: Origin, given: String, user_file: String },
    #[error(
        "a project can only narrow this list, and '{tool}' is not in it (set by {origin}); set \
            it in {user_file}"
    )]
    Widened { tool: String, origin: Origin, user_file: String },
}

/// The entries of a layer, or all its faults.
pub(crate) fn all_or_faults<T>(
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
    no_faults(faults).map(|()| good)
}

/// The error for a layer with faults.
pub(crate) fn no_faults(faults: Vec<Fault>) -> Result<(), ConfigError> {
    if faults.is_empty() { Ok(()) } else { Err(Problem::Faults(faults).into()) }
}

fn render_faults(faults: &[Fault]) -> String {
    let mut lines: Vec<String> = faults.iter().take(SHOWN_FAULTS).map(Fault::to_string).collect();
    if faults.len() > SHOWN_FAULTS {
        lines.push(format!("and {} more", faults.len() - SHOWN_FAULTS));
    }
    lines.join("\n")
}

fn did_you_mean(suggestion: &Option<String>) -> String {
    match suggestion {
        Some(suggestion) => format!("; did you mean '{suggestion}'?"),
        None => String::new(),
    }
}
