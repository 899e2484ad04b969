//! A connection: statements are queued, sent together, and their replies read together.

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
use crate::stream::{Look, Stream};
use crate::text;
use crate::value::Value;

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

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    statements: Statements,
    /// Queued and not sent.
    queued: usize,
    /// Sent, and nobody has waited for the answer.
    unheard: usize,
    is_behind_pooler: bool,
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
        let mut connection = Connection::new(stream, address);
        login(&mut connection, address)?;
        Ok(Client {
            connection,
            statements: Statements::default(),
            queued: 0,
            unheard: 0,
            is_behind_pooler: false,
        })
    }

    /// A standby reads only. On the way it is seen who answers: a pooler introduces itself with a number of its
    /// own, and what one statement leaves on the server is not there for the next.
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
        Ok(self.connection.set_timeout(limit)?)
    }

    /// Queues a statement. Places for values are written `?1` or `$1`.
    ///
    /// # Errors
    /// When it is too large.
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
        // As it is written: what is larger would come back in a message that is refused.
        if output.len() - before > LARGEST_MESSAGE {
            return Err(Error::protocol("a value is too large"));
        }
        self.queued += 1;
        Ok(())
    }

    /// Whether so much is queued that it should be [`run`](Client::run) before more is.
    pub fn is_full(&self) -> bool {
        self.connection.output.len() >= MANY_BYTES || self.queued >= MANY_STATEMENTS
    }

    /// Sends what is queued and waits for all replies, one for each statement.
    ///
    /// # Errors
    /// The first refusal; the server has then done nothing of what stood behind it.
    pub fn run(&mut self) -> Result<Vec<Reply>, Error> {
        frontend::sync(&mut self.connection.output);
        self.connection.send()?;
        self.connection.begin_waiting(LONGEST_RUN);
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
        frontend::sync(&mut self.connection.output);
        self.queued = 0;
        self.unheard += 1;
        self.connection.send()
    }

    /// Runs a script of several statements, without values.
    ///
    /// # Errors
    /// The first refusal.
    pub fn script(&mut self, sql: &str) -> Result<(), Error> {
        frontend::query(sql, &mut self.connection.output)?;
        self.connection.send()?;
        self.connection.begin_waiting(LONGEST_RUN);
        self.hear()?;
        self.replies(LONGEST_SCRIPT).map(drop)
    }

    /// Waits for a notification, `limit` at most.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn notified(&mut self, limit: Duration) -> Result<Option<Notification>, Error> {
        self.connection.begin_waiting(LONGEST_RUN);
        self.hear()?;
        self.connection.set_timeout(limit)?;
        while self.connection.notified.is_empty() {
            match self.connection.next_message() {
                Ok(Message::ErrorResponse(body)) => return Err(self.connection.refusal(&body)),
                Ok(_) => {}
                Err(ReadError::Late) => return Ok(None),
                Err(ReadError::Failed(error)) => return Err(error),
            }
        }
        Ok(self.connection.notified.pop_front())
    }

    /// Whether the server is still there, as far as can be seen without asking it.
    pub fn seems_alive(&mut self) -> bool {
        match self.connection.look() {
            Look::Quiet => true,
            Look::Gone => false,
            // An answer that nobody waited for, or a last word.
            Look::Talking => self.queue("SELECT 1", &[]).and_then(|()| self.run()).is_ok(),
        }
    }

    /// The number of the server's process that answers, as its notifications name it.
    pub fn process(&self) -> i32 {
        self.connection.process
    }

    /// Reads the answers that nobody waited for.
    fn hear(&mut self) -> Result<(), Error> {
        while self.unheard > 0 {
            if let Message::ReadyForQuery(_) = self.connection.message()? {
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
            match self.connection.message()? {
                Message::DataRow(body) => {
                    let row = Row::parse(body.buffer_bytes().clone())?;
                    around_rows += row.size_around();
                    // All that came: a row also keeps what came together with it.
                    if self.connection.received + around_rows > LARGEST_REPLY {
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
