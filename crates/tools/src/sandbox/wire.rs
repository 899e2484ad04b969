//! How a sandbox is encoded for the watchdog.

use std::path::PathBuf;

use super::{Identity, Kind, Root, Sandbox};
use crate::words::{push_list, take_list};

/// A sandbox with the kind that was chosen for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedSandbox {
    pub(crate) kind: Kind,
    pub(crate) sandbox: Sandbox,
}

impl ResolvedSandbox {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Sandbox { write, unprotected, read, hidden, network, unix_sockets, kind: _ } =
            &self.sandbox;
        let is_landlock = self.kind == Kind::Landlock;
        let mut bytes = [is_landlock, *network, *unix_sockets].map(u8::from).to_vec();
        for roots in [write, read] {
            push_list(&mut bytes, roots.iter().map(|root| root.path().as_os_str()));
            bytes.extend(roots.iter().flat_map(encode_identity));
        }
        for paths in [unprotected, hidden] {
            push_list(&mut bytes, paths.iter().map(|path| path.as_os_str()));
        }
        bytes
    }

    /// `None` for bytes that `encode` does not produce.
    pub(crate) fn decode(bytes: &[u8]) -> Option<ResolvedSandbox> {
        let (&[kind, network, unix_sockets], mut rest) = bytes.split_first_chunk()?;
        let kind = if kind == 0 { Kind::Bubblewrap } else { Kind::Landlock };
        let (write, read) = (take_roots(&mut rest)?, take_roots(&mut rest)?);
        let mut paths = || Some(take_list(&mut rest)?.into_iter().map(PathBuf::from).collect());
        let (unprotected, hidden) = (paths()?, paths()?);
        let (network, unix_sockets) = (network != 0, unix_sockets != 0);
        let sandbox =
            Sandbox { write, unprotected, read, hidden, network, unix_sockets, kind: Some(kind) };
        rest.is_empty().then_some(ResolvedSandbox { kind, sandbox })
    }
}

const IDENTITY: usize = 17;

fn encode_identity(root: &Root) -> [u8; IDENTITY] {
    let Identity { device, inode } = root.identity();
    let mut bytes = [u8::from(root.is_folder()); IDENTITY];
    bytes[1..9].copy_from_slice(&device.to_le_bytes());
    bytes[9..].copy_from_slice(&inode.to_le_bytes());
    bytes
}

fn take_roots(bytes: &mut &[u8]) -> Option<Vec<Root>> {
    let paths = take_list(bytes)?.into_iter().map(PathBuf::from);
    let mut root = |path| {
        let (identity, rest) = bytes.split_first_chunk::<IDENTITY>()?;
        *bytes = rest;
        let number = |at: usize| Some(u64::from_le_bytes(*identity.get(at..)?.first_chunk()?));
        let is_folder = identity[0] != 0;
        Some(Root::known(path, Identity { device: number(1)?, inode: number(9)? }, is_folder))
    };
    paths.map(&mut root).collect()
}

#[cfg(test)]
mod tests {
    use super::{Identity, Kind, ResolvedSandbox, Root, Sandbox};

    fn resolved(kind: Kind) -> ResolvedSandbox {
        let root = |path: &str, inode| {
            Root::known(path.into(), Identity { device: u64::MAX, inode }, inode > 1)
        };
        let sandbox = Sandbox {
            write: vec![root("/tree", 1), root("/a b\n", 2)],
            unprotected: vec!["/tmp/x".into()],
            read: Vec::new(),
            hidden: vec!["/home/.ssh".into()],
            network: true,
            unix_sockets: false,
            kind: Some(kind),
        };
        ResolvedSandbox { kind, sandbox }
    }

    #[test]
    fn a_sandbox_arrives_as_it_was_sent() {
        for kind in Kind::ALL {
            let sent = resolved(kind);
            assert_eq!(ResolvedSandbox::decode(&sent.encode()), Some(sent));
        }
    }

    #[test]
    fn a_truncated_sandbox_is_none() {
        let whole = resolved(Kind::Landlock).encode();
        for length in 0..whole.len() {
            assert_eq!(ResolvedSandbox::decode(&whole[..length]), None, "{length} bytes");
        }
        assert_eq!(ResolvedSandbox::decode(&[whole, vec![0]].concat()), None);
        assert_eq!(ResolvedSandbox::decode(&[0xff; 40]), None);
    }
}
