//! The checker as a program: see `ikigai_testkit::checker`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    ikigai_testkit::checker::main(&arguments)
}
