//! The remaining tasks of a walk, shared by its threads.

use std::sync::{Condvar, Mutex, PoisonError};

use super::Task;
use crate::lock::lock;

/// The remaining tasks, last in first out: that keeps few of them in memory.
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    work: Vec<Task>,
    /// Tasks in progress, which may add more.
    begun: usize,
    /// Threads waiting for a task.
    waiting: usize,
}

/// A task in progress, until it is dropped.
pub(super) struct RunningTask<'a> {
    queue: &'a Queue,
    pub(super) work: Task,
}

impl Queue {
    pub(super) fn new(start: Task) -> Queue {
        let state = State { work: vec![start], begun: 0, waiting: 0 };
        Queue { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The next task; `None` when the walk is complete.
    pub(super) fn next(&self, is_over: &(dyn Fn() -> bool + Sync)) -> Option<RunningTask<'_>> {
        let is_over = is_over();
        let mut state = lock(&self.state);
        if is_over {
            state.work.clear();
        }
        loop {
            if let Some(work) = state.work.pop() {
                state.begun += 1;
                return Some(RunningTask { queue: self, work });
            }
            if state.begun == 0 {
                return None;
            }
            state.waiting += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }
}

impl RunningTask<'_> {
    /// Adds the tasks that follow from it.
    pub(super) fn add(&self, work: Vec<Task>) {
        if work.is_empty() {
            return;
        }
        let mut state = lock(&self.queue.state);
        state.work.extend(work);
        if state.waiting > 0 {
            self.queue.changed.notify_all();
        }
    }
}

impl Drop for RunningTask<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.queue.state);
        state.begun -= 1;
        if state.begun == 0 {
            self.queue.changed.notify_all();
        }
    }
}
