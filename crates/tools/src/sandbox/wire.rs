//! How the walls of a command are written down for the watchdog.

use std::path::PathBuf;

use super::{Kind, Sandbox};
use crate::words::{push_list, take_list};

/// The walls of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Enclosure {
    pub(crate) kind: Kind,
    pub(crate) sandbox: Sandbox,
}

impl Enclosure {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Sandbox { write, read, hidden, network, kind: _ } = &self.sandbox;
        let mut bytes = vec![u8::from(self.kind == Kind::Landlock), u8::from(*network)];
        for paths in [write, read, hidden] {
            push_list(&mut bytes, paths.iter().map(|path| path.as_os_str()));
        }
        bytes
    }

    /// `None` when it is not what `encode` makes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Enclosure> {
        let (&[kind, network], mut rest) = bytes.split_first_chunk()?;
        let kind = if kind == 0 { Kind::Bubblewrap } else { Kind::Landlock };
        let mut paths =
            || Some(take_list(&mut rest)?.into_iter().map(PathBuf::from).collect::<Vec<_>>());
        let (write, read, hidden) = (paths()?, paths()?, paths()?);
        let sandbox = Sandbox { write, read, hidden, network: network != 0, kind: Some(kind) };
        rest.is_empty().then_some(Enclosure { kind, sandbox })
    }
}

#[cfg(test)]
mod tests {
    use super::{Enclosure, Kind, Sandbox};

    fn enclosure(kind: Kind) -> Enclosure {
        let sandbox = Sandbox {
            write: vec!["/tree".into(), "/a b\n".into()],
            read: Vec::new(),
            hidden: vec!["/home/.ssh".into()],
            network: true,
            kind: Some(kind),
        };
        Enclosure { kind, sandbox }
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
}
