//! Locking without poisoning. What these mutexes protect is consistent even after a panic: it changes
//! in single steps, or is checked before use.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
