//! A folder of its own for every test, and the program run in it.

pub(crate) mod model;
pub(crate) mod picture;
pub(crate) mod processes;
pub(crate) mod sandboxed;
pub(crate) mod scene;
pub(crate) mod screen;
pub(crate) mod small_window;
pub(crate) mod story;
pub(crate) mod terminal;
pub(crate) mod wire;

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::{self, File, Permissions};
use std::future::Future;
use std::io::{Seek, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use ikigai_conversation::{AgentId, Message, NewMessage, ResponseId, SessionId};
use ikigai_store::{
    AgentLimits, Budget, Ending, Lease, NewFork, Next, Outcome, Process, Step, Store,
};
use ikigai_testkit::{Kind, Raw, drop_database, fresh_database};
use ikigai_tools::{Commands, Context, Dispatcher, OutputSize, ToolResult, Work, built_in};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// No test waits longer for anything: what takes this long hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A user that is not root, where the tests themselves run as root: `nobody`.
const NOBODY: u32 = 65_534;

/// A working directory, with a home directory beside it, gone when the test ends.
pub(crate) struct Workspace {
    folder: TempDir,
    /// Who runs the program; `None` for whoever runs the tests.
    user: Option<u32>,
    /// The mode in which it runs, unless its own default is wanted.
    mode: Option<&'static str>,
    /// The address of its database on a server; `None` for a file in the home directory.
    server: Option<String>,
}

/// The database that the test which runs now is about: its name begins with `postgres::`, and libtest names the
/// thread after it.
pub(crate) fn kind() -> Kind {
    match std::thread::current().name() {
        Some(name) if name.starts_with("postgres::") => Kind::Postgres,
        Some(_) | None => Kind::Sqlite,
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        self.server.as_deref().map(drop_database);
    }
}

impl Workspace {
    /// An empty one.
    pub(crate) fn new() -> Workspace {
        Workspace::with_user(None)
    }

    /// One whose database is on a server.
    pub(crate) fn on(server: &str) -> Workspace {
        let mut workspace = Workspace::new();
        workspace.server = Some(server.to_owned());
        workspace
    }

    /// One in which nothing is confined, for what is told of commands and paths wherever they are.
    pub(crate) fn unconfined() -> Workspace {
        Workspace::new().in_mode("full")
    }

    /// The same, in another mode than usual.
    pub(crate) fn in_mode(mut self, mode: &'static str) -> Workspace {
        self.mode = Some(mode);
        self
    }

    /// One in which the program runs as somebody for whom permissions count.
    pub(crate) fn of_plain_user() -> Workspace {
        if !geteuid().is_root() {
            return Workspace::new();
        }
        let workspace = Workspace::with_user(Some(NOBODY));
        // The program may lie where only root looks. Another process copies it: were it open for writing in
        // this one, a test that starts a program just then would keep it busy.
        let mut copy = Command::new("cp");
        copy.arg(env!("CARGO_BIN_EXE_ikigai")).arg(workspace.program());
        assert!(copy.status().unwrap().success());
        workspace
    }

    fn with_user(user: Option<u32>) -> Workspace {
        let server = match kind() {
            Kind::Sqlite => None,
            Kind::Postgres => Some(fresh_database()),
        };
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace { folder, user, mode: None, server };
        fs::set_permissions(workspace.folder.path(), Permissions::from_mode(0o755)).unwrap();
        for name in ["work", "home"] {
            let folder = workspace.folder.path().join(name);
            fs::create_dir(&folder).unwrap();
            workspace.give_to_user(&folder);
        }
        workspace
    }

    fn program(&self) -> PathBuf {
        match self.user {
            Some(_) => self.folder.path().join("ikigai"),
            None => PathBuf::from(env!("CARGO_BIN_EXE_ikigai")),
        }
    }

    /// The working directory, without links in its path.
    pub(crate) fn directory(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("work")
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory().join(name)
    }

    /// A path as it is written in arguments.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes a file, with the folders above it.
    pub(crate) fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &Workspace {
        let path = self.path(name);
        for folder in path.parent().unwrap().ancestors().take_while(|folder| !folder.exists()) {
            fs::create_dir_all(folder).unwrap();
            self.give_to_user(folder);
        }
        fs::write(&path, content).unwrap();
        self.give_to_user(&path);
        self
    }

    /// Writes the user's configuration file.
    pub(crate) fn write_config(&self, content: &str) -> &Workspace {
        self.write("../home/config/ikigai/config.toml", content)
    }

    /// Empty files.
    pub(crate) fn touch<const N: usize>(&self, names: [&str; N]) -> &Workspace {
        for name in names {
            self.write(name, "");
        }
        self
    }

    pub(crate) fn folder(&self, name: &str) -> &Workspace {
        fs::create_dir_all(self.path(name)).unwrap();
        self.give_to_user(&self.path(name));
        self
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) -> &Workspace {
        std::os::unix::fs::symlink(target, self.path(name)).unwrap();
        self
    }

    pub(crate) fn fifo(&self, name: &str) -> &Workspace {
        mknodat(CWD, self.path(name), FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
        self
    }

    pub(crate) fn set_mode(&self, name: &str, mode: u32) -> &Workspace {
        fs::set_permissions(self.path(name), Permissions::from_mode(mode)).unwrap();
        self
    }

    pub(crate) fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o7777
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn read_text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// All names in the working directory and below, sorted; folders end in a slash.
    pub(crate) fn names(&self) -> Vec<String> {
        fn visit(folder: &Path, prefix: &str, names: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                if entry.file_type().unwrap().is_dir() {
                    visit(&entry.path(), &format!("{name}/"), names);
                    names.push(format!("{name}/"));
                } else {
                    names.push(name);
                }
            }
        }
        let mut names = Vec::new();
        visit(&self.directory(), "", &mut names);
        names.sort();
        names
    }

    fn give_to_user(&self, path: &Path) {
        if let Some(user) = self.user {
            chown(path, Some(user), Some(user)).unwrap();
        }
    }

    /// The program in the working directory, with nothing of the tests' own surroundings.
    pub(crate) fn ikigai(&self) -> Command {
        self.in_place(Command::new(self.program()))
    }

    /// A script of bash; the program is `$IKIGAI` in it.
    pub(crate) fn script(&self, script: &str) -> Command {
        let mut bash = Command::new("bash");
        bash.arg("-c").arg(script);
        let mut bash = self.in_place(bash);
        bash.env("IKIGAI", self.program());
        bash
    }

    /// Another program, which gets ours as its last argument.
    pub(crate) fn under<A: AsRef<OsStr>>(&self, program: &str, arguments: &[A]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).arg(self.program());
        self.in_place(command)
    }

    fn in_place(&self, mut command: Command) -> Command {
        let home = self.folder.path().join("home");
        command
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", &home)
            .env("TMPDIR", &home)
            .env("LC_ALL", "C.UTF-8")
            .current_dir(self.directory())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, folder) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_RUNTIME_DIR", "run"),
        ] {
            command.env(name, home.join(folder));
        }
        if let Some(mode) = self.mode {
            command.env("IKIGAI_MODE", mode);
        }
        if let Some(server) = &self.server {
            command.env("IKIGAI_DATABASE_URL", server);
        }
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// The home directory, in which the program keeps its own.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("home")
    }

    /// The file of the database, unless another was chosen.
    pub(crate) fn database(&self) -> PathBuf {
        self.home().join("data/ikigai/ikigai.db")
    }

    /// The address of the database.
    pub(crate) fn address(&self) -> String {
        let file = || format!("sqlite://{}", self.database().display());
        self.server.clone().unwrap_or_else(file)
    }

    /// A connection to the database behind the back of the program.
    pub(crate) fn raw(&self) -> Raw {
        Raw::open(&self.address())
    }

    /// The database behind the back of the program; statements that it would never run.
    pub(crate) fn sql(&self, statements: &str) -> &Workspace {
        self.raw().script(statements);
        self
    }

    /// All rows of the tables that mail is about, for comparing before and after.
    pub(crate) fn rows(&self) -> Vec<String> {
        let raw = self.raw();
        let rows = |table: &str| -> Vec<String> {
            raw.dump(table).into_iter().map(|row| format!("{table} {row}")).collect()
        };
        ["sessions", "agents", "mail", "messages"].into_iter().flat_map(rows).collect()
    }

    /// Runs the program to its end.
    #[track_caller]
    pub(crate) fn run<const N: usize>(&self, arguments: [&str; N]) -> Ended {
        ended(self.ikigai().args(arguments))
    }

    /// What the program prints when all is well.
    #[track_caller]
    pub(crate) fn print<const N: usize>(&self, arguments: [&str; N]) -> String {
        let (code, stdout, stderr) = self.run(arguments);
        assert_eq!((code, &*stderr), (0, ""), "{arguments:?}");
        stdout
    }

    /// The same as JSON.
    #[track_caller]
    pub(crate) fn json<const N: usize>(&self, arguments: [&str; N]) -> Value {
        serde_json::from_str(&self.print(arguments)).unwrap()
    }

    /// A session whose agents are `0/` to `count - 1`.
    pub(crate) fn with_agents(count: usize) -> Workspace {
        let workspace = Workspace::new();
        workspace.make_session();
        for number in 1..count {
            assert_eq!(workspace.print(["agents", "add"]), format!("{number}/\n"));
        }
        workspace
    }

    /// Makes a session with agent `0/`: commands that only look make none.
    #[track_caller]
    pub(crate) fn make_session(&self) {
        self.tool("agents", "{}");
    }

    /// The database, opened by another process than the program: this one.
    pub(crate) fn open(&self) -> OpenDatabase {
        let store = Store::open(&self.address(), ikigai_store::Options::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        OpenDatabase { store, runtime }
    }

    /// `ikigai tool`, with the arguments on its standard input, since they may be of any length.
    pub(crate) fn tool_command(&self, name: &str, arguments: impl Display) -> Command {
        let mut command = self.ikigai();
        command.args(["tool", name, "-"]).stdin(input(arguments.to_string()));
        command
    }

    /// The result that `ikigai tool` prints.
    #[track_caller]
    pub(crate) fn tool(&self, name: &str, arguments: impl Display) -> String {
        result(&mut self.tool_command(name, arguments))
    }

    /// Calls a tool and compares the text of its result, letter by letter.
    #[track_caller]
    pub(crate) fn check(
        &self,
        name: &str,
        arguments: impl Display,
        expected: impl Display,
    ) -> &Workspace {
        let call = format!("{name} {arguments}");
        let (actual, expected) = (self.tool(name, arguments), expected.to_string());
        assert!(
            actual == expected,
            "{}\n  is:        {}\n  should be: {}",
            shorten(&call),
            shorten(&actual),
            shorten(&expected)
        );
        self
    }
}

/// The library in this process, for what the program does not let one choose.
pub(crate) struct Library {
    directory: PathBuf,
    size: OutputSize,
    commands: Arc<Commands>,
}

impl Library {
    /// Commands of it have nothing but a path in their environment.
    pub(crate) fn new(workspace: &Workspace, max_output_size: usize) -> Library {
        let path = ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
        let program = Path::new(env!("CARGO_BIN_EXE_ikigai"));
        let commands = Commands::new(program, OsStr::new("__watchdog"), vec![path]);
        let size = OutputSize::new(max_output_size).unwrap();
        Library { directory: workspace.directory(), size, commands: Arc::new(commands) }
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &Value,
        interrupt: &CancellationToken,
    ) -> ToolResult {
        let context =
            Context::new(&self.directory, self.size, self.commands.clone(), interrupt.clone());
        let arguments = arguments.to_string();
        let dispatcher = Dispatcher::<()>::new(built_in());
        let call = dispatcher.dispatch(tool, arguments.as_bytes()).expect("it is understood");
        let Work::Executor(executor) = call.work() else { panic!("{tool} is a step") };
        executor.run(&context).await.result
    }

    pub(crate) async fn close(&self) {
        self.commands.close().await;
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

/// A database in the hands of a test.
pub(crate) struct OpenDatabase {
    pub(crate) store: Store,
    runtime: tokio::runtime::Runtime,
}

impl OpenDatabase {
    pub(crate) fn wait<T, E: std::fmt::Debug>(
        &self,
        step: impl Future<Output = Result<T, E>>,
    ) -> T {
        self.runtime.block_on(step).unwrap()
    }

    /// The session that was last written to.
    pub(crate) fn session(&self) -> SessionId {
        self.wait(self.store.sessions())[0].id
    }

    /// The right to write to the logs of a top-level agent and its children.
    pub(crate) fn claim(&self, agent: &str) -> Lease {
        let agent = AgentId::parse(agent).unwrap();
        self.wait(self.store.claim(self.session(), agent, Process::current()))
    }

    /// Appends to the agent's log what a person might have said.
    pub(crate) fn say(&self, agent: &str, text: &str) -> Message {
        let lease = self.claim(agent);
        let id = AgentId::parse(agent).unwrap();
        let message = vec![NewMessage::user(text)];
        let said = self.wait(self.store.append(lease.clone(), id, message, Next::Request));
        self.wait(self.store.release(lease));
        said.messages.into_iter().next().unwrap()
    }

    /// An agent's own log.
    pub(crate) fn log(&self, agent: &str) -> Vec<Message> {
        let agent = AgentId::parse(agent).unwrap();
        self.wait(self.store.own_log(self.session(), agent, None))
    }

    /// Ends an agent's turn by an answer.
    pub(crate) fn answer(&self, agent: &str, text: &str) {
        let lease = self.claim(agent.split_inclusive('/').next().unwrap());
        let (id, response) = (AgentId::parse(agent).unwrap(), ResponseId::new("r"));
        let answer = vec![NewMessage::assistant(text, response)];
        self.wait(self.store.end_turn(lease.clone(), id, answer, Ending::Answered));
        self.wait(self.store.release(lease));
    }

    /// Makes a child without a task and returns its id.
    pub(crate) fn fork(&self, parent: &str, name: Option<&str>) -> String {
        let fork = NewFork {
            prompt: None,
            name: name.map(str::to_owned),
            context: ikigai_store::ForkContext::Fresh,
            limits: AgentLimits { agents: 100, depth: 4 },
            system: None,
        };
        let parent = AgentId::parse(parent).unwrap();
        let forked = self.store.perform(self.session(), parent, Step::Fork(fork), None);
        match self.wait(forked) {
            Outcome::Forked(child) => child.to_string(),
            other => panic!("{other:?}"),
        }
    }

    /// Kills an agent, as the person at `0/`.
    pub(crate) fn kill(&self, victim: &str) {
        let lease = self.claim("0/");
        let step = Step::Kill(ikigai_mail::parse_named(victim));
        let budget = Budget { wakes: 1, requests: 1 };
        let acted = self.wait(self.store.act(lease.clone(), AgentId::top_level(0), step, budget));
        assert!(matches!(acted.outcome, Outcome::Killed(_)), "{acted:?}");
        self.wait(self.store.release(lease));
    }

    /// Tells an agent of its new mail.
    pub(crate) fn announce(&self, agent: &str) -> Message {
        let lease = self.claim(agent);
        let id = AgentId::parse(agent).unwrap();
        let render = ikigai_mail::notification;
        let mut told = self.wait(self.store.announce(lease.clone(), id, None, render));
        self.wait(self.store.release(lease));
        told.pop().unwrap()
    }
}

/// Exit code, standard output, standard error.
pub(crate) type Ended = (i32, String, String);

/// Runs a command to its end.
#[track_caller]
pub(crate) fn ended(command: &mut Command) -> Ended {
    let output = run(command);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap_or_else(|| panic!("ended by {}", output.status));
    (code, text(output.stdout), text(output.stderr))
}

/// A long text would hide in its length what a failed test has to say.
pub(crate) fn shorten(text: &str) -> String {
    const SHOWN: usize = 1_500;
    if text.len() <= 2 * SHOWN {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(SHOWN)];
    let tail = &text[text.ceil_char_boundary(text.len() - SHOWN)..];
    format!("{head} … {tail} ({} bytes)", text.len())
}

/// A file that holds `bytes`, to be read from its beginning.
pub(crate) fn input(bytes: impl AsRef<[u8]>) -> Stdio {
    let mut file: File = tempfile::tempfile().unwrap();
    file.write_all(bytes.as_ref()).unwrap();
    file.rewind().unwrap();
    Stdio::from(file)
}

/// Runs a command to its end.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Output {
    finish(command.spawn().unwrap())
}

/// Waits for the end of a process and for all that it printed.
#[track_caller]
pub(crate) fn finish(child: Child) -> Output {
    let pid = pid(&child);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    receiver.recv_timeout(PATIENCE).map(Result::unwrap).unwrap_or_else(|_| {
        let _ = kill_process(pid, Signal::KILL);
        panic!("the program hangs");
    })
}

pub(crate) fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// The one line that a successful run prints; nothing else may be printed.
#[track_caller]
pub(crate) fn result(command: &mut Command) -> String {
    line_of(run(command))
}

#[track_caller]
pub(crate) fn line_of(output: Output) -> String {
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), &*stderr),
        (Some(0), ""),
        "status {}, standard output: {}",
        output.status,
        shorten(&stdout)
    );
    let line = stdout.strip_suffix('\n').unwrap_or_else(|| panic!("no line: {stdout:?}"));
    assert!(!line.contains('\n'), "more than a line: {}", shorten(line));
    line.to_owned()
}

/// Says aloud that a test cannot run here; what is merely printed shows only when a test fails.
pub(crate) fn skip(reason: &str) {
    let test = std::thread::current();
    let test = test.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
}

/// Waits for something that another process does.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(started.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits for the number of a process that a command writes into a file, with a line break behind it.
#[track_caller]
pub(crate) fn wait_for_pid(path: &Path) -> Pid {
    wait_for(&format!("a process number in {}", path.display()), || {
        let text = fs::read_to_string(path).ok()?;
        Pid::from_raw(text.strip_suffix('\n')?.trim().parse().ok()?)
    })
}

/// Waits until a process is gone for good, or is nothing but its parent's business any more.
#[track_caller]
pub(crate) fn wait_until_gone(pid: Pid) {
    wait_for(&format!("the end of process {pid}"), || (!is_running(pid)).then_some(()));
}

pub(crate) fn is_running(pid: Pid) -> bool {
    // The state is the first field behind the name, which is in parentheses.
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| stat.rsplit_once(") ").map(|(_, rest)| !rest.starts_with(['Z', 'X'])))
        .unwrap_or(false)
}

/// The result of a tool that succeeded.
pub(crate) fn success(data: Value) -> Value {
    json!({"success": true, "data": data})
}

/// The result of a tool that failed.
pub(crate) fn failure(error: impl Display) -> Value {
    json!({"success": false, "error": error.to_string()})
}

/// The result of `glob` and `grep`.
pub(crate) fn found<const N: usize>(lines: [&str; N]) -> Value {
    success(json!({"output": lines.join("\n"), "count": N}))
}

/// A generator of numbers that are the same on every run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// A number from 0 to `end`, exclusively.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
