//! How long something took, as text.

use std::time::Duration;

/// How long something took: `0.4s`, `14s`, `1m 05s`, `2h 03m`.
pub fn render_duration(duration: Duration) -> String {
    match duration.as_secs() {
        0..10 => format!("{}.{}s", duration.as_secs(), duration.subsec_millis() / 100),
        _ => render_elapsed(duration),
    }
}

/// How long something has been going on, in whole seconds: `0s`, `14s`, `1m 05s`, `2h 03m`.
pub fn render_elapsed(elapsed: Duration) -> String {
    match elapsed.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        seconds => format!("{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_two_units_at_most() {
        let of = |millis| render_duration(Duration::from_millis(millis));
        assert_eq!([of(0), of(449), of(9_999)], ["0.0s", "0.4s", "9.9s"]);
        assert_eq!([of(14_900), of(65_000), of(7_400_000)], ["14s", "1m 05s", "2h 03m"]);
        assert_eq!(render_elapsed(Duration::from_millis(4_900)), "4s");
    }
}
