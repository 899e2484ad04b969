//! Common build and test tools work in a sandbox without questions.

use crate::support::sandboxed::{Isolation, REACHED, in_each_sandbox};

#[test]
fn make_builds() {
    in_each_sandbox(|fixture| {
        fixture.workspace.write("Makefile", "all: b c\nb c: a\n\tcp a $@\n").write("a", "x\n");
        for command in ["make", "touch a && make -j2", "make -n all"] {
            fixture.prints(command);
        }
        assert_eq!(fixture.workspace.read_text("c"), "x\n");
    });
}

#[test]
fn python_runs_its_tests() {
    in_each_sandbox(|fixture| {
        fixture.workspace.write(
            "test_it.py",
            "import subprocess, tempfile, threading, unittest
class It(unittest.TestCase):
    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            open(folder + '/x', 'w').close()
    def test_processes(self):
        self.assertEqual(subprocess.check_output(['echo', 'x']), b'x\\n')
    def test_threads(self):
        thread = threading.Thread(target=print)
        thread.start()
        thread.join()
    def test_event_loop(self):
        import asyncio
        asyncio.run(asyncio.sleep(0))
",
        );
        let output = fixture.prints("python3 -m unittest");
        assert!(output.contains("Ran 4 tests") && output.contains("OK"), "{output}");
    });
}

#[test]
fn npm_runs_its_scripts_and_installs_what_is_there() {
    in_each_sandbox(|fixture| {
        if !fixture.has_tool("npm --version") {
            return;
        }
        fixture
            .workspace
            .write("lib/package.json", r#"{"name": "lib", "version": "1.0.0"}"#)
            .write("lib/index.js", "module.exports = 'from lib';")
            .write(
                "package.json",
                r#"{"scripts": {"test": "node test.js"}, "dependencies": {"lib": "file:lib-1.0.0.tgz"}}"#,
            )
            .write(
                "test.js",
                "const output = require('child_process').execSync('echo child').toString();
                 console.log(require('lib'), output.trim());",
            );
        // A package goes through the cache, which is in the home directory.
        fixture.prints("npm pack ./lib && npm install && rm -r node_modules && npm ci");
        for command in ["npm test --silent", "npm run --silent test"] {
            assert_eq!(fixture.prints(command), "from lib child\n", "{}", fixture.kind);
        }
        assert!(!fixture.root().join("home/.npm").exists());
    });
}

#[test]
fn cargo_builds_a_crate_without_dependencies() {
    in_each_sandbox(|fixture| {
        fixture
            .workspace
            .write("Cargo.toml", "[package]\nname = \"tiny\"\nedition = \"2024\"\n[workspace]\n")
            .write("src/main.rs", "fn main() { println!(\"built\"); }\n#[test]\nfn passes() {}\n");
        fixture.prints("cargo build && cargo check");
        assert_eq!(fixture.prints("cargo run -q"), "built\n");
        let output = fixture.prints("cargo test");
        assert!(output.contains("test passes ... ok"), "{output}");
    });
}

/// Dependencies are in the home directory, where nothing can be written.
#[test]
fn cargo_builds_and_tests_with_dependencies_that_were_fetched() {
    in_each_sandbox(|fixture| {
        let dependency = fixture.root().join("outside/dependency");
        let manifest = |rest: &str| format!("[package]\nedition = \"2024\"\n{rest}\n[workspace]\n");
        fixture
            .workspace
            .write("../outside/dependency/Cargo.toml", manifest("name = \"dependency\""))
            .write("../outside/dependency/src/lib.rs", "pub fn two() -> i32 { 2 }\n")
            .write(
                "Cargo.toml",
                manifest(&format!(
                    "name = \"tiny\"\n[dependencies.dependency]\ngit = \"file://{}\"",
                    dependency.display()
                )),
            )
            .write(
                "src/lib.rs",
                "#[test]\nfn adds_up() { assert_eq!(dependency::two(), 1 + 1); }\n",
            );
        let commit = format!(
            "cd {} && git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm a",
            dependency.display()
        );
        for outside in [&*commit, "cargo fetch"] {
            let result = fixture.bash(outside, Isolation::Unconfined);
            assert_eq!(result["data"]["exit_code"], 0, "{outside}: {result}");
        }
        std::fs::remove_dir_all(&dependency).unwrap();
        let output = fixture.prints("cargo build && cargo test");
        assert!(output.contains("test adds_up ... ok"), "{output}");
        assert!(
            !fixture.try_to(&format!("touch ~/.cargo/new && echo {REACHED}"), Isolation::Sandboxed)
        );
    });
}

#[test]
fn go_builds_runs_and_tests_a_module() {
    in_each_sandbox(|fixture| {
        if !fixture.has_tool("go version") {
            return;
        }
        fixture
            .workspace
            .write("go.mod", "module tiny\n\ngo 1.19\n")
            .write(
                "main.go",
                "package main\nfunc two() int { return 2 }\nfunc main() { print(two()) }\n",
            )
            .write(
                "main_test.go",
                "package main\nimport \"testing\"
func TestTwo(t *testing.T) { if two() != 2 { t.Fail() } }\n",
            );
        assert_eq!(fixture.prints("go build && ./tiny && go run ."), "22", "{}", fixture.kind);
        let output = fixture.prints("go vet && go test ./...");
        assert!(output.starts_with("ok"), "{output}");
    });
}

/// Downloads are in the home directory, as with cargo.
#[test]
fn go_builds_with_modules_that_were_fetched() {
    in_each_sandbox(|fixture| {
        if !fixture.has_tool("go version") {
            return;
        }
        fixture.workspace.write("../outside/dep.go", "package dep\nconst Two = 2\n").write(
            "../outside/fetch",
            "set -e
cd ../outside
versions=proxy/example.com/dep/@v
mkdir -p $versions
printf 'module example.com/dep\\n\\ngo 1.19\\n' >$versions/v1.0.0.mod
echo '{\"Version\":\"v1.0.0\"}' >$versions/v1.0.0.info
python3 - <<'PROGRAM'
import zipfile
with zipfile.ZipFile('proxy/example.com/dep/@v/v1.0.0.zip', 'w') as module:
    module.write('dep.go', 'example.com/dep@v1.0.0/dep.go')
PROGRAM
cd ../work
export GOPROXY=file://$(realpath ../outside)/proxy GONOSUMDB='*' GOFLAGS='-mod=mod -modcacherw'
go build
rm -r tiny ../outside/proxy
",
        );
        fixture
            .workspace
            .write("go.mod", "module tiny\n\ngo 1.19\n\nrequire example.com/dep v1.0.0\n")
            .write(
                "main.go",
                "package main\nimport \"example.com/dep\"\nfunc main() { print(dep.Two) }\n",
            );
        let fetched = fixture.bash("bash ../outside/fetch", Isolation::Unconfined);
        assert_eq!(fetched["data"]["exit_code"], 0, "{fetched}");
        assert_eq!(fixture.prints("go build && ./tiny"), "2", "{}", fixture.kind);
    });
}

/// The package builds itself, so that no index is needed.
const BACKEND: &str = "import zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name, info = 'tiny-1-py3-none-any.whl', 'tiny-1.dist-info/'
    with zipfile.ZipFile(folder + '/' + name, 'w') as wheel:
        wheel.writestr('tiny.py', 'two = 2')
        wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n')
        wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
        wheel.writestr(info + 'RECORD', '')
    return name
";

#[test]
fn pip_installs_a_package_of_the_tree_into_an_environment() {
    in_each_sandbox(|fixture| {
        if !fixture.has_tool("python3 -c 'import ensurepip, venv'") {
            return;
        }
        fixture.workspace.write("package/backend.py", BACKEND).write(
            "package/pyproject.toml",
            "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n",
        );
        let output = fixture.prints(
            "python3 -m venv .venv && . .venv/bin/activate && pip install --no-index ./package &&
             pip list && pip cache dir && python -c 'import tiny; print(tiny.two)'",
        );
        assert!(!output.contains("not writable"), "{}: {output}", fixture.kind);
        assert!(output.ends_with("\n2\n"), "{output}");
    });
}

#[test]
fn pytest_runs_its_tests_in_several_processes() {
    in_each_sandbox(|fixture| {
        if !fixture.has_tool("python3 -c 'import pytest, xdist'") {
            return;
        }
        fixture.workspace.write(
            "test_it.py",
            "def test_one(): pass\ndef test_two(tmp_path): (tmp_path / 'x').write_text('x')\n",
        );
        for command in ["python3 -m pytest -q -n 2", "python3 -m pytest -q"] {
            let output = fixture.prints(command);
            assert!(output.contains("2 passed"), "{}: {output}", fixture.kind);
        }
    });
}
