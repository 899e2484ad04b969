//! PgBouncer in front of a server, in transaction mode: each transaction may use another server
//! connection.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::postgres_server::{as_plain_user, own_folder, spawn_for_good};

/// A temporary pooler.
#[derive(Debug)]
pub struct Pooler {
    port: u16,
    process: Child,
    _folder: TempDir,
}

impl Pooler {
    /// Starts PgBouncer in front of the server whose socket is in `folder`; `None` if it is not
    /// installed.
    pub fn before(folder: &Path) -> Option<Pooler> {
        let program = Path::new("/usr/sbin/pgbouncer");
        if !program.exists() {
            return None;
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let own = own_folder(&std::env::temp_dir());
        let settings = own.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host={} port=5432 user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 3\n\
             unix_socket_dir =\n",
            folder.display()
        );
        std::fs::write(&settings, text).unwrap();
        let mut command = as_plain_user(program);
        command.arg("-q").arg(settings);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = spawn_for_good(command);
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(60), "the pooler does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(Pooler { port, process, _folder: own })
    }

    /// The address of a database through the pooler.
    pub fn address(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
