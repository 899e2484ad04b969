//! Statements on a connection: queued, sent together, and their replies read together.

use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use crate::address::Address;
use crate::connection::{Connection, LARGEST_MESSAGE, Notification, ReadError};
use crate::error::Error;
use crate::login::login;
use crate::row::{Reply, Row};
use crate::statements::Statements;
use crate::stream::{Status, Stream};
use crate::text;
use crate::value::Value;

/// The limit for all replies to one run, bookkeeping included. A session's whole log is read at once.
const LARGEST_REPLY: usize = 2 * 1024 * 1024 * 1024;
/// A queue of this size should be sent. While a client only sends, the server's replies pile up in the buffers
/// between them. Once those are full, both sides would wait for each other.
const MANY_BYTES: usize = 1024 * 1024;
const MANY_STATEMENTS: usize = 500;
/// The hard limit for the queue: the largest statement still fits after a queue that should have been sent.
const LARGEST_QUEUE: usize = 2 * LARGEST_MESSAGE;
/// The limit for statements in a script.
const LONGEST_SCRIPT: usize = 1_000;
/// The limit for one answer, even if the server keeps sending other messages meanwhile.
const LONGEST_RUN: Duration = Duration::from_secs(600);

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    statements: Statements,
    /// How many statements are queued.
    queued: usize,
    /// How many batches were sent whose answers have not been read.
    unread: usize,
    is_behind_pooler: bool,
}

impl Client {
    /// Connects to the first host that accepts writes.
    ///
    /// # Errors
    /// The error of the last host tried.
    pub fn connect(address: &Address) -> Result<Client, Error> {
        let mut failed = Error::Address("the address names no host".to_owned());
        for host in &address.hosts {
            let connected = Stream::connect(address, host)
                .and_then(|stream| Client::log_in(stream, address))
                .and_then(|mut client| client.require_writable().map(|()| client));
            match connected {
                Ok(client) => return Ok(client),
                // Errors about certificates and login steps can quote the server too.
                Err(error) => failed = error.map_text(|text| address.hide_password(text)),
            }
        }
        Err(failed)
    }

    fn log_in(stream: Stream, address: &Address) -> Result<Client, Error> {
        let mut connection = Connection::new(stream, address);
        login(&mut connection, address)?;
        Ok(Client {
            connection,
            statements: Statements::default(),
            queued: 0,
            unread: 0,
            is_behind_pooler: false,
        })
    }

    /// Refuses a standby, which is read-only. The same query detects a pooler: it reports a process id other than the
    /// server's, and state that one statement leaves on the server may be gone for the next.
    fn require_writable(&mut self) -> Result<(), Error> {
        let sql = "SELECT pg_backend_pid(), pg_is_in_recovery()";
        let found = self.ask(sql, &[])?;
        let row = found.rows.first().ok_or_else(|| Error::protocol("no row"))?;
        self.is_behind_pooler = row.integer(0)? != Some(i64::from(self.connection.process));
        self.statements.may_be_named = !self.is_behind_pooler;
        match row.integer(1)? {
            Some(0) => Ok(()),
            _ => Err(Error::Server {
                code: "25006".to_owned(),
                message: "the server is a read-only standby".to_owned(),
            }),
        }
    }

    /// Whether there is a pooler between this client and the server, so that no state on the server lasts from one
    /// transaction to the next.
    pub fn is_behind_pooler(&self) -> bool {
        self.is_behind_pooler
    }

    /// Treats the connection as one that goes through a pooler.
    pub fn keep_no_state(&mut self) {
        self.is_behind_pooler = true;
        self.statements.forget_names();
    }

    /// Limits how long a read or a write may wait.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_timeout(&self, limit: Duration) -> Result<(), Error> {
        Ok(self.connection.set_timeout(limit)?)
    }

    /// Queues a statement. Its parameters are written `?1` or `$1`.
    ///
    /// # Errors
    /// If the statement is too large.
    pub fn queue(&mut self, sql: &str, values: &[Value<'_>]) -> Result<(), Error> {
        let output = &mut self.connection.output;
        let size: usize = values.iter().map(|value| value.size()).sum();
        if size > LARGEST_MESSAGE || output.len() + size > LARGEST_QUEUE {
            return Err(Error::protocol("a value is too large"));
        }
        let before = output.len();
        let sent = self.statements.send(sql, values);
        if let Some(text) = sent.parse {
            let types = values.iter().map(|value| value.type_id());
            frontend::parse(&sent.name, &text, types, output)?;
        }
        let write = |value: Value<'_>, out: &mut BytesMut| Ok(write(value, out));
        frontend::bind("", &sent.name, [1], values.iter().copied(), write, [1], output)
            .map_err(|_| Error::protocol("a value is too large"))?;
        frontend::execute("", 0, output)?;
        // Measured as encoded: a larger value would come back in a message that is refused.
        if output.len() - before > LARGEST_MESSAGE {
            return Err(Error::protocol("a value is too large"));
        }
        self.queued += 1;
        Ok(())
    }

    /// Whether the queue should be [`run`](Client::run) before more is added.
    pub fn is_full(&self) -> bool {
        self.connection.output.len() >= MANY_BYTES || self.queued >= MANY_STATEMENTS
    }

    /// Sends the queue and waits for all replies, one per statement.
    ///
    /// # Errors
    /// The first statement that the server refused. It has executed none of those after it.
    pub fn run(&mut self) -> Result<Vec<Reply>, Error> {
        frontend::sync(&mut self.connection.output);
        self.connection.send()?;
        self.connection.start_waiting(LONGEST_RUN);
        self.read_unread()?;
        let expected = std::mem::take(&mut self.queued);
        let replies = self.replies(expected).inspect_err(|error| {
            self.statements.forget_new();
            // Another client uses our statement names: there is a pooler after all.
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

    /// Runs one statement, after those already queued, and returns its reply.
    ///
    /// # Errors
    /// See [`run`](Client::run).
    pub fn ask(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Reply, Error> {
        self.queue(sql, values)?;
        let reply = self.run()?.pop();
        reply.ok_or_else(|| Error::protocol("no reply"))
    }

    /// Sends the queue without waiting for replies: whether it succeeded stays unknown.
    ///
    /// # Errors
    /// If it cannot be sent.
    pub fn tell(&mut self) -> Result<(), Error> {
        frontend::sync(&mut self.connection.output);
        self.queued = 0;
        self.unread += 1;
        self.connection.send()
    }

    /// Runs a script of several statements, without parameters.
    ///
    /// # Errors
    /// The first statement that the server refused.
    pub fn script(&mut self, sql: &str) -> Result<(), Error> {
        frontend::query(sql, &mut self.connection.output)?;
        self.connection.send()?;
        self.connection.start_waiting(LONGEST_RUN);
        self.read_unread()?;
        self.replies(LONGEST_SCRIPT).map(drop)
    }

    /// Waits for a notification, at most for `limit`.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn notified(&mut self, limit: Duration) -> Result<Option<Notification>, Error> {
        self.connection.start_waiting(LONGEST_RUN);
        self.read_unread()?;
        self.connection.set_timeout(limit)?;
        while self.connection.notifications.is_empty() {
            match self.connection.next_message() {
                Ok(Message::ErrorResponse(body)) => return Err(self.connection.refusal(&body)),
                Ok(_) => {}
                Err(ReadError::Late) => return Ok(None),
                Err(ReadError::Failed(error)) => return Err(error),
            }
        }
        Ok(self.connection.notifications.pop_front())
    }

    /// Whether the connection still seems to work. The server is asked only if it has sent something.
    pub fn seems_alive(&mut self) -> bool {
        match self.connection.status() {
            Status::Quiet => true,
            Status::Closed => false,
            // An answer that was not waited for, or the reason why the server closes the connection.
            Status::Readable => self.queue("SELECT 1", &[]).and_then(|()| self.run()).is_ok(),
        }
    }

    /// The process id of the backend, as notifications name it.
    pub fn process(&self) -> i32 {
        self.connection.process
    }

    /// Reads the answers to what [`tell`](Client::tell) sent.
    fn read_unread(&mut self) -> Result<(), Error> {
        while self.unread > 0 {
            if let Message::ReadyForQuery(_) = self.connection.message()? {
                self.unread -= 1;
            }
        }
        Ok(())
    }

    /// Reads at most `expected` replies, up to the message that the server is ready again.
    fn replies(&mut self, expected: usize) -> Result<Vec<Reply>, Error> {
        let (mut replies, mut reply, mut overhead) = (Vec::new(), Reply::default(), 0);
        let mut refused = None;
        loop {
            match self.connection.message()? {
                Message::DataRow(body) => {
                    let row = Row::parse(body.buffer_bytes().clone())?;
                    overhead += row.overhead();
                    // Count all that was received: a row keeps the whole buffer alive that it arrived in.
                    if self.connection.received + overhead > LARGEST_REPLY {
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
                Message::ErrorResponse(body) => refused = Some(self.connection.refusal(&body)),
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

    const LOGIN_OK: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x07\0\0\0\0Z\0\0\0\x05I";
    const NOTICE: &[u8] = b"N\0\0\0\x05\0";
    const COMPLETE: &[u8] = b"C\0\0\0\x0dSELECT 1\0";

    /// The error of a client whose server sends `first`, waits for a query, and then sends `again` forever.
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
    fn a_server_that_sends_only_notices_times_out() {
        assert_eq!(connect_to(b"", NOTICE).to_string(), "the server does not answer");
    }

    #[test]
    fn endless_replies_are_an_error() {
        let refused = connect_to(LOGIN_OK, COMPLETE);
        assert!(refused.to_string().contains("too many replies"), "{refused}");
    }
}
