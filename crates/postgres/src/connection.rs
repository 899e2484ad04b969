//! Messages to and from a server, with limits for size and time.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{ErrorResponseBody, Header, Message};
use postgres_protocol::message::frontend;

use crate::address::Address;
use crate::error::Error;
use crate::password::Password;
use crate::stream::{Status, Stream};

/// The limit for one message. The 10 MB of a file that are kept for an undo fit several times.
pub(crate) const LARGEST_MESSAGE: usize = 64 * 1024 * 1024;
/// How many notifications are kept until they are read, and how many bytes each may have.
const MOST_NOTIFICATIONS: usize = 64;
const LONGEST_NOTIFICATION: usize = 100;
/// A server's error message is cut to this many characters, to fit on a line.
const LONGEST_MESSAGE: usize = 300;

/// A connection over which messages are sent and received.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    input: BytesMut,
    /// Messages that the next [`send`](Connection::send) sends.
    pub(crate) output: BytesMut,
    /// The backend's process id, as the server gave it at login.
    pub(crate) process: i32,
    /// Notifications that have not been read yet.
    pub(crate) notifications: VecDeque<Notification>,
    /// When to stop waiting for the current answer.
    deadline: Instant,
    /// How many bytes of that answer have arrived.
    pub(crate) received: usize,
    /// Masked in the server's messages.
    password: Option<Password>,
}

/// A notification that another connection sent through the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notification {
    /// The process id of the sender's backend; 0 if notifications were dropped.
    pub process: i32,
    /// The payload; empty if notifications were dropped.
    pub text: String,
}

impl Connection {
    pub(crate) fn new(stream: Stream, address: &Address) -> Connection {
        Connection {
            stream,
            input: BytesMut::new(),
            output: BytesMut::new(),
            process: 0,
            notifications: VecDeque::new(),
            deadline: Instant::now() + address.connect_timeout,
            received: 0,
            password: address.password.clone(),
        }
    }

    /// Limits how long a read or a write may wait.
    pub(crate) fn set_timeout(&self, limit: Duration) -> std::io::Result<()> {
        self.stream.set_timeout(limit)
    }

    /// What the system knows about the other side, without waiting.
    pub(crate) fn status(&self) -> Status {
        self.stream.status()
    }

    pub(crate) fn send(&mut self) -> Result<(), Error> {
        let sent = self.stream.write_all(&self.output).and_then(|()| self.stream.flush());
        self.output.clear();
        // A server that closes the connection says why first.
        sent.map_err(|error| self.reason_for_closing().unwrap_or_else(|| error.into()))
    }

    pub(crate) fn start_waiting(&mut self, limit: Duration) {
        self.deadline = Instant::now() + limit;
        self.received = 0;
    }

    /// The error that the server sent before it closed the connection.
    fn reason_for_closing(&mut self) -> Option<Error> {
        let limit = Duration::from_millis(50);
        let _ = self.stream.set_timeout(limit);
        self.start_waiting(limit * 2);
        loop {
            match self.next_message() {
                Ok(Message::ErrorResponse(body)) => return Some(self.refusal(&body)),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// The next message that answers something: notifications are kept for later.
    pub(crate) fn message(&mut self) -> Result<Message, Error> {
        loop {
            match self.next_message() {
                Ok(Message::NotificationResponse(_)) => {}
                Ok(message) => return Ok(message),
                Err(ReadError::Late) => {
                    return Err(Error::Lost("the server does not answer".to_owned()));
                }
                Err(ReadError::Failed(error)) => return Err(error),
            }
        }
    }

    pub(crate) fn next_message(&mut self) -> Result<Message, ReadError> {
        loop {
            if Instant::now() > self.deadline {
                return Err(ReadError::Late);
            }
            if let Some(header) = Header::parse(&self.input).map_err(Error::from)?
                && usize::try_from(header.len()).is_ok_and(|length| length > LARGEST_MESSAGE)
            {
                return Err(Error::protocol("a message is too large").into());
            }
            match Message::parse(&mut self.input).map_err(Error::from)? {
                Some(Message::NoticeResponse(_) | Message::ParameterStatus(_)) => {}
                Some(message) => {
                    if let Message::NotificationResponse(body) = &message {
                        let text = body.message().map_err(Error::from)?;
                        self.keep(Notification { process: body.process_id(), text: text.into() });
                    }
                    return Ok(message);
                }
                None => self.read_more()?,
            }
        }
    }

    /// Keeps a notification. Too many or too long ones are replaced by one that says only that there were some.
    fn keep(&mut self, notification: Notification) {
        let is_full = self.notifications.len() == MOST_NOTIFICATIONS;
        if is_full || notification.text.len() > LONGEST_NOTIFICATION {
            self.notifications.clear();
            self.notifications.push_back(Notification::default());
        } else {
            self.notifications.push_back(notification);
        }
    }

    fn read_more(&mut self) -> Result<(), ReadError> {
        let mut chunk = [0; 16 * 1024];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(Error::Lost("the server closed the connection".to_owned()).into()),
            Ok(length) => {
                self.input.extend_from_slice(&chunk[..length]);
                self.received += length;
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) =>
            {
                Err(ReadError::Late)
            }
            Err(error) => Err(Error::from(error).into()),
        }
    }

    /// The server's certificate, if the connection uses TLS.
    pub(crate) fn certificate(&self) -> Option<&[u8]> {
        self.stream.certificate()
    }

    /// A server's error as a value. The password is masked before the message is cut; otherwise half of it could
    /// remain.
    pub(crate) fn refusal(&self, body: &ErrorResponseBody) -> Error {
        let (mut code, mut message) = (String::new(), String::new());
        let mut fields = body.fields();
        while let Ok(Some(field)) = fields.next() {
            let value = || {
                let text = String::from_utf8_lossy(field.value_bytes());
                match &self.password {
                    Some(password) => password.hide(&text),
                    None => text.into_owned(),
                }
            };
            match field.type_() {
                b'C' => code = value().chars().take(5).collect(),
                b'M' => message = value().chars().take(LONGEST_MESSAGE).collect(),
                _ => {}
            }
        }
        Error::Server { code, message }
    }
}

/// Terminates the connection. Otherwise the server would hold it until it notices.
impl Drop for Connection {
    fn drop(&mut self) {
        let mut goodbye = BytesMut::new();
        frontend::terminate(&mut goodbye);
        let _ = self.stream.set_timeout(Duration::from_millis(100));
        let _ = self.stream.write_all(&goodbye);
    }
}

/// Why no message could be read.
pub(crate) enum ReadError {
    /// No complete message arrived in time.
    Late,
    Failed(Error),
}

impl From<Error> for ReadError {
    fn from(error: Error) -> ReadError {
        ReadError::Failed(error)
    }
}
