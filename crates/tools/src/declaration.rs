//! The declaration of a tool: its name, what it is for, its parameters. Schema, parser and docs all
//! derive from it.

use serde_json::{Map, Value, json};

/// What a model and a user are told about a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// The name a model calls it by.
    pub name: String,
    /// One or two sentences for the model.
    pub description: String,
    /// The JSON schema of its parameters, an object; in the order in which they are checked and shown.
    pub parameters: Value,
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

/// The type of a parameter's value. It also decides which other values are repaired.
#[derive(Debug, Clone, Copy)]
pub enum ParameterType {
    /// A string.
    Text,
    /// A string that a shell runs. Models also send a list of words.
    ShellCommand,
    /// A string that becomes a file. Models also send an object for a JSON file.
    FileContent,
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
    /// The declaration of a tool with these parameters, required ones first.
    pub fn new(name: &str, description: &str, parameters: &[Parameter]) -> Declaration {
        let properties: Map<String, Value> = parameters
            .iter()
            .map(|parameter| (parameter.name.to_owned(), parameter.schema()))
            .collect();
        let required: Vec<&str> =
            parameters.iter().filter(|p| p.required).map(|p| p.name).collect();
        Declaration {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: json!({
                "type": "object", "properties": properties, "required": required
            }),
        }
    }

    /// The tool as an OpenAI function schema; other providers' forms are derived from this one.
    pub fn schema(&self) -> Value {
        json!({
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters,
            },
        })
    }

    /// The names of the parameters, and whether each is required.
    pub fn parameter_names(&self) -> Vec<(&str, bool)> {
        let required = self.parameters["required"].as_array();
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
        let properties = self.parameters["properties"].as_object();
        let names = properties.into_iter().flat_map(|properties| properties.keys());
        names.map(|name| (name.as_str(), is_required(name))).collect()
    }
}

impl Parameter {
    fn schema(&self) -> Value {
        let description = self.description;
        match self.value {
            ParameterType::Text | ParameterType::ShellCommand | ParameterType::FileContent => {
                json!({"type": "string", "description": description})
            }
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

/// Declares a tool once: the struct of its typed parameters, its `declaration()`, and `parse`, which
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
/// assert_eq!(Ring::declaration().name, "ring");
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
            const PARAMETERS: &'static [$crate::Parameter] = &[$(
                $crate::Parameter {
                    name: stringify!($parameter),
                    description: $crate::declaring::text(concat!($($help),+)),
                    value: <$Type as $crate::Argument>::TYPE,
                    required: <$Type as $crate::Argument>::REQUIRED,
                }
            ),*];

            pub(crate) fn declaration() -> $crate::Declaration {
                let description = $crate::declaring::text(concat!($($about),+));
                $crate::Declaration::new($name, description, Self::PARAMETERS)
            }

            #[allow(dead_code, unused_variables, reason = "a declaration alone is one, too")]
            fn parse(
                arguments: &$crate::Arguments,
            ) -> Result<Self, $crate::Refusal> {
                Ok(Self { $( $parameter: arguments.take(stringify!($parameter))?, )* })
            }
        }

        // The checks come in the order of the declaration, and what is missing comes before what is wrong.
        const _: () =
            assert!($crate::declaring::required_first($Tool::PARAMETERS));
    };
}
pub(crate) use tool;
