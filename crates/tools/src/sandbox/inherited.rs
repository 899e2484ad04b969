//! What somebody left open for this process, and for all that it starts.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;

use crate::watchdog::SHELL_OPTIONS;

/// Has an entry for everything that is open.
const OPEN: &str = "/proc/self/fd";

/// The numbers of what was left open.
///
/// An open folder would lead around every wall that is about paths.
#[derive(Debug)]
pub(crate) struct Inherited(Vec<u32>);

impl Inherited {
    /// To be called before this process opens anything itself.
    pub(crate) fn find() -> io::Result<Inherited> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(OPEN)? {
            let number = entry?.file_name().to_str().and_then(|name| name.parse().ok());
            numbers.extend(number.filter(|number: &u32| *number > 2));
        }
        // The folder that was just listed was open, too.
        numbers.retain(|number| fs::symlink_metadata(format!("{OPEN}/{number}")).is_ok());
        Ok(Inherited(numbers))
    }

    /// What bash is called with for a command. It closes what was inherited, as only unsafe code could do
    /// here; with `-p` it runs nothing before that. Usually there is nothing to close, and no first bash.
    pub(crate) fn shell_arguments(&self, command: &OsStr) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        if !self.0.is_empty() {
            let closing: String = self.0.iter().map(|number| format!(" {number}>&-")).collect();
            let script = format!(r#"exec{closing}; exec bash "$@""#);
            arguments.extend(["-p".into(), "-c".into(), script.into(), "bash".into()]);
        }
        arguments.extend(SHELL_OPTIONS.map(OsString::from));
        arguments.push(command.to_owned());
        arguments
    }
}
