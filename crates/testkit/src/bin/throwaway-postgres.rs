//! A PostgreSQL server for one test run. Prints its address, and ends when
//! its standard input closes.

use std::io::{Read, Write};

use ikigai_testkit::PostgresServer;

fn main() {
    let server = PostgresServer::start();
    let mut out = std::io::stdout();
    // The reader of the address may be gone.
    let _ = writeln!(out, "{}", server.address("postgres")).and_then(|()| out.flush());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
