//! `ikigai` on a terminal: connects a model, then starts the full screen or line mode.

mod connect;

use std::io::IsTerminal;
use std::sync::Arc;

use ikigai_config::ModelError;
use ikigai_host::{Environment, connect_again, explain_model};
use ikigai_tui::Mouse;

use crate::cli::Options;
use crate::command;
use crate::environment;
use crate::exit::Exit;
use crate::line;
use crate::print;
use crate::screen;

use connect::Choice;

/// The user interface to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    /// Line by line.
    Plain,
    /// On the full screen, if the terminal supports it.
    Full(Mouse),
}

impl Interface {
    pub(crate) fn of(options: &Options) -> Interface {
        match (options.plain, options.mouse) {
            (true, _) => Interface::Plain,
            (false, true) => Interface::Full(Mouse::Captured),
            (false, false) => Interface::Full(Mouse::Terminal),
        }
    }

    /// Falls back to line mode on a dumb terminal.
    pub(crate) fn on_this_terminal(self) -> Interface {
        if environment::is_terminal_dumb() { Interface::Plain } else { self }
    }
}

/// Whether standard input and output are a terminal.
pub(crate) fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

pub(crate) fn run(environment: Environment, interface: Interface) -> anyhow::Result<Exit> {
    let environment = &Arc::new(environment);
    if !has_terminal() {
        print::note("ikigai: not a terminal: use 'ikigai run PROMPT', or see 'ikigai --help'");
        return Ok(Exit::WrongUsage);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let model = match runtime.block_on(connect_again(environment)) {
        Ok(model) => model,
        Err(why @ ModelError::UnknownName { .. }) => return Err(explain_model(why)),
        Err(why) => match runtime.block_on(connect::offer(environment, &why))? {
            Choice::Talk(model) => model,
            Choice::Tour => return command::tour::run(None, interface),
            Choice::Leave => return Ok(Exit::Done),
        },
    };
    let ended = match interface.on_this_terminal() {
        Interface::Plain => runtime.block_on(line::talk(environment, model)),
        Interface::Full(mouse) => {
            runtime.block_on(screen::talk(environment, model, mouse, screen::Purpose::Work))
        }
    };
    runtime.shutdown_background();
    ended
}
