//! Judges of requests: what the strictest servers of an API would refuse, is refused here.
//!
//! They read the JSON of a body and know nothing of what wrote it.

pub mod anthropic;
pub mod chat;
pub mod google;
pub mod responses;

mod rules;
