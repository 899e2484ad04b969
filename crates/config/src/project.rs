//! The project's file: where it is, and what it may set. It comes with a clone and is not trusted.
//!
//! Settings that a project may not set at all are refused while the file is read, according to the
//! table. The two rules that depend on the lower layers are here.

use std::path::{Path, PathBuf};

use crate::error::{ConfigError, Fault, ValueError, no_faults};
use crate::file::{ConfigFile, Document};
use crate::layers::{Entry, Layers};
use crate::origin::Origin;
use crate::show::render_value;
use crate::table::ProjectMay;
use crate::toml_layer::named;
use crate::tools::KnownTools;
use crate::value::Value;

const FOLDER: &str = ".ikigai";
const FILE: &str = ".ikigai/config.toml";

/// A path where a project's file may be.
#[derive(Debug)]
pub struct ProjectFile {
    path: PathBuf,
    /// Whether it belongs to another user.
    is_foreign: bool,
}

impl ProjectFile {
    /// The project's file in this folder. `is_foreign` tells whether a path belongs to another
    /// user, whose files are skipped.
    pub fn in_folder(folder: &Path, is_foreign: impl Fn(&Path) -> bool) -> ProjectFile {
        let path = folder.join(FILE);
        ProjectFile { is_foreign: is_foreign(&folder.join(FOLDER)) || is_foreign(&path), path }
    }
}

/// Reads the first of `files` that exists.
pub(crate) fn find_file(
    files: &[ProjectFile],
    user_file: &ConfigFile,
) -> Result<ConfigFile, ConfigError> {
    for ProjectFile { path, is_foreign } in files {
        if let ConfigFile::Found(user) = user_file
            && same_file(path, &user.path)
        {
            return Ok(ConfigFile::Nowhere);
        }
        if !is_foreign && let Some(document) = Document::read(path)? {
            return Ok(ConfigFile::Found(document));
        }
    }
    Ok(files.last().map_or(ConfigFile::Nowhere, |file| ConfigFile::Missing(file.path.clone())))
}

/// Whether both paths lead to the same file.
fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// Checks the project's entries against the lower layers. Errors name
/// `user_file` as the right place.
pub(crate) fn check(
    entries: &[Entry],
    below: &Layers,
    user_file: &ConfigFile,
    tools: &KnownTools,
) -> Result<(), ConfigError> {
    let fault = |entry: &Entry| {
        let wrong = check_entry(entry, below, user_file, tools).err()?;
        Some(Fault::value(entry.origin.clone(), &entry.key, wrong))
    };
    no_faults(entries.iter().filter_map(fault).collect())
}

fn check_entry(
    entry: &Entry,
    below: &Layers,
    user_file: &ConfigFile,
    tools: &KnownTools,
) -> Result<(), ValueError> {
    match entry.setting.project {
        // Refused while the file is read, or checked against the providers once all are known.
        ProjectMay::Nothing | ProjectMay::Choose => Ok(()),
        ProjectMay::Lower => check_lower(entry, below, user_file),
        ProjectMay::Narrow => check_narrow(entry, below, user_file, tools),
    }
}

fn check_lower(entry: &Entry, below: &Layers, user_file: &ConfigFile) -> Result<(), ValueError> {
    let Some(Entry { value: limit, origin, .. }) = below.holding(&entry.key) else {
        // Any limit is lower than none.
        return Ok(());
    };
    let is_lower = match (&entry.value, limit) {
        (Value::Number(given), Value::Number(limit)) => given <= limit,
        (Value::Dollars(given), Value::Dollars(limit)) => given <= limit,
        other => unreachable!("a limit is a number or an amount: {other:?}"),
    };
    match is_lower {
        true => Ok(()),
        false => Err(ValueError::Raised {
            limit: render_value(limit),
            origin: origin.clone(),
            given: render_value(&entry.value),
            user_file: named(user_file),
        }),
    }
}

fn check_narrow(
    entry: &Entry,
    below: &Layers,
    user_file: &ConfigFile,
    tools: &KnownTools,
) -> Result<(), ValueError> {
    let Some(allowed) = tools.enabled(below) else { return Ok(()) };
    let Value::List(given) = &entry.value else {
        unreachable!("a list by its kind: {:?}", entry.value);
    };
    match tools.expand(given).into_iter().find(|tool| !allowed.contains(tool)) {
        None => Ok(()),
        Some(tool) => {
            let origin =
                below.holding(&entry.key).map_or(Origin::Default, |entry| entry.origin.clone());
            Err(ValueError::Widened { tool, origin, user_file: named(user_file) })
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, Mode};

    use crate::testing::world;

    #[track_caller]
    fn check(user: &str, project: &str, expected: &str) {
        world().user(user).project(project).refused(expected);
    }

    #[test]
    fn settings_that_a_project_may_not_set_are_refused_by_name_and_line() {
        for (text, line, key) in [
            ("[providers.openai]\nbase_url = 'https://evil/v1'", 2, "providers.openai.base_url"),
            (
                "providers.openai.api_key_env = 'AWS_SECRET_ACCESS_KEY'",
                1,
                "providers.openai.api_key_env",
            ),
            ("\nproviders = { evil = { kind = 'openai' } }", 2, "providers.evil.kind"),
            ("database_url = 'postgres://evil/db'", 1, "database_url"),
            ("max_agents = 1\nmode = 'full'", 2, "mode"),
            ("mode = 'wrok'", 1, "mode"),
            ("\n\n[[rules]]\ntool = 'bash'\nmatch = '*'\ndecision = 'trust'", 3, "rules"),
            ("[sandbox]\nnetwork = true", 2, "sandbox.network"),
            ("sandbox.read = ['/']", 1, "sandbox.read"),
            ("sandbox.write = ['/']", 1, "sandbox.write"),
            ("mail.notify = 'boundary'", 1, "mail.notify"),
            ("history_size = 1", 1, "history_size"),
        ] {
            let expected = format!(
                "PROJECT:{line}: {key} cannot be set in a project's file, which is not trusted; set it in USER"
            );
            check("", text, &expected);
            world().project(text).refused(&expected);
        }
    }

    #[test]
    fn without_a_folder_for_the_users_file_its_name_is_shown() {
        world().without_variable("HOME").project("mode = 'full'").refused(
            "PROJECT:1: mode cannot be set in a project's file, which is not trusted; set it in $XDG_CONFIG_HOME/ikigai/config.toml",
        );
    }

    #[test]
    fn unknown_settings_and_wrong_values_are_errors_here_too() {
        check(
            "",
            "\nmax_agnets = 1",
            "PROJECT:2: unknown setting 'max_agnets'; did you mean 'max_agents'? ('ikigai config' lists all settings)",
        );
        check("", "max_agents = 0", "PROJECT:1: max_agents: 0 is out of range (1 to 10000)");
    }

    #[test]
    fn a_limit_may_be_lowered_and_not_raised() {
        for (key, default) in [
            ("max_tool_turns", 300),
            ("max_output_size", 51_200),
            ("max_requests", 300),
            ("max_agents", 20),
            ("max_depth", 4),
            ("mail.max_wakes", 32),
        ] {
            for lower in [default, default - 1] {
                let line = format!("{key} = {lower} # PROJECT:1");
                world().project(&format!("{key} = {lower}")).shows(&[&line]);
            }
            let higher = default + 1;
            check(
                "",
                &format!("\n\n{key} = {higher}"),
                &format!(
                    "PROJECT:3: {key}: a project can only lower this limit ({default}, set by default), not raise it to {higher}; set it in USER"
                ),
            );
        }
        check(
            "\nmax_agents = 10",
            "max_agents = 15",
            "PROJECT:1: max_agents: a project can only lower this limit (10, set by USER:2), not raise it to 15; set it in USER",
        );
        world()
            .user("max_agents = 100")
            .project("max_agents = 50")
            .shows(&["max_agents = 50 # PROJECT:1"]);
    }

    #[test]
    fn the_tools_may_be_narrowed_and_not_widened() {
        world()
            .project("tools.enabled = ['core']")
            .shows(&["tools.enabled = [\"core\"] # PROJECT:1"]);
        world()
            .user("tools.enabled = ['core']")
            .project("tools.enabled = ['mail', 'glob']")
            .shows(&["tools.enabled = [\"mail\", \"glob\"] # PROJECT:1"]);
        check(
            "tools.enabled = ['core']",
            "tools.enabled = ['core', 'file_edit']",
            "PROJECT:1: tools.enabled: a project can only narrow this list, and 'file_edit' is not in it (set by USER:1); set it in USER",
        );
        check(
            "tools.enabled = ['glob', 'grep']",
            "tools.enabled = ['core']",
            "PROJECT:1: tools.enabled: a project can only narrow this list, and 'file_read' is not in it (set by USER:1); set it in USER",
        );
    }

    #[test]
    fn a_model_is_chosen_among_the_users_providers() {
        world()
            .project("model = 'google/gemini-x'")
            .shows(&["model = \"google/gemini-x\" # PROJECT:1"]);
        world()
            .user("providers.local.base_url = 'http://h'")
            .project("model = 'local/x'")
            .shows(&["model = \"local/x\" # PROJECT:1"]);
        check(
            "",
            "\nmodel = 'evil/x'",
            "PROJECT:2: model: 'evil' is not a provider (known: openai, anthropic, google)",
        );
    }

    #[test]
    fn the_closest_file_up_to_the_repository_is_read() {
        let world = world()
            .file(".ikigai/config.toml", "mode = 'full'")
            .project("max_agents = 5")
            .directory("repo/src/deep");
        world.shows(&["# Project's file: PROJECT", "max_agents = 5 # PROJECT:1"]);
        let world = world.file("repo/src/.ikigai/config.toml", "max_agents = 4");
        world.shows(&[
            "max_agents = 4 # ROOT/repo/src/.ikigai/config.toml:1",
            "max_depth = 4 # default",
        ]);
    }

    #[test]
    fn files_above_the_repository_are_not_read() {
        let world = world().file(".ikigai/config.toml", "mode = 'full'");
        world.shows(&["# Project's file: PROJECT (not there)", "mode = \"work\" # default"]);
    }

    #[test]
    fn without_a_repository_only_the_working_directory_counts() {
        let world =
            world().file("plain/.ikigai/config.toml", "max_agents = 5").directory("plain/deep");
        world.shows(&[
            "# Project's file: ROOT/plain/deep/.ikigai/config.toml (not there)",
            "max_agents = 20 # default",
        ]);
        world.directory("plain").shows(&["max_agents = 5 # ROOT/plain/.ikigai/config.toml:1"]);
    }

    #[test]
    fn the_users_file_is_not_read_again_as_a_projects() {
        let world = world().project("mode = 'full'");
        std::fs::create_dir_all(world.path("home/.config")).unwrap();
        std::os::unix::fs::symlink(world.path("repo/.ikigai"), world.path("home/.config/ikigai"))
            .unwrap();
        world.shows(&[
            "mode = \"full\" # ~/.config/ikigai/config.toml:1",
            "# Project's file: none (the user's file is in its place)",
        ]);
    }

    #[test]
    fn a_fifo_in_the_project_does_not_hang() {
        let world = world().file("repo/.ikigai/note", "");
        let path = world.path("repo/.ikigai/config.toml");
        rustix::fs::mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        world.refused("PROJECT: not a regular file");
    }
}
