//! A proxy between client and server that cuts the connection at chosen points.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;

/// A proxy for a server.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    orders: Arc<Mutex<Orders>>,
}

#[derive(Debug, Default)]
struct Orders {
    /// The remaining cuts, in this order.
    to_cut: VecDeque<Cut>,
    cuts: u32,
    is_pooler: bool,
}

/// Where a connection is cut, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// After a commit, before its answer gets through.
    AnswerOfCommit,
    /// After a row was inserted, before the answer gets through.
    AnswerOfInsert,
    /// Before a commit whose name the server does not know yet gets through.
    Commit,
    /// Before the n-th message of a client from now on gets through.
    Request(u32),
}

impl Proxy {
    /// Starts in front of the server whose socket is in `folder`.
    pub fn before(address: &str) -> Proxy {
        let host = address.split("host=").nth(1).unwrap().split('&').next().unwrap().to_owned();
        let socket = format!("{host}/.s.PGSQL.5432");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let orders: Arc<Mutex<Orders>> = Arc::default();
        let given = Arc::clone(&orders);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, orders) = (client.unwrap(), Arc::clone(&given));
                match UnixStream::connect(&socket) {
                    Ok(server) => pass(client, server, orders),
                    Err(_) => drop(client),
                }
            }
        });
        Proxy { port, orders }
    }

    /// The address of a database through the proxy.
    pub fn address(&self, address: &str) -> String {
        let database = address.rsplit('/').find_map(|part| part.split_once("?host="));
        let database = database.map_or_else(
            || address.split('?').next().unwrap().rsplit('/').next().unwrap(),
            |(database, _)| database,
        );
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Cuts one connection there.
    pub fn cut(&self, cut: Cut) {
        self.cut_all([cut]);
    }

    /// Cuts several connections, one after another.
    pub fn cut_all<const N: usize>(&self, cuts: [Cut; N]) {
        self.orders.lock().unwrap().to_cut = cuts.into();
    }

    /// How many connections were cut.
    pub fn cuts(&self) -> u32 {
        self.orders.lock().unwrap().cuts
    }

    /// Reports a process id to new clients that no backend has, like a pooler.
    pub fn pose_as_pooler(&self) {
        self.orders.lock().unwrap().is_pooler = true;
    }
}

impl Orders {
    /// Whether these bytes of a client never get through.
    fn cuts_request(&mut self, bytes: &[u8]) -> bool {
        match self.to_cut.front_mut() {
            Some(Cut::Request(left)) if *left > 1 => {
                *left -= 1;
                false
            }
            Some(Cut::Request(_)) => self.done(),
            Some(Cut::Commit) => has(bytes, b"COMMIT\0") && self.done(),
            Some(Cut::AnswerOfCommit | Cut::AnswerOfInsert) | None => false,
        }
    }

    fn cuts_answer(&mut self, bytes: &[u8]) -> bool {
        let sign: &[u8] = match self.to_cut.front() {
            Some(Cut::AnswerOfCommit) => b"COMMIT\0",
            Some(Cut::AnswerOfInsert) => b"INSERT 0 1\0",
            Some(Cut::Commit | Cut::Request(_)) | None => return false,
        };
        has(bytes, sign) && self.done()
    }

    fn done(&mut self) -> bool {
        self.to_cut.pop_front();
        self.cuts += 1;
        true
    }
}

fn has(bytes: &[u8], sign: &[u8]) -> bool {
    bytes.windows(sign.len()).any(|window| window == sign)
}

fn pass(client: TcpStream, server: UnixStream, orders: Arc<Mutex<Orders>>) {
    let (mut from_client, mut to_server) =
        (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (mut from_server, mut to_client) = (server, client);
    let answers = Arc::clone(&orders);
    thread::spawn(move || {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from_client.read(&mut bytes) {
            if orders.lock().unwrap().cuts_request(&bytes[..length])
                || to_server.write_all(&bytes[..length]).is_err()
            {
                break;
            }
        }
        let _ = (from_client.shutdown(Shutdown::Both), to_server.shutdown(Shutdown::Both));
    });
    thread::spawn(move || {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from_server.read(&mut bytes) {
            let mut orders = answers.lock().unwrap();
            if orders.is_pooler {
                rename(&mut bytes[..length]);
            }
            let is_cut = orders.cuts_answer(&bytes[..length]);
            drop(orders);
            if is_cut || to_client.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        let _ = (from_server.shutdown(Shutdown::Both), to_client.shutdown(Shutdown::Both));
    });
}

/// Changes the process id in the message that reports it.
fn rename(bytes: &mut [u8]) {
    const INTRODUCTION: [u8; 5] = [b'K', 0, 0, 0, 12];
    if let Some(at) = bytes.windows(5).position(|window| window == INTRODUCTION) {
        bytes[at + 5] ^= 0x40;
    }
}
