//! From a call's raw JSON to typed values, with the errors of the dispatcher.

use std::fmt;

use serde_json::{Map, Value};

use crate::declaration::ParameterType;
use crate::result::Refusal;

/// The arguments of one call: a JSON object as the model sent it.
#[derive(Debug, Default)]
pub struct Arguments(pub(crate) Map<String, Value>);

impl Arguments {
    /// Reads `json`; nothing at all counts as `{}`, since that is how some servers send a call
    /// without arguments.
    ///
    /// serde_json refuses nesting beyond 128 levels, lone surrogates and broken UTF-8, and the last of
    /// several equal keys counts.
    pub(crate) fn parse_json(json: &[u8]) -> Result<Arguments, Refusal> {
        if json.trim_ascii().is_empty() {
            return Ok(Arguments(Map::new()));
        }
        serde_json::from_slice(json).map(Arguments).map_err(|_| Refusal::InvalidJson)
    }

    /// The raw value of a parameter, for a tool that has checks and texts of its own.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The value of one parameter. `null` counts as absent, since models fill in what they leave out.
    #[allow(clippy::missing_errors_doc, reason = "as Argument::parse")]
    pub fn take<T: Argument>(&self, name: &'static str) -> Result<T, Refusal> {
        T::parse(self.0.get(name).filter(|value| !value.is_null()), name)
    }
}

/// All of them, as JSON on one line.
impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string(&self.0).map_err(|_| fmt::Error)?;
        f.write_str(&json)
    }
}

/// A type that a parameter can have in the declaration of a tool.
pub trait Argument: Sized {
    /// What the schema says of it.
    const TYPE: ParameterType;
    /// Whether a call without it is refused.
    const REQUIRED: bool;

    /// Reads the value, `None` when the call has no such parameter.
    ///
    /// # Errors
    /// What a model is told that left it out, or sent something else.
    fn parse(value: Option<&Value>, name: &'static str) -> Result<Self, Refusal>;
}

impl Argument for String {
    const TYPE: ParameterType = ParameterType::Text;
    const REQUIRED: bool = true;

    fn parse(value: Option<&Value>, name: &'static str) -> Result<Self, Refusal> {
        value.and_then(Value::as_str).map(str::to_owned).ok_or(Refusal::Missing(name))
    }
}

impl Argument for Option<String> {
    const TYPE: ParameterType = ParameterType::Text;
    const REQUIRED: bool = false;

    fn parse(value: Option<&Value>, name: &'static str) -> Result<Self, Refusal> {
        optional(value, name, |value| value.as_str().map(str::to_owned))
    }
}

impl Argument for Option<bool> {
    const TYPE: ParameterType = ParameterType::Boolean;
    const REQUIRED: bool = false;

    fn parse(value: Option<&Value>, name: &'static str) -> Result<Self, Refusal> {
        optional(value, name, Value::as_bool)
    }
}

/// A text of one kind, which decides how other values are [repaired](ParameterType).
macro_rules! text_of_a_kind {
    ($(#[doc = $about:literal])+ $Text:ident) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $Text(pub String);

        impl Argument for $Text {
            const TYPE: ParameterType = ParameterType::$Text;
            const REQUIRED: bool = true;

            fn parse(value: Option<&Value>, name: &'static str) -> Result<Self, Refusal> {
                String::parse(value, name).map($Text)
            }
        }
    };
}

text_of_a_kind! {
    /// A command for a shell.
    ShellCommand
}
text_of_a_kind! {
    /// All that a file is to hold.
    FileContent
}

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy)]
pub struct Whole<const MIN: u64, const MAX: u64>(pub u64);

impl<const MIN: u64, const MAX: u64> Argument for Option<Whole<MIN, MAX>> {
    const TYPE: ParameterType = ParameterType::Integer;
    const REQUIRED: bool = false;

    fn parse(value: Option<&Value>, name: &'static str) -> Result<Self, Refusal> {
        optional(value, name, |value| whole(value).filter(|n| (MIN..=MAX).contains(n)).map(Whole))
    }
}

/// A type whose values have names.
pub trait Choice: Sized + Copy + 'static {
    /// The names, as the schema has them.
    const NAMES: &'static [&'static str];
    /// The values, in the order of their names.
    const VALUES: &'static [Self];
}

impl<T: Choice> Argument for Option<T> {
    const TYPE: ParameterType = ParameterType::Choice(T::NAMES);
    const REQUIRED: bool = false;

    fn parse(value: Option<&Value>, name: &'static str) -> Result<Self, Refusal> {
        optional(value, name, |value| {
            let at = T::NAMES.iter().position(|name| value.as_str() == Some(name))?;
            T::VALUES.get(at).copied()
        })
    }
}

/// Several texts; models also send a number where an id is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts(pub Vec<String>);

impl Texts {
    /// A longer list is a mistake.
    const LONGEST: usize = 1_000;
}

impl Argument for Option<Texts> {
    const TYPE: ParameterType = ParameterType::Texts;
    const REQUIRED: bool = false;

    fn parse(value: Option<&Value>, name: &'static str) -> Result<Self, Refusal> {
        optional(value, name, |value| match value {
            Value::Array(all) if all.len() <= Texts::LONGEST => {
                all.iter().map(text).collect::<Option<_>>().map(Texts)
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => None,
        })
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => number.as_u64().map(|number| number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn optional<T>(
    value: Option<&Value>,
    name: &'static str,
    parse: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, Refusal> {
    value.map(|value| parse(value).ok_or(Refusal::Invalid(name))).transpose()
}

/// A whole number, also as models send it: `"20"` or `20.0`.
fn whole(value: &Value) -> Option<u64> {
    /// Above this a float no longer tells neighbouring whole numbers apart.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
            (float.fract() == 0.0 && (0.0..=EXACT).contains(&float)).then_some(float as u64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Argument, Arguments, Whole};
    use crate::result::Refusal;

    fn arguments(json: &str) -> Arguments {
        Arguments::parse_json(json.as_bytes()).unwrap()
    }

    #[track_caller]
    fn check<T: Argument + std::fmt::Debug>(value: &str, expected: &str) {
        let taken = arguments(&format!(r#"{{"x":{value}}}"#)).take::<T>("x");
        let shown = match taken {
            Ok(value) => format!("{value:?}"),
            Err(Refusal::Missing("x")) => "missing".to_owned(),
            Err(Refusal::Invalid("x")) => "invalid".to_owned(),
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(shown, expected, "{value}");
    }

    #[test]
    fn only_an_object_is_accepted() {
        for json in ["", " \t\r\n", "{}", " {} ", r#"{"a":1}"#] {
            assert!(Arguments::parse_json(json.as_bytes()).is_ok(), "{json:?}");
        }
        let deep = "[".repeat(100_000);
        let broken: [&[u8]; 11] = [
            b"[]",
            b"1",
            b"null",
            b"\"\"",
            b"{",
            b"{} x",
            b"{a:1}",
            b"{\"a\":\"\xff\"}",
            b"\0",
            b"\xef\xbb\xbf{}",
            deep.as_bytes(),
        ];
        for json in broken {
            let refusal = Arguments::parse_json(json).err();
            assert_eq!(refusal, Some(Refusal::InvalidJson), "{}", json.escape_ascii());
        }
    }

    #[test]
    fn a_required_text_is_a_string_or_missing() {
        check::<String>(r#""""#, r#""""#);
        check::<String>(r#""text""#, r#""text""#);
        for value in ["null", "1", "true", "[]", "{}"] {
            check::<String>(value, "missing");
        }
        assert_eq!(arguments("{}").take::<String>("x"), Err(Refusal::Missing("x")));
    }

    #[test]
    fn an_optional_text_is_a_string_or_absent() {
        check::<Option<String>>(r#""""#, r#"Some("")"#);
        check::<Option<String>>("null", "None");
        for value in ["1", "true", "[]", "{}"] {
            check::<Option<String>>(value, "invalid");
        }
        assert_eq!(arguments("{}").take::<Option<String>>("x"), Ok(None));
    }

    #[test]
    fn an_optional_boolean_is_one_or_absent() {
        check::<Option<bool>>("true", "Some(true)");
        check::<Option<bool>>("false", "Some(false)");
        check::<Option<bool>>("null", "None");
        for value in ["1", "0", r#""true""#, "[]", "{}"] {
            check::<Option<bool>>(value, "invalid");
        }
    }

    #[test]
    fn a_whole_number_is_within_its_range() {
        type Small = Option<Whole<1, 3600>>;
        for value in ["1", r#""1""#, "1.0", "1e0", r#"" 1""#, r#""+1""#, r#""001""#] {
            check::<Small>(value, "Some(Whole(1))");
        }
        check::<Small>("3600", "Some(Whole(3600))");
        check::<Small>("null", "None");
        for value in [
            "0",
            "3601",
            "-1",
            "-0",
            "0.5",
            "1.5",
            "1e99",
            "18446744073709551616",
            "true",
            "[]",
            "{}",
        ] {
            check::<Small>(value, "invalid");
        }
        for value in
            ["", " ", "x", "1x", "1.0", "0", "3601", "-1", "1 1", "99999999999999999999", "١"]
        {
            check::<Small>(&json!(value).to_string(), "invalid");
        }
    }

    #[test]
    fn a_whole_number_may_have_64_bits() {
        type Large = Option<Whole<1, { u64::MAX }>>;
        for value in ["18446744073709551615", r#""18446744073709551615""#] {
            check::<Large>(value, "Some(Whole(18446744073709551615))");
        }
        // A float no longer tells such numbers apart: it would be another line than the model meant.
        check::<Large>("9007199254740992.0", "Some(Whole(9007199254740992))");
        check::<Large>("9007199254740994.0", "invalid");
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        assert_eq!(arguments(r#"{"x":1,"x":"a"}"#).take::<String>("x"), Ok("a".to_owned()));
        assert_eq!(arguments(r#"{"x":"a","x":1}"#).take::<String>("x"), Err(Refusal::Missing("x")));
    }
}
