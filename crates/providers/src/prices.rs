//! What the tokens of a model cost, and what a request cost.

use serde::{Deserialize, Serialize};

use crate::response::Tokens;

/// The prices of a model. All amounts are whole micro-dollars per million tokens, so that costs are
/// exact.
///
/// ```
/// use ikigai_providers::{Prices, Rates, Tokens};
///
/// // 3 dollars per million tokens sent, 15 per million received.
/// let prices = Prices::flat(Rates { input: 3_000_000, cached: 300_000, cache_write: 3_750_000, output: 15_000_000 });
/// let tokens = Tokens { input: 1_000, output: 100, cache_read: Some(800), ..Tokens::default() };
/// assert_eq!(prices.cost(&tokens), 2_340);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    rates: Rates,
    /// The rates of requests that send more tokens than this, in ascending order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    long: Vec<(u64, Rates)>,
}

/// Prices by the sort of tokens, in micro-dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// Tokens sent that came from no cache and were written to none.
    pub input: u64,
    /// Tokens sent that came from a cache.
    pub cached: u64,
    /// Tokens sent that were written to a cache.
    pub cache_write: u64,
    /// Tokens received.
    pub output: u64,
}

impl Prices {
    /// The same rates for requests of every length.
    pub fn flat(rates: Rates) -> Prices {
        Prices { rates, long: Vec::new() }
    }

    /// Adds the rates of requests that send more than `tokens`, which is more than all earlier
    /// limits.
    pub(crate) fn with_long(mut self, tokens: u64, rates: Rates) -> Prices {
        self.long.push((tokens, rates));
        self
    }

    /// The rates of short requests, for lists.
    pub fn rates(&self) -> Rates {
        self.rates
    }

    /// What a request cost in micro-dollars. The products are added exactly, and rounded once: to
    /// the nearest micro-dollar, and up from half of one.
    pub fn cost(&self, tokens: &Tokens) -> u64 {
        const MILLION: u128 = 1_000_000;
        let long = self.long.iter().rev().find(|(limit, _)| tokens.input > *limit);
        let rates = long.map_or(self.rates, |(_, rates)| *rates);
        let cached = tokens.cache_read.unwrap_or(0).min(tokens.input);
        let written = tokens.cache_write.unwrap_or(0).min(tokens.input - cached);
        let parts = [
            (tokens.input - cached - written, rates.input),
            (cached, rates.cached),
            (written, rates.cache_write),
            (tokens.output, rates.output),
        ];
        let product = |(count, rate): (u64, u64)| u128::from(count) * u128::from(rate);
        // Four products of 64 bits each can exceed 128 bits by a hair.
        let sum = parts.into_iter().map(product).fold(0, u128::saturating_add);
        let rounded = sum.saturating_add(MILLION / 2) / MILLION;
        u64::try_from(rounded).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates { input: 1_250_000, cached: 125_000, cache_write: 0, output: 10 };

    #[track_caller]
    fn check(prices: &Prices, tokens: (u64, Option<u64>, Option<u64>, u64), cost: u64) {
        let (input, cache_read, cache_write, output) = tokens;
        let tokens = Tokens { input, output, cache_read, cache_write, ..Tokens::default() };
        assert_eq!(prices.cost(&tokens), cost, "{tokens:?}");
    }

    #[test]
    fn every_sort_of_token_has_its_rate() {
        let rates =
            Rates { input: 3_000_000, cached: 300_000, cache_write: 3_750_000, output: 15_000_000 };
        let prices = Prices::flat(rates);
        check(&prices, (1_000_000, None, None, 0), 3_000_000);
        check(&prices, (1_000_000, Some(1_000_000), None, 0), 300_000);
        check(&prices, (1_000_000, None, Some(1_000_000), 0), 3_750_000);
        check(&prices, (0, None, None, 1_000_000), 15_000_000);
        // 3 + 1.2 + 18.75 + 30 micro-dollars.
        check(&prices, (10, Some(4), Some(5), 2), 53);
    }

    #[test]
    fn a_cost_is_rounded_once_and_up_from_half() {
        let prices = Prices::flat(RATES);
        // 1.25, 2.5, 3.75 micro-dollars.
        check(&prices, (1, None, None, 0), 1);
        check(&prices, (2, None, None, 0), 3);
        check(&prices, (3, None, None, 0), 4);
        // 1.25 + 0.125 + 0.125: rounding each part would lose the half.
        check(&prices, (3, Some(2), None, 0), 2);
        check(&prices, (0, None, None, 49_999), 0);
        check(&prices, (0, None, None, 50_000), 1);
    }

    #[test]
    fn long_requests_have_their_own_rates() {
        let double = Rates { input: 2_500_000, ..RATES };
        let prices = Prices::flat(RATES).with_long(100, double).with_long(200, RATES);
        check(&prices, (100, None, None, 0), 125);
        check(&prices, (104, None, None, 0), 260);
        check(&prices, (208, None, None, 0), 260);
    }

    #[test]
    fn nonsense_from_a_server_costs_something_finite() {
        let prices = Prices::flat(Rates { input: u64::MAX, cached: u64::MAX, ..RATES });
        check(&prices, (u64::MAX, Some(u64::MAX), Some(u64::MAX), u64::MAX), u64::MAX);
        check(&Prices::flat(RATES), (8, Some(99), Some(99), 0), 1);
    }
}
