//! Amounts of money: counted in whole micro-dollars, shown in dollars.

/// Micro-dollars as dollars, for JSON.
pub fn dollars(micro_dollars: u64) -> f64 {
    // Exact to the micro-dollar for all amounts below nine billion dollars.
    micro_dollars as f64 / 1e6
}

/// An amount for the user: `$12.34`, and with more digits below a dollar.
pub fn render_dollars(micro_dollars: u64) -> String {
    match micro_dollars {
        0 => "$0".to_owned(),
        1..1_000_000 => format!("${:.4}", dollars(micro_dollars.max(100))),
        _ => format!("${:.2}", dollars(micro_dollars)),
    }
}

/// An amount, exactly, with at least two decimals.
pub fn render_exact_dollars(micro_dollars: u64) -> String {
    let text = format!("${}.{:06}", micro_dollars / 1_000_000, micro_dollars % 1_000_000);
    let cents = text.len() - 4;
    let (whole, rest) = text.split_at(cents);
    format!("{whole}{}", rest.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_with_the_digits_that_matter() {
        for (amount, text) in [
            (0, "$0"),
            (1, "$0.0001"),
            (42_100, "$0.0421"),
            (999_999, "$1.0000"),
            (2_000_000, "$2.00"),
            (1_234_567_890, "$1234.57"),
        ] {
            assert_eq!(render_dollars(amount), text);
        }
        for (limit, text) in
            [(2_000_000, "$2.00"), (2_500_000, "$2.50"), (5_000, "$0.005"), (1, "$0.000001")]
        {
            assert_eq!(render_exact_dollars(limit), text);
        }
    }
}
