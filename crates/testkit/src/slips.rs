//! The slips that models make, as data: `fixtures/slips` has a call per file, the files around it,
//! and what has to come of it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

/// A call as a model sent it.
#[derive(Debug, Clone)]
pub struct Slip {
    /// The name of its file, without the extension.
    pub name: String,
    /// Whether it has two meanings, so that it must not be repaired.
    pub is_trap: bool,
    /// The name of the tool, as it was called.
    pub tool: String,
    /// The raw arguments.
    pub arguments: String,
    /// The files that are there before the call.
    pub files: BTreeMap<String, String>,
    expected: Expected,
}

#[derive(Debug, Clone)]
struct Expected {
    kind: SlipKind,
    /// What files hold after the call.
    files: BTreeMap<String, String>,
    result: Vec<String>,
    error: Vec<String>,
}

/// What has to come of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlipKind {
    /// It works in the same request, and the result says what was repaired.
    Repaired,
    /// It is refused with an error that says what is wrong, and changes nothing.
    Error,
    /// It works as it is.
    Unchanged,
}

impl Slip {
    /// All of them, in the order of their names.
    pub fn all() -> Vec<Slip> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/slips");
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let mut paths: Vec<PathBuf> = entries.collect();
        paths.sort();
        paths.iter().map(|path| Slip::read(path)).collect()
    }

    fn read(path: &Path) -> Slip {
        let text = fs::read_to_string(path).unwrap();
        let slip: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let name = text_of(&slip["name"]);
        assert_eq!(path.file_stem().unwrap().to_str(), Some(name.as_str()));
        assert!(slip["why"].is_string(), "{name} does not say why");
        let expect = &slip["expect"];
        let kind = match expect["kind"].as_str() {
            Some("repaired") => SlipKind::Repaired,
            Some("error") => SlipKind::Error,
            Some("unchanged") => SlipKind::Unchanged,
            other => panic!("{name}: {other:?} is no kind"),
        };
        let is_trap = slip["trap"].as_bool().unwrap();
        assert!(!is_trap || kind != SlipKind::Repaired, "{name} is a trap");
        let list = |key: &str| expect[key].as_array().into_iter().flatten().map(text_of).collect();
        let expected = Expected {
            kind,
            files: files_of(&expect["files"]),
            result: list("result_contains"),
            error: list("error_contains"),
        };
        let (tool, arguments) = (text_of(&slip["call"]["name"]), &slip["call"]["arguments"]);
        let files = files_of(&slip["files"]);
        Slip { name, is_trap, tool, arguments: text_of(arguments), files, expected }
    }

    /// What has to come of it.
    pub fn kind(&self) -> SlipKind {
        self.expected.kind
    }

    /// Runs the call with a program, in a folder of its own.
    ///
    /// # Errors
    /// What is not as expected.
    pub fn run(&self, program: &Path) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let (work, home) = (folder.path().join("work"), folder.path().join("home"));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&work).unwrap();
        for (name, content) in &self.files {
            let path = work.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let printed = self.call(program, &work, &home);
        let result: Value =
            serde_json::from_str(&printed).map_err(|e| format!("{e}: {printed}"))?;
        self.judge(&result)?;
        // Other files stay as they are, and a refused call makes none.
        let (mut after, mut expected) = (files_in(&work), self.files.clone());
        if self.expected.kind != SlipKind::Error {
            expected.extend(self.expected.files.clone());
            after.retain(|name, _| expected.contains_key(name));
        }
        match after == expected {
            true => Ok(()),
            false => Err(format!("{result}\n  is:        {after:?}\n  should be: {expected:?}")),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a test starts the program")]
    fn call(&self, program: &Path, work: &Path, home: &Path) -> String {
        let mut command = Command::new(program);
        command.args(["tool", &self.tool, "-"]).current_dir(work).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
        command.env("HOME", home).env("TMPDIR", home);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(self.arguments.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    }

    fn judge(&self, result: &Value) -> Result<(), String> {
        let error = result["error"].as_str();
        let repairs = result["data"]["repaired"].as_array();
        let is_repaired = repairs.is_some_and(|repairs| !repairs.is_empty());
        let (kind, wanted, text) = match (error, is_repaired) {
            (Some(error), _) => (SlipKind::Error, &self.expected.error, error.to_owned()),
            (None, true) => (SlipKind::Repaired, &self.expected.result, all_text(result)),
            (None, false) => (SlipKind::Unchanged, &self.expected.result, all_text(result)),
        };
        if kind != self.expected.kind {
            return Err(format!("{kind:?} instead of {:?}: {result}", self.expected.kind));
        }
        match wanted.iter().find(|wanted| !text.contains(*wanted)) {
            Some(missing) => Err(format!("{missing:?} is missing in {result}")),
            None => Ok(()),
        }
    }
}

/// Runs all calls with a program, a few at once, and returns those that did not come out as expected.
pub fn run_slips(slips: &[Slip], program: &Path) -> Vec<(Slip, String)> {
    /// Most of their time they wait for a process.
    const AT_ONCE: usize = 4;
    let (left, failed) = (Mutex::new(slips.iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(slip) = { left.lock().unwrap().next() } {
                    if let Err(why) = slip.run(program) {
                        failed.lock().unwrap().push((slip.clone(), why));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    failed
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no string")).to_owned()
}

fn files_of(value: &Value) -> BTreeMap<String, String> {
    let files = value.as_object().into_iter().flatten();
    files.map(|(name, content)| (name.clone(), text_of(content))).collect()
}

/// All strings in a result, and the result itself.
fn all_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(all_text).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => {
            let texts: Vec<String> = fields.values().map(all_text).collect();
            format!("{}\n{value}", texts.join("\n"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn files_in(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            files.insert(name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
        }
    }
    files
}
