//! Helpers in waiting.
//!
//! To start this program once more takes longer than to start bash. So the helper of the next command is
//! started while the last one runs, or the model thinks. It knows nothing of any command and is in no
//! sandbox; all that was found out beforehand would be old by the time it is needed.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::wire::Request;
use crate::sandbox::Enclosure;

/// The program and its argument that [`enter_sandbox`](crate::enter_sandbox): this same program, told to.
#[derive(Debug, Clone)]
pub struct Helper {
    /// Its file.
    pub program: PathBuf,
    /// What it is told.
    pub argument: OsString,
}

/// Starts helpers, at most one ahead.
#[derive(Debug)]
pub(super) struct Helpers {
    helper: Helper,
    waiting: RefCell<Option<Waiting>>,
}

/// A helper that has no command yet, with our end of the socket that is its standard input.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) child: Child,
    pub(super) socket: UnixStream,
}

impl Helpers {
    pub(super) fn new(helper: Helper) -> Helpers {
        Helpers { helper, waiting: RefCell::new(None) }
    }

    /// A helper for a command with these walls: the one that waits, if there is one.
    pub(super) fn take(&self, enclosure: &Enclosure) -> io::Result<Waiting> {
        if let Some(mut waiting) = self.waiting.take()
            && matches!(waiting.child.try_wait(), Ok(None))
        {
            return Ok(waiting);
        }
        self.start(enclosure)
    }

    /// Sees to it that a helper waits for the command after one with these walls.
    pub(super) fn get_ready(&self, enclosure: &Enclosure) {
        if self.waiting.borrow().is_none() {
            // Without one the next command starts its own, and says what is wrong.
            *self.waiting.borrow_mut() = self.start(enclosure).ok();
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the place where helpers are started")]
    fn start(&self, enclosure: &Enclosure) -> io::Result<Waiting> {
        let (socket, helpers_end) = StdUnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let mut command = Command::new(&self.helper.program);
        command.arg(&self.helper.argument).stdin(Stdio::from(OwnedFd::from(helpers_end)));
        // What is to be kept from a helper is the same for all commands: it is in our own environment.
        for (name, _) in &enclosure.loader {
            command.env_remove(name);
        }
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()?;
        Ok(Waiting { child, socket: UnixStream::from_std(socket)? })
    }

    /// Ends the one that waits.
    pub(super) async fn close(&self) {
        let waiting = self.waiting.take();
        if let Some(mut waiting) = waiting {
            let _ = waiting.child.kill().await;
        }
    }
}

impl Waiting {
    /// Gives it its command, whose output goes to `output`.
    pub(super) async fn hand_over(
        &mut self,
        request: &Request,
        output: &OwnedFd,
    ) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds = [output.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        // Nothing was ever sent before, so there is room.
        sendmsg(&self.socket, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
        self.socket.write_all(&request.encode()).await?;
        self.socket.shutdown().await
    }
}
