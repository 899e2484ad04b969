//! A temporary PostgreSQL server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ikigai_postgres::{Address, Client};
use tempfile::TempDir;
use uuid::Uuid;

/// The variable with the address of the server that `./check` starts for all test programs.
pub const SERVER_VARIABLE: &str = "IKIGAI_TEST_POSTGRES";

/// A server in its own folder, with a socket there.
#[derive(Debug)]
pub struct PostgresServer {
    folder: TempDir,
    port: u16,
    /// Whether it also listens on the loopback.
    listens: bool,
    has_tls: bool,
    process: Option<Child>,
}

impl PostgresServer {
    /// Starts a new server.
    ///
    /// # Panics
    /// If PostgreSQL is not installed: the tests need it.
    pub fn start() -> PostgresServer {
        let mut server = PostgresServer::make(5432);
        server.start_again();
        server
    }

    /// A new server that is not started yet. If possible its files are in memory, so that a flush
    /// costs nothing.
    pub fn make(port: u16) -> PostgresServer {
        PostgresServer::make_in(own_folder(&memory()), port)
    }

    /// Starts a new server whose files are on a disk, where a flush has its real cost.
    pub fn start_on_disk(place: &Path) -> PostgresServer {
        let mut server = PostgresServer::make_in(own_folder(place), 5432);
        server.start_again();
        server
    }

    /// A server that also listens on a port of the loopback, without TLS.
    pub fn start_on_loopback() -> PostgresServer {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut server = PostgresServer::make(free.local_addr().unwrap().port());
        server.listens = true;
        drop(free);
        server.start_again();
        server
    }

    /// A server with TLS and its own certificate for `localhost`.
    pub fn start_with_tls() -> PostgresServer {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut server = PostgresServer::make(free.local_addr().unwrap().port());
        (server.listens, server.has_tls) = (true, true);
        drop(free);
        let mut openssl = as_plain_user(Path::new("/usr/bin/openssl"));
        openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30"]);
        openssl.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
        openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        openssl.arg("-keyout").arg(server.data().join("server.key"));
        let output = openssl.arg("-out").arg(server.certificate()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        server.start_again();
        server
    }

    /// Its certificate.
    pub fn certificate(&self) -> PathBuf {
        self.data().join("server.crt")
    }

    /// Requires this authentication method, as pg_hba.conf names it, over the loopback. The socket
    /// needs none. A running server is restarted.
    pub fn require_login(&mut self, kind: &str) {
        let rules = format!("local all all trust\nhost all all all {kind}\n");
        fs::write(self.data().join("pg_hba.conf"), rules).unwrap();
        if self.is_running() {
            self.kill();
            self.start_again();
        }
    }

    /// The port.
    pub fn loopback_port(&self) -> u16 {
        self.port
    }

    fn make_in(folder: TempDir, port: u16) -> PostgresServer {
        let server = PostgresServer { folder, port, listens: false, has_tls: false, process: None };
        let mut command = as_user("initdb");
        command.args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D"]);
        command.arg(server.data());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        server
    }

    /// A standby of this server with its current contents. It is not started yet.
    pub fn standby(&self, port: u16) -> PostgresServer {
        let standby = PostgresServer {
            folder: own_folder(&memory()),
            port,
            listens: false,
            has_tls: false,
            process: None,
        };
        let mut command = as_user("pg_basebackup");
        command.args(["-U", "postgres", "-R", "-X", "stream", "-c", "fast", "-h"]);
        command.arg(self.folder.path()).args(["-p", &self.port.to_string(), "-D"]);
        let output = command.arg(standby.data()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        standby
    }

    /// Promotes a standby.
    pub fn promote(&self) {
        let output = as_user("pg_ctl").arg("promote").arg("-D").arg(self.data()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Starts the server, new or killed, and waits until it answers.
    pub fn start_again(&mut self) {
        let listen = if self.listens { "listen_addresses=127.0.0.1" } else { "listen_addresses=" };
        let mut command = as_user("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.folder.path());
        for setting in [
            format!("port={}", self.port).as_str(),
            listen,
            if self.has_tls { "ssl=on" } else { "ssl=off" },
            "max_connections=250",
            "shared_buffers=64MB",
            "wal_level=replica",
        ] {
            command.args(["-c", setting]);
        }
        let log =
            fs::File::options().create(true).append(true).open(self.folder.path().join("log"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.unwrap());
        self.process = Some(spawn_for_good(command));
        let started = Instant::now();
        while let Err(error) = self.answers() {
            let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(started.elapsed() < Duration::from_secs(60), "{error}\n{}", log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn answers(&self) -> Result<(), String> {
        let address = Address::parse(&self.address("postgres")).unwrap();
        match Client::connect(&address) {
            // A standby answers, but accepts no writes.
            Err(error) if error.code() == Some("25006") => Ok(()),
            connected => connected.map(drop).map_err(|error| error.to_string()),
        }
    }

    /// Whether it was started and not killed since.
    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Kills it at once, like a crash: unflushed data is lost.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let pid = rustix::process::Pid::from_child(&process);
            // An "immediate shutdown", which also ends its child processes.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
            process.wait().unwrap();
        }
    }

    /// The address of a database on it.
    pub fn address(&self, database: &str) -> String {
        let host = self.folder.path().display();
        format!("postgres://postgres@/{database}?host={host}&port={}", self.port)
    }

    /// The folder with its socket.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The address of a new database on the server for all tests: the one that `./check` has started,
/// or one that this test program starts.
pub fn fresh_database() -> String {
    let name = format!("t_{}", Uuid::now_v7().simple());
    with_server(|client| client.script(&format!("CREATE DATABASE {name}")).unwrap());
    server_address().replace("/postgres?", &format!("/{name}?"))
}

/// Drops a database of [`fresh_database`], even if it is in use.
pub fn drop_database(address: &str) {
    let name = address.rsplit('/').find(|part| part.starts_with("t_")).unwrap_or_default();
    let name = name.split('?').next().unwrap_or_default();
    with_server(|client| {
        let _ = client.script(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
    });
}

fn with_server(work: impl FnOnce(&mut Client)) {
    let address = Address::parse(&server_address()).unwrap();
    work(&mut Client::connect(&address).unwrap());
}

fn server_address() -> String {
    static SERVER: OnceLock<PostgresServer> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "the test command passes the server's address")]
    let given = std::env::var(SERVER_VARIABLE).ok().filter(|address| !address.is_empty());
    given.unwrap_or_else(|| SERVER.get_or_init(PostgresServer::start).address("postgres"))
}

/// Starts a process that ends with this one. That depends on the thread that starts it, so the
/// thread never ends.
pub(crate) fn spawn_for_good(command: Command) -> Child {
    static STARTER: OnceLock<mpsc::Sender<(Command, mpsc::Sender<Child>)>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (start, orders) = mpsc::channel::<(Command, mpsc::Sender<Child>)>();
        std::thread::spawn(move || {
            for (mut command, started) in orders {
                let _ = started.send(command.spawn().unwrap());
            }
        });
        start
    });
    let (started, child) = mpsc::channel();
    starter.send((command, started)).unwrap();
    child.recv().unwrap()
}

/// A program of PostgreSQL. It refuses to run as root, so it runs as another user then. It ends
/// with this process.
#[expect(clippy::disallowed_methods, reason = "tests start processes")]
pub(crate) fn as_plain_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    if rustix::process::geteuid().is_root() {
        command.args(["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]);
    }
    command.arg("--").arg(program).current_dir("/").env("LC_ALL", "C");
    command
}

fn as_user(program: &str) -> Command {
    as_plain_user(&programs().join(program))
}

/// The folder of PostgreSQL's programs: Debian's latest version, or the one from `pg_config`.
#[expect(clippy::disallowed_methods, reason = "tests start processes")]
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let number = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()).unwrap_or(0)
    };
    let newest = versions.map(|entry| entry.path()).max_by_key(number);
    if let Some(found) = newest.map(|version| version.join("bin")).filter(|bin| bin.is_dir()) {
        return found;
    }
    let said = Command::new("pg_config").arg("--bindir").output();
    let said = said.ok().filter(|output| output.status.success());
    let said = said.expect("the tests need PostgreSQL: install the package 'postgresql'");
    PathBuf::from(String::from_utf8(said.stdout).unwrap().trim())
}

/// A folder that the server's user may write to.
pub(crate) fn own_folder(place: &Path) -> TempDir {
    remove_orphans(place);
    let prefix = format!("ikigai-pg-{}-", std::process::id());
    let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(place).unwrap();
    if rustix::process::geteuid().is_root() {
        let user = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let nobody = user.lines().find_map(|line| line.strip_prefix("nobody:x:"));
        let number = nobody.and_then(|line| line.split(':').next()?.parse().ok()).unwrap_or(65534);
        std::os::unix::fs::chown(folder.path(), Some(number), None).unwrap();
    }
    folder
}

fn memory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// Folders of finished test programs: statics are never dropped.
fn remove_orphans(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix("ikigai-pg-")?.split('-').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
