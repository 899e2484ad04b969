//! The screen on a real terminal.
