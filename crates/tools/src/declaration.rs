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
    pub kind: Kind,
    /// Whether a call without it is refused.
    pub required: bool,
}

/// The type of a parameter's value.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A string.
    Text,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
}

impl Declaration {
    /// The tool as an OpenAI function schema; other providers' forms are derived from this one.
    pub fn schema(&self) -> Value {
        let properties: Map<String, Value> = self
            .parameters
            .iter()
            .map(|parameter| (parameter.name.to_owned(), parameter.schema()))
            .collect();
        let required: Vec<&str> =
            self.parameters.iter().filter(|p| p.required).map(|p| p.name).collect();
        json!({
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description.trim_start(),
                "parameters": {
                    "type": "object",
                    "properties": properties,
                    "required": required,
                },
            },
        })
    }
}

impl Parameter {
    fn schema(&self) -> Value {
        let description = self.description.trim_start();
        match self.kind {
            Kind::Text => json!({"type": "string", "description": description}),
            Kind::Choice(values) => {
                json!({"type": "string", "enum": values, "description": description})
            }
            Kind::Integer => json!({"type": "integer", "description": description}),
            Kind::Boolean => json!({"type": "boolean", "description": description}),
        }
    }
}

/// Declares a tool once: the struct of its typed parameters, its [`Declaration`], and `parse`, which
/// makes the first from the arguments that a model sent. The doc comments are the descriptions that
/// the model gets, so they are short and written for it.
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
            pub(crate) const DECLARATION: $crate::declaration::Declaration =
                $crate::declaration::Declaration {
                    name: $name,
                    description: concat!($($about),+),
                    parameters: &[$(
                        $crate::declaration::Parameter {
                            name: stringify!($parameter),
                            description: concat!($($help),+),
                            kind: <$Type as $crate::arguments::Argument>::KIND,
                            required: <$Type as $crate::arguments::Argument>::REQUIRED,
                        }
                    ),*],
                };

            fn parse(
                arguments: &$crate::arguments::Arguments,
            ) -> Result<Self, $crate::result::Refusal> {
                Ok(Self { $( $parameter: arguments.take(stringify!($parameter))?, )* })
            }
        }
    };
}
pub(crate) use tool;
