//! Commands in a sandbox, with separate test data: a tree, a home with secrets, a database.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ikigai_tools::{
    Approved, Commands, Content, ContentHash, Context, Dispatcher, OutputSize, Root, Sandbox,
    SandboxKind, Work, built_in, secret_places,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::{Workspace, skip};

/// What [`SandboxFixture::try_to`] looks for in the output.
pub(crate) const REACHED: &str = "reached";

/// A workspace whose commands run in a sandbox of one kind.
pub(crate) struct SandboxFixture {
    pub(crate) workspace: Workspace,
    pub(crate) kind: SandboxKind,
    pub(crate) sandbox: Sandbox,
    commands: Arc<Commands>,
    runtime: Runtime,
}

/// Runs a test in each kind of sandbox that works here.
#[track_caller]
pub(crate) fn in_each_sandbox(test: impl Fn(SandboxFixture)) {
    SandboxKind::ALL.into_iter().for_each(|kind| in_sandbox(kind, &test));
}

/// Runs a test in a sandbox of this kind, if it works here.
///
/// If not, the test is skipped with a message, unless `IKIGAI_NEED_SANDBOX` names the kind, as in
/// `./check`.
#[track_caller]
pub(crate) fn in_sandbox(kind: SandboxKind, test: impl Fn(SandboxFixture)) {
    let needed = std::env::var("IKIGAI_NEED_SANDBOX").unwrap_or_default();
    let mut fixture = SandboxFixture::new(kind);
    let trial = fixture.bash(":", Isolation::Sandboxed);
    // Changes of protected paths by the test must not be attributed to the trial.
    fixture.reopen();
    if trial["data"]["exit_code"] == 0 {
        test(fixture);
    } else if needed.contains(&kind.to_string()) {
        panic!("{kind} is needed, but: {trial}");
    } else {
        skip(&format!("{kind} does not work here: {trial}"));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    Sandboxed,
    /// To prove that an attempt can succeed at all.
    Unconfined,
}

impl SandboxFixture {
    fn new(kind: SandboxKind) -> SandboxFixture {
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
            // All of it is in the folder for temporary files, which is hidden.
            read: vec![open(&root)],
            hidden,
            network: false,
            unix_sockets: false,
            kind: Some(kind),
        };
        let commands = commands(environment(&root));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        SandboxFixture { workspace, kind, sandbox, commands, runtime }
    }

    /// The folder that contains the working tree and the home directory.
    pub(crate) fn root(&self) -> PathBuf {
        self.workspace.home().parent().unwrap().to_owned()
    }

    pub(crate) fn bash(&self, command: &str, isolation: Isolation) -> Value {
        self.call(json!({ "command": command }), isolation)
    }

    pub(crate) fn bash_with(
        &self,
        command: &str,
        isolation: Isolation,
        variables: Vec<(OsString, OsString)>,
    ) -> Value {
        let context = self.context(isolation).with_variables(variables);
        self.call_in(&context, &json!({ "command": command }))
    }

    /// The result of a call of `bash`.
    pub(crate) fn call(&self, arguments: Value, isolation: Isolation) -> Value {
        self.call_in(&self.context(isolation), &arguments)
    }

    pub(crate) fn context(&self, isolation: Isolation) -> Context {
        self.context_until(CancellationToken::new(), isolation)
    }

    fn context_until(&self, interrupt: CancellationToken, isolation: Isolation) -> Context {
        let size = OutputSize::new(100_000).unwrap();
        let directory = self.workspace.directory();
        let context = Context::new(&directory, size, self.commands.clone(), interrupt);
        match isolation {
            Isolation::Sandboxed => context.with_sandbox(Arc::new(self.sandbox.clone())),
            Isolation::Unconfined => context,
        }
    }

    /// Starts a command and interrupts it after `time`.
    pub(crate) fn interrupt_after(&self, time: Duration, command: &str) {
        let interrupt = CancellationToken::new();
        let context = self.context_until(interrupt.clone(), Isolation::Sandboxed);
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
            let approved = self.commands.approve_write(&path).await;
            fs::write(&path, text).unwrap();
            meanwhile();
            let content = Content { bytes: text.into(), mode: 0o644 };
            approved.wrote(&Approved::Content(ContentHash::of_content(&content))).await;
        });
    }

    /// The output of commands that run at the same time.
    pub(crate) fn print_at_once(&self, commands: &[(&str, Isolation)]) -> Vec<String> {
        self.runtime.block_on(async {
            let mut running = tokio::task::JoinSet::new();
            for (command, isolation) in commands {
                let (context, arguments) =
                    (self.context(*isolation), json!({ "command": command }));
                running.spawn(async move { run(&context, &arguments).await });
            }
            let results = running.join_all().await;
            results.iter().map(|result| result["data"]["output"].as_str().unwrap().into()).collect()
        })
    }

    /// The output of a successful command in the sandbox.
    #[track_caller]
    pub(crate) fn prints(&self, command: &str) -> String {
        let result = self.bash(command, Isolation::Sandboxed);
        assert_eq!(result["data"]["exit_code"], 0, "{}: {command}: {result}", self.kind);
        result["data"]["output"].as_str().unwrap().to_owned()
    }

    /// The output of another agent's command.
    pub(crate) fn prints_as(&self, agent: &str, command: &str) -> String {
        let context = self.context(Isolation::Sandboxed).of_agent(agent.into());
        let result = self.call_in(&context, &json!({ "command": command }));
        result["data"]["output"].as_str().unwrap().to_owned()
    }

    /// Whether a program is installed.
    pub(crate) fn has(&self, program: &str) -> bool {
        self.bash(&format!("type {program}"), Isolation::Sandboxed)["data"]["exit_code"] == 0
    }

    /// Whether a tool is available, as shown by the success of a command. Without it the test is
    /// skipped with a message, or fails if `IKIGAI_NEED_TOOLS` is set, as in `./check`.
    #[track_caller]
    pub(crate) fn has_tool(&self, probe: &str) -> bool {
        let found = self.bash(probe, Isolation::Unconfined);
        let is_there = found["data"]["exit_code"] == 0;
        if !is_there {
            let is_needed = std::env::var_os("IKIGAI_NEED_TOOLS").is_some();
            assert!(!is_needed, "needed, but: {probe}: {found}");
            skip(&format!("{probe}: {found}"));
        }
        is_there
    }

    /// The output of a failing command in the sandbox.
    #[track_caller]
    pub(crate) fn fails(&self, command: &str) -> String {
        let result = self.bash(command, Isolation::Sandboxed);
        assert_ne!(result["data"]["exit_code"], 0, "{}: {command}: {result}", self.kind);
        result["data"]["output"].as_str().unwrap().to_owned()
    }

    /// Whether a command prints [`REACHED`], as it does when it gets what it wanted.
    pub(crate) fn try_to(&self, command: &str, isolation: Isolation) -> bool {
        self.bash(command, isolation)["data"]["output"].as_str().unwrap().contains(REACHED)
    }

    /// A command that succeeds outside must not succeed inside. It runs inside first, since it
    /// changes something outside.
    #[track_caller]
    pub(crate) fn refuses(&self, command: &str) {
        let inside = self.bash(command, Isolation::Sandboxed);
        assert!(!inside.to_string().contains(REACHED), "{}: {command}: {inside}", self.kind);
        let outside = self.bash(command, Isolation::Unconfined);
        assert!(outside.to_string().contains(REACHED), "no attempt: {command}: {outside}");
    }

    /// Restarts with another watchdog, so that nothing of earlier commands is left.
    pub(crate) fn reopen(&mut self) {
        self.close();
        self.commands = commands(environment(&self.root()));
    }

    /// Restarts with another watchdog and an additional variable.
    pub(crate) fn reopen_with(&mut self, name: &str, value: &str) {
        self.close();
        let mut environment = environment(&self.root());
        environment.push((name.into(), value.into()));
        self.commands = commands(environment);
    }

    /// Restarts without a working watchdog.
    pub(crate) fn reopen_without_watchdog(&mut self) {
        let (program, environment) = (Path::new("/nowhere"), environment(&self.root()));
        self.commands = Arc::new(Commands::new(program, OsStr::new(""), environment));
    }

    /// Ends background processes.
    pub(crate) fn close(&self) {
        self.runtime.block_on(self.commands.close());
    }

    pub(crate) fn works(&self) -> Result<SandboxKind, ikigai_tools::NoSandbox> {
        self.runtime.block_on(self.commands.sandbox_kind())
    }
}

async fn run(context: &Context, arguments: &Value) -> Value {
    let arguments = arguments.to_string();
    let dispatcher = Dispatcher::<()>::new(built_in());
    let call = dispatcher.dispatch("bash", arguments.as_bytes()).expect("it is understood");
    let Work::Executor(executor) = call.work() else { panic!("bash is no step") };
    let result = executor.run(context).await.result.to_string();
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
    // If the tests run as another user, `./check` names a toolchain which that user can read.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let toolchain = Path::new(&cargo).parent().unwrap();
    let mut path = OsString::from("/usr/local/bin:/usr/bin:/bin:");
    path.push(toolchain);
    // Last, for tools installed elsewhere.
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

/// The content of a test file.
pub(crate) fn content(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

/// A command that runs a program in Python.
pub(crate) fn python(program: &str) -> String {
    format!("python3 - <<'PROGRAM' 2>&1\n{program}\nPROGRAM")
}
