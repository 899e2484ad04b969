//! A tree for confined tools, and files next to it that must not be touched.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ikigai_conversation::Preview;
use ikigai_tools::{
    Call, Commands, Context, Dispatcher, Execution, Fact, FileMemory, OutputSize, Reach, Sandbox,
    Tree, Work, built_in,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The content of every file outside.
pub(crate) const SECRET: &str = "the secret outside\n";

/// `work`, `more` and `temporary` are the tree; `outside` is not.
pub(crate) struct World {
    folder: TempDir,
    context: Context,
}

impl World {
    pub(crate) fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        for name in ["work", "more", "temporary", "outside/folder"] {
            fs::create_dir_all(path.join(name)).unwrap();
        }
        for name in ["outside/secret", "outside/folder/secret"] {
            fs::write(path.join(name), SECRET).unwrap();
        }
        let tree = Tree::open(["work", "more", "temporary"].map(|name| path.join(name))).unwrap();
        // No command runs in here.
        let commands = Arc::new(Commands::new(Path::new("/nowhere"), OsStr::new(""), Vec::new()));
        let size = OutputSize::new(51_200).unwrap();
        let context = Context::new(&path.join("work"), size, commands, CancellationToken::new());
        World { folder, context: context.confined(Arc::new(tree)) }
    }

    /// The same folders with another tree.
    pub(crate) fn confined_to(self, tree: Arc<Tree>) -> World {
        World { folder: self.folder, context: self.context.confined(tree) }
    }

    /// The same folders with this sandbox for commands.
    pub(crate) fn with_sandbox(self, sandbox: Sandbox) -> World {
        World { folder: self.folder, context: self.context.with_sandbox(Arc::new(sandbox)) }
    }

    /// An absolute path in here.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// The same as text.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> &World {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
        self
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) -> &World {
        symlink(target, self.path(name)).unwrap();
        self
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The facts about a call before it is judged.
    pub(crate) fn facts(&self, tool: &str, arguments: &Value) -> Vec<Fact> {
        prepare(tool, arguments).facts(&self.context)
    }

    /// All that a call would do, as it is shown before approval.
    pub(crate) fn preview(&self, reach: Reach, tool: &str, arguments: &Value) -> Preview {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let context = self.context.clone().reaching(reach);
        runtime.block_on(prepare(tool, arguments).preview(&context))
    }

    /// The result of a call.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.call_reaching(Reach::Tree, tool, arguments)
    }

    /// The result of a call with this reach.
    pub(crate) fn call_reaching(&self, reach: Reach, tool: &str, arguments: &Value) -> Value {
        let ran = self.run_reaching(reach, tool, arguments);
        serde_json::from_str(&ran.result.to_string()).unwrap()
    }

    /// The result of a call that was approved for the paths it names.
    pub(crate) fn call_approved(&self, tool: &str, arguments: &Value) -> Value {
        let destinations =
            prepare(tool, arguments).destinations(&self.context, &self.facts(tool, arguments));
        let context = self.context.clone().reaching(Reach::Anywhere).leading_to(destinations);
        serde_json::from_str(&run(&context, tool, arguments).result.to_string()).unwrap()
    }

    /// The same, with the files it used.
    pub(crate) fn run_reaching(&self, reach: Reach, tool: &str, arguments: &Value) -> Execution {
        run(&self.context.clone().reaching(reach), tool, arguments)
    }

    /// A call of an agent that remembers files.
    pub(crate) fn run_remembering(
        &self,
        memory: Arc<FileMemory>,
        tool: &str,
        arguments: &Value,
    ) -> Execution {
        run(&self.context.clone().remembering(memory), tool, arguments)
    }

    /// The output of a successful call.
    #[track_caller]
    pub(crate) fn output(&self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        let output = result["data"]["output"].as_str();
        output.unwrap_or_else(|| panic!("{tool} {arguments}: {result}")).to_owned()
    }

    /// The message of a failed call.
    #[track_caller]
    pub(crate) fn error(&self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        let error = result["error"].as_str();
        error.unwrap_or_else(|| panic!("{tool} {arguments}: {result}")).to_owned()
    }

    /// Calls every tool with this path.
    pub(crate) fn calls(path: &str) -> [(&'static str, Value); 5] {
        [
            ("file_read", json!({"path": path})),
            ("file_write", json!({"path": path, "content": "changed"})),
            ("file_edit", json!({"path": path, "old_string": "secret", "new_string": "changed"})),
            ("grep", json!({"path": path, "pattern": "secret"})),
            ("glob", json!({"path": path, "pattern": "**"})),
        ]
    }

    /// Nothing outside was changed, created or removed.
    #[track_caller]
    pub(crate) fn check_outside(&self) {
        let mut found = Vec::new();
        let mut folders = vec![self.path("outside")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path.clone()),
                    false => assert_eq!(fs::read_to_string(&path).unwrap(), SECRET, "{path:?}"),
                }
                found.push(path);
            }
        }
        found.sort();
        let expected = ["outside/folder", "outside/folder/secret", "outside/secret"];
        assert_eq!(found, expected.map(|name| self.path(name)));
    }
}

fn run(context: &Context, tool: &str, arguments: &Value) -> Execution {
    let call = prepare(tool, arguments);
    let Work::Executor(executor) = call.work() else { panic!("{tool} is a step") };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(executor.run(context))
}

pub(crate) fn prepare(tool: &str, arguments: &Value) -> Call<()> {
    let dispatcher = Dispatcher::new(built_in());
    dispatcher.dispatch(tool, arguments.to_string().as_bytes()).unwrap()
}
