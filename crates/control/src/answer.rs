//! What a link answers, one JSON object a line: `{"weir":1,"ok":true,...}`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::VERSION;
use crate::{Books, Confirm, History, Mode, Problem, Refused, Revision, Status, Subscribers, Tree};

/// An answer to a request that was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each is the answer to the request of its name")]
pub enum Answer {
    Status(Box<Status>),
    Tree(Tree),
    Books(Box<Books>),
    Applied(Applied),
    Compared(Compared),
    Confirmed(Confirmed),
    Moved(Moved),
    History(History),
    Observed(Observed),
    Metrics(Metrics),
    Stopped(Stopped),
}

/// What `apply` answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Applied {
    /// What is in effect now.
    pub revision: Revision,
    /// Whether it was not already.
    pub new: bool,
    /// What it changes, in the words of `weir diff`.
    pub changes: Vec<String>,
    /// Rows of the table that are not in effect.
    pub subscribers: Subscribers,
    /// Problems that do not keep the policy from being used.
    pub problems: Vec<Problem>,
    /// What comes back unless it is confirmed.
    pub confirm: Option<Confirm>,
    /// Why the change could not be written to disk.
    pub history_trouble: Option<String>,
}

/// What `apply` answers where it only was to compare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compared {
    /// What it would change, in the words of `weir diff`.
    pub changes: Vec<String>,
    /// Rows of the table that would not be in effect.
    pub subscribers: Subscribers,
    /// Problems that do not keep the policy from being used.
    pub problems: Vec<Problem>,
}

/// What `confirm` answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Confirmed {
    /// What stays in effect.
    pub revision: Revision,
}

/// What `rollback` answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Moved {
    /// What is in effect now.
    pub revision: Revision,
    /// What it changed, in the words of `weir diff`.
    pub changes: Vec<String>,
    /// Why the change could not be written to disk.
    pub history_trouble: Option<String>,
}

/// What `observe` answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observed {
    /// Whether the link shapes now.
    pub mode: Mode,
}

/// What `metrics` answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metrics {
    /// The text that Prometheus reads.
    pub text: String,
}

/// What `stop` answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stopped {
    /// The link that ends.
    pub link: String,
}

#[derive(Serialize)]
struct Done<'a, T> {
    weir: u64,
    ok: bool,
    #[serde(flatten)]
    answer: &'a T,
}

#[derive(Serialize)]
struct Undone<'a> {
    weir: u64,
    ok: bool,
    error: &'a Refused,
}

#[derive(Deserialize)]
struct Head {
    ok: bool,
    error: Option<Refused>,
}

/// An answer as a line.
#[must_use]
pub fn line<T: Serialize>(answer: &Result<T, Refused>) -> String {
    let text = match answer {
        Ok(answer) => serde_json::to_string(&Done { weir: VERSION, ok: true, answer }),
        Err(error) => serde_json::to_string(&Undone { weir: VERSION, ok: false, error }),
    };
    // words and numbers always are JSON
    text.unwrap_or_default() + "\n"
}

/// The same over several lines, for people.
#[must_use]
pub fn pretty<T: Serialize>(answer: &T) -> String {
    let done = Done { weir: VERSION, ok: true, answer };
    serde_json::to_string_pretty(&done).unwrap_or_default()
}

/// What a line answers; none if it is no answer.
#[must_use]
pub fn read<T: DeserializeOwned>(line: &[u8]) -> Option<Result<T, Refused>> {
    let head: Head = serde_json::from_slice(line).ok()?;
    if head.ok { serde_json::from_slice(line).ok().map(Ok) } else { head.error.map(Err) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_is_written_and_anything_else_is_none() {
        for answer in [Ok(Stopped { link: "l".to_owned() }), Err(Refused::call("no", "wait"))] {
            assert_eq!(read(line(&answer).as_bytes()), Some(answer));
        }
        for nothing in ["{}", "[]", "hello", "", r#"{"ok":false}"#, r#"{"ok":1,"link":"l"}"#] {
            assert_eq!(read::<Stopped>(nothing.as_bytes()), None, "{nothing}");
        }
    }
}
