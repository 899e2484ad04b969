//! The user's rules about tool calls. This module reads and checks them, and does not know what
//! their decisions mean.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::ValueError;
use crate::escape::excerpt;
use crate::lines::Lines;
use crate::tools::KnownTools;
use crate::value::{WrongLine, choose, found};

const DECISIONS: &[&str] = &["deny", "ask", "allow", "network", "trust"];

/// One `[[rules]]` table. All fields are required, because a rule without a pattern would match
/// every call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleEntry {
    /// The tool's name.
    pub tool: String,
    /// Which calls of the tool the rule applies to: the field `match`.
    pub pattern: String,
    /// The decision: `deny`, `ask`, `allow`, `network` or `trust`.
    pub decision: String,
    /// The line where the rule starts in its file, counted from 1.
    pub(crate) line: usize,
}

/// Reads `rules`, in the order of the file.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    lines: &Lines,
    tools: &KnownTools,
) -> Result<Vec<RuleEntry>, WrongLine> {
    let line = lines.line(value.span().start);
    let DeValue::Array(rules) = value.get_ref() else {
        return Err(WrongLine { line, wrong: no_table(value.get_ref()) });
    };
    rules.iter().map(|rule| read_rule(rule, lines, tools)).collect()
}

fn read_rule(
    rule: &Spanned<DeValue<'_>>,
    lines: &Lines,
    tools: &KnownTools,
) -> Result<RuleEntry, WrongLine> {
    let line = lines.line(rule.span().start);
    let DeValue::Table(table) = rule.get_ref() else {
        return Err(WrongLine { line, wrong: no_table(rule.get_ref()) });
    };
    for name in table.keys() {
        if !["tool", "match", "decision"].contains(&name.get_ref().as_ref()) {
            let wrong = ValueError::UnknownRuleField { shown: excerpt(name.get_ref()) };
            return Err(WrongLine { line: lines.line(name.span().start), wrong });
        }
    }
    let tool = field(table, "tool", |name| tools.check_name(name), line, lines)?;
    let check_pattern = |pattern: &str| {
        let no_pattern =
            |why: String| ValueError::NoPattern { shown: excerpt(pattern), why: excerpt(&why) };
        (tools.check_pattern)(&tool, pattern).map_err(no_pattern)
    };
    let check_decision = |text: &str| match text {
        "network" if !tools.commands.contains(&tool) => {
            Err(ValueError::NoNetwork { tool: tool.clone() })
        }
        text => choose(text, DECISIONS).map(drop),
    };
    Ok(RuleEntry {
        pattern: field(table, "match", check_pattern, line, lines)?,
        decision: field(table, "decision", check_decision, line, lines)?,
        tool,
        line,
    })
}

fn field(
    table: &DeTable<'_>,
    field: &'static str,
    check: impl Fn(&str) -> Result<(), ValueError>,
    rule_line: usize,
    lines: &Lines,
) -> Result<String, WrongLine> {
    let Some(value) = table.get(field) else {
        return Err(WrongLine { line: rule_line, wrong: ValueError::MissingRuleField { field } });
    };
    let checked = match value.get_ref() {
        DeValue::String(text) => check(text).map(|()| text.clone().into_owned()),
        other => Err(ValueError::Type { found: found(other), wanted: "a string".to_owned() }),
    };
    checked.map_err(|wrong| WrongLine {
        line: lines.line(value.span().start),
        wrong: ValueError::RuleField { field, wrong: Box::new(wrong) },
    })
}

fn no_table(value: &DeValue<'_>) -> ValueError {
    ValueError::Type { found: found(value), wanted: "a list of tables [[rules]]".to_owned() }
}

#[cfg(test)]
mod tests {
    use crate::testing::world;

    #[track_caller]
    fn check(user: &str, expected: &str) {
        world().user(user).refused(expected);
    }

    #[test]
    fn rules_keep_their_order_and_their_lines() {
        let user = "mode = 'work'\n\n[[rules]]\ntool = 'bash'\nmatch = 'git fetch *'\ndecision = 'network'\n\
                    \n[[rules]]\ntool = 'bash'\nmatch = '*'\ndecision = 'ask'\n";
        let listing = world().user(user).listing();
        let rules = "rules = [\n  \
            { tool = \"bash\", match = \"git fetch *\", decision = \"network\" },  # ~/.config/ikigai/config.toml:3\n  \
            { tool = \"bash\", match = \"*\", decision = \"ask\" },          # ~/.config/ikigai/config.toml:8\n\
            ]\n";
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeeze(&listing).contains(&squeeze(rules)), "{listing}");
    }

    #[test]
    fn a_wrong_rule_is_named_with_the_line_of_its_field() {
        check(
            "[[rules]]\ntool = 'bash'\nmatch = '*'\ndecision = 'ask'\n[[rules]]\ntool = 'bash'\nmatch = '*'\ndecision = 'alow'",
            "USER:8: rules: decision: 'alow' is not allowed: use one of deny, ask, allow, network, trust",
        );
        check(
            "[[rules]]\nmatch = '*'\ndecision = 'ask'\ntool = 'bsh'",
            "USER:4: rules: tool: 'bsh' is not a tool; did you mean 'bash'? \
             (known: glob, file_read, grep, file_write, bash, mail, file_edit, fork, wait, kill, agents)",
        );
        check(
            "[[rules]]\ntool = 'file_read'\nmatch = '*'\ndecision = 'network'",
            "USER:4: rules: decision: 'network' is only for bash; for file_read, use allow or trust",
        );
        check(
            "rules = [\n  { tool = 'bash', match = 5, decision = 'ask' },\n]",
            "USER:2: rules: match: expected a string, found a whole number",
        );
    }

    #[test]
    fn a_rule_has_exactly_its_fields() {
        check(
            "\n[[rules]]\ntool = 'bash'\ndecision = 'trust'",
            "USER:2: rules: match is missing, a rule has tool, match and decision",
        );
        check(
            "[[rules]]\ntool = 'bash'\nmatch = '*'\ndecison = 'ask'\ndecision = 'ask'",
            "USER:4: rules: unknown field 'decison', a rule has tool, match and decision",
        );
        check(
            "[[rules]]\ntool = 'bash'\nmatch = 'a; b'\ndecision = 'deny'",
            "USER:3: rules: match: 'a; b' is not a valid pattern: commands are judged part by \
                part; write a rule for each part",
        );
        check(
            "rules = 'ask'",
            "USER:1: rules: expected a list of tables [[rules]], found a string",
        );
        check(
            "rules = [\n'ask']",
            "USER:2: rules: expected a list of tables [[rules]], found a string",
        );
        check(
            "[rules]\ntool = 'bash'",
            "USER:1: rules: expected a list of tables [[rules]], found a table",
        );
    }

    #[test]
    fn rules_can_only_be_set_in_a_file() {
        world().variable("IKIGAI_RULES", "bash").refused(
            "IKIGAI_RULES: rules cannot be set here; add them as [[rules]] to the user's file",
        );
    }
}
