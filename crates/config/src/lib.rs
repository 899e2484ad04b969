//! The configuration: which settings there are, what each is set to, and where that was written.
//!
//! The caller gathers what the process was given from outside into [`Sources`]: variables, flags, where a project's
//! file may be ([`ProjectFile`]) and which tools settings can name ([`KnownTools`]). [`Settings::load`] reads the
//! layers one after the other, the lowest first: built-in defaults, the user's file, the project's file, addresses
//! from the providers' own variables, `IKIGAI_…` variables, flags. The last value of a key is in force.
//!
//! [`Settings`] answers by key ([`Settings::text`], [`Settings::number`], …). What takes more than one setting to
//! answer has a type of its own: [`ModelSettings`] says how a model is reached, [`RuleEntry`] is one of the user's rules,
//! [`SecretUrl`] an address with its password, [`Folders`] says where ikigai's files are. What the settings do is not
//! known here.
//!
//! Every setting is a row in `table.rs`. Nothing else in here knows a setting by name except where a rule is about it.
//!
//! # Invariants
//!
//! - The environment is not read here: variables are values of [`Sources`]. Only configuration files are read, and a
//!   pipe, a device or a huge file in the place of one can neither block nor fill the memory.
//! - Each value keeps its origin, so that [`Settings::render`] can name it and an error can name file and line.
//! - A project's file comes with a clone and is not trusted. What it may do is checked before its values join the others.
//! - No secret is printed, not even by `Debug`: a URL prints itself masked, of a key only the variable's name is known,
//!   and texts in errors are masked, escaped and cut.
//!
//! # Example
//!
//! ```
//! use ikigai_config::{Flag, KnownTools, Settings, Sources};
//!
//! let tools = KnownTools { names: vec![], core: vec![], check_pattern: |_, _| Ok(()) };
//! let settings = Settings::load(&Sources {
//!     variables: [("IKIGAI_MAX_AGENTS".into(), "5".into())].into(),
//!     config_flag: None,
//!     project_files: vec![],
//!     flags: vec![Flag { key: "mode", value: "read".to_owned(), name: "--mode" }],
//!     tools,
//! })?;
//! assert_eq!((settings.number("max_agents"), settings.text("mode")), (5, "read"));
//! assert!(settings.render().contains("max_agents = 5        # IKIGAI_MAX_AGENTS\n"));
//! # Ok::<(), ikigai_config::ConfigError>(())
//! ```

#![forbid(unsafe_code)]

mod settings;
mod sources;

mod table;
mod value;

mod layers;
mod origin;

mod defaults;
mod environment;
mod file;
mod folders;
mod lines;
mod project;
mod toml_layer;

mod model_name;
mod model_settings;
mod providers;
mod rules;
mod tools;

mod mask;
mod secret_url;
mod url;

mod error;
mod escape;
mod show;
mod suggestion;
#[cfg(test)]
mod testing;

pub use error::{ConfigError, NoDatabase};
pub use folders::Folders;
pub use model_settings::{ModelError, ModelSettings, WireFormat};
pub use project::ProjectFile;
pub use rules::RuleEntry;
pub use secret_url::SecretUrl;
pub use settings::Settings;
pub use sources::{Flag, Sources};
pub use tools::KnownTools;
