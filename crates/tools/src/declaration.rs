//! The declaration of a tool: its name, what it is for, its parameters. Schema, parser and docs all
//! derive from it.

use serde_json::{Map, Value, json};

/// What a model and a person are told about a tool.
#[derive(Debug)]
pub struct Declaration {
    /// The name a model calls it by.
    pub name: &'static str,
    /// One or two sentences for the model.
    pub description: &'static str,
    /// In the order in which they are checked and shown; required ones first.
    pub parameters: &'static [Parameter],
}

/// One parameter of a tool.
#[derive(Debug)]
pub struct Parameter {
    /// Its key in the arguments.
    pub name: &'static str,
    /// A few words for the model.
    pub description: &'static str,
    /// The type of its value.
    pub value: ParameterType,
    /// Whether a call without it is refused.
    pub required: bool,
}

/// The type of a parameter's value.
#[derive(Debug, Clone, Copy)]
pub enum ParameterType {
    /// A string.
    Text,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A list of strings.
    Texts,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
}

impl Declaration {
    /// The tool as an OpenAI function schema; other providers' forms are derived from this one.
    pub fn schema(&self) -> Value {
        json!({
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters_schema(),
            },
        })
    }

    /// The JSON schema of the parameters alone.
    pub fn parameters_schema(&self) -> Value {
        let properties: Map<String, Value> = self
            .parameters
            .iter()
            .map(|parameter| (parameter.name.to_owned(), parameter.schema()))
            .collect();
        let required: Vec<&str> =
            self.parameters.iter().filter(|p| p.required).map(|p| p.name).collect();
        json!({"type": "object", "properties": properties, "required": required})
    }
}

impl Parameter {
    fn schema(&self) -> Value {
        let description = self.description;
        match self.value {
            ParameterType::Text => json!({"type": "string", "description": description}),
            ParameterType::Choice(values) => {
                json!({"type": "string", "enum": values, "description": description})
            }
            ParameterType::Texts => json!({
                "type": "array", "items": {"type": "string"}, "description": description
            }),
            ParameterType::Integer => json!({"type": "integer", "description": description}),
            ParameterType::Boolean => json!({"type": "boolean", "description": description}),
        }
    }
}

/// A doc comment without the blank at its beginning.
#[doc(hidden)]
pub const fn text(comment: &'static str) -> &'static str {
    match comment.as_bytes() {
        [b' ', ..] => comment.split_at(1).1,
        _ => comment,
    }
}

/// Whether no required parameter stands behind an optional one.
#[doc(hidden)]
pub const fn required_first(parameters: &[Parameter]) -> bool {
    let mut index = 1;
    while index < parameters.len() {
        if parameters[index].required && !parameters[index - 1].required {
            return false;
        }
        index += 1;
    }
    true
}

/// Declares a tool once: the struct of its typed parameters, its [`Declaration`], and `parse`, which
/// makes the first from the arguments that a model sent. The doc comments are the descriptions that
/// the model gets, so they are short and written for it.
///
/// ```
/// ikigai_tools::tool! {
///     /// Ring a bell
///     struct Ring = "ring" {
///         /// How often
///         times: Option<ikigai_tools::Whole<1, 12>>,
///     }
/// }
/// assert_eq!(Ring::DECLARATION.name, "ring");
/// ```
#[macro_export]
macro_rules! tool {
    (
        $(#[doc = $about:literal])+
        struct $Tool:ident = $name:literal {
            $( $(#[doc = $help:literal])+ $parameter:ident: $Type:ty, )*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug)]
        pub(crate) struct $Tool {
            $( $(#[doc = $help])+ $parameter: $Type, )*
        }

        impl $Tool {
            pub(crate) const DECLARATION: $crate::Declaration =
                $crate::Declaration {
                    name: $name,
                    description: $crate::declaring::text(concat!($($about),+)),
                    parameters: &[$(
                        $crate::Parameter {
                            name: stringify!($parameter),
                            description: $crate::declaring::text(concat!($($help),+)),
                            value: <$Type as $crate::Argument>::TYPE,
                            required: <$Type as $crate::Argument>::REQUIRED,
                        }
                    ),*],
                };

            #[allow(dead_code, unused_variables, reason = "a declaration alone is one, too")]
            fn parse(
                arguments: &$crate::Arguments,
            ) -> Result<Self, $crate::Refusal> {
                Ok(Self { $( $parameter: arguments.take(stringify!($parameter))?, )* })
            }
        }

        // The checks come in the order of the declaration, and what is missing comes before what is wrong.
        const _: () =
            assert!($crate::declaring::required_first($Tool::DECLARATION.parameters));
    };
}
pub(crate) use tool;
