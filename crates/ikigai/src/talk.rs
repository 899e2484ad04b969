//! `ikigai` on a terminal: a model is connected, and then there is the full screen, or a conversation line by line.

mod connect;

use std::io::IsTerminal;
use std::sync::Arc;

use ikigai_host::{Environment, connect_again};
use ikigai_tui::Mouse;

use crate::cli::Options;
use crate::command;
use crate::environment;
use crate::exit::Exit;
use crate::line;
use crate::print;
use crate::screen;

use connect::Choice;

/// How the person wants to see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    /// Line by line.
    Plain,
    /// On the full screen, where the terminal can.
    Full(Mouse),
}

impl Looks {
    pub(crate) fn of(options: &Options) -> Looks {
        match (options.plain, options.mouse) {
            (true, _) => Looks::Plain,
            (false, true) => Looks::Full(Mouse::Captured),
            (false, false) => Looks::Full(Mouse::Terminal),
        }
    }

    /// The same on the terminal that there is: one that is dumb has no full screen.
    pub(crate) fn on_this_terminal(self) -> Looks {
        if environment::is_terminal_dumb() { Looks::Plain } else { self }
    }
}

/// Whether there is somebody who sees and types.
pub(crate) fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

pub(crate) fn run(environment: Environment, looks: Looks) -> anyhow::Result<Exit> {
    let environment = &Arc::new(environment);
    if !has_terminal() {
        print::note(
            "ikigai: there is no terminal to talk on: use 'ikigai run PROMPT', or see 'ikigai --help'",
        );
        return Ok(Exit::WrongUsage);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let model = match runtime.block_on(connect_again(environment)) {
        Ok(model) => model,
        Err(why) => match runtime.block_on(connect::offer(environment, &why))? {
            Choice::Talk(model) => model,
            Choice::Tour => return command::tour::run(None, looks),
            Choice::Leave => return Ok(Exit::Done),
        },
    };
    let ended = match looks.on_this_terminal() {
        Looks::Plain => runtime.block_on(line::talk(environment, model)),
        Looks::Full(mouse) => {
            runtime.block_on(screen::talk(environment, model, mouse, screen::Purpose::Work))
        }
    };
    runtime.shutdown_background();
    ended
}
