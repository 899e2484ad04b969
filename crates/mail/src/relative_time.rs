//! Relative times in words.

use ikigai_conversation::Time;

/// `2 minutes ago`, `yesterday`, …. A time in the future, by some other clock, is `just now`.
pub fn relative_time(then: Time, now: Time) -> String {
    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    match now.as_millis().saturating_sub(then.as_millis()) {
        ..MINUTE => "just now".to_owned(),
        ago @ ..HOUR => count(ago / MINUTE, "minute"),
        ago @ ..DAY => count(ago / HOUR, "hour"),
        ago if ago < 2 * DAY => "yesterday".to_owned(),
        ago => count(ago / DAY, "day"),
    }
}

fn count(number: i64, unit: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{plural} ago")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_use_the_largest_whole_unit() {
        let second = 1_000;
        let (minute, hour, day) = (60 * second, 3_600 * second, 86_400 * second);
        for (ago, expected) in [
            (-hour, "just now"),
            (0, "just now"),
            (minute - 1, "just now"),
            (minute, "1 minute ago"),
            (2 * minute - 1, "1 minute ago"),
            (2 * minute, "2 minutes ago"),
            (hour - 1, "59 minutes ago"),
            (hour, "1 hour ago"),
            (day - 1, "23 hours ago"),
            (day, "yesterday"),
            (2 * day - 1, "yesterday"),
            (2 * day, "2 days ago"),
            (400 * day, "400 days ago"),
        ] {
            let now = Time::from_millis(1_700_000_000_000);
            assert_eq!(relative_time(Time::from_millis(now.as_millis() - ago), now), expected);
        }
    }
}
