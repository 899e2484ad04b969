//! The scripted model server as a program: see `ikigai_testkit::ModelServer`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    ikigai_testkit::scripted_model(&arguments)
}
