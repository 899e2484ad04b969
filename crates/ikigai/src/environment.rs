//! The one place that reads what the process was given from outside.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context;
use ikigai_config::{Flag, Settings, Sources};
use ikigai_conversation::SessionId;
use ikigai_tools::{Commands, Root, Watch, avoiding};
use tokio::signal::unix::SignalKind;

use crate::cli::Options;
use crate::quarantine;
use crate::roots::Roots;
use crate::secret_names::looks_secret;
use crate::settings;

/// The argument by which the program is told to be its own watchdog.
pub(crate) const WATCHDOG: &str = "__watchdog";

/// The variables by which a command of an agent knows whose it is.
pub(crate) const AGENT: &str = "IKIGAI_AGENT";
const SESSION: &str = "IKIGAI_SESSION";

/// What is said inside such a command where the sandbox hides database and configuration.
pub(crate) const HIDDEN: &str =
    "use the mail tool: the database is out of reach for commands of an agent";

/// The variable by which programs know where temporary files go.
const TEMPORARY: &str = "TMPDIR";

/// The surroundings of a command: where it works, and with which settings. It holds keys, hence no `Debug`.
pub(crate) struct Environment {
    /// Absolute.
    pub(crate) directory: PathBuf,
    /// Further folders of the working tree; absolute.
    pub(crate) added: Vec<PathBuf>,
    /// The folders of the working tree as they were typed, in the same order; absolute, with links.
    pub(crate) typed_folders: Vec<PathBuf>,
    /// Empty until they are first needed.
    roots: OnceLock<Roots>,
    pub(crate) settings: Settings,
    pub(crate) chosen: Chosen,
    variables: BTreeMap<OsString, OsString>,
}

/// The session and agent that were named, by an option or by the command of an agent that we run in.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) session: Option<String>,
    pub(crate) agent: Option<String>,
    /// The newest session is to be continued.
    pub(crate) continues: bool,
    /// No session that runs is to be joined.
    pub(crate) new: bool,
    /// We are inside a command that an agent runs, and act as that agent.
    pub(crate) inside_agent: bool,
}

impl Environment {
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
        let chosen = Chosen::read(options, &variables)?;
        let settings = Settings::load(&sources).map_err(|error| match chosen.inside_agent {
            true if error.is_permission_denied() => anyhow::anyhow!("{HIDDEN}"),
            _ => error.into(),
        })?;
        let added =
            options.add_dir.iter().map(|folder| added_folder(folder)).collect::<Result<_, _>>()?;
        let typed = options.directory.iter().chain(&options.add_dir);
        let mut typed_folders =
            typed.map(|path| typed_folder(path)).collect::<Result<Vec<_>, _>>()?;
        if options.directory.is_none() {
            typed_folders.insert(0, directory.clone());
        }
        let roots = OnceLock::new();
        Ok(Environment { directory, added, typed_folders, roots, settings, chosen, variables })
    }

    /// Surroundings in which nothing is the user's: the settings are built in, and of the variables only
    /// those are there by which programs are found and texts are shown, and `own` ones over them.
    pub(crate) fn apart(
        directory: PathBuf,
        own: impl IntoIterator<Item = (&'static str, OsString)>,
    ) -> anyhow::Result<Environment> {
        const KEPT: [&str; 6] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "NO_COLOR"];
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        variables.retain(|name, _| KEPT.iter().any(|kept| name == kept));
        variables.extend(own.into_iter().map(|(name, value)| (name.into(), value)));
        let sources = Sources {
            variables: variables.clone(),
            config_flag: None,
            project_files: settings::project_files(&directory),
            flags: Vec::new(),
            tools: settings::known_tools(),
        };
        let settings = Settings::load(&sources)?;
        let (added, typed_folders) = (Vec::new(), vec![directory.clone()]);
        let (roots, chosen) = (OnceLock::new(), Chosen::default());
        Ok(Environment { directory, added, typed_folders, roots, settings, chosen, variables })
    }

    /// A variable's value, if it is set and not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let value = self.variables.get(OsStr::new(name)).filter(|value| !value.is_empty());
        value.map(|value| value.to_string_lossy().into_owned())
    }

    /// The folders of the working tree: where ikigai was started, and those that were added.
    pub(crate) fn tree_folders(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.directory).chain(&self.added).map(PathBuf::as_path)
    }

    /// The folders that agents can write. They are opened once: what was checked is what is used.
    pub(crate) fn roots(&self) -> anyhow::Result<&Roots> {
        if let Some(roots) = self.roots.get() {
            return Ok(roots);
        }
        let opened = Roots::open(self)?;
        Ok(self.roots.get_or_init(|| opened))
    }

    /// Where programs put what they need only for a while; and where that can be put if the first one will not do.
    pub(crate) fn temporary_folders(&self) -> Vec<PathBuf> {
        let named = self.variables.get(OsStr::new(TEMPORARY)).map(PathBuf::from);
        let usual = ["/tmp", "/var/tmp"].map(PathBuf::from);
        let cache = self.settings.folders().home().map(|home| home.join(".cache"));
        let mut folders: Vec<PathBuf> =
            named.into_iter().chain([temporary_folder()]).chain(usual).chain(cache).collect();
        folders.retain(|folder| folder.is_absolute());
        folders
    }

    /// The variables that a command of an agent may see: those of [`for_commands`](Self::for_commands), and
    /// which session it belongs to. Whose it is differs from agent to agent.
    pub(crate) fn for_commands_of(
        &self,
        session: SessionId,
        temporary: &Path,
    ) -> Vec<(OsString, OsString)> {
        let mut variables = self.for_commands_in(temporary);
        variables.retain(|(name, _)| name != AGENT && name != SESSION);
        variables.push((SESSION.into(), session.to_string().into()));
        variables
    }

    /// The same with another folder for temporary files.
    pub(crate) fn for_commands_in(&self, temporary: &Path) -> Vec<(OsString, OsString)> {
        let mut variables = self.for_commands();
        variables.retain(|(name, _)| name != TEMPORARY);
        variables.push((TEMPORARY.into(), temporary.into()));
        variables
    }

    /// What starts commands of agents: it looks after protected paths beside them.
    pub(crate) fn agents_commands(
        &self,
        variables: Vec<(OsString, OsString)>,
    ) -> anyhow::Result<Commands> {
        Ok(self.commands(variables)?.with_quarantine(quarantine::folder(self)?))
    }

    /// What starts commands that have these variables; those that look like secrets only outside the sandbox.
    pub(crate) fn commands(
        &self,
        variables: Vec<(OsString, OsString)>,
    ) -> anyhow::Result<Commands> {
        let (secret, plain) =
            variables.into_iter().partition(|(name, value)| self.is_held_back(name, value));
        let commands = Commands::new(&own_program()?, OsStr::new(WATCHDOG), plain);
        Ok(commands.holding_back(secret))
    }

    /// The names of the variables that commands in the sandbox do not get since they look like secrets.
    pub(crate) fn held_back(&self) -> Vec<String> {
        let variables = self.for_commands().into_iter();
        let held_back = variables.filter(|(name, value)| self.is_held_back(name, value));
        held_back.map(|(name, _)| name.to_string_lossy().into_owned()).collect()
    }

    fn is_held_back(&self, variable: &OsStr, value: &OsStr) -> bool {
        let allowed = self.settings.list("sandbox.env");
        looks_secret(variable, value) && !allowed.iter().any(|name| variable == name.as_str())
    }

    /// The variables of a program that is started for the user outside the sandbox: it must not be one that an agent has
    /// put into the tree.
    pub(crate) fn for_programs_of_the_user(&self) -> anyhow::Result<Vec<(OsString, OsString)>> {
        let (mut variables, roots) = (self.for_commands(), self.roots()?);
        let writable: Vec<Root> = roots.tree().chain(roots.write()).collect();
        let changed = avoiding(&writable, variables.iter());
        variables.extend(changed);
        Ok(variables)
    }

    /// The variables that a command may see: no key, no address of the database.
    pub(crate) fn for_commands(&self) -> Vec<(OsString, OsString)> {
        let secret = self.settings.secret_variables();
        let mut variables = self.variables.clone();
        variables.retain(|name, _| !secret.contains(name));
        // Where the shell believes to be, for those who look.
        if variables.contains_key(OsStr::new("PWD")) {
            variables.insert("PWD".into(), self.directory.clone().into_os_string());
        }
        variables.into_iter().collect()
    }
}

impl Chosen {
    /// Inside an agent's command nobody can act as another agent.
    fn read(options: &Options, variables: &BTreeMap<OsString, OsString>) -> anyhow::Result<Chosen> {
        let variable = |name: &str| {
            let value = variables.get(OsStr::new(name)).filter(|value| !value.is_empty());
            value.map(|value| value.to_string_lossy().into_owned())
        };
        let (agent, session) = (variable(AGENT), variable(SESSION));
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
        Ok(Chosen {
            session: session.or_else(|| options.session.clone()),
            agent: agent.or_else(|| options.agent.clone()),
            continues: options.continues,
            new: options.new,
            inside_agent,
        })
    }
}

/// The options that are settings.
fn flags(options: &Options) -> Vec<Flag> {
    [
        ("model", "--model", &options.model),
        ("database_url", "--db", &options.db),
        ("mode", "--mode", &options.mode),
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

/// A folder of `--add-dir`, seen from where ikigai was started, as every path on the command line.
fn added_folder(named: &Path) -> anyhow::Result<PathBuf> {
    let folder = named.canonicalize();
    let folder = folder.with_context(|| format!("cannot add {}", named.display()))?;
    anyhow::ensure!(folder.is_dir(), "cannot add {}: not a directory", named.display());
    Ok(folder)
}

/// A folder as it was typed, links in its path not followed, so that it is called the same however it is typed.
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

/// Whether the program was started by itself, to watch over commands.
pub(crate) fn is_watchdog() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == WATCHDOG)
}

/// Which commands it watches over then.
pub(crate) fn watch() -> Watch {
    Watch::parse(std::env::args_os().nth(2).as_deref())
}

/// Where programs put what they need only for a while.
pub(crate) fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}

/// The folders in which programs are looked for, with one more before them.
pub(crate) fn path_with(folder: &Path) -> anyhow::Result<OsString> {
    #[expect(clippy::disallowed_methods, reason = "this is the file that may")]
    let path = std::env::var_os("PATH").filter(|path| !path.is_empty());
    let path = path.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).context("a folder with a colon in its name cannot be in PATH")
}

/// Whether the terminal can do nothing but print lines, as far as it is known.
pub(crate) fn is_terminal_dumb() -> bool {
    #[expect(clippy::disallowed_methods, reason = "this is the file that may")]
    let term = std::env::var_os("TERM").filter(|term| !term.is_empty());
    term.is_none_or(|term| term == "dumb")
}

/// The file of this program, for those who start it by its path.
pub(crate) fn own_file() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find the program's own file")
}

/// The program that starts as the watchdog: this one.
pub(crate) fn own_program() -> anyhow::Result<PathBuf> {
    // On Linux this works also after the file was replaced by a newer version or deleted.
    #[cfg(target_os = "linux")]
    return Ok(PathBuf::from("/proc/self/exe"));
    #[cfg(not(target_os = "linux"))]
    own_file()
}

/// Whether the process was started with a signal ignored, as `nohup` does with SIGHUP: then it stays so.
pub(crate) fn is_ignored(signal: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(signal.as_raw_value() - 1)
        .is_ok_and(|bit| mask.checked_shr(bit).unwrap_or(0) & 1 == 1)
}

/// Keeps other processes of the user, commands of agents among them, from reading our memory and
/// environment. Root can all the same.
pub(crate) fn hide_memory() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // It cannot fail with this value; if it did, there would be nothing to do about it.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}
