//! The results of a change of policy, a confirmation and the history, in words.

use weir_control::{
    Applied, Compared, Confirmed, History, Mode, Moved, Observed, RevisionState, Stopped,
    Subscribers,
};
use weir_lab::Grid;

use weir_daemon::date;

/// What `weir apply` says.
pub(super) fn applied(answer: &Applied) -> Vec<String> {
    let mut lines = changes(&answer.changes);
    let now = answer.revision.number;
    lines.push(match answer.confirm {
        _ if !answer.new => format!("revision {now} is already in effect"),
        Some(confirm) => format!(
            "revision {now} is in effect; revision {} will be restored in {} s unless you run: \
             weir confirm",
            confirm.goes_back_to, confirm.left_s
        ),
        None => format!("revision {now} is in effect; `weir rollback` undoes it"),
    });
    lines.extend(skipped(answer.subscribers));
    lines.extend(trouble(answer.history_trouble.as_deref()));
    lines
}

/// What `weir apply --dry-run` says.
pub(super) fn compared(answer: &Compared) -> Vec<String> {
    let mut lines = changes(&answer.changes);
    lines.push("nothing was changed: this was a dry run".to_owned());
    lines.extend(skipped(answer.subscribers));
    lines
}

/// What `weir confirm` says.
pub(super) fn confirmed(answer: &Confirmed) -> Vec<String> {
    vec![format!("revision {} is confirmed", answer.revision.number)]
}

/// What `weir rollback` says.
pub(super) fn went_back(answer: &Moved) -> Vec<String> {
    let mut lines = answer.changes.clone();
    let comment = &answer.revision.comment;
    let comment = if comment.is_empty() { String::new() } else { format!(" ({comment})") };
    lines.push(format!("revision {} is in effect{comment}", answer.revision.number));
    lines.extend(trouble(answer.history_trouble.as_deref()));
    lines
}

/// What `weir observe` and `weir shape` say.
pub(super) fn mode(answer: &Observed) -> Vec<String> {
    vec![match answer.mode {
        Mode::Observe => {
            "the link is observing and does not shape; `weir shape` starts shaping again".to_owned()
        }
        Mode::Shape => "the link is shaping".to_owned(),
    }]
}

/// What `weir stop` says.
pub(super) fn stopped(answer: &Stopped) -> Vec<String> {
    vec![format!("link {} has stopped", answer.link)]
}

/// What `weir history` says, the newest first.
pub(super) fn history(answer: &History) -> Vec<String> {
    let mut table = Grid::new(6, &["revision", "time", "author", "source", "state", "reason"]);
    for revision in answer.revisions.iter().rev() {
        let is_current = revision.number == answer.current;
        let fate = match revision.fate {
            RevisionState::Waiting if is_current => "waits for `weir confirm`",
            RevisionState::Waiting | RevisionState::Undone => "never confirmed",
            RevisionState::Confirmed if is_current => "in effect",
            RevisionState::Confirmed if revision.number == answer.confirmed => {
                "restored unless confirmed"
            }
            RevisionState::Confirmed => "",
        };
        let first = revision.changes.first().map_or("", String::as_str);
        let why = if revision.comment.is_empty() { first } else { &revision.comment };
        table.rows.push(vec![
            revision.number.to_string(),
            date(revision.time),
            revision.author.clone(),
            revision.how.word().to_owned(),
            fate.to_owned(),
            why.to_owned(),
        ]);
    }
    let mut lines = table.lines();
    lines.extend(answer.damaged.iter().map(|what| format!("not used: {what}")));
    let trouble = answer.trouble.iter();
    lines.extend(trouble.map(|why| format!("history could not be written: {why}")));
    lines
}

fn changes(changes: &[String]) -> Vec<String> {
    if changes.is_empty() { vec!["no difference in meaning".to_owned()] } else { changes.to_vec() }
}

/// Subscribers that are not in effect.
fn skipped(Subscribers { skipped, held }: Subscribers) -> Option<String> {
    let others = match skipped.saturating_sub(held) {
        0 => String::new(),
        others => format!("; {others} have none and share the ceiling of (rest)"),
    };
    (skipped > 0).then(|| {
        format!("{skipped} subscribers were skipped: {held} keep their last good row{others}")
    })
}

fn trouble(why: Option<&str>) -> Option<String> {
    why.map(|why| format!("history could not be written, so a restart uses its last entry: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_subscribers_are_counted() {
        for (held, end) in [
            (3, "3 keep their last good row"),
            (1, "1 keep their last good row; 2 have none and share the ceiling of (rest)"),
        ] {
            let subscribers = Subscribers { skipped: 3, held };
            let answer = Applied { new: true, subscribers, ..Applied::default() };
            let said = applied(&answer);
            assert_eq!(said.last().unwrap(), &format!("3 subscribers were skipped: {end}"));
        }
    }
}
