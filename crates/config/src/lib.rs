//! The configuration: which settings exist, their values, and where each value was set.
//!
//! The caller collects everything from outside the process in [`Sources`]: variables, flags, the
//! possible paths of a project's file ([`ProjectFile`]), and the tools that settings can name
//! ([`KnownTools`]). [`Settings::load`] reads the layers, the lowest first: built-in defaults, the
//! user's file, the project's file, addresses from the providers' own variables, `IKIGAI_…`
//! variables, flags. The last value of a key wins.
//!
//! Values are read from [`Settings`] by key ([`Settings::text`], [`Settings::number`], …). Answers
//! that depend on several settings have their own types: [`ModelSettings`] says how to reach a
//! model, [`ConfiguredFacts`] is what the user knows about one, [`RuleEntry`] is one of the user's rules, [`SecretUrl`] is an address with its password,
//! and [`Folders`] says where ikigai's files are. This crate does not know what the settings do.
//!
//! Every setting is a row in `table.rs`. Other code names a setting only where a rule is about it.
//!
//! # Invariants
//!
//! - This crate does not read the environment: variables are part of [`Sources`]. Of files, it
//!   reads only configuration files, and a pipe, a device or a huge file in place of one can
//!   neither block it nor fill the memory. It writes only rules, with [`save_rule()`].
//! - Each value keeps its origin, so that [`Settings::render`] can show it and errors can name file
//!   and line.
//! - A project's file comes with a clone and is not trusted. What it sets is checked before it is
//!   merged.
//! - No secret is printed, not even by `Debug`: a URL prints itself masked, only the name of a
//!   key's variable is known, and text in errors is masked, escaped and cut.
//!
//! # Example
//!
//! ```
//! use ikigai_config::{Flag, KnownTools, Settings, Sources};
//!
//! let check_pattern = |_: &str, _: &str| Ok(());
//! let tools = KnownTools { names: vec![], core: vec![], commands: vec![], check_pattern };
//! let settings = Settings::load(&Sources {
//!     variables: [("IKIGAI_MAX_AGENTS".into(), "5".into())].into(),
//!     config_flag: None,
//!     project_files: vec![],
//!     flags: vec![Flag { key: "mode", value: "read".to_owned(), name: "--mode" }],
//!     tools,
//! })?;
//! assert_eq!((settings.number("max_agents"), settings.text("mode")), (5, "read"));
//! assert!(settings.render().contains("max_agents = 5            # IKIGAI_MAX_AGENTS\n"));
//! # Ok::<(), ikigai_config::ConfigError>(())
//! ```

#![forbid(unsafe_code)]

mod settings;
mod sources;

mod table;
mod value;

mod layers;
mod origin;

mod credentials;
mod defaults;
mod edit;
mod environment;
mod file;
mod folders;
mod keys;
mod lines;
mod project;
mod save_rule;
mod toml_layer;

mod model_facts;
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

pub use credentials::Credentials;
pub use edit::save_values;
pub use error::{ConfigError, NoDatabase};
pub use folders::Folders;
pub use model_facts::{ConfiguredFacts, ConfiguredPrices};
pub use model_settings::{ModelError, ModelSettings, WireFormat};
pub use project::ProjectFile;
pub use rules::RuleEntry;
pub use save_rule::{SaveRuleError, save_rule};
pub use secret_url::SecretUrl;
pub use settings::Settings;
pub use sources::{Flag, Sources};
pub use tools::KnownTools;
