//! What daemon and helper say to each other: JSON, as both ends are the same binary.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_packet::Side;

use crate::Via;
use crate::trouble::Trouble;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub(crate) enum Ask {
    /// Look at the interfaces, make the bridge.
    Begin,
    /// Open a port in this way.
    Open {
        #[serde(with = "sides")]
        side: Side,
        #[serde(with = "ways")]
        via: Via,
    },
    /// Let a port be part of the bridge, now that its frames come to weir.
    Join {
        #[serde(with = "sides")]
        side: Side,
        #[serde(with = "ways")]
        via: Via,
    },
    /// Put a program at the bridge that lets only what is for the box reach it.
    Face,
    /// Start a guard over the page that comes with this. The answer has the end of a pipe: the
    /// guard ends when nobody holds it any more.
    Guard,
    /// Frames come to weir from now on: the start has not come to nothing.
    Carry,
    /// How it is.
    Look,
    /// Open a file of the policy.
    Read { file: PathBuf },
    /// weir ends in good order: leave the interfaces as they were found.
    Leave,
}

/// A request with its number.
#[derive(Serialize)]
pub(super) struct Numbered<'a> {
    pub(super) number: u64,
    #[serde(flatten)]
    pub(super) ask: &'a Ask,
}

/// The number of a message, whatever else it says.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Number {
    pub(super) number: u64,
}

/// What the helper answers: of these words, those that the request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Said {
    /// The number of the request.
    pub(crate) number: u64,
    /// Why it was not done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) against: Vec<String>,
    /// What the operator should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    /// The bridge over both ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bridge: Option<String>,
    /// The interface that was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) opened: Option<Interface>,
    /// How it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) look: Option<Look>,
}

/// An interface that was opened, as the daemon needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Interface {
    pub(crate) index: u32,
    pub(crate) mtu: usize,
    pub(crate) queues: u32,
    /// Whether who sends to it may leave checksums to hardware that is not there.
    #[serde(rename = "virtual")]
    pub(crate) is_virtual: bool,
}

/// How it is, by the helper's word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Look {
    pub(crate) mac: [u8; 6],
    pub(crate) addresses: Vec<IpAddr>,
    /// Receive queues of the port of either side, LAN first; 0 where there is no interface.
    pub(crate) queues: [u32; 2],
    /// What is wrong, each with its cure.
    pub(crate) troubles: Vec<Trouble>,
}

mod sides {
    use super::*;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(side: &Side, to: S) -> Result<S::Ok, S::Error> {
        u8::from(*side == Side::Wan).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Side, D::Error> {
        match u8::deserialize(from)? {
            0 => Ok(Side::Lan),
            1 => Ok(Side::Wan),
            _ => Err(serde::de::Error::custom("there are two sides")),
        }
    }
}

mod ways {
    use super::*;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(via: &Via, to: S) -> Result<S::Ok, S::Error> {
        via.word().serialize(to)
    }

    /// Which of the two it is has been decided by who asks.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Via, D::Error> {
        let word = String::deserialize(from)?;
        let via = [Via::Xdp, Via::Packet].into_iter().find(|via| via.word() == word);
        via.ok_or_else(|| serde::de::Error::custom("there are xdp and packet"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Option<T> {
        serde_json::from_str(text).ok()
    }

    #[test]
    fn every_request_is_read_as_it_is_written() {
        for ask in [
            Ask::Begin,
            Ask::Open { side: Side::Wan, via: Via::Xdp },
            Ask::Join { side: Side::Lan, via: Via::Packet },
            Ask::Face,
            Ask::Guard,
            Ask::Carry,
            Ask::Look,
            Ask::Read { file: "/etc/weir/s.csv".into() },
            Ask::Leave,
        ] {
            let text = serde_json::to_string(&Numbered { number: 7, ask: &ask }).unwrap();
            assert_eq!(read::<Number>(&text).map(|said| said.number), Some(7), "{text}");
            assert_eq!(read(&text), Some(ask), "{text}");
        }
        for wrong in [
            r#"{"do":"open","side":2,"via":"xdp"}"#,
            r#"{"do":"open","side":0,"via":"auto"}"#,
            r#"{"do":"exec"}"#,
            "[]",
            "",
        ] {
            assert_eq!(read::<Ask>(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_answer_is_read_as_it_is_written() {
        let look = Look {
            mac: [2, 0, 0, 0, 0, 255],
            addresses: vec!["10.0.0.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
            queues: [1, 8],
            troubles: vec![Trouble::new("what", "cure")],
        };
        let opened = Interface { index: 3, mtu: 1_500, queues: 8, is_virtual: false };
        let said = Said {
            number: 9,
            against: vec!["no".to_owned()],
            notes: vec!["note".to_owned()],
            bridge: Some("weir-l".to_owned()),
            opened: Some(opened),
            look: Some(look),
        };
        let text = serde_json::to_string(&said).unwrap();
        assert_eq!(read(&text), Some(said), "{text}");
        assert_eq!(serde_json::to_string(&Said::default()).unwrap(), r#"{"number":0}"#);
    }
}
