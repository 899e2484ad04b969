//! A connection: statements are queued, sent together, and their replies read together.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::IsNull;
use postgres_protocol::message::backend::{ErrorResponseBody, Header, Message};
use postgres_protocol::message::frontend;

use crate::address::Address;
use crate::error::Error;
use crate::login::login;
use crate::password::Password;
use crate::row::{Reply, Row};
use crate::statements::Statements;
use crate::stream::{Look, Stream};
use crate::text;
use crate::value::Value;

/// No message may be larger: a file's content of 10 MB that is kept for an undo fits several times.
const LARGEST_MESSAGE: usize = 64 * 1024 * 1024;
/// Replies are together at most so large, with what it costs to keep them: the log of a session is read at once.
const LARGEST_REPLY: usize = 2 * 1024 * 1024 * 1024;
/// So much is queued before it should be sent. While a client only sends, the server's replies lie in the buffers
/// between them; were these full, each would wait for the other.
const MANY_BYTES: usize = 1024 * 1024;
const MANY_STATEMENTS: usize = 500;
/// More is never queued: the largest statement fits behind what should have been sent.
const LARGEST_QUEUE: usize = 2 * LARGEST_MESSAGE;
/// A script has fewer statements.
const LONGEST_SCRIPT: usize = 1_000;
/// No answer takes longer, however lively the server is meanwhile.
const LONGEST_RUN: Duration = Duration::from_secs(600);
/// So many notifications are kept, and of so many bytes.
const MOST_NOTIFICATIONS: usize = 64;
const LONGEST_TEXT: usize = 100;
/// An error's words beyond this help nobody.
const LONGEST_WORDS: usize = 300;

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    input: BytesMut,
    output: BytesMut,
    statements: Statements,
    /// Queued and not sent.
    queued: usize,
    /// Sent, and nobody has waited for the answer.
    unheard: usize,
    /// The process that answers, as it introduced itself.
    process: i32,
    /// The notifications that nobody asked for yet.
    notified: VecDeque<Notification>,
    is_behind_pooler: bool,
    /// When it is given up to wait for what was last asked.
    deadline: Instant,
    /// How many bytes came since then.
    received: usize,
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

impl Client {
    /// Connects to the first host that takes writes.
    ///
    /// # Errors
    /// That of the last host that was tried.
    pub fn connect(address: &Address) -> Result<Client, Error> {
        let mut failed = Error::Address("the address names no host".to_owned());
        for host in &address.hosts {
            let connected = Stream::connect(address, host)
                .and_then(|stream| Client::introduce(stream, address))
                .and_then(|mut client| client.require_writable().map(|()| client));
            match connected {
                Ok(client) => return Ok(client),
                // A certificate and the steps of a login have texts of the server's in them as well.
                Err(error) => failed = error.map_text(|text| address.hide_password(text)),
            }
        }
        Err(failed)
    }

    fn introduce(stream: Stream, address: &Address) -> Result<Client, Error> {
        let mut client = Client {
            stream,
            input: BytesMut::new(),
            output: BytesMut::new(),
            statements: Statements::default(),
            queued: 0,
            unheard: 0,
            process: 0,
            notified: VecDeque::new(),
            is_behind_pooler: false,
            deadline: Instant::now() + address.connect_timeout,
            received: 0,
            password: address.password.clone(),
        };
        login(&mut client, address)?;
        Ok(client)
    }

    /// A standby reads only. On the way it is seen who answers: a pooler introduces itself with a number of its
    /// own, and what one statement leaves on the server is not there for the next.
    fn require_writable(&mut self) -> Result<(), Error> {
        let sql = "SELECT pg_backend_pid(), pg_is_in_recovery()";
        let found = self.ask(sql, &[])?;
        let row = found.rows.first().ok_or_else(|| Error::protocol("no row"))?;
        self.is_behind_pooler = row.integer(0)? != Some(i64::from(self.process));
        self.statements.may_be_named = !self.is_behind_pooler;
        match row.integer(1)? {
            Some(0) => Ok(()),
            _ => Err(Error::Server {
                code: "25006".to_owned(),
                message: "the server is a standby that only reads".to_owned(),
            }),
        }
    }

    /// Whether somebody stands between this client and the server, so that no state lasts on the server from
    /// one transaction to the next.
    pub fn is_behind_pooler(&self) -> bool {
        self.is_behind_pooler
    }

    /// Treats the connection as one through a pooler.
    pub fn keep_no_state(&mut self) {
        self.is_behind_pooler = true;
        self.statements.forget_names();
    }

    /// No answer is waited for longer than this.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn set_timeout(&self, limit: Duration) -> Result<(), Error> {
        Ok(self.stream.set_timeout(limit)?)
    }

    /// Queues a statement. Places for values are written `?1` or `$1`.
    ///
    /// # Errors
    /// When it is too large.
    pub fn queue(&mut self, sql: &str, values: &[Value<'_>]) -> Result<(), Error> {
        let size: usize = values.iter().map(|value| value.size()).sum();
        if size > LARGEST_MESSAGE || self.output.len() + size > LARGEST_QUEUE {
            return Err(Error::protocol("a value is too large"));
        }
        let before = self.output.len();
        let sent = self.statements.send(sql, values);
        if let Some(text) = sent.parse {
            let types = values.iter().map(|value| value.type_id());
            frontend::parse(&sent.name, &text, types, &mut self.output)?;
        }
        let write = |value: Value<'_>, out: &mut BytesMut| Ok(write(value, out));
        frontend::bind("", &sent.name, [1], values.iter().copied(), write, [1], &mut self.output)
            .map_err(|_| Error::protocol("a value is too large"))?;
        frontend::execute("", 0, &mut self.output)?;
        // As it is written: what is larger would come back in a message that is refused.
        if self.output.len() - before > LARGEST_MESSAGE {
            return Err(Error::protocol("a value is too large"));
        }
        self.queued += 1;
        Ok(())
    }

    /// Whether so much is queued that it should be [`run`](Client::run) before more is.
    pub fn is_full(&self) -> bool {
        self.output.len() >= MANY_BYTES || self.queued >= MANY_STATEMENTS
    }

    /// Sends what is queued and waits for all replies, one for each statement.
    ///
    /// # Errors
    /// The first refusal; the server has then done nothing of what stood behind it.
    pub fn run(&mut self) -> Result<Vec<Reply>, Error> {
        frontend::sync(&mut self.output);
        self.send()?;
        self.begin_waiting(LONGEST_RUN);
        self.hear()?;
        let expected = std::mem::take(&mut self.queued);
        let replies = self.replies(expected).inspect_err(|error| {
            self.statements.forget_new();
            // Somebody else uses our names: there is a pooler after all.
            if matches!(error.code(), Some("26000" | "42P05")) {
                self.keep_no_state();
            }
        })?;
        self.statements.confirm();
        match replies.len() == expected {
            true => Ok(replies),
            false => Err(Error::protocol("the number of replies is wrong")),
        }
    }

    /// One statement and its reply; what was queued before goes with it.
    ///
    /// # Errors
    /// See [`run`](Client::run).
    pub fn ask(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Reply, Error> {
        self.queue(sql, values)?;
        let reply = self.run()?.pop();
        reply.ok_or_else(|| Error::protocol("no reply"))
    }

    /// Sends what is queued and waits for nothing: how it went nobody will know.
    ///
    /// # Errors
    /// When it cannot be sent.
    pub fn tell(&mut self) -> Result<(), Error> {
        frontend::sync(&mut self.output);
        self.queued = 0;
        self.unheard += 1;
        self.send()
    }

    /// Runs a script of several statements, without values.
    ///
    /// # Errors
    /// The first refusal.
    pub fn script(&mut self, sql: &str) -> Result<(), Error> {
        frontend::query(sql, &mut self.output)?;
        self.send()?;
        self.begin_waiting(LONGEST_RUN);
        self.hear()?;
        self.replies(LONGEST_SCRIPT).map(drop)
    }

    /// Waits for a notification, `limit` at most.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn notified(&mut self, limit: Duration) -> Result<Option<Notification>, Error> {
        self.begin_waiting(LONGEST_RUN);
        self.hear()?;
        self.stream.set_timeout(limit)?;
        while self.notified.is_empty() {
            match self.next_message() {
                Ok(Message::ErrorResponse(body)) => return Err(self.refusal(&body)),
                Ok(_) => {}
                Err(ReadError::Late) => return Ok(None),
                Err(ReadError::Failed(error)) => return Err(error),
            }
        }
        Ok(self.notified.pop_front())
    }

    /// Whether the server is still there, as far as can be seen without asking it.
    pub fn seems_alive(&mut self) -> bool {
        match self.stream.look() {
            Look::Quiet => true,
            Look::Gone => false,
            // An answer that nobody waited for, or a last word.
            Look::Talking => self.queue("SELECT 1", &[]).and_then(|()| self.run()).is_ok(),
        }
    }

    /// The number of the server's process that answers, as its notifications name it.
    pub fn process(&self) -> i32 {
        self.process
    }

    pub(crate) fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    pub(crate) fn set_process(&mut self, process: i32) {
        self.process = process;
    }

    pub(crate) fn send(&mut self) -> Result<(), Error> {
        let sent = self.stream.write_all(&self.output).and_then(|()| self.stream.flush());
        self.output.clear();
        // A server that goes away says why before it does.
        sent.map_err(|error| self.last_words().unwrap_or_else(|| error.into()))
    }

    fn begin_waiting(&mut self, limit: Duration) {
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

    /// Reads the answers that nobody waited for.
    fn hear(&mut self) -> Result<(), Error> {
        while self.unheard > 0 {
            if let Message::ReadyForQuery(_) = self.message()? {
                self.unheard -= 1;
            }
        }
        Ok(())
    }

    /// Everything up to the sign that the server is ready again; not more than `expected` replies.
    fn replies(&mut self, expected: usize) -> Result<Vec<Reply>, Error> {
        let (mut replies, mut reply, mut around_rows) = (Vec::new(), Reply::default(), 0);
        let mut refused = None;
        loop {
            match self.message()? {
                Message::DataRow(body) => {
                    let row = Row::parse(body.buffer_bytes().clone())?;
                    around_rows += row.size_around();
                    // All that came: a row also keeps what came together with it.
                    if self.received + around_rows > LARGEST_REPLY {
                        return Err(Error::protocol("the reply is too large"));
                    }
                    reply.rows.push(row);
                }
                Message::CommandComplete(_) | Message::EmptyQueryResponse
                    if replies.len() == expected =>
                {
                    return Err(Error::protocol("there are too many replies"));
                }
                Message::CommandComplete(body) => {
                    let count = body.tag()?.rsplit(' ').next().and_then(|last| last.parse().ok());
                    reply.count = count.unwrap_or(0);
                    replies.push(std::mem::take(&mut reply));
                }
                Message::EmptyQueryResponse => replies.push(std::mem::take(&mut reply)),
                Message::ErrorResponse(body) => refused = Some(self.refusal(&body)),
                Message::ReadyForQuery(_) => return refused.map_or(Ok(replies), Err),
                Message::ParseComplete
                | Message::BindComplete
                | Message::NoData
                | Message::RowDescription(_) => {}
                _ => return Err(Error::protocol("not a reply to a statement")),
            }
            if let Some(error) = refused.take_if(|error| error.is_final()) {
                return Err(error);
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

    fn next_message(&mut self) -> Result<Message, ReadError> {
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
impl Drop for Client {
    fn drop(&mut self) {
        let mut goodbye = BytesMut::new();
        frontend::terminate(&mut goodbye);
        let _ = self.stream.set_timeout(Duration::from_millis(100));
        let _ = self.stream.write_all(&goodbye);
    }
}

/// Why there is no message.
enum ReadError {
    /// None came within the time limit; half of one may have.
    Late,
    Failed(Error),
}

impl From<Error> for ReadError {
    fn from(error: Error) -> ReadError {
        ReadError::Failed(error)
    }
}

fn write(value: Value<'_>, out: &mut BytesMut) -> IsNull {
    let written = match value {
        Value::Integer(number) => number.map(|number| out.extend_from_slice(&number.to_be_bytes())),
        Value::Text(text) => text.map(|text| out.extend_from_slice(text::encode(text).as_bytes())),
        Value::Bytes(bytes) => bytes.map(|bytes| out.extend_from_slice(bytes)),
    };
    if written.is_some() { IsNull::No } else { IsNull::Yes }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use super::*;

    const LET_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x07\0\0\0\0Z\0\0\0\x05I";
    const NOTICE: &[u8] = b"N\0\0\0\x05\0";
    const COMPLETE: &[u8] = b"C\0\0\0\x0dSELECT 1\0";

    /// A server that says `first`, waits for a question, and then says `again` for ever.
    fn connect_to(first: &'static [u8], again: &'static [u8]) -> Error {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = move |mut client: TcpStream| -> std::io::Result<()> {
            let mut asked = [0; 1024];
            let _ = client.read(&mut asked)?;
            if !first.is_empty() {
                client.write_all(first)?;
                let _ = client.read(&mut asked)?;
            }
            loop {
                client.write_all(again)?;
            }
        };
        let server = thread::spawn(move || answer(listener.accept().unwrap().0).unwrap_err());
        let address = format!("postgres://me@127.0.0.1:{port}/w?connect_timeout=1");
        let refused = Client::connect(&Address::parse(&address).unwrap()).unwrap_err();
        server.join().unwrap();
        refused
    }

    #[test]
    fn a_server_that_only_talks_is_given_up() {
        assert_eq!(connect_to(b"", NOTICE).to_string(), "the server does not answer");
    }

    #[test]
    fn a_server_that_answers_without_end_is_no_server() {
        let refused = connect_to(LET_IN, COMPLETE);
        assert!(refused.to_string().contains("too many replies"), "{refused}");
    }
}
