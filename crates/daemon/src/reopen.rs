//! Interfaces come and go while weir runs: an adapter is pulled out, a driver restarts, a tunnel is
//! made anew. A port that is gone is taken out of use, and opened again when its interface is back.
//! Guards and addresses come and go too.

use weir_io::{Port, PortState};
use weir_packet::{BySide, Member, Side};
use weir_units::{Instant, Span};
use weir_xdp::Counts;

use crate::helper::Ask;
use crate::link::Link;
use crate::ports::{Backend, Given, Kept, Watch, held};
use crate::pulse::GUARD_BEAT;
use crate::reader::Ports;
use crate::trouble::Trouble;

/// A guard that has not looked for so long has died or stands still.
const GUARD_IS_LATE: Span = Span::from_ms(500);

impl Kept {
    /// Looks after the ports; returns what happened, in words, and what is wrong with its cure.
    pub(crate) fn look_after(
        &mut self,
        link: &mut Link,
        ports: &Ports,
        now: Instant,
    ) -> (Vec<String>, Vec<Trouble>) {
        let (mut events, mut troubles) = (Vec::new(), Vec::new());
        for side in Side::ALL {
            let name = self.name(side).to_owned();
            match ports.state[side] {
                PortState::Gone if self.look_after_one(link, side, ports, &mut events) => {}
                PortState::Gone => {
                    let why = self.refused[side].clone();
                    let cure = why.unwrap_or_else(|| "weir opens it again when it is back".into());
                    troubles.push(Trouble::new(format!("{name} is gone, no frame passes"), cure));
                }
                PortState::NoLink => troubles.push(Trouble::new(
                    format!("{name} has no link, no frame passes"),
                    format!("check the cable and the other end: `ip link show {name}`"),
                )),
                PortState::Up => {}
            }
        }
        link.has_passed(self.passed());
        self.look_after_the_guard(now, &mut events, &mut troubles);
        let look = held(&self.helper).look();
        match look {
            Ok(look) => {
                self.tell((look.mac, look.addresses));
                let [lan, wan] = look.queues;
                self.follow_the_queues(link, BySide { lan, wan }, &mut events);
                troubles.extend(look.troubles);
            }
            Err(why) => troubles.push(Trouble::new(
                format!("{why}, so weir cannot reopen an interface or start a guard"),
                "restart weir when convenient",
            )),
        }
        (events, troubles)
    }

    /// What the programs at the ports did with frames.
    fn passed(&self) -> BySide<Option<Counts>> {
        match &self.backend {
            Backend::Packet { .. } => BySide::default(),
            Backend::Xdp { doors, .. } => {
                BySide::SIDES.map(|side| doors[side].as_ref().map(|door| door.heart.counts()))
            }
        }
    }

    /// An interface that has got more queues sends what arrives at the new ones past weir: it is
    /// opened anew.
    fn follow_the_queues(&mut self, link: &mut Link, now: BySide<u32>, events: &mut Vec<String>) {
        for side in Side::ALL {
            let (served, there) = (self.queues[side], now[side]);
            if served == 0 || there == 0 || served == there {
                continue;
            }
            let name = self.name(side).to_owned();
            let what = format!("{name} has {there} receive queues now, not {served}");
            let taken = link.take(Member::only(side));
            if let Backend::Xdp { doors, .. } = &mut self.backend {
                doors[side] = None;
            }
            let opened = taken.and_then(|()| self.open_again(link, side, events));
            events.push(match opened {
                Ok(()) => format!("{what}: it was opened anew"),
                Err(why) => format!("{what}, and cannot be opened anew: {why}"),
            });
        }
    }

    /// Tells the programs what is the box's own.
    pub(crate) fn tell(&mut self, own: ([u8; 6], Vec<std::net::IpAddr>)) {
        if own == self.own {
            return;
        }
        for door in self.doors() {
            door.heart.own_mac(own.0);
            door.heart.own_addresses(&own.1);
        }
        self.own = own;
    }

    fn look_after_the_guard(
        &mut self,
        now: Instant,
        events: &mut Vec<String>,
        troubles: &mut Vec<Trouble>,
    ) {
        let Backend::Packet { watch: Some(watch), .. } = &mut self.backend else { return };
        let looked = Instant::from_ns(watch.page.get(GUARD_BEAT));
        if now.since(looked) < GUARD_IS_LATE {
            return;
        }
        match Watch::start(&watch.page, &mut held(&self.helper)) {
            Ok(anew) => {
                *watch = anew;
                events.push("the guard did not respond; another one was started".to_owned());
            }
            Err(why) => troubles.push(Trouble::new(
                "the guard has died, and if weir hangs now, the link may be cut",
                format!("{}; restart weir when convenient", why.join("; ")),
            )),
        }
    }

    /// Whether the interface is back and in use.
    fn look_after_one(
        &mut self,
        link: &mut Link,
        side: Side,
        now: &Ports,
        events: &mut Vec<String>,
    ) -> bool {
        let name = self.name(side).to_owned();
        if now.counters[side].is_some() {
            let taken = link.take(Member::only(side));
            if let Backend::Xdp { doors, .. } = &mut self.backend {
                doors[side] = None;
            }
            events.push(match taken {
                Ok(_) => format!("{name} is gone: frames for it are dropped until it is back"),
                Err(why) => why,
            });
        }
        if weir_io::netdev::index_of(&name).is_err() {
            self.refused[side] = None;
            return false;
        }
        let opened = self.open_again(link, side, events);
        let is_open = opened.is_ok();
        match opened {
            Ok(()) => {
                self.refused[side] = None;
                events.push(format!("{name} is back and in use"));
            }
            // it is tried every second, and said when it is new
            Err(why) if self.refused[side].as_ref() == Some(&why) => {}
            Err(why) => {
                events.push(format!("{name} is back, but not in use: {why}"));
                self.refused[side] = Some(why);
            }
        }
        is_open
    }

    fn open_again(
        &mut self,
        link: &mut Link,
        side: Side,
        events: &mut Vec<String>,
    ) -> Result<(), String> {
        let joined = |why: Vec<String>| why.join("; ");
        let via = self.backend.via();
        let mut answer = held(&self.helper).ask(&Ask::Open { side, via }, &[]).map_err(joined)?;
        events.append(&mut answer.said.notes);
        let given = Given::of(self.name(side), answer)?;
        let mut heart = None;
        self.completes[side] = given.completes();
        if matches!(self.backend, Backend::Xdp { .. }) {
            self.queues[side] = given.queues();
        }
        let port = match &mut self.backend {
            Backend::Packet { .. } => Port::Packet(Box::new(given.packet_port()?)),
            Backend::Xdp { umem, doors } => {
                // of a try that failed half way
                doors[side] = None;
                let spec = given.spec();
                let (port, door, hand) = given.port(umem, &spec)?;
                door.heart.own_mac(self.own.0);
                door.heart.own_addresses(&self.own.1);
                door.heart.take(true);
                doors[side] = Some(door);
                heart = Some(hand);
                Port::Xsk(Box::new(port))
            }
        };
        held(&self.helper).ask(&Ask::Join { side, via }, &[]).map_err(joined)?;
        link.put(Member::only(side), port, heart)?;
        Ok(())
    }
}
