//! Helpers in waiting.
//!
//! To start this program once more takes longer than to start bash. So the helper of the next command is
//! started while the last one runs, or the model thinks. It knows nothing of any command and is in no
//! sandbox; all that was found out beforehand would be old by the time it is needed. A model that answers at
//! once leaves no time for that: so there is one more.

use std::cell::RefCell;
use std::collections::VecDeque;
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

/// The program and its argument that [`enter_sandbox`](crate::enter_sandbox): this same program, told to.
#[derive(Debug, Clone)]
pub struct Helper {
    /// Its file.
    pub program: PathBuf,
    /// What it is told.
    pub argument: OsString,
}

/// How many wait at most.
const AHEAD: usize = 2;

/// Starts helpers, a few ahead.
#[derive(Debug)]
pub(super) struct Helpers {
    helper: Helper,
    waiting: RefCell<VecDeque<Waiting>>,
}

/// A helper that has no command yet, with our end of the socket that is its standard input.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) child: Child,
    pub(super) socket: UnixStream,
}

impl Helpers {
    pub(super) fn new(helper: Helper) -> Helpers {
        Helpers { helper, waiting: RefCell::default() }
    }

    /// A helper for a command: the one that has waited longest, if there is one.
    pub(super) fn take(&self) -> io::Result<Waiting> {
        while let Some(mut waiting) = self.waiting.borrow_mut().pop_front() {
            if matches!(waiting.child.try_wait(), Ok(None)) {
                return Ok(waiting);
            }
        }
        self.start()
    }

    /// Sees to it that helpers wait for the next commands.
    pub(super) fn get_ready(&self) {
        while self.waiting.borrow().len() < AHEAD {
            // Without one the next command starts its own, and says what is wrong.
            let Ok(started) = self.start() else { return };
            self.waiting.borrow_mut().push_back(started);
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the place where helpers are started")]
    fn start(&self) -> io::Result<Waiting> {
        let (socket, helpers_end) = StdUnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let mut command = Command::new(&self.helper.program);
        command.arg(&self.helper.argument).stdin(Stdio::from(OwnedFd::from(helpers_end)));
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let child = command.kill_on_drop(true).spawn()?;
        Ok(Waiting { child, socket: UnixStream::from_std(socket)? })
    }

    /// Ends those that wait.
    pub(super) async fn close(&self) {
        for mut waiting in self.waiting.take() {
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
