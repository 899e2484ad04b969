//! The messages of one connection: sent as bytes, read one by one, within bounds of size and time.

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
use crate::stream::{Look, Stream};

/// No message may be larger: a file's content of 10 MB that is kept for an undo fits several times.
pub(crate) const LARGEST_MESSAGE: usize = 64 * 1024 * 1024;
/// So many notifications are kept, and of so many bytes.
const MOST_NOTIFICATIONS: usize = 64;
const LONGEST_TEXT: usize = 100;
/// An error's words beyond this help nobody.
const LONGEST_WORDS: usize = 300;

/// A connection to a server, on which messages go both ways.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    input: BytesMut,
    /// What the next [`send`](Connection::send) sends.
    pub(crate) output: BytesMut,
    /// The process that answers, as it introduced itself.
    pub(crate) process: i32,
    /// The notifications that nobody asked for yet.
    pub(crate) notified: VecDeque<Notification>,
    /// When it is given up to wait for what was last asked.
    deadline: Instant,
    /// How many bytes came since then.
    pub(crate) received: usize,
    /// What no text of the server's may show.
    password: Option<Password>,
}

/// What another connection says through the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notification {
    /// The process of the server that answers there; 0: not known any more.
    pub process: i32,
    /// What was said; empty when it is not known any more.
    pub text: String,
}

impl Connection {
    pub(crate) fn new(stream: Stream, address: &Address) -> Connection {
        Connection {
            stream,
            input: BytesMut::new(),
            output: BytesMut::new(),
            process: 0,
            notified: VecDeque::new(),
            deadline: Instant::now() + address.connect_timeout,
            received: 0,
            password: address.password.clone(),
        }
    }

    /// No read or write waits longer than this.
    pub(crate) fn set_timeout(&self, limit: Duration) -> std::io::Result<()> {
        self.stream.set_timeout(limit)
    }

    /// What the system knows of the other side, without waiting.
    pub(crate) fn look(&self) -> Look {
        self.stream.look()
    }

    pub(crate) fn send(&mut self) -> Result<(), Error> {
        let sent = self.stream.write_all(&self.output).and_then(|()| self.stream.flush());
        self.output.clear();
        // A server that goes away says why before it does.
        sent.map_err(|error| self.last_words().unwrap_or_else(|| error.into()))
    }

    pub(crate) fn begin_waiting(&mut self, limit: Duration) {
        self.deadline = Instant::now() + limit;
        self.received = 0;
    }

    /// What the server said before it closed the connection.
    fn last_words(&mut self) -> Option<Error> {
        let limit = Duration::from_millis(50);
        let _ = self.stream.set_timeout(limit);
        self.begin_waiting(limit * 2);
        loop {
            match self.next_message() {
                Ok(Message::ErrorResponse(body)) => return Some(self.refusal(&body)),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// The next message that is about something that was asked.
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

    /// Of too many notifications only the fact is kept that something was said.
    fn keep(&mut self, notification: Notification) {
        if notification.text.len() > LONGEST_TEXT || self.notified.len() == MOST_NOTIFICATIONS {
            self.notified.clear();
            self.notified.push_back(Notification::default());
        } else {
            self.notified.push_back(notification);
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

    /// The certificate of the connection, if it has TLS.
    pub(crate) fn certificate(&self) -> Option<&[u8]> {
        self.stream.certificate()
    }

    /// A server's error in a few words. The password is masked before the text is cut, or a part of it would be left.
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
                b'M' => message = value().chars().take(LONGEST_WORDS).collect(),
                _ => {}
            }
        }
        Error::Server { code, message }
    }
}

/// Says goodbye: a server that is not told keeps the connection until it notices.
impl Drop for Connection {
    fn drop(&mut self) {
        let mut goodbye = BytesMut::new();
        frontend::terminate(&mut goodbye);
        let _ = self.stream.set_timeout(Duration::from_millis(100));
        let _ = self.stream.write_all(&goodbye);
    }
}

/// Why there is no message.
pub(crate) enum ReadError {
    /// None came within the time limit; half of one may have.
    Late,
    Failed(Error),
}

impl From<Error> for ReadError {
    fn from(error: Error) -> ReadError {
        ReadError::Failed(error)
    }
}
