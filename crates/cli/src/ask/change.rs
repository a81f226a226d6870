//! What a change of policy, a confirmation or the history come to, in words.

use serde_json::Value;
use weir_lab::Grid;

use super::{list, number, text};
use crate::run::date;

/// What `weir apply` says.
pub(super) fn applied(answer: &Value, dry: bool) -> Vec<String> {
    let mut lines = changes(answer);
    if lines.is_empty() {
        lines.push("no difference in meaning".to_owned());
    }
    let now = number(answer, "/revision/number");
    if dry {
        lines.push("nothing was changed: this was a dry run".to_owned());
    } else if answer["new"] == false {
        lines.push(format!("revision {now} is in effect already"));
    } else if answer["confirm"].is_object() {
        let (left, back) =
            (number(answer, "/confirm/left_s"), number(answer, "/confirm/goes_back_to"));
        lines.push(format!(
            "revision {now} is in effect; revision {back} comes back in {left} s unless you type: \
             weir confirm"
        ));
    } else {
        lines.push(format!("revision {now} is in effect; `weir rollback` undoes it"));
    }
    let (skipped, held) =
        (number(answer, "/subscribers/skipped"), number(answer, "/subscribers/held"));
    if skipped > 0 {
        let others = match skipped.saturating_sub(held) {
            0 => String::new(),
            others => format!("; {others} have none and share the ceiling of (rest)"),
        };
        lines.push(format!(
            "{skipped} subscribers were skipped: {held} keep their last good row{others}"
        ));
    }
    lines.extend(trouble(answer));
    lines
}

/// What `weir confirm` says.
pub(super) fn confirmed(answer: &Value) -> Vec<String> {
    vec![format!("revision {} is confirmed", number(answer, "/revision/number"))]
}

/// What `weir rollback` says.
pub(super) fn went_back(answer: &Value) -> Vec<String> {
    let mut lines = changes(answer);
    let comment = text(answer, "/revision/comment");
    let comment = if comment.is_empty() { String::new() } else { format!(" ({comment})") };
    lines.push(format!("revision {} is in effect{comment}", number(answer, "/revision/number")));
    lines.extend(trouble(answer));
    lines
}

/// What `weir observe` and `weir shape` say.
pub(super) fn mode(answer: &Value) -> Vec<String> {
    vec![match text(answer, "/mode") {
        "observe" => "the link only observes; `weir shape` shapes again".to_owned(),
        _ => "the link shapes".to_owned(),
    }]
}

/// What `weir stop` says.
pub(super) fn stopped(answer: &Value) -> Vec<String> {
    vec![format!("link {} has stopped", text(answer, "/link"))]
}

/// What `weir history` says, the newest first.
pub(super) fn history(answer: &Value) -> Vec<String> {
    let (current, confirmed) = (number(answer, "/current"), number(answer, "/confirmed"));
    let mut table = Grid::new(6, &["revision", "when", "who", "how", "what became of it", "why"]);
    for revision in list(answer, "/revisions").iter().rev() {
        let its = number(revision, "/number");
        let fate = match text(revision, "/fate") {
            "waiting" if its != current => "never confirmed",
            "waiting" => "waits for `weir confirm`",
            "undone" => "never confirmed",
            _ if its == current => "in effect",
            _ if its == confirmed => "comes back unless confirmed",
            _ => "",
        };
        let first = list(revision, "/changes").first().and_then(Value::as_str);
        let comment = text(revision, "/comment");
        let why = if comment.is_empty() { first.unwrap_or("") } else { comment };
        table.rows.push(vec![
            its.to_string(),
            date(number(revision, "/time")),
            text(revision, "/author").to_owned(),
            text(revision, "/how").to_owned(),
            fate.to_owned(),
            why.to_owned(),
        ]);
    }
    let mut lines = table.lines();
    let damaged = list(answer, "/damaged").iter().filter_map(Value::as_str);
    lines.extend(damaged.map(|what| format!("not used: {what}")));
    let trouble = text(answer, "/trouble");
    lines.extend((!trouble.is_empty()).then(|| format!("history could not be written: {trouble}")));
    lines
}

fn changes(answer: &Value) -> Vec<String> {
    list(answer, "/changes").iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn trouble(answer: &Value) -> Option<String> {
    let why = text(answer, "/history_trouble");
    (!why.is_empty()).then(|| {
        format!("history could not be written, a restart comes up with what it has: {why}")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn skipped_subscribers_are_counted() {
        for (held, end) in [
            (3, "3 keep their last good row"),
            (1, "1 keep their last good row; 2 have none and share the ceiling of (rest)"),
        ] {
            let answer = json!({
                "revision": { "number": 7 }, "new": true, "changes": [],
                "subscribers": { "skipped": 3, "held": held },
            });
            let said = applied(&answer, false);
            assert_eq!(said.last().unwrap(), &format!("3 subscribers were skipped: {end}"));
        }
    }
}
