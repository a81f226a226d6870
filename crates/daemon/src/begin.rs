//! With which policy a link comes up: with what was confirmed last, unless the file was edited
//! since weir last read it. So a restart loses no change that came over the socket, and an operator
//! who edits the file gets what the file says. A file that cannot be used does not keep a link down
//! that has a history.

use std::path::Path;

use weir_control::{How, Refused, RevisionState, Subscribers};
use weir_policy::Reading;

use crate::clock;
use crate::history::History;
use crate::revision::{By, Revision, are_same, hold, read_again};

/// What a link begins with.
#[derive(Debug)]
pub(crate) struct Begin {
    pub(crate) revision: Revision,
    /// Whether it is not in the history yet.
    pub(crate) is_new: bool,
    /// What the operator should know.
    pub(crate) remarks: Vec<String>,
}

/// Chooses between the `file` (as it was read) and the history.
pub(crate) fn begin(
    file: &Path,
    reading: Result<Reading, String>,
    link: &str,
    history: &History,
    of_day: u64,
) -> Result<Begin, Refused> {
    let mut remarks: Vec<String> = history.damaged().to_vec();
    let head = history.head().and_then(|number| match kept(history, number, link) {
        Ok(revision) => Some(revision),
        Err(why) => {
            remarks.push(format!("revision {number} cannot be used: {why}"));
            None
        }
    });
    let by = By { author: "start".into(), how: How::Start, comment: String::new(), time: of_day };
    let before = head.as_ref().map(|head| &head.plan);
    let of_file = reading.map_err(|why| Refused::cannot(why, ""));
    let of_file = of_file.and_then(|reading| {
        let sources = head.as_ref().map_or(&[][..], |head| &head.sources);
        Revision::of(hold(reading, sources)?, link, before, by)
    });
    if let Ok(Subscribers { skipped: skipped @ 1.., held }) =
        of_file.as_ref().map(|of_file| of_file.rows)
    {
        remarks.push(format!(
            "{skipped} subscribers were skipped, of which {held} keep their last good row"
        ));
    }
    match (of_file, head) {
        (Ok(revision), None) => Ok(Begin::anew(revision, history, remarks)),
        (Ok(revision), Some(mut head)) => {
            let is_edited = !are_same(&head.about.read, &revision.sources);
            head.about.read = revision.about.read.clone();
            if head.is_same_text(&revision.sources) {
                return Ok(Begin { revision: head, is_new: false, remarks });
            }
            if is_edited {
                let number = head.about.number;
                remarks.push(format!("{} is newer than revision {number}", file.display()));
                return Ok(Begin::anew(revision, history, remarks));
            }
            remarks.push(format!("{}; {} was not edited since", says(&head), file.display()));
            Ok(Begin { revision: head, is_new: false, remarks })
        }
        (Err(refused), Some(head)) => {
            remarks.extend((!refused.text.is_empty()).then(|| refused.text.clone()));
            remarks.push(format!("{refused}"));
            remarks.push(says(&head));
            Ok(Begin { revision: head, is_new: false, remarks })
        }
        (Err(refused), None) => Err(refused),
    }
}

impl Begin {
    fn anew(mut revision: Revision, history: &History, remarks: Vec<String>) -> Begin {
        revision.about.number = history.next();
        Begin { revision, is_new: true, remarks }
    }
}

fn says(head: &Revision) -> String {
    let about = &head.about;
    let date = clock::date(about.time);
    format!("the policy is revision {} by {} of {date}", about.number, about.author)
}

/// A revision as it was kept.
pub(crate) fn kept(history: &History, number: u64, link: &str) -> Result<Revision, Refused> {
    let sources = history.load(number).map_err(|why| Refused::cannot(why, ""))?;
    let by = By { author: String::new(), how: How::Start, comment: String::new(), time: 0 };
    let mut revision = Revision::of(read_again(sources)?, link, None, by)?;
    if let Some(about) = history.about(number) {
        revision.about = about.clone();
        revision.about.fate = RevisionState::Confirmed;
    }
    Ok(revision)
}

#[cfg(test)]
mod tests {
    use weir_policy::Source;

    use super::*;
    use crate::tests::{Folder, policy, revision};

    fn reading(rate: &str) -> Result<Reading, String> {
        Ok(read_again(vec![Source::new("p.toml", policy(rate))]).unwrap())
    }

    fn begun(history: &History, file: Result<Reading, String>) -> (u64, bool, String) {
        let begin = begin("p.toml".as_ref(), file, "l", history, 0).unwrap();
        let rate = begin.revision.plan.nodes[0].shares.down.rate.to_string();
        (begin.revision.about.number, begin.is_new, rate)
    }

    #[test]
    fn the_first_start_takes_the_file() {
        let folder = Folder::new("begin-first");
        let history = History::open(&folder.0, "l");
        assert_eq!(begun(&history, reading("10mbit")), (1, true, "10mbit".into()));
        let no = begin("p".as_ref(), reading("10mbti"), "l", &history, 0).unwrap_err();
        assert!(no.text.contains("10mbti"), "{no:?}");
        let no = begin("p".as_ref(), reading("10mbit"), "other", &history, 0).unwrap_err();
        assert!(no.to_string().contains("[link.l]"), "{no}");
    }

    #[test]
    fn what_was_confirmed_comes_up_again_until_the_file_is_edited() {
        let folder = Folder::new("begin-head");
        let mut history = History::open(&folder.0, "l");
        let first = revision(1, "10mbit");
        history.keep(&first, RevisionState::Confirmed);
        let mut second = revision(2, "20mbit");
        second.about.read = first.about.files.clone();
        history.keep(&second, RevisionState::Confirmed);
        history.keep(&revision(3, "30mbit"), RevisionState::Waiting);
        let history = History::open(&folder.0, "l");
        assert_eq!(begun(&history, reading("10mbit")), (2, false, "20mbit".into()));
        assert_eq!(begun(&history, reading("20mbit")), (2, false, "20mbit".into()));
        assert_eq!(begun(&history, reading("40mbit")), (4, true, "40mbit".into()));
        // a file that cannot be used does not keep the link down
        assert_eq!(begun(&history, reading("x")), (2, false, "20mbit".into()));
        let gone = Err("p.toml: there is no such file".to_owned());
        assert_eq!(begun(&history, gone), (2, false, "20mbit".into()));
    }

    #[test]
    fn without_its_head_the_file_counts() {
        let folder = Folder::new("begin-damaged");
        let mut history = History::open(&folder.0, "l");
        history.keep(&revision(1, "10mbit"), RevisionState::Confirmed);
        let path = folder.0.join("l/1.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace('1', "2")).unwrap();
        assert_eq!(begun(&history, reading("10mbit")), (2, true, "10mbit".into()));
    }
}
