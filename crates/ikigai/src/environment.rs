//! The only place that reads the process's surroundings: arguments, variables, directories.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context;
use ikigai_config::{Flag, Settings, Sources};
use ikigai_host::{
    AGENT_VARIABLE, Environment, SESSION_VARIABLE, Selection, WatchdogProgram, settings,
};
use ikigai_tools::Watch;
use tokio::signal::unix::SignalKind;

use crate::cli::Options;

/// The argument that starts the program as its own watchdog.
const WATCHDOG: &str = "__watchdog";

/// The error inside an agent's command, where the sandbox hides the database and the configuration.
pub(crate) const HIDDEN: &str = "use the mail tool: an agent's commands cannot reach the database";

/// Reads variables, working directory and settings.
pub(crate) fn read(options: &Options) -> anyhow::Result<Environment> {
    let directory = working_directory(options.directory.as_deref())?;
    let variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    let sources = Sources {
        variables: variables.clone(),
        config_flag: options.config.as_ref().map(std::path::absolute).transpose()?,
        project_files: settings::project_files(&directory),
        flags: flags(options),
        tools: settings::known_tools(),
    };
    let selection = selection(options, &variables)?;
    let settings = Settings::load(&sources).map_err(|error| match selection.inside_agent {
        true if error.is_permission_denied() => anyhow::anyhow!("{HIDDEN}"),
        _ => error.into(),
    })?;
    let added =
        options.add_dir.iter().map(|folder| added_folder(folder)).collect::<Result<_, _>>()?;
    let typed = options.directory.iter().chain(&options.add_dir);
    let mut typed_folders = typed.map(|path| typed_folder(path)).collect::<Result<Vec<_>, _>>()?;
    if options.directory.is_none() {
        typed_folders.insert(0, directory.clone());
    }
    Ok(Environment {
        directory,
        added,
        typed_folders,
        settings,
        selection,
        variables,
        temporary: temporary_folder(),
        watchdog: watchdog()?,
        roots: OnceLock::new(),
    })
}

/// An environment independent of the user's: default settings, only the variables needed to find
/// programs and display text, and the `own` variables on top.
pub(crate) fn isolated(
    directory: PathBuf,
    own: impl IntoIterator<Item = (&'static str, OsString)>,
) -> anyhow::Result<Environment> {
    const KEPT: [&str; 6] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "NO_COLOR"];
    let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    variables.retain(|name, _| KEPT.iter().any(|kept| name == kept));
    variables.extend(own.into_iter().map(|(name, value)| (name.into(), value)));
    Environment::from_variables(directory, variables, temporary_folder(), watchdog()?)
}

/// The session and agent that were named. An agent's command can only act as that agent.
fn selection(
    options: &Options,
    variables: &BTreeMap<OsString, OsString>,
) -> anyhow::Result<Selection> {
    let variable = |name: &str| {
        let value = variables.get(OsStr::new(name)).filter(|value| !value.is_empty());
        value.map(|value| value.to_string_lossy().into_owned())
    };
    let (agent, session) = (variable(AGENT_VARIABLE), variable(SESSION_VARIABLE));
    let inside_agent = agent.is_some() || session.is_some();
    if inside_agent && options.db.is_some() {
        anyhow::bail!("--db cannot be used inside an agent's command");
    }
    if let (Some(typed), Some(own)) = (&options.agent, &agent)
        && typed.trim_end_matches('/') != own.trim_end_matches('/')
    {
        anyhow::bail!("--agent {typed} cannot be used inside a command of agent {own}");
    }
    if let (Some(typed), Some(own)) = (&options.session, &session)
        && (typed.is_empty() || !own.starts_with(typed.as_str()))
    {
        anyhow::bail!("--session {typed} cannot be used inside a command of session {own}");
    }
    Ok(Selection {
        session: session.or_else(|| options.session.clone()),
        agent: agent.or_else(|| options.agent.clone()),
        continues: options.continues,
        new: options.new,
        inside_agent,
    })
}

/// The options that override settings.
fn flags(options: &Options) -> Vec<Flag> {
    [
        ("model", "--model", &options.model),
        ("database_url", "--db", &options.db),
        ("mode", "--mode", &options.mode),
        ("effort", "--effort", &options.effort),
    ]
    .into_iter()
    .filter_map(|(key, name, value)| value.clone().map(|value| Flag { key, value, name }))
    .collect()
}

fn working_directory(chosen: Option<&Path>) -> anyhow::Result<PathBuf> {
    let current = std::env::current_dir().context("cannot find the current directory")?;
    let Some(chosen) = chosen else {
        return Ok(current);
    };
    let directory = current.join(chosen);
    let directory =
        directory.canonicalize().with_context(|| format!("cannot work in {}", chosen.display()))?;
    anyhow::ensure!(directory.is_dir(), "cannot work in {}: not a directory", chosen.display());
    Ok(directory)
}

/// A folder of `--add-dir`, relative to the current directory like every path on the command line.
fn added_folder(named: &Path) -> anyhow::Result<PathBuf> {
    let folder = named.canonicalize();
    let folder = folder.with_context(|| format!("cannot add {}", named.display()))?;
    anyhow::ensure!(folder.is_dir(), "cannot add {}: not a directory", named.display());
    Ok(folder)
}

/// A folder as it was typed: absolute and normalized, but with links in its path kept.
fn typed_folder(typed: &Path) -> std::io::Result<PathBuf> {
    let mut folder = PathBuf::new();
    for component in std::path::absolute(typed)?.components() {
        match component {
            Component::ParentDir => drop(folder.pop()),
            component => folder.push(component),
        }
    }
    Ok(folder)
}

/// Whether the program was started as its own watchdog.
pub(crate) fn is_watchdog() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == WATCHDOG)
}

/// What the watchdog watches.
pub(crate) fn watch() -> Watch {
    Watch::parse(std::env::args_os().nth(2).as_deref())
}

/// The system's folder for temporary files.
pub(crate) fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}

/// `PATH` with one more folder in front.
pub(crate) fn path_with(folder: &Path) -> anyhow::Result<OsString> {
    #[expect(clippy::disallowed_methods, reason = "this is the file that may")]
    let path = std::env::var_os("PATH").filter(|path| !path.is_empty());
    let path = path.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).context("a folder with a colon in its name cannot be in PATH")
}

/// Whether the terminal can only print lines, going by `TERM`.
pub(crate) fn is_terminal_dumb() -> bool {
    #[expect(clippy::disallowed_methods, reason = "this is the file that may")]
    let term = std::env::var_os("TERM").filter(|term| !term.is_empty());
    term.is_none_or(|term| term == "dumb")
}

/// The path of this program's executable.
pub(crate) fn executable() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find the program's own file")
}

/// The watchdog program: this one.
fn watchdog() -> anyhow::Result<WatchdogProgram> {
    // On Linux this works even after the file was deleted or replaced by a newer version.
    #[cfg(target_os = "linux")]
    let path = PathBuf::from("/proc/self/exe");
    #[cfg(not(target_os = "linux"))]
    let path = executable()?;
    Ok(WatchdogProgram { path, argument: WATCHDOG.into() })
}

/// Whether the process was started with this signal ignored, as `nohup` does with SIGHUP.
pub(crate) fn is_ignored(signal: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(signal.as_raw_value() - 1)
        .is_ok_and(|bit| mask.checked_shr(bit).unwrap_or(0) & 1 == 1)
}

/// Keeps other processes of the user, including agents' commands, from reading our memory and
/// environment. Root still can.
pub(crate) fn hide_memory() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // It cannot fail with this value, and there would be nothing to do if it did.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}
