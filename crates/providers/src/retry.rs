//! When to retry a request. Pure: nothing waits here.

use std::time::Duration;

use crate::fault::Fault;

/// A longer delay is not waited for: the user should know, and decide.
const LONGEST_DELAY: Duration = Duration::from_secs(5 * 60);

/// The retries of one request.
#[derive(Debug)]
pub(crate) struct Retries {
    left: u32,
    /// The delay before jitter. It doubles every time.
    delay: Duration,
    random: Random,
}

impl Retries {
    pub(crate) fn new(count: u32, first_delay: Duration, seed: u64) -> Retries {
        Retries { left: count, delay: first_delay, random: Random(seed) }
    }

    /// How long to wait before the next attempt; `None` if there is none.
    pub(crate) fn next(&mut self, fault: &Fault) -> Option<Duration> {
        if !fault.category.is_transient() || self.left == 0 {
            return None;
        }
        let wanted = fault.retry_after.unwrap_or_default();
        if wanted > LONGEST_DELAY {
            return None;
        }
        self.left -= 1;
        // Between 50 and 100 %, so that agents that failed together do not retry together.
        let jittered = self.delay / 2 + self.random.below(self.delay / 2);
        self.delay = self.delay.saturating_mul(2);
        Some(match wanted.is_zero() {
            true => jittered,
            false => wanted + self.random.below(wanted / 10),
        })
    }
}

/// splitmix64, which is random enough to spread retries.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, end: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let share = (mixed ^ (mixed >> 31)) >> 32;
        // A fraction in parts of 2^32. A delay of some minutes in nanoseconds has 40 bits.
        let nanoseconds = (end.as_nanos() * u128::from(share)) >> 32;
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Category;

    fn delays(fault: &Fault, seed: u64) -> Vec<Duration> {
        let mut retries = Retries::new(5, Duration::from_millis(500), seed);
        std::iter::from_fn(|| retries.next(fault)).collect()
    }

    #[test]
    fn delays_double_and_are_spread_over_their_upper_half() {
        let fault = Fault::new(Category::Server, "x");
        let mut all = Vec::new();
        for seed in 0..1000 {
            let delays = delays(&fault, seed);
            assert_eq!(delays.len(), 5);
            for (delay, full) in delays.iter().zip([500, 1000, 2000, 4000, 8000]) {
                let full = Duration::from_millis(full);
                assert!((full / 2..=full).contains(delay), "{delay:?} of {full:?}");
            }
            all.push(delays[0]);
        }
        all.sort();
        assert!(all[0] < Duration::from_millis(260) && all[999] > Duration::from_millis(490));
    }

    #[test]
    fn only_transient_faults_are_retried() {
        let categories = [Category::KeyRefused, Category::Quota, Category::Refused];
        for category in categories {
            assert_eq!(delays(&Fault::new(category, "x"), 1), []);
        }
        for category in [Category::RateLimit, Category::Server, Category::Network] {
            assert_eq!(delays(&Fault::new(category, "x"), 1).len(), 5);
        }
    }

    #[test]
    fn the_servers_delay_is_used_unless_it_is_too_long() {
        let mut fault = Fault::new(Category::RateLimit, "x");
        let minute = Duration::from_secs(60);
        fault.retry_after = Some(minute);
        let delays_of_a_minute = delays(&fault, 1);
        assert_eq!(delays_of_a_minute.len(), 5);
        assert!(delays_of_a_minute.iter().all(|delay| (minute..minute * 11 / 10).contains(delay)));
        fault.retry_after = Some(5 * minute);
        assert_eq!(delays(&fault, 1).len(), 5);
        fault.retry_after = Some(5 * minute + Duration::from_millis(1));
        assert_eq!(delays(&fault, 1), []);
        fault.retry_after = Some(Duration::MAX);
        assert_eq!(delays(&fault, 1), []);
        fault.retry_after = Some(Duration::ZERO);
        assert!(delays(&fault, 1)[0] >= Duration::from_millis(250));
    }

    #[test]
    fn no_retries_and_no_delay_are_possible() {
        let fault = Fault::new(Category::Server, "x");
        assert_eq!(Retries::new(0, Duration::from_secs(1), 1).next(&fault), None);
        assert_eq!(Retries::new(1, Duration::ZERO, 1).next(&fault), Some(Duration::ZERO));
    }
}
