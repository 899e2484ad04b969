//! The tools as whole programs, each beside the real alternative in the same run.
//!
//! `cargo bench --bench tools` prints a table; `BENCH_TREE=/some/folder` searches that folder too.
//! ripgrep (`rg`) must be installed for the comparisons with it.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench prints, and starts programs"
)]
#![allow(missing_docs, reason = "nobody links against a bench")]

mod measure;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use measure::{Measure, run};

const IKIGAI: &str = env!("CARGO_BIN_EXE_ikigai");
/// What makes ripgrep look at the same files as we do; left out of the table.
const RG_FLAGS: &str = " --no-config --no-require-git --no-ignore-global";

fn main() {
    // `cargo test --benches` runs this with another flag: that it builds is enough there.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("| what | median ms | fastest ms | peak MB | beside the first |");
    println!("| --- | --- | --- | --- | --- |");
    let here = Path::new("/");
    compare(here, 200, &[cmd(&["true"]), cmd(&[IKIGAI, "--version"])]);
    compare(here, 100, &[cmd(&["bash", "-c", "true"]), tool("bash", r#"{"command":"true"}"#)]);
    let print = |bytes: &str| {
        let command = format!("yes 0123456789012345678901234567890123456789 | head -c {bytes}");
        [cmd(&["bash", "-c", &command]), tool("bash", &format!(r#"{{"command":"{command}"}}"#))]
    };
    compare(here, 10, &print("50000000"));
    compare(here, 3, &print("1000000000"));
    search(&generated_tree());
    if let Some(tree) = std::env::var_os("BENCH_TREE") {
        search(Path::new(&tree));
    }
}

/// `grep` and `glob` beside ripgrep, unsorted and sorted.
fn search(tree: &Path) {
    if Command::new("rg").arg("--version").output().is_err() {
        println!("| ripgrep is not installed: nothing to compare `grep` and `glob` with | | | | |");
        return;
    }
    println!("| **in {}** | | | | |", tree.display());
    let rg = |arguments: &[&str]| {
        let common: Vec<&str> = ["rg"].into_iter().chain(RG_FLAGS.split_whitespace()).collect();
        cmd(&[&common, arguments].concat())
    };
    for pattern in ["rare_needle_\\d+", "fn ", "return"] {
        let call = tool("grep", &serde_json::json!({"pattern": pattern}).to_string());
        let sorted = rg(&["-n", "--sort", "path", pattern, "."]);
        compare(tree, 15, &[sorted, rg(&["-n", pattern, "."]), call]);
    }
    let call = tool("glob", r#"{"pattern":"**/*.rs"}"#);
    let sorted = rg(&["--files", "--sort", "path", "-g", "*.rs"]);
    compare(tree, 15, &[sorted, rg(&["--files", "-g", "*.rs"]), call]);
}

/// A program with its arguments.
struct Program(Vec<String>);

fn cmd(words: &[&str]) -> Program {
    Program(words.iter().map(|&word| word.to_owned()).collect())
}

fn tool(name: &str, arguments: &str) -> Program {
    cmd(&[IKIGAI, "tool", name, arguments])
}

/// Runs all programs in turn, so that what disturbs the machine disturbs them alike, and prints a row
/// for each.
fn compare(directory: &Path, rounds: usize, programs: &[Program]) {
    let mut measures: Vec<Vec<Measure>> = programs.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (program, measures) in programs.iter().zip(&mut measures) {
            let mut command = Command::new(&program.0[0]);
            measures.push(run(command.args(&program.0[1..]).current_dir(directory)));
        }
    }
    let mut first = None;
    for (program, measures) in programs.iter().zip(&mut measures) {
        measures.sort_by_key(|measure| measure.wall);
        let ms = |measure: &Measure| measure.wall.as_secs_f64() * 1e3;
        let (median, fastest) = (ms(&measures[rounds / 2]), ms(&measures[0]));
        let peak = measures.iter().map(|measure| measure.peak_kb).max().unwrap_or(0);
        let ratio = median / *first.get_or_insert(median);
        let name = program.0.join(" ").replace(IKIGAI, "ikigai").replace(RG_FLAGS, "");
        let peak = peak as f64 / 1024.0;
        println!("| `{name}` | {median:.2} | {fastest:.2} | {peak:.1} | {ratio:.2} |");
    }
}

/// 20,000 files in 400 folders, a quarter of them ignored: the same bytes on every machine.
fn generated_tree() -> PathBuf {
    let tree = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-tree");
    let complete = tree.join(".complete");
    if complete.exists() {
        return tree;
    }
    let _ = fs::remove_dir_all(&tree);
    let mut random = Random(42);
    for folder in 0..400 {
        let kind = if folder % 4 == 3 { "generated" } else { "source" };
        let folder = tree.join(format!("{kind}/part_{}/module_{folder}", folder / 20));
        fs::create_dir_all(&folder).expect("the target folder can be written");
        for file in 0..50 {
            let ending = ["rs", "rs", "c", "md", "txt"][random.below(5)];
            let text = source_text(&mut random);
            fs::write(folder.join(format!("file_{file}.{ending}")), text)
                .expect("it can be written");
        }
    }
    fs::write(tree.join(".gitignore"), "generated/\n").expect("it can be written");
    fs::write(complete, "").expect("it can be written");
    tree
}

fn source_text(random: &mut Random) -> String {
    let mut text = String::new();
    for line in 0..40 + random.below(160) {
        let words = ["let value = compute", "fn work", "return total", "// a note on", "if found"];
        let word = words[random.below(words.len())];
        text.push_str(&format!("    {word}_{}({line}, {});\n", random.below(900), random.below(9)));
    }
    if random.below(500) == 0 {
        text.push_str(&format!("rare_needle_{}\n", random.below(1_000)));
    }
    text
}

/// A generator of the same numbers everywhere (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
