//! Judges of requests, as strict as each API is known to be or a little more. What they refuse, some server
//! refuses.
//!
//! They read the JSON of a body and know nothing of what wrote it.

pub mod anthropic;
pub mod google;
pub mod responses;

mod rules;
