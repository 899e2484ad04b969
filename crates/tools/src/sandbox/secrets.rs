//! Where people keep secrets.

use std::path::{Path, PathBuf};

/// Relative to the home directory; the first one is what that is known by.
const SECRETS: [&str; 125] = [
    // Keys, and the passwords of programs.
    ".ssh",
    ".gnupg",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".pki/nssdb",
    ".netrc",
    ".netrc.gpg",
    ".authinfo",
    ".authinfo.gpg",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".subversion/auth",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".msmtprc",
    ".vnc",
    ".Xauthority",
    ".ICEauthority",
    ".config/1Password",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    ".config/op",
    ".config/sops/age",
    ".vault-token",
    // Logins of package managers; what they have downloaded can be read.
    ".npmrc",
    ".pypirc",
    ".config/pypoetry/auth.toml",
    ".local/share/uv/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    // Clouds and containers.
    ".aws",
    ".azure",
    ".config/gcloud",
    ".kube",
    ".docker",
    ".config/containers/auth.json",
    ".config/doctl",
    ".config/hcloud",
    ".config/rclone",
    ".terraform.d/credentials.tfrc.json",
    ".pulumi/credentials.json",
    ".oci",
    ".s3cfg",
    ".boto",
    ".fly",
    ".cloudflared",
    ".wrangler",
    ".config/.wrangler",
    ".config/configstore/firebase-tools.json",
    ".config/netlify",
    ".local/share/com.vercel.cli",
    ".config/stripe",
    ".databrickscfg",
    ".databricks/token-cache.json",
    ".kaggle",
    ".config/kaggle",
    // Logins of other agents and of models.
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini",
    ".qwen",
    ".cursor",
    ".config/cursor",
    ".config/Cursor",
    ".codeium",
    ".config/Windsurf",
    ".config/amp",
    ".local/share/amp",
    ".config/crush",
    ".local/share/crush",
    ".config/goose",
    ".copilot",
    ".config/github-copilot",
    ".local/share/opencode",
    ".mcp-auth",
    ".config/io.datasette.llm/keys.json",
    ".huggingface",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    // What people typed and wrote. Histories of shells and consoles keep the passwords and tokens that were on a command line, and no build
    // reads them.
    ".bash_history",
    ".zsh_history",
    ".zhistory",
    ".histfile",
    ".local/share/fish/fish_history",
    ".local/share/atuin",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".mariadb_history",
    ".sqlite_history",
    ".rediscli_history",
    ".config/Signal",
    ".config/Slack",
    ".config/discord",
    ".config/Element",
    ".local/share/TelegramDesktop",
    // Wallets.
    ".bitcoin",
    ".ethereum/keystore",
    ".electrum",
    ".foundry/keystores",
    ".config/solana",
    // Browsers, with their cookies and passwords, and the data of all programs in containers of their own.
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
    "snap",
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::SECRETS;

    #[test]
    fn each_secret_place_is_in_the_list_once_and_none_lies_in_another() {
        for (at, place) in SECRETS.iter().enumerate() {
            let mut others = SECRETS.iter().enumerate().filter(|(other, _)| *other != at);
            let around = others.find(|(_, other)| Path::new(place).starts_with(other));
            assert_eq!(around, None, "{place}");
        }
    }

    #[test]
    fn what_builds_need_is_not_hidden() {
        for needed in [
            ".cache/huggingface/hub",
            ".cargo/bin",
            ".cargo/config.toml",
            ".cargo/registry",
            ".composer/vendor",
            ".config/configstore/update-notifier-npm.json",
            ".config/git/config",
            ".config/pip/pip.conf",
            ".config/pypoetry/config.toml",
            ".foundry/bin",
            ".gitconfig",
            ".gradle/caches",
            ".gradle/init.d",
            ".gradle/wrapper",
            ".local/bin",
            ".local/share/mise",
            ".local/share/uv/python",
            ".m2/repository",
            ".npm",
            ".nvm",
            ".pulumi/bin",
            ".rustup",
        ] {
            let around = SECRETS.iter().find(|place| Path::new(needed).starts_with(place));
            assert_eq!(around, None, "{needed}");
        }
    }
}
