//! A running command: its output, and its control socket to the watchdog.

use std::ffi::OsString;
use std::io;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::notes::Notes;
use crate::watchdog::{CHECK_MEANWHILE, END, STATUS_LIMIT, Status, decode_note};

/// A running command. Dropping it ends the command.
#[derive(Debug)]
pub(crate) struct RunningCommand {
    pub(crate) output: CommandOutput,
    pub(crate) control: Control,
    pub(crate) started: Instant,
    pub(crate) closing: CancellationToken,
}

impl RunningCommand {
    /// Lets background processes continue until the program ends. Their output is read and
    /// discarded, so that they do not fail with a broken pipe.
    pub(crate) fn leave(mut self) {
        let closing = self.closing.clone();
        tokio::spawn(closing.run_until_cancelled_owned(async move {
            let mut sink = Vec::with_capacity(16 * 1024);
            while !self.output.is_drained() && self.output.read(&mut sink).await.is_ok() {
                sink.clear();
            }
            self.control.closed().await;
        }));
    }
}

/// The output of a command, stdout and stderr combined.
#[derive(Debug)]
pub(crate) struct CommandOutput(Option<pipe::Receiver>);

impl CommandOutput {
    pub(super) fn new(pipe: pipe::Receiver) -> CommandOutput {
        CommandOutput(Some(pipe))
    }

    /// Appends the next chunk to `buffer`. Returns 0 once at the end, and stays pending afterwards.
    ///
    /// # Cancel safety
    /// No data is lost if the future is dropped.
    pub(crate) async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let Some(pipe) = &mut self.0 else {
            return std::future::pending().await;
        };
        let count = pipe.read_buf(buffer).await?;
        if count == 0 {
            self.0 = None;
        }
        Ok(count)
    }

    /// Appends what the pipe holds right now, limited by the spare capacity of `buffer`.
    pub(crate) fn read_ready(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        // Not through the runtime, which only knows the state of its last poll.
        while let Some(pipe) = &self.0
            && buffer.len() < buffer.capacity()
        {
            match rustix::io::read(pipe, spare_capacity(buffer)) {
                Ok(0) => self.0 = None,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Whether the output has ended: all writers have closed the pipe.
    pub(crate) fn is_drained(&self) -> bool {
        self.0.is_none()
    }
}

/// The control socket of a command. The watchdog ends the command when it closes.
#[derive(Debug)]
pub(crate) struct Control {
    socket: UnixStream,
    /// The result of reading a line.
    received: Vec<u8>,
    agent: OsString,
    notes: Notes,
}

impl Control {
    pub(super) fn new(socket: UnixStream, agent: OsString, notes: Notes) -> Control {
        Control { socket, received: Vec::new(), agent, notes }
    }

    /// Waits for the command to end.
    ///
    /// # Cancel safety
    /// No data is lost if the future is dropped.
    pub(crate) async fn status(&mut self) -> io::Result<Status> {
        loop {
            while let Some(line) = self.take_line() {
                match decode_note(&line) {
                    Some(note) => self.notes.add(&self.agent, note),
                    // Our watchdog sends no other lines.
                    None => match Status::decode(&line) {
                        Some(status) => return Ok(status),
                        None => return Err(io::ErrorKind::InvalidData.into()),
                    },
                }
            }
            if self.receive().await? == 0 {
                return Err(io::Error::other("its watchdog was killed"));
            }
        }
    }

    /// Reads more, up to the maximum length of a line.
    async fn receive(&mut self) -> io::Result<usize> {
        let room = STATUS_LIMIT - self.received.len();
        let mut socket = (&mut self.socket).take(room as u64);
        socket.read_buf(&mut self.received).await
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let end = self.received.iter().position(|&byte| byte == b'\n')?;
        Some(self.received.drain(..=end).collect())
    }

    /// What was done about protected paths and was not reported to the agent yet.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        self.notes.tell(&self.agent).iter().map(|note| format!("[ikigai: {note}]")).collect()
    }

    /// Lets the watchdog check protected paths while the command runs, and not only at its end.
    pub(crate) async fn check_meanwhile(&mut self) {
        // If this fails, the command has ended, and its paths are checked for that reason.
        let _ = self.socket.write_all(&[CHECK_MEANWHILE]).await;
    }

    /// Asks the watchdog to end the command with all its processes. The status follows.
    pub(crate) async fn end(&mut self) -> io::Result<()> {
        match self.socket.write_all(&[END]).await {
            // It has ended already, and its status is in the socket.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            told => told,
        }
    }

    /// Waits until the watchdog closes its end: the command's group is gone.
    async fn closed(&mut self) {
        loop {
            while let Some(line) = self.take_line() {
                if let Some(note) = decode_note(&line) {
                    self.notes.add(&self.agent, note);
                }
            }
            if !self.receive().await.is_ok_and(|count| count > 0) {
                return;
            }
        }
    }
}
