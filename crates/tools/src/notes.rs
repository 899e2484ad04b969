//! Notes about protected paths, kept until they are reported to the agent and the user is asked.

use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Mutex};

use crate::lock::lock;

/// If nothing fetches them, no more are kept.
const MOST_NOTES: usize = 100;

/// What was done about one protected path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The id in the quarantine, if it can be put back.
    pub id: Option<String>,
    /// A sentence for the agent and the user.
    pub text: String,
}

/// The notes of all agents of a process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// With the agent that ran the command.
    untold: Vec<(OsString, Note)>,
    unasked: Vec<(OsString, Note)>,
}

impl Notes {
    pub(crate) fn add(&self, agent: &OsStr, note: Note) {
        let untold = &mut lock(&self.0).untold;
        if untold.len() < MOST_NOTES {
            untold.push((agent.to_owned(), note));
        }
    }

    /// Notes that were not reported to the agent yet.
    pub(crate) fn tell(&self, agent: &OsStr) -> Vec<String> {
        let mut kept = lock(&self.0);
        let told: Vec<_> = kept.untold.extract_if(.., |(whose, _)| whose == agent).collect();
        let sentences = told.iter().map(|(_, note)| note.text.clone()).collect();
        let room = MOST_NOTES - kept.unasked.len();
        kept.unasked.extend(told.into_iter().filter(|(_, note)| note.id.is_some()).take(room));
        sentences
    }

    /// Notes that the user was not asked about yet.
    pub(crate) fn ask(&self, agent: &OsStr) -> Vec<Note> {
        let mut kept = lock(&self.0);
        let own = kept.unasked.extract_if(.., |(whose, _)| whose == agent);
        own.map(|(_, note)| note).collect()
    }
}
