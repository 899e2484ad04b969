//! What a session works with, as values: the directory, the settings, the variables. The caller reads them.

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

/// The variables by which the command of an agent knows which agent runs it.
pub const AGENT_VARIABLE: &str = "IKIGAI_AGENT";
/// The same for the session.
pub const SESSION_VARIABLE: &str = "IKIGAI_SESSION";

/// The variable that says where temporary files go.
const TEMPORARY: &str = "TMPDIR";

/// The program that watches over commands, and the argument that makes it do so.
#[derive(Debug, Clone)]
pub struct WatchdogProgram {
    /// The program.
    pub path: PathBuf,
    /// Its first argument.
    pub argument: OsString,
}

/// What a session works with. It holds keys, hence no `Debug`.
pub struct Environment {
    /// The working directory; absolute.
    pub directory: PathBuf,
    /// Further folders of the working tree; absolute.
    pub added: Vec<PathBuf>,
    /// The folders of the working tree as they were typed, in the same order; absolute, with links.
    pub typed_folders: Vec<PathBuf>,
    /// The settings.
    pub settings: Settings,
    /// Which session and agent are meant.
    pub selection: Selection,
    /// The environment variables.
    pub variables: BTreeMap<OsString, OsString>,
    /// Where programs put temporary files.
    pub temporary: PathBuf,
    /// The program that watches over commands.
    pub watchdog: WatchdogProgram,
    /// The folders that agents can write; empty until they are first needed.
    pub roots: OnceLock<Roots>,
}

impl Environment {
    /// An environment without a command line: the settings come from the variables and from files.
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

    /// A variable's value, if it is set and not empty.
    pub fn variable(&self, name: &str) -> Option<String> {
        let value = self.variables.get(OsStr::new(name)).filter(|value| !value.is_empty());
        value.map(|value| value.to_string_lossy().into_owned())
    }

    /// The folders of the working tree: where ikigai was started, and those that were added.
    pub(crate) fn tree_folders(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.directory).chain(&self.added).map(PathBuf::as_path)
    }

    /// The folders that agents can write. They are opened once: what was checked is what is used.
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

    /// Where temporary files can go, the best folder first.
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

    /// The variables that a command of an agent may see: those of [`for_commands`](Self::for_commands), and
    /// which session it belongs to. The agent's differs from agent to agent.
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

    /// The same with another folder for temporary files.
    pub fn for_commands_in(&self, temporary: &Path) -> Vec<(OsString, OsString)> {
        let mut variables = self.for_commands();
        variables.retain(|(name, _)| name != TEMPORARY);
        variables.push((TEMPORARY.into(), temporary.into()));
        variables
    }

    /// What starts commands of agents: it also protects paths that commands may not change.
    ///
    /// # Errors
    /// When there is no folder for the quarantine.
    pub fn agents_commands(
        &self,
        variables: Vec<(OsString, OsString)>,
    ) -> anyhow::Result<Commands> {
        Ok(self.commands(variables).with_quarantine(quarantine::folder(self)?))
    }

    /// What starts commands that have these variables; those that look like secrets only outside the sandbox.
    pub fn commands(&self, variables: Vec<(OsString, OsString)>) -> Commands {
        let (secret, plain) =
            variables.into_iter().partition(|(name, value)| self.is_held_back(name, value));
        let WatchdogProgram { path, argument } = &self.watchdog;
        Commands::new(path, argument, plain).holding_back(secret)
    }

    /// The names of the variables that commands in the sandbox do not get because they look like secrets.
    pub fn held_back(&self) -> Vec<String> {
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
    ///
    /// # Errors
    /// When a folder of the working tree cannot be opened.
    pub fn for_programs_of_the_user(&self) -> anyhow::Result<Vec<(OsString, OsString)>> {
        let (mut variables, roots) = (self.for_commands(), self.roots()?);
        let writable: Vec<Root> = roots.tree().chain(roots.write()).collect();
        let changed = avoiding(&writable, variables.iter());
        variables.extend(changed);
        Ok(variables)
    }

    /// The variables that a command may see: no key, no address of the database.
    pub fn for_commands(&self) -> Vec<(OsString, OsString)> {
        let secret = self.settings.secret_variables();
        let mut variables = self.variables.clone();
        variables.retain(|name, _| !secret.contains(name));
        // Programs that look where the shell believes to be find the working directory.
        if variables.contains_key(OsStr::new("PWD")) {
            variables.insert("PWD".into(), self.directory.clone().into_os_string());
        }
        variables.into_iter().collect()
    }
}
