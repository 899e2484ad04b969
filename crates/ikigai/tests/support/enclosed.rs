//! Commands in a sandbox, on a ground of the test's own: a tree, a home with secrets, a database.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ikigai_tools::{
    Approved, Commands, Content, ContentHash, Context, Dispatcher, OutputSize, Prepared, Root,
    Sandbox, SandboxKind, secret_places,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::{Workspace, skip};

/// What [`Enclosed::try_to`] looks for in the output.
pub(crate) const REACHED: &str = "reached";

/// A workspace whose commands run in a sandbox of one kind.
pub(crate) struct Enclosed {
    pub(crate) workspace: Workspace,
    pub(crate) kind: SandboxKind,
    pub(crate) sandbox: Sandbox,
    commands: Arc<Commands>,
    runtime: Runtime,
}

/// Runs a test in each kind of sandbox that works here.
#[track_caller]
pub(crate) fn in_each_sandbox(test: impl Fn(Enclosed)) {
    SandboxKind::ALL.into_iter().for_each(|kind| in_sandbox(kind, &test));
}

/// Runs a test in a sandbox of this kind, if that works here.
///
/// One that does not is passed over aloud, unless `IKIGAI_NEED_SANDBOX` names it: `./check` does.
#[track_caller]
pub(crate) fn in_sandbox(kind: SandboxKind, test: impl Fn(Enclosed)) {
    let needed = std::env::var("IKIGAI_NEED_SANDBOX").unwrap_or_default();
    let mut enclosed = Enclosed::new(kind);
    let trial = enclosed.bash(":", Walls::Up);
    // What the test puts into protected paths is none of the trial's.
    enclosed.reopen();
    if trial["data"]["exit_code"] == 0 {
        test(enclosed);
    } else if needed.contains(&kind.to_string()) {
        panic!("{kind} is needed, but: {trial}");
    } else {
        skip(&format!("{kind} does not work here: {trial}"));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walls {
    Up,
    /// To see that an attempt is a real one.
    Down,
}

impl Enclosed {
    fn new(kind: SandboxKind) -> Enclosed {
        let workspace = Workspace::new();
        workspace
            .write("../home/.ssh/id", "SECRET\n")
            .write("../home/.netrc", "SECRET\n")
            .write("../home/notes", "open\n")
            .write("../home/data/ikigai/ikigai.db", "SECRET\n")
            .write("../outside/file", "old\n")
            .folder("../tmp");
        let home = workspace.home();
        let root = home.parent().unwrap().to_owned();
        let mut hidden = secret_places(&home);
        hidden.push(home.join("data/ikigai"));
        let sandbox = Sandbox {
            write: [workspace.directory(), root.join("tmp")].map(|path| open(&path)).into(),
            unprotected: Vec::new(),
            // All of it lies in the folder for temporary files, which is hidden.
            read: vec![open(&root)],
            hidden,
            network: false,
            unix_sockets: false,
            kind: Some(kind),
        };
        let commands = commands(environment(&root));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Enclosed { workspace, kind, sandbox, commands, runtime }
    }

    /// The folder in which the working tree and the home directory are.
    pub(crate) fn root(&self) -> PathBuf {
        self.workspace.home().parent().unwrap().to_owned()
    }

    pub(crate) fn bash(&self, command: &str, walls: Walls) -> Value {
        self.call(json!({ "command": command }), walls)
    }

    pub(crate) fn bash_with(
        &self,
        command: &str,
        walls: Walls,
        variables: Vec<(OsString, OsString)>,
    ) -> Value {
        let context = self.context(walls).with_variables(variables);
        self.call_in(&context, &json!({ "command": command }))
    }

    /// The result of a call of `bash`.
    pub(crate) fn call(&self, arguments: Value, walls: Walls) -> Value {
        self.call_in(&self.context(walls), &arguments)
    }

    pub(crate) fn context(&self, walls: Walls) -> Context {
        self.context_until(CancellationToken::new(), walls)
    }

    fn context_until(&self, interrupt: CancellationToken, walls: Walls) -> Context {
        let size = OutputSize::new(100_000).unwrap();
        let directory = self.workspace.directory();
        let context = Context::new(&directory, size, self.commands.clone(), interrupt);
        match walls {
            Walls::Up => context.with_sandbox(Arc::new(self.sandbox.clone())),
            Walls::Down => context,
        }
    }

    /// Begins a command, and interrupts it so much later.
    pub(crate) fn interrupt_after(&self, time: Duration, command: &str) {
        let interrupt = CancellationToken::new();
        let context = self.context_until(interrupt.clone(), Walls::Up);
        let arguments = json!({ "command": command });
        let interrupted = async {
            tokio::time::sleep(time).await;
            interrupt.cancel();
        };
        self.runtime.block_on(async { tokio::join!(run(&context, &arguments), interrupted) });
    }

    pub(crate) fn call_in(&self, context: &Context, arguments: &Value) -> Value {
        self.runtime.block_on(run(context, arguments))
    }

    /// Writes a file of the tree as a file tool does with the user's approval. Before the write is reported, `meanwhile`
    /// happens.
    pub(crate) fn write_with_approval(&self, name: &str, text: &str, meanwhile: impl FnOnce()) {
        let path = self.workspace.path(name);
        self.runtime.block_on(async {
            let expecting = self.commands.expecting(&path).await;
            fs::write(&path, text).unwrap();
            meanwhile();
            let content = Content { bytes: text.into(), mode: 0o644 };
            expecting.wrote(&Approved::Content(ContentHash::of_content(&content))).await;
        });
    }

    /// What commands print that run at the same time.
    pub(crate) fn print_at_once(&self, commands: &[(&str, Walls)]) -> Vec<String> {
        self.runtime.block_on(async {
            let mut running = tokio::task::JoinSet::new();
            for (command, walls) in commands {
                let (context, arguments) = (self.context(*walls), json!({ "command": command }));
                running.spawn(async move { run(&context, &arguments).await });
            }
            let results = running.join_all().await;
            results.iter().map(|result| result["data"]["output"].as_str().unwrap().into()).collect()
        })
    }

    /// What a command prints in the sandbox when all is well.
    #[track_caller]
    pub(crate) fn prints(&self, command: &str) -> String {
        let result = self.bash(command, Walls::Up);
        assert_eq!(result["data"]["exit_code"], 0, "{}: {command}: {result}", self.kind);
        result["data"]["output"].as_str().unwrap().to_owned()
    }

    /// What a command of another agent prints.
    pub(crate) fn prints_as(&self, agent: &str, command: &str) -> String {
        let context = self.context(Walls::Up).of_agent(agent.into());
        let result = self.call_in(&context, &json!({ "command": command }));
        result["data"]["output"].as_str().unwrap().to_owned()
    }

    /// Whether a program is installed.
    pub(crate) fn has(&self, program: &str) -> bool {
        self.bash(&format!("type {program}"), Walls::Up)["data"]["exit_code"] == 0
    }

    /// Whether a tool is there, by a command that succeeds then. Without it a test is skipped aloud, and fails where
    /// `IKIGAI_NEED_TOOLS` is set: `./check` does.
    #[track_caller]
    pub(crate) fn has_tool(&self, probe: &str) -> bool {
        let found = self.bash(probe, Walls::Down);
        let is_there = found["data"]["exit_code"] == 0;
        if !is_there {
            let is_needed = std::env::var_os("IKIGAI_NEED_TOOLS").is_some();
            assert!(!is_needed, "needed, but: {probe}: {found}");
            skip(&format!("{probe}: {found}"));
        }
        is_there
    }

    /// What a command prints in the sandbox when it fails.
    #[track_caller]
    pub(crate) fn fails(&self, command: &str) -> String {
        let result = self.bash(command, Walls::Up);
        assert_ne!(result["data"]["exit_code"], 0, "{}: {command}: {result}", self.kind);
        result["data"]["output"].as_str().unwrap().to_owned()
    }

    /// Whether a command that says [`REACHED`] when it got what it wanted does so.
    pub(crate) fn try_to(&self, command: &str, walls: Walls) -> bool {
        self.bash(command, walls)["data"]["output"].as_str().unwrap().contains(REACHED)
    }

    /// A command that succeeds outside must not succeed inside. The attempt inside comes first: the one
    /// outside is to change something.
    #[track_caller]
    pub(crate) fn refuses(&self, command: &str) {
        let inside = self.bash(command, Walls::Up);
        assert!(!inside.to_string().contains(REACHED), "{}: {command}: {inside}", self.kind);
        let outside = self.bash(command, Walls::Down);
        assert!(outside.to_string().contains(REACHED), "no attempt: {command}: {outside}");
    }

    /// Starts anew, with another watchdog: nothing of earlier commands is left.
    pub(crate) fn reopen(&mut self) {
        self.close();
        self.commands = commands(environment(&self.root()));
    }

    /// Starts anew, with another watchdog and one more variable.
    pub(crate) fn reopen_with(&mut self, name: &str, value: &str) {
        self.close();
        let mut environment = environment(&self.root());
        environment.push((name.into(), value.into()));
        self.commands = commands(environment);
    }

    /// Starts anew, where nothing can be started.
    pub(crate) fn reopen_without_watchdog(&mut self) {
        let (program, environment) = (Path::new("/nowhere"), environment(&self.root()));
        self.commands = Arc::new(Commands::new(program, OsStr::new(""), environment));
    }

    /// Ends what goes on in the background.
    pub(crate) fn close(&self) {
        self.runtime.block_on(self.commands.close());
    }

    pub(crate) fn works(&self) -> Result<SandboxKind, ikigai_tools::NoSandbox> {
        self.runtime.block_on(self.commands.sandbox_kind())
    }
}

async fn run(context: &Context, arguments: &Value) -> Value {
    let arguments = arguments.to_string();
    let dispatcher = Dispatcher::<()>::new(Vec::new());
    let Ok(Prepared::Call(call)) = dispatcher.dispatch("bash", arguments.as_bytes()) else {
        panic!("refused: {arguments}");
    };
    let result = call.run(context).await.result.to_string();
    serde_json::from_str(&result).unwrap()
}

fn commands(environment: Vec<(OsString, OsString)>) -> Arc<Commands> {
    let program = Path::new(env!("CARGO_BIN_EXE_ikigai"));
    let home = environment.iter().find(|(name, _)| name == "HOME").expect("it is among them");
    let quarantine = Path::new(&home.1).join("data/ikigai/quarantine");
    fs::create_dir_all(&quarantine).unwrap();
    let commands = Commands::new(program, OsStr::new("__watchdog"), environment);
    Arc::new(commands.with_quarantine(quarantine))
}

fn environment(root: &Path) -> Vec<(OsString, OsString)> {
    // Where the tests run as another user, `./check` names a toolchain that this user can read.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let toolchain = Path::new(&cargo).parent().unwrap();
    let mut path = OsString::from("/usr/local/bin:/usr/bin:/bin:");
    path.push(toolchain);
    // Last, for tools that are installed elsewhere.
    if let Some(others) = std::env::var_os("PATH") {
        path.push(":");
        path.push(others);
    }
    vec![
        ("PATH".into(), path),
        ("HOME".into(), root.join("home").into()),
        ("TMPDIR".into(), root.join("tmp").into()),
        ("LC_ALL".into(), "C.UTF-8".into()),
    ]
}

/// A folder that commands may use.
#[track_caller]
pub(crate) fn open(path: &Path) -> Root {
    Root::open(path).unwrap()
}

/// All that is in a file of the ground.
pub(crate) fn content(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

/// A command that runs a program in Python.
pub(crate) fn python(program: &str) -> String {
    format!("python3 - <<'PROGRAM' 2>&1\n{program}\nPROGRAM")
}
