//! The driver as a program: see `ikigai_testkit::driver`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    ikigai_testkit::driver::main(&arguments)
}
