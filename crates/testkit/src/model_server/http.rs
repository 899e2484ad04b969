//! The part of HTTP/1.1 that clients of a model server use.

use std::io::{self, BufRead, ErrorKind, Read};

use super::captured::CapturedRequest;

/// The head of a request has some hundred bytes, and the body at most a long conversation.
const HEAD_LIMIT: u64 = 64 << 10;
const BODY_LIMIT: usize = 64 << 20;

/// The next request of a connection; `None` at its end.
pub(super) fn read_request(reader: &mut impl BufRead) -> io::Result<Option<CapturedRequest>> {
    let mut head = reader.by_ref().take(HEAD_LIMIT);
    let first = read_line(&mut head)?;
    if first.is_empty() {
        return Ok(None);
    }
    let mut words = first.split(' ').map(str::to_owned);
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(ErrorKind::InvalidData.into());
    };
    let mut headers = Vec::new();
    loop {
        let line = read_line(&mut head)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let mut captured = CapturedRequest { method, path, headers, body: Vec::new() };
    captured.body = read_body(&captured, reader)?;
    Ok(Some(captured))
}

fn read_body(captured: &CapturedRequest, reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    if captured.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        return read_chunks(reader);
    }
    let length = captured.header("content-length").map_or(Ok(0), str::parse);
    let mut body = Vec::new();
    read_exactly(reader, length.map_err(io::Error::other)?, &mut body)?;
    Ok(body)
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(reader)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let length = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
        read_exactly(reader, length, &mut body)?;
        // After a chunk; after the last one it ends the trailers, which clients here do not send.
        read_line(reader)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

fn read_exactly(reader: &mut impl BufRead, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
    let whole = body.len().saturating_add(length);
    if whole > BODY_LIMIT {
        return Err(ErrorKind::FileTooLarge.into());
    }
    reader.by_ref().take(length as u64).read_to_end(body)?;
    if body.len() < whole { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// A line without its end; empty at the end of the connection too.
fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
