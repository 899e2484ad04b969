//! How the walls of a command are written down for the watchdog and the helper.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::{Kind, Sandbox};
use crate::words::{Variables, push_list, push_variables, take_list, take_variables};

/// The walls of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Enclosure {
    pub(crate) kind: Kind,
    pub(crate) sandbox: Sandbox,
    /// Variables that bubblewrap gives to the command, and may not have itself. Those of the dynamic loader could
    /// name a library in the working tree, and that would be run in the helper, before there are any walls.
    pub(crate) loader: Variables,
}

impl Enclosure {
    pub(crate) fn new(
        kind: Kind,
        sandbox: &Sandbox,
        environment: &[(OsString, OsString)],
    ) -> Enclosure {
        let loader = environment.iter().filter(|(name, _)| is_loaders(name)).cloned().collect();
        Enclosure { kind, sandbox: sandbox.clone(), loader }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let Sandbox { write, read, hidden, network, kind: _ } = &self.sandbox;
        let mut bytes = vec![u8::from(self.kind == Kind::Landlock), u8::from(*network)];
        for paths in [write, read, hidden] {
            push_list(&mut bytes, paths.iter().map(|path| path.as_os_str()));
        }
        push_variables(&mut bytes, &self.loader);
        bytes
    }

    /// `None` when it is not what `encode` makes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Enclosure> {
        let (&[kind, network], mut rest) = bytes.split_first_chunk()?;
        let kind = if kind == 0 { Kind::Bubblewrap } else { Kind::Landlock };
        let mut paths =
            || Some(take_list(&mut rest)?.into_iter().map(PathBuf::from).collect::<Vec<_>>());
        let (write, read, hidden) = (paths()?, paths()?, paths()?);
        let loader = take_variables(&mut rest)?;
        let sandbox = Sandbox { write, read, hidden, network: network != 0, kind: Some(kind) };
        rest.is_empty().then_some(Enclosure { kind, sandbox, loader })
    }
}

/// Whether a variable is one of the dynamic loader.
pub(crate) fn is_loaders(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"LD_")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{Enclosure, Kind, Sandbox};

    fn enclosure(kind: Kind) -> Enclosure {
        let sandbox = Sandbox {
            write: vec!["/tree".into(), "/a b\n".into()],
            read: Vec::new(),
            hidden: vec!["/home/.ssh".into()],
            network: true,
            kind: Some(kind),
        };
        let pair = |name: &str| (OsString::from(name), OsString::from("x"));
        let environment = [pair("PATH"), pair("LD_LIBRARY_PATH"), pair("OLD_X")];
        Enclosure::new(kind, &sandbox, &environment)
    }

    #[test]
    fn walls_arrive_as_they_were_sent() {
        for kind in Kind::ALL {
            let sent = enclosure(kind);
            assert_eq!(Enclosure::decode(&sent.encode()), Some(sent));
        }
    }

    #[test]
    fn walls_that_break_off_are_none() {
        let whole = enclosure(Kind::Landlock).encode();
        for length in 0..whole.len() {
            assert_eq!(Enclosure::decode(&whole[..length]), None, "{length} bytes");
        }
        assert_eq!(Enclosure::decode(&[whole, vec![0]].concat()), None);
        assert_eq!(Enclosure::decode(&[0xff; 40]), None);
    }

    #[test]
    fn only_the_loaders_variables_are_kept_from_the_helper() {
        let names = enclosure(Kind::Landlock).loader;
        assert_eq!(names, [("LD_LIBRARY_PATH".into(), "x".into())]);
    }
}
