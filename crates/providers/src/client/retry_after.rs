//! Parses how long a server wants the client to wait.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::fmt::rfc2822;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// The delay in a response's headers: milliseconds from some providers, else seconds or a date.
pub(super) fn parse(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok();
    let exact = text("retry-after-ms").and_then(|value| seconds(value, 0.001));
    exact.or_else(|| {
        let value = text(RETRY_AFTER.as_str())?;
        seconds(value, 1.0).or_else(|| until(value, now))
    })
}

fn seconds(value: &str, unit: f64) -> Option<Duration> {
    let count: f64 = value.trim().parse().ok()?;
    Duration::try_from_secs_f64(count * unit).ok()
}

/// A date in the past means no delay.
fn until(value: &str, now: SystemTime) -> Option<Duration> {
    let date = rfc2822::DateTimeParser::new().parse_timestamp(value.trim()).ok()?;
    let now = now.duration_since(UNIX_EPOCH).ok()?;
    let date = Duration::from_secs(u64::try_from(date.as_second()).ok()?);
    Some(date.saturating_sub(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[(&'static str, &str)], expected_ms: Option<u64>) {
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let headers: HeaderMap = headers.collect();
        // Sun, 06 Nov 1994 08:49:37 GMT, in the middle of the second.
        let now = UNIX_EPOCH + Duration::from_millis(784_111_777_500);
        assert_eq!(parse(&headers, now), expected_ms.map(Duration::from_millis));
    }

    #[test]
    fn seconds_milliseconds_and_dates_are_parsed() {
        check(&[], None);
        check(&[("retry-after", "7")], Some(7000));
        check(&[("retry-after", " 1.5 ")], Some(1500));
        check(&[("retry-after-ms", "250"), ("retry-after", "7")], Some(250));
        check(&[("retry-after-ms", "x"), ("retry-after", "7")], Some(7000));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT")], Some(2500));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], Some(0));
    }

    #[test]
    fn malformed_values_are_ignored() {
        for value in ["", "-1", "NaN", "inf", "1e300", "soon", "Sun, 99 Nov 1994 08:49:40 GMT"] {
            check(&[("retry-after", value)], None);
        }
    }
}
