//! Whether a call may be carried out: the mode decides, and the person's rules before it.
//!
//! [`Gate::judge`] is pure: it is told the [`Facts`] of a call, which `Call::facts` finds out, and gives a
//! [`Verdict`]. It asks nobody and starts nothing. Rules are tried in order and the first that matches counts;
//! for a command that holds for each of its parts, and the whole is as good as its worst part. A rule that grants
//! counts only for commands in a small language that is read exactly as bash reads it (`gate/strict.rs`); a rule
//! that forbids counts for whatever it may be meant for (`gate/shell.rs`, and `gate/runners.rs` for what a program
//! runs besides itself).
//!
//! Text decides little about what a command does. A rule that forbids keeps honest mistakes away; what keeps
//! a command in is the sandbox.

mod command;
mod facts;
mod rule;
mod runners;
mod script;
mod shell;
mod strict;
mod words;

use std::fmt;
use std::sync::Arc;

pub use ikigai_conversation::Mode;

pub use facts::{Access, Facts, FileFacts, Whereabouts};
pub(crate) use facts::{Subject, without_dots};
pub use rule::{Decision, Rule, path_pattern};

use crate::file_error::{hidden, shorten};
use crate::result::{Outcome, ToolResult};
use command::Said;
use rule::render_rules;

/// Whether a model is offered a tool in a mode.
pub fn offers(mode: Mode, tool: &str) -> bool {
    mode != Mode::Read || !["bash", "file_write", "file_edit"].contains(&tool)
}

/// How far a call that is permitted may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// A command stays in the sandbox, a file tool in the working tree.
    Tree,
    /// The same, and a file tool may write there what a person is always asked for.
    TreeAndGuarded,
    /// The same as `Tree`, and a command may use the network.
    Network,
    /// Wherever the user may, but a command finds no program in a folder that agents can write.
    Anywhere,
    /// Wherever the user may: mode full.
    Full,
}

/// Whether commands can be kept in a sandbox on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// They can.
    InForce,
    /// They cannot, so that every command is asked for.
    Missing,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is carried out.
    Allow(Reach),
    /// A person is asked.
    Ask(Question),
    /// It is refused, for this reason; no yes and no further rule changes that.
    Deny(String),
}

impl Verdict {
    /// The same verdict, where a question has this reason if there is one.
    #[must_use]
    pub fn because(self, why: Option<String>) -> Verdict {
        match (self, why) {
            (Verdict::Ask(question), Some(why)) => Verdict::Ask(Question { why, ..question }),
            (verdict, _) => verdict,
        }
    }
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Why, in words that go on after `Not permitted: `.
    pub why: String,
    /// How far the call may reach after a yes.
    pub reach: Reach,
    /// TOML for the configuration that would make the question needless; `None` where no rule can.
    pub rule: Option<String>,
}

impl Question {
    /// What stands in the result when nobody can be asked.
    pub fn refusal(&self) -> ToolResult {
        refusal(&format!("{self}"))
    }
}

/// Where a rule is to be written.
pub const WHERE_RULES_STAND: &str =
    "in your own configuration before other rules ('ikigai config' names the file)";

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Some(rule) => {
                let why = &self.why;
                write!(f, "{why}. What would allow it, {WHERE_RULES_STAND}:\n{rule}")
            }
            None => write!(f, "{}. No rule for this alone can be named", self.why),
        }
    }
}

/// The result of a call that is not permitted.
pub fn refusal(why: &str) -> ToolResult {
    Outcome::Failure(format!("Not permitted: {why}")).into()
}

/// The result of a call for which nobody answered before the turn was ended.
pub fn interrupted() -> ToolResult {
    Outcome::Failure("Interrupted: it was not carried out".to_owned()).into()
}

/// The mode and the rules of a session.
#[derive(Debug, Clone)]
pub struct Gate {
    mode: Mode,
    sandbox: Confinement,
    rules: Arc<[Rule]>,
}

impl Gate {
    /// A gate with the rules in their order.
    pub fn new(mode: Mode, sandbox: Confinement, rules: impl Into<Arc<[Rule]>>) -> Gate {
        Gate { mode, sandbox, rules: rules.into() }
    }

    /// Judges a call of `tool`.
    pub fn judge(&self, tool: &str, facts: &Facts) -> Verdict {
        if !offers(self.mode, tool) {
            return Verdict::Deny(format!("{tool} is not offered in mode read"));
        }
        let rules: Vec<&Rule> = self.rules.iter().filter(|rule| rule.tool == tool).collect();
        let verdict = match facts {
            Facts::Command { command, leaves_sandbox, wants_network } => {
                let need = self.need(*leaves_sandbox, *wants_network);
                judge_command(&rules, command, need)
            }
            Facts::File(file) => judge_file(&rules, tool, file),
            Facts::Other => judge_other(&rules, tool),
        };
        match (self.mode, verdict) {
            (Mode::Full, Verdict::Ask(_) | Verdict::Allow(_)) => Verdict::Allow(Reach::Full),
            (_, verdict) => verdict,
        }
    }

    /// What a command needs beyond the sandbox, and why.
    fn need(&self, leaves_sandbox: bool, wants_network: bool) -> Need {
        match (self.sandbox, leaves_sandbox, wants_network) {
            (Confinement::Missing, _, _) => {
                Need::Trust("there is no sandbox here, so every command is asked for")
            }
            (Confinement::InForce, true, _) => Need::Trust("the command asks to leave the sandbox"),
            (Confinement::InForce, false, true) => {
                Need::Network("the command wants to use the network, inside the sandbox")
            }
            (Confinement::InForce, false, false) => Need::Nothing,
        }
    }
}

/// What a command needs, with the reason that a question gives.
#[derive(Clone, Copy)]
enum Need {
    Nothing,
    Network(&'static str),
    Trust(&'static str),
}

fn judge_command(rules: &[&Rule], command: &str, need: Need) -> Verdict {
    let (wanted, why) = match need {
        Need::Nothing => (Decision::Allow, ""),
        Need::Network(why) => (Decision::Network, why),
        Need::Trust(why) => (Decision::Trust, why),
    };
    let ask = |why, rule| Verdict::Ask(Question { why, reach: command_reach(wanted), rule });
    match command::judge(rules, command, wanted) {
        Said::Deny(why) => Verdict::Deny(why),
        Said::Ask { why, rule } => ask(why, rule),
        Said::Granted { level, .. } if level >= wanted => Verdict::Allow(command_reach(level)),
        Said::Granted { rule, .. } => ask(why.to_owned(), rule),
    }
}

/// How far a command may reach that is granted so much.
fn command_reach(level: Decision) -> Reach {
    match level {
        Decision::Deny | Decision::Ask | Decision::Allow => Reach::Tree,
        Decision::Network => Reach::Network,
        Decision::Trust => Reach::Anywhere,
    }
}

fn judge_file(rules: &[&Rule], tool: &str, file: &FileFacts) -> Verdict {
    let reach = match file.whereabouts {
        Whereabouts::Inside => Reach::Tree,
        Whereabouts::Guarded if file.access == Access::Read => Reach::Tree,
        Whereabouts::Guarded => Reach::TreeAndGuarded,
        Whereabouts::Hidden | Whereabouts::Outside => Reach::Anywhere,
    };
    let ask = |why: String| {
        let wanted = if reach == Reach::Anywhere { Decision::Trust } else { Decision::Allow };
        let rule = file.real.as_deref().map(|path| {
            let path = path.strip_prefix(&file.directory).unwrap_or(path);
            render_rules(tool, &[path_pattern(path)], wanted)
        });
        Verdict::Ask(Question { why, reach, rule })
    };
    let named = shorten(&file.named);
    let rule = rules.iter().find(|rule| rule.matches_file(file));
    match (rule.map(|rule| rule.decision), reach) {
        (Some(Decision::Deny), _) => Verdict::Deny(forbidden(rule)),
        (Some(Decision::Ask), _) => ask(forbidden(rule)),
        (Some(Decision::Trust), reach) => Verdict::Allow(reach),
        (None, Reach::Tree | Reach::Network)
        | (
            Some(Decision::Allow | Decision::Network),
            Reach::Tree | Reach::TreeAndGuarded | Reach::Network,
        ) => Verdict::Allow(reach),
        (None, Reach::TreeAndGuarded) => ask(format!("{named} is only written with a yes")),
        (Some(Decision::Allow | Decision::Network) | None, Reach::Anywhere | Reach::Full) => {
            ask(match file.whereabouts {
                Whereabouts::Hidden => hidden(&named),
                Whereabouts::Inside | Whereabouts::Guarded | Whereabouts::Outside => {
                    format!("{named} is outside the working tree")
                }
            })
        }
    }
}

/// Of a step on the database only a rule about all of them can speak.
fn judge_other(rules: &[&Rule], tool: &str) -> Verdict {
    let rule = rules.iter().find(|rule| rule.matches_all());
    match rule.map(|rule| rule.decision) {
        Some(Decision::Deny) => Verdict::Deny(forbidden(rule)),
        Some(Decision::Ask) => {
            let wanted = Some(render_rules(tool, &["*".to_owned()], Decision::Allow));
            Verdict::Ask(Question { why: forbidden(rule), reach: Reach::Tree, rule: wanted })
        }
        Some(Decision::Allow | Decision::Network | Decision::Trust) | None => {
            Verdict::Allow(Reach::Tree)
        }
    }
}

fn forbidden(rule: Option<&&Rule>) -> String {
    rule.map_or_else(String::new, |rule| rule.sentence())
}
