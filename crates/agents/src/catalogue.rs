//! All tools that there are: those on files and commands, and those on the database.

use ikigai_store::Step;
use ikigai_tools::Dispatcher;

use crate::tools;

/// The dispatcher of all tools.
pub fn catalogue() -> Dispatcher<Step> {
    Dispatcher::new([ikigai_mail::TOOL].into_iter().chain(tools::all()).collect())
}
