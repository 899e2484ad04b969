//! All tools that there are: those on files and commands, and those on the database.

use ikigai_store::Step;
use ikigai_tools::Dispatcher;

/// The dispatcher of all tools.
pub fn catalogue() -> Dispatcher<Step> {
    Dispatcher::new(vec![ikigai_mail::TOOL])
}
