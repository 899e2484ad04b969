//! Which user runs the server behind a Unix socket.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::address::Address;
use crate::error::Error;

/// The user that runs PostgreSQL on most systems.
const USUAL_NAME: &str = "postgres";

/// Refuses a server started by an unexpected user: any user of this machine can put a socket into `/tmp`. If the
/// address has `requirepeer`, the server must run as that user. Otherwise it must run as root, as our own user, as
/// the owner of the socket's folder, or as `postgres`.
pub(crate) fn require_peer(
    socket: &UnixStream,
    folder: &Path,
    address: &Address,
) -> Result<(), Error> {
    let Some(peer) = user_of(socket) else { return Ok(()) };
    let is_right = match &address.require_peer {
        Some(required) => required.parse() == Ok(peer) || id_of(required) == Some(peer),
        None => is_expected(peer, folder),
    };
    match is_right {
        true => Ok(()),
        false => Err(Error::Login {
            reason: "the server behind the socket is run by an unexpected user",
            advice: "find out who runs it; if you trust that user, add requirepeer=USER to the address",
        }),
    }
}

fn is_expected(peer: u32, folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let owner = fs::metadata(folder).ok().map(|folder| folder.uid());
    peer == 0
        || peer == rustix::process::geteuid().as_raw()
        || owner == Some(peer)
        || id_of(USUAL_NAME) == Some(peer)
}

/// The id of the user at the other end, where the system reports it.
fn user_of(socket: &UnixStream) -> Option<u32> {
    #[cfg(target_os = "linux")]
    {
        rustix::net::sockopt::socket_peercred(socket).ok().map(|peer| peer.uid.as_raw())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = socket;
        None
    }
}

/// The id of a user of this machine.
fn id_of(name: &str) -> Option<u32> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let user = users.lines().find(|line| line.split(':').next() == Some(name))?;
    user.split(':').nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_server_of_an_unexpected_user_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".s.PGSQL.5432");
        let _listener = UnixListener::bind(&path).unwrap();
        let own = rustix::process::geteuid().as_raw();
        let check = |options: &str| {
            let host = folder.path().display();
            let address = format!("postgres://me@/w?host={host}{options}");
            let address = Address::parse(&address).unwrap();
            require_peer(&UnixStream::connect(&path).unwrap(), folder.path(), &address)
        };
        check("").unwrap();
        check(&format!("&requirepeer={own}")).unwrap();
        for other in [(own + 1).to_string(), "nobody-of-this-name".to_owned()] {
            let refused = check(&format!("&requirepeer={other}")).unwrap_err();
            assert!(matches!(refused, Error::Login { .. }), "{refused}");
        }
    }

    #[test]
    fn a_stranger_is_expected_only_in_their_own_folder() {
        let folder = tempfile::tempdir().unwrap();
        let own = rustix::process::geteuid().as_raw();
        // No system assigns this id.
        let stranger = 3_999_999_999;
        assert!(is_expected(own, folder.path()) && is_expected(0, folder.path()));
        assert!(!is_expected(stranger, folder.path()));
        if own == 0 {
            std::os::unix::fs::chown(folder.path(), Some(stranger), None).unwrap();
            assert!(is_expected(stranger, folder.path()));
        }
    }
}
