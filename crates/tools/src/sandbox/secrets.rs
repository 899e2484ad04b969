//! Where users keep secrets.

use std::path::{Path, PathBuf};

/// Relative to the home directory. `home_of` finds that by the first entry.
const SECRETS: [&str; 125] = [
    // Keys and passwords.
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
    // Credentials of package managers; their downloads stay readable.
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
    // Credentials of other agents and models.
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
    // Histories and messages. Shell and console histories contain passwords and tokens from command
    // lines, and no build reads them.
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
    // Browsers with their cookies and passwords, and the data of all sandboxed desktop apps.
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

/// The home directory that the hidden paths belong to.
pub(super) fn home_of(hidden: &[PathBuf]) -> Option<&Path> {
    // These come after any other hidden paths.
    hidden.iter().rfind(|place| place.ends_with(SECRETS[0])).and_then(|place| place.parent())
}

/// The paths in the home directory that hold secrets. The caller adds those of ikigai itself.
pub fn secret_places(home: &Path) -> Vec<PathBuf> {
    SECRETS.iter().map(|place| home.join(place)).collect()
}

/// The same for a folder of the home directory that the user keeps at another path, such as
/// `.config` at that of `XDG_CONFIG_HOME`.
pub fn secret_places_of(folder: &str, path: &Path) -> Vec<PathBuf> {
    let inside = SECRETS.iter().filter_map(|place| Path::new(place).strip_prefix(folder).ok());
    inside.map(|place| path.join(place).components().collect()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{SECRETS, secret_places_of};

    #[test]
    fn secrets_move_with_their_folder() {
        let at = |folder| secret_places_of(folder, Path::new("/moved"));
        assert!(at(".config").contains(&PathBuf::from("/moved/gh")));
        assert_eq!(at(".config/gh"), [PathBuf::from("/moved")]);
        let of_cargo = ["credentials", "credentials.toml"];
        assert_eq!(at(".cargo"), of_cargo.map(|name| Path::new("/moved").join(name)));
        assert!(at(".conf").is_empty());
    }

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
