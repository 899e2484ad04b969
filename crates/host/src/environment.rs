//! The inputs of a session as plain values: directory, settings and variables. The caller reads
//! them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ikigai_config::{Settings, Sources};
use ikigai_conversation::SessionId;
use ikigai_tools::{Commands, Root, avoiding};

use crate::quarantine;
use crate::roots::Roots;
use crate::secret_names::looks_secret;
use crate::selection::Selection;
use crate::settings;

/// The variable that holds the agent's ID in the commands of agents.
pub const AGENT_VARIABLE: &str = "IKIGAI_AGENT";
/// The variable that holds the session's ID in the commands of agents.
pub const SESSION_VARIABLE: &str = "IKIGAI_SESSION";

/// The variable that names the folder for temporary files.
const TEMPORARY: &str = "TMPDIR";

/// The watchdog of commands: a program, and the argument that starts it as a watchdog.
#[derive(Debug, Clone)]
pub struct WatchdogProgram {
    /// The program.
    pub path: PathBuf,
    /// Its first argument.
    pub argument: OsString,
}

/// The inputs of a session. It holds keys, hence no `Debug`.
pub struct Environment {
    /// The working directory; absolute.
    pub directory: PathBuf,
    /// Additional folders of the working tree; absolute.
    pub added: Vec<PathBuf>,
    /// The folders of the working tree as the user typed them, in the same order; absolute, links
    /// kept.
    pub typed_folders: Vec<PathBuf>,
    /// The settings.
    pub settings: Settings,
    /// The selected session and agent.
    pub selection: Selection,
    /// The environment variables.
    pub variables: BTreeMap<OsString, OsString>,
    /// The system's folder for temporary files.
    pub temporary: PathBuf,
    /// The watchdog of commands.
    pub watchdog: WatchdogProgram,
    /// The folders that agents can write; opened on first use.
    pub roots: OnceLock<Roots>,
}

impl Environment {
    /// An environment without a command line: settings come from variables and files only.
    ///
    /// # Errors
    /// When a setting is wrong.
    pub fn from_variables(
        directory: PathBuf,
        variables: BTreeMap<OsString, OsString>,
        temporary: PathBuf,
        watchdog: WatchdogProgram,
    ) -> anyhow::Result<Environment> {
        let sources = Sources {
            variables: variables.clone(),
            config_flag: None,
            project_files: settings::project_files(&directory),
            flags: Vec::new(),
            tools: settings::known_tools(),
        };
        let settings = Settings::load(&sources)?;
        let (added, typed_folders) = (Vec::new(), vec![directory.clone()]);
        let (selection, roots) = (Selection::default(), OnceLock::new());
        Ok(Environment {
            directory,
            added,
            typed_folders,
            settings,
            selection,
            variables,
            temporary,
            watchdog,
            roots,
        })
    }

    /// The value of a variable, if it is set and not empty.
    pub fn variable(&self, name: &str) -> Option<String> {
        let value = self.variables.get(OsStr::new(name)).filter(|value| !value.is_empty());
        value.map(|value| value.to_string_lossy().into_owned())
    }

    /// The folders of the working tree: the working directory and the added folders.
    pub(crate) fn tree_folders(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.directory).chain(&self.added).map(PathBuf::as_path)
    }

    /// The folders that agents can write. They are opened once, so that what was checked is what is
    /// used.
    ///
    /// # Errors
    /// When a folder of the working tree cannot be opened.
    pub fn roots(&self) -> anyhow::Result<&Roots> {
        if let Some(roots) = self.roots.get() {
            return Ok(roots);
        }
        let opened = Roots::open(self)?;
        Ok(self.roots.get_or_init(|| opened))
    }

    /// Candidate folders for temporary files, the best first.
    pub(crate) fn temporary_folders(&self) -> Vec<PathBuf> {
        let named = self.variables.get(OsStr::new(TEMPORARY)).map(PathBuf::from);
        let usual = ["/tmp", "/var/tmp"].map(PathBuf::from);
        let cache = self.settings.folders().home().map(|home| home.join(".cache"));
        let temporary = [self.temporary.clone()];
        let mut folders: Vec<PathBuf> =
            named.into_iter().chain(temporary).chain(usual).chain(cache).collect();
        folders.retain(|folder| folder.is_absolute());
        folders
    }

    /// The variables for agents' commands: those of [`for_commands`](Self::for_commands) and the
    /// session's ID. The agent's ID is added per agent.
    pub(crate) fn for_commands_of(
        &self,
        session: SessionId,
        temporary: &Path,
    ) -> Vec<(OsString, OsString)> {
        let mut variables = self.for_commands_in(temporary);
        variables.retain(|(name, _)| name != AGENT_VARIABLE && name != SESSION_VARIABLE);
        variables.push((SESSION_VARIABLE.into(), session.to_string().into()));
        variables
    }

    /// The variables for commands, with another folder for temporary files.
    pub fn for_commands_in(&self, temporary: &Path) -> Vec<(OsString, OsString)> {
        let mut variables = self.for_commands();
        variables.retain(|(name, _)| name != TEMPORARY);
        variables.push((TEMPORARY.into(), temporary.into()));
        variables
    }

    /// Starts agents' commands, and protects the paths that commands may not change.
    ///
    /// # Errors
    /// When there is no folder for the quarantine.
    pub fn agents_commands(
        &self,
        variables: Vec<(OsString, OsString)>,
    ) -> anyhow::Result<Commands> {
        Ok(self.commands(variables).with_quarantine(quarantine::folder(self)?))
    }

    /// Starts commands with these variables. Those that look like secrets are only set outside the
    /// sandbox.
    pub fn commands(&self, variables: Vec<(OsString, OsString)>) -> Commands {
        let (secret, plain) =
            variables.into_iter().partition(|(name, value)| self.is_held_back(name, value));
        let WatchdogProgram { path, argument } = &self.watchdog;
        Commands::new(path, argument, plain).holding_back(secret)
    }

    /// The names of the variables that are held back from commands in the sandbox because they look
    /// like secrets.
    pub fn held_back(&self) -> Vec<String> {
        let variables = self.for_commands().into_iter();
        let held_back = variables.filter(|(name, value)| self.is_held_back(name, value));
        held_back.map(|(name, _)| name.to_string_lossy().into_owned()).collect()
    }

    fn is_held_back(&self, variable: &OsStr, value: &OsStr) -> bool {
        let allowed = self.settings.list("sandbox.env");
        looks_secret(variable, value) && !allowed.iter().any(|name| variable == name.as_str())
    }

    /// The variables of a program that is started for the user, outside the sandbox. None leads
    /// into a folder that agents can write, where an agent could have put a program of the same
    /// name.
    pub fn for_programs_of_the_user(&self) -> anyhow::Result<Vec<(OsString, OsString)>> {
        let (mut variables, roots) = (self.for_commands(), self.roots()?);
        let writable: Vec<Root> = roots.tree().chain(roots.write()).collect();
        let changed = avoiding(&writable, variables.iter());
        variables.extend(changed);
        Ok(variables)
    }

    /// The variables for commands, without keys and the database URL.
    pub fn for_commands(&self) -> Vec<(OsString, OsString)> {
        let secret = self.settings.secret_variables();
        let mut variables = self.variables.clone();
        variables.retain(|name, _| !secret.contains(name));
        // Some programs trust PWD instead of asking the kernel.
        if variables.contains_key(OsStr::new("PWD")) {
            variables.insert("PWD".into(), self.directory.clone().into_os_string());
        }
        variables.into_iter().collect()
    }
}
