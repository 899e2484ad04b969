//! The kinds of settings: how a value is read from a file or from text,
//! and which values are allowed.

use toml::Spanned;
use toml::de::DeValue;

use crate::error::ValueError;
use crate::escape::excerpt;
use crate::lines::Lines;
use crate::providers;
use crate::rules::{self, RuleEntry};
use crate::secret_url::SecretUrl;
use crate::tools::KnownTools;

/// A checked value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Url(SecretUrl),
    Number(u64),
    /// An amount of money in micro-dollars.
    Dollars(u64),
    Switch(bool),
    /// A share in percent.
    Percent(u32),
    List(Vec<String>),
    Rules(Vec<RuleEntry>),
}

/// What a setting may contain.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Text with its own check, which also decides how much of a wrong value is shown.
    Text(fn(&str) -> Result<Value, ValueError>),
    Choice(&'static [&'static str]),
    Number {
        least: u64,
        most: u64,
    },
    /// An amount of money, given in dollars with at most six decimals; the limits are in
    /// micro-dollars.
    Dollars {
        least: u64,
        most: u64,
    },
    Switch,
    /// A share, written as a fraction: `0.85`.
    Share,
    /// A list of strings with a check for each. In a variable they are separated by commas.
    List(fn(&str) -> Result<(), ValueError>),
    /// A list of tools.
    Tools,
    /// The rules, which only a file can contain.
    Rules,
}

const LIST: &str = "a list of strings";

/// What is wrong in a file, and in which line.
#[derive(Debug)]
pub(crate) struct WrongLine {
    pub(crate) line: usize,
    pub(crate) wrong: ValueError,
}

impl Kind {
    /// Reads a value from a variable or a flag.
    pub(crate) fn parse(&self, text: &str, tools: &KnownTools) -> Result<Value, ValueError> {
        match self {
            Kind::Text(parse) => parse(text),
            Kind::Choice(allowed) => choose(text, allowed),
            Kind::Number { least, most } => {
                if !is_whole_number(text) {
                    return Err(ValueError::NoNumber {
                        shown: excerpt(text),
                        least: *least,
                        most: *most,
                    });
                }
                in_range(text.parse().ok(), text, *least, *most)
            }
            Kind::Dollars { least, most } => dollars(text, *least, *most),
            Kind::Switch => match text {
                "true" => Ok(Value::Switch(true)),
                "false" => Ok(Value::Switch(false)),
                other => {
                    Err(ValueError::NoChoice { shown: excerpt(other), allowed: &["true", "false"] })
                }
            },
            Kind::Share => share(text),
            Kind::List(check) => parse_list(text, check),
            Kind::Tools => parse_list(text, |name| tools.check_entry(name)),
            Kind::Rules => Err(ValueError::RulesBelongInAFile),
        }
    }

    /// Reads a value from a file. `line` is the line of its key.
    pub(crate) fn read(
        &self,
        value: &Spanned<DeValue<'_>>,
        line: usize,
        lines: &Lines,
        tools: &KnownTools,
    ) -> Result<Value, WrongLine> {
        let checked = match (self, value.get_ref()) {
            (Kind::Text(parse), DeValue::String(text)) => parse(text),
            (Kind::Choice(allowed), DeValue::String(text)) => choose(text, allowed),
            (Kind::Number { least, most }, DeValue::Integer(number)) => {
                let shown = number.to_string();
                let number = u64::from_str_radix(number.as_str(), number.radix()).ok();
                in_range(number, &shown, *least, *most)
            }
            (Kind::Dollars { least, most }, DeValue::Float(amount)) => {
                dollars(amount.as_str(), *least, *most)
            }
            (Kind::Dollars { least, most }, DeValue::Integer(amount)) if amount.radix() == 10 => {
                dollars(amount.as_str(), *least, *most)
            }
            (Kind::Switch, DeValue::Boolean(switch)) => Ok(Value::Switch(*switch)),
            (Kind::Share, DeValue::Float(number)) => share(number.as_str()),
            (Kind::Share, DeValue::Integer(number)) => share(number.as_str()),
            (Kind::List(check), DeValue::Array(items)) => return read_list(items, check, lines),
            (Kind::Tools, DeValue::Array(items)) => {
                return read_list(items, |name| tools.check_entry(name), lines);
            }
            (Kind::Rules, _) => return rules::read(value, lines, tools).map(Value::Rules),
            (
                Kind::Text(_)
                | Kind::Choice(_)
                | Kind::Number { .. }
                | Kind::Dollars { .. }
                | Kind::Switch
                | Kind::Share
                | Kind::List(_)
                | Kind::Tools,
                other,
            ) => Err(ValueError::Type { found: found(other), wanted: self.wanted() }),
        };
        checked.map_err(|wrong| WrongLine { line, wrong })
    }

    /// What a value of another type should have been.
    fn wanted(&self) -> String {
        match self {
            Kind::Text(_) => "a string".to_owned(),
            Kind::Choice(allowed) => format!("one of {}", allowed.join(", ")),
            Kind::Number { least, most } => format!("a whole number from {least} to {most}"),
            Kind::Dollars { .. } => "an amount in dollars such as 2.50".to_owned(),
            Kind::Switch => "true or false".to_owned(),
            Kind::Share => "a number from 0.1 to 1".to_owned(),
            Kind::List(_) | Kind::Tools => LIST.to_owned(),
            Kind::Rules => "a list of tables [[rules]]".to_owned(),
        }
    }
}

fn parse_list(
    text: &str,
    check: impl Fn(&str) -> Result<(), ValueError>,
) -> Result<Value, ValueError> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    let items = items.map(|item| check(item).map(|()| item.to_owned()));
    items.collect::<Result<_, _>>().map(Value::List)
}

fn read_list(
    items: &[Spanned<DeValue<'_>>],
    check: impl Fn(&str) -> Result<(), ValueError>,
    lines: &Lines,
) -> Result<Value, WrongLine> {
    let read = |item: &Spanned<DeValue<'_>>| {
        let checked = match item.get_ref() {
            DeValue::String(text) => check(text).map(|()| text.clone().into_owned()),
            other => Err(ValueError::Type { found: found(other), wanted: LIST.to_owned() }),
        };
        checked.map_err(|wrong| WrongLine { line: lines.line(item.span().start), wrong })
    };
    items.iter().map(read).collect::<Result<_, _>>().map(Value::List)
}

/// Checks an entry of `sandbox.read`, `sandbox.hide` and `sandbox.write`. A relative path would
/// mean a different folder in each project.
pub(crate) fn check_full_path(path: &str) -> Result<(), ValueError> {
    if path.starts_with('/') || path.starts_with("~/") || path == "~" {
        Ok(())
    } else {
        Err(ValueError::NoFullPath { shown: excerpt(path) })
    }
}

/// Checks an entry of `sandbox.env`.
pub(crate) fn check_variable_name(name: &str) -> Result<(), ValueError> {
    providers::parse_variable_name(name).map(drop)
}

/// The type of a value in a file, for messages.
pub(crate) fn found(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

pub(crate) fn choose(text: &str, allowed: &'static [&'static str]) -> Result<Value, ValueError> {
    if allowed.contains(&text) {
        Ok(Value::Text(text.to_owned()))
    } else {
        Err(ValueError::NoChoice { shown: excerpt(text), allowed })
    }
}

/// Reads an amount in dollars exactly: money is counted in whole micro-dollars.
fn dollars(text: &str, least: u64, most: u64) -> Result<Value, ValueError> {
    match micro_dollars(text).filter(|amount| (least..=most).contains(amount)) {
        Some(amount) => Ok(Value::Dollars(amount)),
        None => Err(ValueError::NoDollars {
            shown: excerpt(text),
            least: render_dollars(least),
            most: render_dollars(most),
        }),
    }
}

/// An amount with at most six decimals.
fn micro_dollars(text: &str) -> Option<u64> {
    const DECIMALS: usize = 6;
    let text = text.strip_prefix('+').unwrap_or(text).replace('_', "");
    let (whole, part) = text.split_once('.').unwrap_or((&text, "0"));
    let are_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(part) || part.len() > DECIMALS {
        return None;
    }
    format!("{whole}{part:0<DECIMALS$}").parse().ok()
}

/// An amount as it is written in a file.
pub(crate) fn render_dollars(micro_dollars: u64) -> String {
    let text = format!("{}.{:06}", micro_dollars / 1_000_000, micro_dollars % 1_000_000);
    let short = text.trim_end_matches('0');
    // TOML needs a digit behind the point, and money usually has two.
    let decimals = short.len() - short.find('.').unwrap_or(0) - 1;
    format!("{short}{}", "0".repeat(2_usize.saturating_sub(decimals)))
}

/// Reads a share as percent.
fn share(text: &str) -> Result<Value, ValueError> {
    let percent = text.parse::<f64>().ok().map(|share| (share * 100.0).round());
    match percent {
        // In range, so the conversion is exact.
        Some(percent) if (10.0..=100.0).contains(&percent) => Ok(Value::Percent(percent as u32)),
        Some(_) | None => Err(ValueError::NoShare { shown: excerpt(text) }),
    }
}

fn is_whole_number(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// `None` stands for a number too long for any integer. It is out of range like any other.
fn in_range(number: Option<u64>, shown: &str, least: u64, most: u64) -> Result<Value, ValueError> {
    match number {
        Some(number) if (least..=most).contains(&number) => Ok(Value::Number(number)),
        Some(_) | None => Err(ValueError::OutOfRange { shown: excerpt(shown), least, most }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_in_dollars_is_read_exactly_and_written_back() {
        for (text, amount, written) in [
            ("2", 2_000_000, "2.00"),
            ("2.5", 2_500_000, "2.50"),
            ("+0.075", 75_000, "0.075"),
            ("0.000001", 1, "0.000001"),
            ("1_000.10", 1_000_100_000, "1000.10"),
            ("0", 0, "0.00"),
        ] {
            assert_eq!(micro_dollars(text), Some(amount), "{text}");
            assert_eq!(render_dollars(amount), written);
            assert_eq!(micro_dollars(written), Some(amount));
        }
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "1e3",
            "inf",
            "nan",
            "0.0000001",
            "1,5",
            "$2",
            "9".repeat(30).as_str(),
        ] {
            assert_eq!(micro_dollars(text), None, "{text}");
        }
    }
}
