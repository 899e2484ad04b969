//! Checks requests like the strictest servers of an API.
//!
//! The checks read the JSON of a body and do not depend on the code that wrote it.

pub mod anthropic;
pub mod chat;
pub mod google;
pub mod responses;

mod rules;
