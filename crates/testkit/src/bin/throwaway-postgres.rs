//! A PostgreSQL server for one test run: prints its address, and ends when its standard input does.

use std::io::{Read, Write};

use ikigai_testkit::PostgresServer;

fn main() {
    let server = PostgresServer::start();
    let mut out = std::io::stdout();
    // Nobody may want to know it.
    let _ = writeln!(out, "{}", server.address("postgres")).and_then(|()| out.flush());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
