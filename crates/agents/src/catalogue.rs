//! All built-in tools: those for files and commands, and those for the database.

use ikigai_store::Step;
use ikigai_tools::{Dispatcher, built_in};

use crate::tools;

/// A dispatcher with all built-in tools.
pub fn catalogue() -> Dispatcher<Step> {
    let on_database = [ikigai_mail::tool()].into_iter().chain(tools::all());
    Dispatcher::new(built_in().into_iter().chain(on_database).collect())
}
