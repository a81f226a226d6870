//! An experiment on shares that somebody plays in real time: the policy of its tree, who sends how
//! much and when, and what to make of what came of it.

use std::net::Ipv4Addr;

use weir_units::{Instant, Rate, Span};

use super::fair::{Account, settled, shown};
use super::{Ask, Enforce, Sharing, Shown, bits, engine, number, whole};
use crate::run::Run;
use crate::scenario::{Profile, Scenario};

/// An experiment to be played.
#[derive(Debug)]
pub struct Field {
    sharing: Sharing,
    /// What the box does.
    pub policy: String,
    /// Who sends.
    pub senders: Vec<Sender>,
    /// How long it takes.
    pub lasts: Span,
}

/// Somebody who sends datagrams of one size at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// From this host of the LAN.
    pub host: Ipv4Addr,
    /// At the IP layer.
    pub rate: Rate,
    /// Bytes of a datagram at the IP layer.
    pub bytes: u32,
    /// From and up to when.
    pub times: (Span, Span),
}

/// A datagram on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Whose it is: the place of the sender.
    pub sender: usize,
    /// When it was sent, and when it came; times count from the beginning.
    pub sent: Instant,
    /// None of one that was lost.
    pub came: Option<Instant>,
}

impl Field {
    /// A case of an experiment under a profile, between two ports. `host` gives each leaf an
    /// address.
    ///
    /// # Errors
    /// Why it cannot be played, in words.
    pub fn new(
        scenario: &Scenario,
        profile: &Profile,
        ports: [&str; 2],
        host: impl Fn(u32) -> Ipv4Addr,
    ) -> Result<Field, String> {
        let sharing = scenario.sharing.as_ref().ok_or("it is not about shares")?;
        let Some(Enforce::Engine(word)) = profile.law else {
            return Err("no box enforces it: live, the engine does".to_owned());
        };
        let sharing = sharing.at(profile.scale);
        if sharing.ask != Ask::Fair {
            return Err("live, ask = \"fair\" is played".to_owned());
        }
        if sharing.loads.iter().any(|load| load.sizes.is_some()) {
            return Err("its senders send packets of several sizes".to_owned());
        }
        let link = sharing.nodes[0].peak;
        let policy = engine::policy(&sharing.nodes, word, link, ports, &host);
        let sender = |load: &super::Load| Sender {
            host: host(load.node),
            rate: Rate::from_bps(number(load.rate)),
            bytes: sharing.bytes,
            times: (Span::from_ns(load.times.0), Span::from_ns(load.times.1)),
        };
        let senders = sharing.loads.iter().map(sender).collect();
        Ok(Field { policy, senders, lasts: sharing.run, sharing })
    }

    /// What came of it, as those under a virtual clock tell it.
    #[must_use]
    pub fn seen(&self, passages: impl Iterator<Item = Passage>) -> Run {
        let mut account = Account::new(&self.sharing, settled(&self.sharing));
        let packet = f64::from(self.sharing.bytes) * 8.0;
        let line = packet / bits(self.sharing.nodes[0].peak) * 1e6;
        for Passage { sender, sent, came } in passages {
            account.sent(sender, sent.ns(), packet);
            if let Some(came) = came {
                // the last bit of a frame is on a line of this rate so much later
                let wait = whole(came.since(sent).ns()) / 1e3 + line;
                account.passes(sender, came.ns(), packet, wait);
            }
        }
        let Shown { numbers, series } = shown(&self.sharing, account.seen);
        Run { shares: numbers, series, ..Run::default() }
    }
}
