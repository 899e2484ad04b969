//! Judges of requests: what the strictest servers of an API would refuse, is refused here.

pub mod chat;
