//! What a tool is: a value that says what it is for, and makes calls.

use std::fmt;
use std::sync::Arc;

use ikigai_conversation::EffectKind;

use crate::arguments::Arguments;
use crate::call::Call;
use crate::declaration::{Declaration, Parameter};
use crate::result::ToolResult;

/// A tool. `S` is a step on the database, for tools that work on it.
///
/// It is made at run time, so that tools from elsewhere are the same as those of this program. What it does not say
/// is taken for the worst: a tool without effects may do anything.
pub trait Tool<S>: fmt::Debug + Send + Sync {
    /// What a model and a user are told about it.
    fn declaration(&self) -> &Declaration;

    /// What its calls may do. A call that does something else is taken for unknown.
    fn effects(&self) -> &[EffectKind] {
        &[EffectKind::Unknown]
    }

    /// Whether a model is offered it when the configuration does not say.
    fn is_on_by_default(&self) -> bool {
        true
    }

    /// The parameters of a tool whose calls are repaired where only one call can be meant; without
    /// them each call is read strictly.
    fn repairable(&self) -> Option<&'static [Parameter]> {
        None
    }

    /// Makes a call, which does nothing yet.
    ///
    /// # Errors
    /// The result of a call that cannot be understood.
    fn prepare(&self, arguments: &Arguments) -> Result<Call<S>, ToolResult>;
}

/// A tool of this program: a declaration, and a function that makes its calls.
pub struct BuiltIn<S> {
    declaration: Declaration,
    effects: &'static [EffectKind],
    prepare: Prepare<S>,
    is_on: bool,
    repairable: Option<&'static [Parameter]>,
}

type Prepare<S> = fn(&Arguments) -> Result<Call<S>, ToolResult>;

impl<S: 'static> BuiltIn<S> {
    /// A tool whose calls have at most these effects.
    pub fn new(
        declaration: Declaration,
        effects: &'static [EffectKind],
        prepare: Prepare<S>,
    ) -> BuiltIn<S> {
        BuiltIn { declaration, effects, prepare, is_on: true, repairable: None }
    }

    /// The same, only for those whose configuration names it.
    #[must_use]
    pub fn off_by_default(self) -> BuiltIn<S> {
        BuiltIn { is_on: false, ..self }
    }

    /// The same, with calls repaired where only one call can be meant.
    #[must_use]
    pub fn repairing(self, parameters: &'static [Parameter]) -> BuiltIn<S> {
        BuiltIn { repairable: Some(parameters), ..self }
    }

    /// As an entry of a list of tools.
    pub fn shared(self) -> Arc<dyn Tool<S>> {
        Arc::new(self)
    }
}

impl<S> Tool<S> for BuiltIn<S> {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn effects(&self) -> &[EffectKind] {
        self.effects
    }

    fn is_on_by_default(&self) -> bool {
        self.is_on
    }

    fn repairable(&self) -> Option<&'static [Parameter]> {
        self.repairable
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Call<S>, ToolResult> {
        (self.prepare)(arguments)
    }
}

impl<S> fmt::Debug for BuiltIn<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BuiltIn").field(&self.declaration.name).finish()
    }
}
