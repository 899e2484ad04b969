//! Models that can be chosen, with what is known about them.

use serde::Serialize;

use crate::money::render_exact_dollars;

/// A model in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ModelSummary {
    /// `provider/name`.
    pub label: String,
    /// How many tokens fit into its context.
    pub context_tokens: Option<u64>,
    /// How many tokens one response has at most.
    pub max_output: Option<u64>,
    /// What its tokens cost.
    pub prices: Option<ModelPrices>,
    /// Whether it takes images.
    pub images: Option<bool>,
    /// Whether its reasoning effort can be chosen.
    pub effort: Option<bool>,
    /// Whether it calls tools.
    pub tools: Option<bool>,
}

/// Prices in micro-dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ModelPrices {
    /// Of tokens sent.
    pub input: u64,
    /// Of tokens sent that came from a cache.
    pub cached: u64,
    /// Of tokens sent that were written to a cache.
    pub cache_write: u64,
    /// Of tokens received.
    pub output: u64,
}

impl ModelSummary {
    /// Its window and its prices: `200k`, `$3.00`, `$15.00`; a dash for what is not known.
    pub fn window_and_prices(&self) -> [String; 3] {
        let unknown = || "-".to_owned();
        let price = |of: fn(ModelPrices) -> u64| {
            self.prices.map_or_else(unknown, |prices| render_exact_dollars(of(prices)))
        };
        let window = self.context_tokens.map_or_else(unknown, render_window);
        [window, price(|prices| prices.input), price(|prices| prices.output)]
    }

    /// What it can do, as far as that is known: `images, effort`.
    fn abilities(&self) -> String {
        let abilities = [("images", self.images), ("effort", self.effort), ("tools", self.tools)];
        let has = |(name, has): (&'static str, Option<bool>)| (has == Some(true)).then_some(name);
        abilities.into_iter().filter_map(has).collect::<Vec<_>>().join(", ")
    }
}

/// A question about similar names, after a blank: ` Did you mean a or b?`. Empty if there are none.
pub fn did_you_mean(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [name] => format!(" Did you mean {name}?"),
        [names @ .., last] => format!(" Did you mean {} or {last}?", names.join(", ")),
    }
}

/// A table with aligned columns.
pub fn render_models(models: &[ModelSummary]) -> String {
    if models.is_empty() {
        return "No models".to_owned();
    }
    let heading = ["model", "context", "input", "output", ""].map(str::to_owned);
    let row = |model: &ModelSummary| {
        let [window, input, output] = model.window_and_prices();
        [model.label.clone(), window, input, output, model.abilities()]
    };
    let rows: Vec<[String; 5]> = [heading].into_iter().chain(models.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..4).map(|column| width(column).unwrap_or(0)).collect();
    let line = |[label, window, input, output, abilities]: &[String; 5]| {
        let [names, windows, inputs, outputs] = widths[..] else { return label.clone() };
        let line = format!(
            "{label:<names$}  {window:>windows$}  {input:>inputs$}  {output:>outputs$}  {abilities}"
        );
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A number of tokens that is usually round: `8192`, `200k`, `1.05M`.
fn render_window(tokens: u64) -> String {
    match tokens {
        0..10_000 => tokens.to_string(),
        10_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => {
            let hundredths = (tokens + 5_000) / 10_000;
            let number = format!("{}.{:02}", hundredths / 100, hundredths % 100);
            format!("{}M", number.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_shows_what_is_known() {
        let rates = |input, output| ModelPrices { input, cached: 1, cache_write: 1, output };
        let known = ModelSummary {
            label: "anthropic/claude-sonnet-4-5".to_owned(),
            context_tokens: Some(200_000),
            prices: Some(rates(3_000_000, 15_000_000)),
            images: Some(true),
            effort: Some(true),
            ..ModelSummary::default()
        };
        let local = ModelSummary {
            label: "local/small".to_owned(),
            context_tokens: Some(8_192),
            images: Some(false),
            ..ModelSummary::default()
        };
        let cheap = ModelSummary {
            label: "google/gemini".to_owned(),
            context_tokens: Some(1_048_576),
            prices: Some(rates(75_000, 300_000)),
            ..ModelSummary::default()
        };
        let expected = "\
model                        context   input  output
anthropic/claude-sonnet-4-5     200k   $3.00  $15.00  images, effort
local/small                     8192       -       -
google/gemini                  1.05M  $0.075   $0.30";
        assert_eq!(render_models(&[known, local, cheap]), expected);
        assert_eq!(render_models(&[]), "No models");
    }
}
