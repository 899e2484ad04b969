//! Calls with the slips that models make, each through the program.

use std::path::Path;

use ikigai_testkit::{Slip, SlipKind, run_slips};

#[test]
fn each_slip_is_repaired_or_refused_as_its_file_says() {
    let failed = run_slips(&Slip::all(), Path::new(env!("CARGO_BIN_EXE_ikigai")));
    let lines: Vec<String> =
        failed.iter().map(|(slip, why)| format!("{}: {why}", slip.name)).collect();
    assert!(lines.is_empty(), "{} failed\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn the_slips_are_many_and_half_of_them_are_traps() {
    let slips = Slip::all();
    let traps = slips.iter().filter(|slip| slip.is_trap).count();
    let repaired = slips.iter().filter(|slip| slip.kind() == SlipKind::Repaired).count();
    assert!(slips.len() >= 150, "{}", slips.len());
    assert!(traps * 100 >= slips.len() * 48, "{traps} of {}", slips.len());
    assert!(repaired * 100 >= (slips.len() - traps) * 85, "{repaired} of {}", slips.len() - traps);
}
