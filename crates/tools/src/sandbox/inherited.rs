//! What somebody left open for this process, and for all that it starts.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;

use rustix::fs::OFlags;

use crate::watchdog::SHELL_OPTIONS;

/// The numbers of what was left open: all of our own would close by itself.
///
/// An open folder would lead around every wall that is about paths.
#[derive(Debug)]
pub(crate) struct Inherited(Vec<u32>);

impl Inherited {
    pub(crate) fn find() -> io::Result<Inherited> {
        let mut inherited = Vec::new();
        for entry in fs::read_dir("/proc/self/fdinfo")? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(number) = number.filter(|number| *number > 2) else { continue };
            let info = match fs::read_to_string(entry.path()) {
                // It was that of this loop.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                info => info?,
            };
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
            if flags.is_some_and(|flags| flags & OFlags::CLOEXEC.bits() == 0) {
                inherited.push(number);
            }
        }
        Ok(Inherited(inherited))
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
