//! The bundled table of prices and context windows.

use genai_prices::{Calculator, PriceRequest, Usage, UsageKey};

use crate::model_facts::ModelFacts;
use crate::prices::{Prices, Rates};

/// Where the table has a model: the name of its provider, or the address of its server.
#[derive(Debug, Clone, Copy)]
pub enum Service<'a> {
    /// A provider by name, such as `anthropic`.
    Name(&'a str),
    /// A base address.
    Address(&'a str),
}

impl ModelFacts {
    /// The facts about a model in the bundled table. The first call decodes the table, which takes
    /// 20 ms.
    pub fn bundled(service: Service<'_>, model: &str) -> ModelFacts {
        let table = Calculator::bundled();
        let found = match service {
            Service::Name(name) => table.find_provider(Some(name), None),
            Service::Address(address) => table.find_provider(None, Some(address)),
        };
        let Ok(Some(provider)) = found else { return ModelFacts::default() };
        let asked = Asked { table, provider: provider.id(), model };
        let Some(matched) = asked.matched() else { return ModelFacts::default() };
        // The model may be listed by another provider, whose service this one offers.
        let models = table.providers().filter(|listed| listed.id() == matched.provider_id);
        let window = models
            .flat_map(genai_prices::ProviderInfo::models)
            .find_map(|listed| listed.context_window().filter(|_| listed.id() == matched.model_id));
        ModelFacts { context_window: window, prices: asked.prices(), ..ModelFacts::default() }
    }
}

/// The prices of one model. The table only answers what a request costs, so each rate is asked for
/// by a request of its own.
struct Asked<'a> {
    table: &'static Calculator,
    provider: &'a str,
    model: &'a str,
}

/// No model takes more, so prices do not change beyond.
const LONGEST: u64 = 16_000_000;

impl Asked<'_> {
    fn matched(&self) -> Option<genai_prices::PriceCalculation> {
        self.calculate(&[])
    }

    fn calculate(&self, usage: &[(UsageKey, u64)]) -> Option<genai_prices::PriceCalculation> {
        // Token counts are far below the 2^53 up to which this is exact.
        let usage: Usage = usage.iter().map(|(key, count)| (key.clone(), *count as f64)).collect();
        let request = PriceRequest::new(self.model, &usage).with_provider_id(self.provider);
        self.table.calculate(&request).ok()
    }

    /// `None` if the model has no price per token.
    fn prices(&self) -> Option<Prices> {
        let mut from = 1;
        let mut rates = self.rates(from)?;
        if rates == (Rates { input: 0, cached: 0, cache_write: 0, output: 0 }) {
            return None;
        }
        let mut prices = Prices::flat(rates);
        // Two steps are the most that the table has; a wrong table must not loop.
        for _ in 0..4 {
            let longest = self.rates(LONGEST)?;
            if longest == rates {
                break;
            }
            let (mut cheap, mut dear) = (from, LONGEST);
            while dear - cheap > 1 {
                let middle = cheap.midpoint(dear);
                match self.rates(middle)? == rates {
                    true => cheap = middle,
                    false => dear = middle,
                }
            }
            (from, rates) = (dear, self.rates(dear)?);
            prices = prices.with_long(cheap, rates);
        }
        Some(prices)
    }

    /// The rates of a request that sends this many tokens.
    fn rates(&self, input: u64) -> Option<Rates> {
        let sent = (UsageKey::INPUT_TOKENS, input);
        let rate = |more: Option<UsageKey>| {
            let usage: Vec<_> =
                [sent.clone()].into_iter().chain(more.map(|key| (key, input))).collect();
            Some(per_million(self.calculate(&usage)?.input_price, input))
        };
        let output = self.calculate(&[sent.clone(), (UsageKey::OUTPUT_TOKENS, 1)])?.output_price;
        let full = rate(None)?;
        // Without a price of its own, a sort is charged like other tokens sent.
        Some(Rates {
            input: full,
            cached: rate(Some(UsageKey::CACHE_READ_TOKENS))?,
            cache_write: rate(Some(UsageKey::CACHE_WRITE_TOKENS))?,
            output: per_million(output, 1),
        })
    }
}

/// A price in dollars for this many tokens, as micro-dollars per million tokens.
fn per_million(price: f64, tokens: u64) -> u64 {
    let rate = price * 1e12 / tokens as f64;
    // Negative and absurd values of a wrong table become the nearest possible ones.
    rate.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::Tokens;

    #[test]
    fn a_model_is_found_by_its_provider_or_its_servers_address() {
        let by_name = ModelFacts::bundled(Service::Name("anthropic"), "claude-sonnet-4-5");
        let rates =
            Rates { input: 3_000_000, cached: 300_000, cache_write: 3_750_000, output: 15_000_000 };
        assert_eq!(by_name.prices.as_ref().unwrap().rates(), rates);
        assert!(by_name.context_window.is_some());
        let address = Service::Address("https://api.anthropic.com");
        assert_eq!(ModelFacts::bundled(address, "claude-sonnet-4-5"), by_name);
    }

    #[test]
    fn an_unknown_model_or_service_has_no_facts() {
        for (service, model) in [
            (Service::Name("openai"), "no-such-model"),
            (Service::Name("no-such-provider"), "gpt-5"),
            (Service::Address("https://models.example.org"), "gpt-5"),
            (Service::Name(""), ""),
        ] {
            assert_eq!(ModelFacts::bundled(service, model), ModelFacts::default(), "{model}");
        }
    }

    #[test]
    fn a_request_that_is_long_costs_more_where_the_table_says_so() {
        let facts = ModelFacts::bundled(Service::Name("google"), "gemini-2.5-pro");
        let prices = facts.prices.unwrap();
        let cost = |input| prices.cost(&Tokens { input, output: 1_000, ..Tokens::default() });
        assert_eq!(cost(200_000), 250_000 + 10_000);
        assert_eq!(cost(200_001), 500_003 + 15_000);
    }

    /// The rates are read back through requests; they must be those that the table charges.
    #[test]
    fn costs_are_those_of_the_table() {
        let table = Calculator::bundled();
        for (provider, model) in [
            ("openai", "gpt-5"),
            ("openai", "gpt-5-mini"),
            ("openai", "gpt-5.5"),
            ("anthropic", "claude-haiku-4-5"),
            ("anthropic", "claude-opus-4-1"),
            ("google", "gemini-2.5-flash"),
            ("google", "gemini-2.5-pro"),
        ] {
            let prices = ModelFacts::bundled(Service::Name(provider), model).prices.unwrap();
            for (input, cached, output) in [(1, 0, 1), (12_345, 10_000, 678), (250_000, 9, 64_000)]
            {
                let usage = Usage::from([
                    (UsageKey::INPUT_TOKENS, f64::from(input)),
                    (UsageKey::CACHE_READ_TOKENS, f64::from(cached)),
                    (UsageKey::OUTPUT_TOKENS, f64::from(output)),
                ]);
                let request = PriceRequest::new(model, &usage).with_provider_id(provider);
                let dollars = table.calculate(&request).unwrap().total_price;
                let tokens = Tokens {
                    input: u64::try_from(input).unwrap(),
                    output: u64::try_from(output).unwrap(),
                    cache_read: u64::try_from(cached).ok(),
                    ..Tokens::default()
                };
                let ours = prices.cost(&tokens) as f64;
                assert!((ours - dollars * 1e6).abs() <= 0.5 + 1e-6, "{model}: {ours} {dollars}");
            }
        }
    }
}
