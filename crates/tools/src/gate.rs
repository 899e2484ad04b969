//! Whether a call may be carried out: the user's rules decide, then the mode.
//!
//! [`Gate::judge`] is pure: it is given the [`Fact`]s of a call, one for each of its effects, which `Call::facts` finds
//! out, and gives a [`Verdict`]. It knows effects and no tools; a call with several is as good as its worst one. It asks
//! no questions and starts nothing. A rule is about the tools that it names. The first rule that matches applies;
//! a command is judged part by part, and the whole is as good as its worst part. A rule that grants
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

pub(crate) use facts::without_dots;
pub use facts::{Access, Fact, FileFacts, Whereabouts};
pub use rule::{Decision, Rule, path_pattern};

use ikigai_conversation::EffectKind;

use crate::file_error::{hidden, shorten};
use crate::result::ToolResult;
use command::Judgement;
use rule::render_rules;

/// Whether a model is offered a tool whose calls may have these effects. In mode `read` all of them have to be harmless.
pub fn offers(mode: Mode, effects: &[EffectKind]) -> bool {
    let is_harmless = |kind: &EffectKind| match kind {
        EffectKind::Read | EffectKind::Database => true,
        EffectKind::Write | EffectKind::Command | EffectKind::Host | EffectKind::Unknown => false,
    };
    mode != Mode::Read || (!effects.is_empty() && effects.iter().all(is_harmless))
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

impl Reach {
    /// As far as both; `None` where nothing reaches exactly that far.
    fn and(self, other: Reach) -> Option<Reach> {
        match (self, other) {
            (Reach::Full, _) | (_, Reach::Full) => Some(Reach::Full),
            (Reach::Anywhere, _) | (_, Reach::Anywhere) => Some(Reach::Anywhere),
            (Reach::Tree, reach) | (reach, Reach::Tree) => Some(reach),
            (Reach::Network, Reach::Network) => Some(Reach::Network),
            (Reach::TreeAndGuarded, Reach::TreeAndGuarded) => Some(Reach::TreeAndGuarded),
            (Reach::Network, Reach::TreeAndGuarded) | (Reach::TreeAndGuarded, Reach::Network) => {
                None
            }
        }
    }
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
    /// The verdict about a call that would do two things: the worse one.
    fn and(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Deny(why), _) | (_, Verdict::Deny(why)) => Verdict::Deny(why),
            (Verdict::Allow(one), Verdict::Allow(other)) => match one.and(other) {
                Some(reach) => Verdict::Allow(reach),
                None => Verdict::Ask(Question {
                    why: "the call wants protected paths and the network at once".to_owned(),
                    reach: Reach::Anywhere,
                    rule: None,
                }),
            },
            (Verdict::Ask(question), Verdict::Allow(reach))
            | (Verdict::Allow(reach), Verdict::Ask(question)) => {
                let reach = question.reach.and(reach).unwrap_or(Reach::Anywhere);
                Verdict::Ask(Question { reach, ..question })
            }
            (Verdict::Ask(one), Verdict::Ask(other)) => Verdict::Ask(one.and(other)),
        }
    }

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
    /// Both questions as one.
    fn and(self, other: Question) -> Question {
        let join = |one: String, other: String, between: &str| match one == other {
            true => one,
            false => format!("{one}{between}{other}"),
        };
        Question {
            why: join(self.why, other.why, "; "),
            reach: self.reach.and(other.reach).unwrap_or(Reach::Anywhere),
            rule: self.rule.zip(other.rule).map(|(one, other)| join(one, other, "\n")),
        }
    }

    /// The result where the user cannot be asked.
    pub fn refusal(&self) -> ToolResult {
        ToolResult::refused(&self.to_string(), self.rule.clone())
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
                write!(f, "{why}. This rule would allow it, {WHERE_RULES_STAND}:\n{rule}")
            }
            None => write!(f, "{}. No rule can allow only this", self.why),
        }
    }
}

/// The result of a call that is not permitted.
pub fn refusal(why: &str) -> ToolResult {
    ToolResult::refused(why, None)
}

/// The result of a call whose question was still open when the turn ended.
pub fn interrupted() -> ToolResult {
    ToolResult::failure("Interrupted: it was not carried out")
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

    /// Judges a call of `tool` by what it would do. Of a call that says nothing about that, nothing is known.
    pub fn judge(&self, tool: &str, facts: &[Fact]) -> Verdict {
        let rules: Vec<&Rule> = self.rules.iter().filter(|rule| rule.tool == tool).collect();
        let verdicts = facts.iter().map(|fact| self.judge_fact(&rules, tool, fact));
        let worst = verdicts.reduce(Verdict::and);
        let worst = worst.unwrap_or_else(|| self.judge_fact(&rules, tool, &Fact::Unknown));
        match (self.mode, worst) {
            (Mode::Full, Verdict::Ask(_) | Verdict::Allow(_)) => Verdict::Allow(Reach::Full),
            (Mode::Read | Mode::Work | Mode::Full, verdict) => verdict,
        }
    }

    fn judge_fact(&self, rules: &[&Rule], tool: &str, fact: &Fact) -> Verdict {
        if self.mode == Mode::Read && !may_be_in_mode_read(rules, fact) {
            return Verdict::Deny(format!("{tool} is not offered in mode read"));
        }
        match fact {
            Fact::Command { command, leaves_sandbox, wants_network } => {
                let need = self.need(*leaves_sandbox, *wants_network);
                judge_command(rules, tool, command, need)
            }
            Fact::File(file) => judge_file(rules, tool, file),
            Fact::Host(host) => judge_host(rules, tool, host),
            Fact::Database => judge_whole_tool(rules, tool, None),
            Fact::Unknown => {
                let why = format!("the effects of {tool} are unknown");
                judge_whole_tool(rules, tool, Some(why))
            }
        }
    }

    /// What a command needs beyond the sandbox, and why.
    fn need(&self, leaves_sandbox: bool, wants_network: bool) -> Need {
        match (self.sandbox, leaves_sandbox, wants_network) {
            (Confinement::Missing, _, _) => {
                Need::Trust("there is no sandbox here, so every command needs approval")
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

/// What mode read allows: reading, steps on the database, and hosts that a rule grants.
fn may_be_in_mode_read(rules: &[&Rule], fact: &Fact) -> bool {
    match fact {
        Fact::File(file) => file.access == Access::Read,
        Fact::Host(host) => {
            let rule = rules.iter().find(|rule| rule.matches_host(host));
            rule.is_some_and(|rule| rule.decision.grants())
        }
        Fact::Database => true,
        Fact::Command { .. } | Fact::Unknown => false,
    }
}

fn judge_command(rules: &[&Rule], tool: &str, command: &str, need: Need) -> Verdict {
    let (wanted, why) = match need {
        Need::Nothing => (Decision::Allow, ""),
        Need::Network(why) => (Decision::Network, why),
        Need::Trust(why) => (Decision::Trust, why),
    };
    let ask = |why, rule| Verdict::Ask(Question { why, reach: command_reach(wanted), rule });
    match command::judge(rules, tool, command, wanted) {
        Judgement::Deny(why) => Verdict::Deny(why),
        Judgement::Ask { why, rule } => ask(why, rule),
        Judgement::Granted { level, .. } if level >= wanted => Verdict::Allow(command_reach(level)),
        Judgement::Granted { rule, .. } => ask(why.to_owned(), rule),
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
        (None, Reach::TreeAndGuarded) => ask(format!("writing {named} needs approval")),
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

/// A host needs approval unless a rule names it.
fn judge_host(rules: &[&Rule], tool: &str, host: &str) -> Verdict {
    let rule = rules.iter().find(|rule| rule.matches_host(host));
    let ask = |why| {
        let rule = Some(render_rules(tool, &[host.to_owned()], Decision::Allow));
        Verdict::Ask(Question { why, reach: Reach::Tree, rule })
    };
    match rule.map(|rule| rule.decision) {
        Some(Decision::Deny) => Verdict::Deny(forbidden(rule)),
        Some(Decision::Ask) => ask(forbidden(rule)),
        Some(Decision::Allow | Decision::Network | Decision::Trust) => Verdict::Allow(Reach::Tree),
        None => ask(format!("{tool} wants to connect to {}", shorten(host))),
    }
}

/// About what has no path, no host and no command only a rule about all calls of the tool can speak. Without one it is
/// allowed, or needs approval for the reason `otherwise`.
fn judge_whole_tool(rules: &[&Rule], tool: &str, otherwise: Option<String>) -> Verdict {
    let rule = rules.iter().find(|rule| rule.matches_all());
    let ask = |why| {
        let rule = Some(render_rules(tool, &["*".to_owned()], Decision::Allow));
        Verdict::Ask(Question { why, reach: Reach::Tree, rule })
    };
    match (rule.map(|rule| rule.decision), otherwise) {
        (Some(Decision::Deny), _) => Verdict::Deny(forbidden(rule)),
        (Some(Decision::Ask), _) => ask(forbidden(rule)),
        (None, Some(why)) => ask(why),
        (Some(Decision::Allow | Decision::Network | Decision::Trust), _) | (None, None) => {
            Verdict::Allow(Reach::Tree)
        }
    }
}

fn forbidden(rule: Option<&&Rule>) -> String {
    rule.map_or_else(String::new, |rule| rule.sentence())
}
