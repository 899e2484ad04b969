//! Where people keep secrets.

use std::path::{Path, PathBuf};

/// Relative to the home directory; the first one is what that is known by.
const SECRETS: [&str; 63] = [
    // Keys and the passwords of programs.
    ".ssh",
    ".gnupg",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".pgpass",
    ".my.cnf",
    // Clouds and containers.
    ".aws",
    ".azure",
    ".config/gcloud",
    ".kube",
    ".docker",
    ".config/containers/auth.json",
    ".config/doctl",
    ".config/rclone",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".config/op",
    ".config/sops/age",
    ".oci",
    ".s3cfg",
    ".boto",
    ".fly",
    // Logins of other agents and of models.
    ".codex/auth.json",
    ".claude/.credentials.json",
    ".gemini/oauth_creds.json",
    ".local/share/opencode/auth.json",
    ".config/goose/secrets.yaml",
    ".config/github-copilot",
    ".config/io.datasette.llm/keys.json",
    ".cache/huggingface/token",
    // What people typed and wrote.
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".psql_history",
    ".config/Bitwarden",
    ".config/Signal",
    ".bitcoin",
    // Browsers, with their cookies and passwords.
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/opera",
    ".config/vivaldi",
    ".librewolf",
    ".zen",
    "snap/firefox",
    ".var/app",
];

/// The home directory to which hidden places belong.
pub(super) fn home_of(hidden: &[PathBuf]) -> Option<&Path> {
    // They come last, behind what else somebody hides.
    hidden.iter().rfind(|place| place.ends_with(SECRETS[0])).and_then(|place| place.parent())
}

/// The places below the home directory where secrets are. Those of ikigai itself are for the caller to
/// add, who knows where they are.
pub fn secret_places(home: &Path) -> Vec<PathBuf> {
    SECRETS.iter().map(|place| home.join(place)).collect()
}
