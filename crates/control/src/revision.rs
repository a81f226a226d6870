//! Policies that a link had.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Who brought a policy, when and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Revision {
    /// Its number.
    pub number: u64,
    /// Seconds since 1970.
    pub time: u64,
    /// A user's name, or `start` or `SIGHUP`.
    pub author: String,
    /// How it came.
    pub how: How,
    /// Why, if anybody said so.
    pub comment: String,
}

/// How a revision came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// From the file, when the link was started.
    #[default]
    Start,
    /// From the file, when it was read again.
    Reload,
    /// By `apply`.
    Apply,
    /// By `rollback`.
    Rollback,
}

impl How {
    /// As it is written.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            How::Start => "start",
            How::Reload => "reload",
            How::Apply => "apply",
            How::Rollback => "rollback",
        }
    }

    /// Whether it came from the file that the link was started with.
    #[must_use]
    pub fn is_of_file(self) -> bool {
        matches!(self, How::Start | How::Reload)
    }
}

/// What became of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RevisionState {
    /// In effect until somebody confirms it or its time is over.
    Waiting,
    /// Nobody has to confirm it any more.
    Confirmed,
    /// It was not confirmed in time.
    Undone,
}

/// All that is told of a revision, and written to disk. Every word must be there: without one, the
/// file is damaged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Its number.
    pub number: u64,
    /// Seconds since 1970.
    pub time: u64,
    /// A user's name, or `start` or `SIGHUP`.
    pub author: String,
    /// How it came.
    pub how: How,
    /// Why, if anybody said so.
    pub comment: String,
    /// What it changed, in the words of `weir diff`.
    pub changes: Vec<String>,
    /// What became of it.
    pub fate: RevisionState,
    /// Its files as they were.
    pub files: Vec<Kept>,
    /// The file that the link was started with, as it was when it was last read: a restart sees by
    /// it whether the file was edited.
    pub read: Vec<Kept>,
}

impl About {
    /// Who brought it, when and why.
    #[must_use]
    pub fn revision(&self) -> Revision {
        Revision {
            number: self.number,
            time: self.time,
            author: self.author.clone(),
            how: self.how,
            comment: self.comment.clone(),
        }
    }
}

/// A file of a revision: enough to see whether it is still the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its check sum.
    #[serde(serialize_with = "to_hex", deserialize_with = "from_hex")]
    pub check: u64,
}

fn to_hex<S: Serializer>(check: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{check:016x}"))
}

fn from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    u64::from_str_radix(&text, 16).map_err(serde::de::Error::custom)
}

/// What comes back unless the revision in effect is confirmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Confirm {
    /// In so many seconds.
    pub left_s: u64,
    /// This revision.
    pub goes_back_to: u64,
}

/// What `history` answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// The revision in effect.
    pub current: u64,
    /// The one that a restart comes up with.
    pub confirmed: u64,
    /// Where they are kept.
    pub folder: String,
    /// The oldest first.
    pub revisions: Vec<About>,
    /// What was found there and cannot be used.
    pub damaged: Vec<String>,
    /// Why the folder does not have what it should.
    pub trouble: Option<String>,
}
