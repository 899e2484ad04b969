//! A gate that a test opens to let the server continue.

use std::sync::{Arc, Condvar, Mutex};

use super::LIMIT;

/// A gate, closed at first. Clones are the same gate.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// A closed gate.
    pub fn new() -> Gate {
        Gate::default()
    }

    /// Opens it permanently.
    pub fn open(&self) {
        let (is_open, changed) = &*self.0;
        *is_open.lock().unwrap() = true;
        changed.notify_all();
    }

    /// Blocks until it is open. A failed test may never open it, so there is a time limit.
    pub(super) fn pass(&self) {
        let (is_open, changed) = &*self.0;
        let is_open = is_open.lock().unwrap();
        drop(changed.wait_timeout_while(is_open, LIMIT, |is_open| !*is_open).unwrap());
    }
}
