//! The tools for agents: their declarations, how their calls are parsed, and their results. The
//! store performs the steps.

mod fork;
mod kill;
mod list;
mod result;
mod wait;

use std::sync::Arc;

use ikigai_store::Step;
use ikigai_tools::Tool;

pub use result::{Render, renderer};

/// The tools, in the order of their declarations.
pub(crate) fn all() -> [Arc<dyn Tool<Step>>; 4] {
    [fork::tool(), wait::tool(), kill::tool(), list::tool()]
}

#[cfg(test)]
mod testing {
    use ikigai_store::Step;
    use ikigai_tools::{Call, Dispatcher, Work};

    /// Checks the step that a call prepares, or the result that refuses it.
    #[track_caller]
    pub(super) fn check(tool: &str, arguments: &str, expected: Result<Step, &str>) {
        let call = Dispatcher::new(super::all().into()).dispatch(tool, arguments.as_bytes());
        let step = match call.as_ref().map(Call::work) {
            Ok(Work::Step(step)) => Ok(step.clone()),
            Ok(Work::Executor(_)) => panic!("{tool} is a step"),
            Err(refusal) => Err(refusal.to_string()),
        };
        assert_eq!(step, expected.map_err(str::to_owned), "{tool} {arguments}");
    }
}
