//! Times of messages. Pure: nothing here reads a clock.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

/// A point in time, with millisecond precision.
///
/// ```
/// use ikigai_conversation::Time;
///
/// let time = Time::from_millis(1_705_314_600_123);
/// assert_eq!(time.to_string(), "2024-01-15T10:30:00.123Z");
/// assert_eq!(time.to_seconds_text(), "2024-01-15T10:30:00Z");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Time {
    /// Milliseconds since the Unix epoch, from `EARLIEST` to `LATEST`.
    millis: i64,
}

/// The start of the year 0000, the earliest time that RFC 3339 can represent.
const EARLIEST: i64 = -62_167_219_200_000;
/// The second to last day of the year 9999: up to here the year has four digits in every time zone.
const LATEST: i64 = 253_402_207_200_000;

impl Time {
    /// The time `millis` milliseconds after the Unix epoch.
    ///
    /// Times outside the years 0000 to 9999 are clamped: a wrong clock is no reason to lose a
    /// message.
    pub fn from_millis(millis: i64) -> Time {
        Time { millis: millis.clamp(EARLIEST, LATEST) }
    }

    /// Milliseconds since the Unix epoch.
    pub fn as_millis(self) -> i64 {
        self.millis
    }

    /// Parses RFC 3339 in any time zone. Fractions of a millisecond are dropped.
    pub fn parse(text: &str) -> Result<Time, jiff::Error> {
        let timestamp: Timestamp = text.parse()?;
        Ok(Time::from_millis(timestamp.as_nanosecond().div_euclid(1_000_000) as i64))
    }

    /// RFC 3339 in UTC with seconds, as used in mail. [`Display`](fmt::Display) has milliseconds.
    pub fn to_seconds_text(self) -> String {
        format!("{:.0}", Time { millis: self.millis.div_euclid(1000) * 1000 }.timestamp())
    }

    fn timestamp(self) -> Timestamp {
        Timestamp::from_millisecond(self.millis).expect("clamped to years that a timestamp has")
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.timestamp())
    }
}

impl TryFrom<String> for Time {
    type Error = jiff::Error;

    fn try_from(text: String) -> Result<Time, jiff::Error> {
        Time::parse(&text)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(millis: i64, text: &str, seconds: &str) {
        let time = Time::from_millis(millis);
        assert_eq!((time.to_string().as_str(), time.to_seconds_text().as_str()), (text, seconds));
    }

    #[test]
    fn times_are_written_in_utc_and_never_rounded_up() {
        check(0, "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00Z");
        check(1_705_314_600_999, "2024-01-15T10:30:00.999Z", "2024-01-15T10:30:00Z");
        check(-1, "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59Z");
        check(1_709_164_800_000, "2024-02-29T00:00:00.000Z", "2024-02-29T00:00:00Z");
    }

    #[test]
    fn a_time_out_of_range_is_clamped() {
        check(i64::MAX, "9999-12-30T22:00:00.000Z", "9999-12-30T22:00:00Z");
        check(i64::MIN, "0000-01-01T00:00:00.000Z", "0000-01-01T00:00:00Z");
    }

    #[test]
    fn any_time_zone_and_precision_is_parsed() {
        for (text, millis) in [
            ("1970-01-01T01:00:00+01:00", 0),
            ("1970-01-01T00:00:00.0019Z", 1),
            ("1969-12-31T23:59:59.9999Z", -1),
        ] {
            assert_eq!(Time::parse(text).unwrap(), Time::from_millis(millis), "{text}");
        }
        for text in ["", "yesterday", "2024-13-01T00:00:00Z", "2024-01-15", "2024-01-15T10:30:00"] {
            assert!(Time::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_time_round_trips(millis in EARLIEST..=LATEST) {
            let time = Time::from_millis(millis);
            prop_assert_eq!(Time::parse(&time.to_string()).unwrap(), time);
            prop_assert_eq!(time.as_millis(), millis);
        }
    }
}
