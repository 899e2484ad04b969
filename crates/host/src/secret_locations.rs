//! Secrets that are not where they usually are, because variables of the environment say so.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ikigai_tools::{Root, secret_places_of};

use crate::environment::Environment;
use crate::secret_names::has_secret_name;

/// Variables with another path for a folder of the home directory that contains secrets.
const FOLDERS: [(&str, &str); 18] = [
    ("AZURE_CONFIG_DIR", ".azure"),
    ("CARGO_HOME", ".cargo"),
    ("CLAUDE_CONFIG_DIR", ".claude"),
    ("CLOUDSDK_CONFIG", ".config/gcloud"),
    ("CODEX_HOME", ".codex"),
    ("COMPOSER_HOME", ".config/composer"),
    ("DOCKER_CONFIG", ".docker"),
    ("GH_CONFIG_DIR", ".config/gh"),
    ("GLAB_CONFIG_DIR", ".config/glab-cli"),
    ("GNUPGHOME", ".gnupg"),
    ("GRADLE_USER_HOME", ".gradle"),
    ("HF_HOME", ".cache/huggingface"),
    ("PASSWORD_STORE_DIR", ".password-store"),
    ("PULUMI_HOME", ".pulumi"),
    ("STRIPE_CONFIG_PATH", ".config/stripe"),
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
];

/// Variables with the paths of files that contain secrets, separated by colons. Those with a name
/// like `DB_PASSWORD_FILE` are recognized by that.
const FILES: [&str; 24] = [
    "AWS_CONFIG_FILE",
    "BOTO_CONFIG",
    "DATABRICKS_CONFIG_FILE",
    "HISTFILE",
    "ICEAUTHORITY",
    "KUBECONFIG",
    "MYSQL_HISTFILE",
    "NETRC",
    "NODE_REPL_HISTORY",
    "NPM_CONFIG_USERCONFIG",
    "OCI_CLI_CONFIG_FILE",
    "PGPASSFILE",
    "PGSERVICEFILE",
    "PGSSLKEY",
    "PSQL_HISTORY",
    "PYTHON_HISTORY",
    "RCLONE_CONFIG",
    "REDISCLI_HISTFILE",
    "REGISTRY_AUTH_FILE",
    "SOPS_AGE_KEY_FILE",
    "SQLITE_HISTORY",
    "TF_CLI_CONFIG_FILE",
    // Some desktops give it a new name each time.
    "XAUTHORITY",
    "npm_config_userconfig",
];

/// The paths of these secrets. What is in one of the writable `roots` is a file of the project, and
/// what contains one, or the home directory, is no place for secrets alone.
pub(crate) fn moved_secrets(environment: &Environment, roots: &[Root]) -> Vec<PathBuf> {
    let allowed = environment.settings.list("sandbox.env");
    let home = environment.settings.folders().home();
    let mut places = Vec::new();
    for (name, value) in &environment.variables {
        if allowed.iter().any(|allowed| name == allowed.as_str()) {
            continue;
        }
        if let Some((_, folder)) = FOLDERS.iter().find(|(variable, _)| name == variable) {
            places.extend(secret_places_of(folder, Path::new(value)));
        } else if FILES.iter().any(|variable| name == variable) || has_secret_name(name) {
            places.extend(files(value));
        }
    }
    places.retain(|place| {
        let real = place.canonicalize().unwrap_or_else(|_| place.clone());
        let is_apart =
            |root: &Root| !real.starts_with(root.path()) && !root.path().starts_with(&real);
        place.is_absolute()
            && roots.iter().all(is_apart)
            && home.is_none_or(|home| !home.starts_with(place))
    });
    places
}

/// Not `/dev/null`, which turns a history off.
fn files(value: &OsStr) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(value).filter(|path| path.is_file())
}
