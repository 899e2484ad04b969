//! The tools on agents: what a model is told of them, how their calls are understood, and what their outcomes look
//! like. The steps themselves are the store's.

mod fork;
mod kill;
mod list;
mod result;
mod wait;

use std::sync::Arc;

use ikigai_store::Step;
use ikigai_tools::Tool;

pub use result::{Render, renderer};

/// In the order in which a model is told of them.
pub(crate) fn all() -> [Arc<dyn Tool<Step>>; 4] {
    [fork::tool(), wait::tool(), kill::tool(), list::tool()]
}

#[cfg(test)]
mod testing {
    use ikigai_store::Step;
    use ikigai_tools::{Call, Dispatcher, Work};

    /// The step that a call prepares, or the result that says why there is none.
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
