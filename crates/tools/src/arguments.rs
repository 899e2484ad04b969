//! From a call's raw JSON to typed values, with the errors of the dispatcher.

use serde_json::{Map, Value};

use crate::declaration::Kind;
use crate::result::Refusal;

/// The arguments of one call: a JSON object as the model sent it.
pub(crate) struct Arguments(Map<String, Value>);

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

    /// The value of one parameter. `null` counts as absent, since models fill in what they leave out.
    pub(crate) fn take<T: Argument>(&self, name: &'static str) -> Result<T, Refusal> {
        T::parse(self.0.get(name).filter(|value| !value.is_null()), name)
    }
}

/// A type that a parameter can have in the declaration of a tool.
pub(crate) trait Argument: Sized {
    /// What the schema says of it.
    const KIND: Kind;
    /// Whether a call without it is refused.
    const REQUIRED: bool;

    /// Reads the value, `None` when the call has no such parameter.
    fn parse(value: Option<&Value>, name: &'static str) -> Result<Self, Refusal>;
}

impl Argument for String {
    const KIND: Kind = Kind::Text;
    const REQUIRED: bool = true;

    fn parse(value: Option<&Value>, name: &'static str) -> Result<Self, Refusal> {
        value.and_then(Value::as_str).map(str::to_owned).ok_or(Refusal::Missing(name))
    }
}

impl Argument for Option<String> {
    const KIND: Kind = Kind::Text;
    const REQUIRED: bool = false;

    fn parse(value: Option<&Value>, name: &'static str) -> Result<Self, Refusal> {
        optional(value, name, |value| value.as_str().map(str::to_owned))
    }
}

impl Argument for Option<bool> {
    const KIND: Kind = Kind::Boolean;
    const REQUIRED: bool = false;

    fn parse(value: Option<&Value>, name: &'static str) -> Result<Self, Refusal> {
        optional(value, name, Value::as_bool)
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole<const MIN: u64, const MAX: u64>(pub(crate) u64);

impl<const MIN: u64, const MAX: u64> Argument for Option<Whole<MIN, MAX>> {
    const KIND: Kind = Kind::Integer;
    const REQUIRED: bool = false;

    fn parse(value: Option<&Value>, name: &'static str) -> Result<Self, Refusal> {
        optional(value, name, |value| whole(value).filter(|n| (MIN..=MAX).contains(n)).map(Whole))
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
