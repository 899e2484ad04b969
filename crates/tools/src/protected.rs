//! Protected paths: what other programs later run or believe, and no command may change unseen.

mod names;

pub(crate) use names::{OF_GIT, START_UP, is_guarded_at};
