//! One connection: reads requests, sends replies, and produces faults.

use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::thread;

use rustix::net::connect_unspec;

use super::Shared;
use super::answer::Rendered;
use super::http::read_request;
use super::reply::{Act, Point, Reply};

/// Serves requests until the client disconnects or a reply ends the connection.
pub(super) fn serve(stream: &TcpStream, shared: &Shared) {
    let _hang_up = HangUp(stream);
    // Small pieces are sent at once, as by a real server.
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    while let Ok(Some(captured)) = read_request(&mut reader) {
        let (captured, reply) = shared.answer(captured);
        let out = BufWriter::with_capacity(1 << 16, stream);
        let mut sender = Sender { stream, out, shared, reply: &reply };
        if sender.send(&reply.render(&captured)).is_err() {
            // Unsent data must not be sent when the writer is dropped.
            drop(sender.out.into_parts());
            break;
        }
    }
}

/// Ends the connection, even if a script panics. The server holds a copy of the socket, so dropping
/// one closes nothing.
struct HangUp<'a>(&'a TcpStream);

impl Drop for HangUp<'_> {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// Sends one reply. An error ends the connection, intended or not.
struct Sender<'a> {
    stream: &'a TcpStream,
    out: BufWriter<&'a TcpStream>,
    shared: &'a Shared,
    reply: &'a Reply,
}

impl Sender<'_> {
    fn send(&mut self, body: &Rendered) -> io::Result<()> {
        if let Some(gate) = &self.reply.opens {
            gate.open();
        }
        if let Some(gate) = &self.reply.gate {
            gate.pass();
        }
        match &self.reply.act {
            None => {
                self.head(body)?;
                self.body(body, None)
            }
            Some((point, act)) => match place(*point, body) {
                None => {
                    self.act(act)?;
                    self.head(body)?;
                    self.body(body, None)
                }
                Some(place) => {
                    self.head(body)?;
                    self.body(body, Some((place.min(body.length), act)))
                }
            },
        }
    }

    fn head(&mut self, body: &Rendered) -> io::Result<()> {
        write!(self.out, "HTTP/1.1 {} Scripted\r\n", self.reply.status)?;
        for (name, value) in &self.reply.headers {
            write!(self.out, "{name}: {value}\r\n")?;
        }
        if let Some(content_type) = body.content_type {
            write!(self.out, "Content-Type: {content_type}\r\n")?;
        }
        match body.is_chunked {
            true => self.out.write_all(b"Transfer-Encoding: chunked\r\n\r\n"),
            false => write!(self.out, "Content-Length: {}\r\n\r\n", body.length),
        }
    }

    fn body(&mut self, body: &Rendered, mut act: Option<(usize, &Act)>) -> io::Result<()> {
        let mut sent = 0;
        for piece in body.pieces.iter().filter(|piece| !piece.is_empty()) {
            self.pause()?;
            if body.is_chunked {
                write!(self.out, "{:x}\r\n", piece.len())?;
            }
            match act.take_if(|(place, _)| *place < sent + piece.len()) {
                None => self.out.write_all(piece)?,
                Some((place, act)) => {
                    let (before, after) = piece.split_at(place - sent);
                    self.out.write_all(before)?;
                    self.act(act)?;
                    self.out.write_all(after)?;
                }
            }
            if body.is_chunked {
                self.out.write_all(b"\r\n")?;
            }
            sent += piece.len();
        }
        if let Some((_, act)) = act {
            self.act(act)?;
        }
        if body.is_chunked {
            self.out.write_all(b"0\r\n\r\n")?;
        }
        self.out.flush()
    }

    fn pause(&mut self) -> io::Result<()> {
        if !self.reply.pause.is_zero() {
            self.out.flush()?;
            thread::sleep(self.reply.pause);
        }
        Ok(())
    }

    fn act(&mut self, act: &Act) -> io::Result<()> {
        self.out.flush()?;
        match act {
            Act::Close => Err(ErrorKind::ConnectionAborted.into()),
            Act::Reset => {
                // Resets at once. Closing would require closing every copy of the socket.
                connect_unspec(self.stream)?;
                Err(ErrorKind::ConnectionReset.into())
            }
            Act::Stall => {
                self.shared.note(|seen| seen.stalls += 1);
                wait_for_departure(self.stream);
                self.shared.note(|seen| seen.departures += 1);
                Err(ErrorKind::TimedOut.into())
            }
            Act::Hold(gate) => {
                gate.pass();
                Ok(())
            }
        }
    }
}

/// Reads until the client disconnects. Other data does not matter.
fn wait_for_departure(mut stream: &TcpStream) {
    let mut ignored = [0; 1024];
    while matches!(stream.read(&mut ignored), Ok(length) if length > 0) {}
}

/// The position in the body; `None` for points before it.
fn place(point: Point, body: &Rendered) -> Option<usize> {
    match point {
        Point::Head => None,
        Point::Byte(place) => Some(place),
        Point::Text => Some(middle(body.last_text.as_ref(), "text")),
        Point::Arguments => Some(middle(body.last_arguments.as_ref(), "arguments")),
    }
}

fn middle(range: Option<&Range<usize>>, what: &str) -> usize {
    let range = range.unwrap_or_else(|| panic!("this reply has no {what}"));
    range.start + range.len() / 2
}
