//! What comes of the slips that models make: `cargo bench --bench slips` prints how many are repaired.
//!
//! Each file in `fixtures/slips` is a call. See its format in `testkit`'s `slips.rs`.
#![allow(clippy::print_stdout, reason = "a bench prints")]
#![allow(missing_docs, reason = "nobody links against a bench")]

use std::path::Path;

use ikigai_testkit::{Slip, SlipKind, run_slips};

fn main() {
    // `cargo test --benches` runs this with another flag: that it builds is enough there.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let slips = Slip::all();
    let failed = run_slips(&slips, Path::new(env!("CARGO_BIN_EXE_ikigai")));
    let has_failed = |slip: &Slip| failed.iter().any(|(failed, _)| failed.name == slip.name);
    let (traps, clear): (Vec<&Slip>, Vec<&Slip>) = slips.iter().partition(|slip| slip.is_trap);
    let passed =
        |kind| clear.iter().filter(|slip| slip.kind() == kind && !has_failed(slip)).count();
    let lost = clear.iter().filter(|slip| has_failed(slip)).count();
    let sprung = traps.iter().filter(|slip| has_failed(slip)).count();
    println!("| calls with one meaning | {} |", clear.len());
    println!("| --- | --- |");
    println!("| repaired in the same request | {} |", passed(SlipKind::Repaired));
    println!(
        "| answered with an error that leads to the right call | {} |",
        passed(SlipKind::Error)
    );
    println!("| lost | {lost} |");
    println!("| **calls with two meanings, or right as they are** | {} |", traps.len());
    println!("| repaired all the same | {sprung} |");
    for (slip, why) in &failed {
        println!("\n{}: {why}", slip.name);
    }
}
