//! Which providers have a key: in a variable, or stored by the user.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use crate::credentials::Credentials;
use crate::layers::Layers;
use crate::providers::{self, key, text};

/// The keys that are there. Those in variables are only known by the variable's name.
#[derive(Debug)]
pub(crate) struct Keys {
    /// The key variables that are set and not empty.
    variables: BTreeSet<OsString>,
    pub(crate) stored: Credentials,
}

impl Keys {
    pub(crate) fn find(
        layers: &Layers,
        variables: &BTreeMap<OsString, OsString>,
        stored: Credentials,
    ) -> Keys {
        let is_set = |name: &OsString| variables.get(name).is_some_and(|value| !value.is_empty());
        let variables = providers::key_variables(layers).into_iter().filter(is_set).collect();
        Keys { variables, stored }
    }

    /// Whether a provider has a key.
    pub(crate) fn has(&self, layers: &Layers, provider: &str) -> bool {
        let variable = text(layers.value(&key(provider, "api_key_env")));
        variable.is_some_and(|variable| self.is_set(OsStr::new(variable)))
            || self.stored.key(provider).is_some()
    }

    /// Whether a variable has a key.
    pub(crate) fn is_set(&self, variable: &OsStr) -> bool {
        self.variables.contains(variable)
    }

    /// The first provider with a key in a variable, or else with a stored one.
    pub(crate) fn first_provider(&self, layers: &Layers) -> Option<String> {
        let names = providers::names(layers);
        let by_variable = |name: &&String| {
            let variable = text(layers.value(&key(name, "api_key_env")));
            variable.is_some_and(|variable| self.is_set(OsStr::new(variable)))
        };
        names
            .iter()
            .find(by_variable)
            .or_else(|| names.iter().find(|name| self.has(layers, name)))
            .cloned()
    }
}
