//! Interfaces come and go while weir runs: an adapter is pulled out, a driver restarts, a tunnel is
//! made anew. A port that is gone is taken out of use, and opened again when its interface is back.

use weir_io::netdev;
use weir_io::{PacketPort, Port, PortState, XskPort};
use weir_packet::Side;

use super::link::{Link, Ports};
use super::ports::{Kept, Way, attach, take, usable, xsk_spec};

impl Kept {
    /// Looks after the ports; returns what happened, in words.
    pub(crate) fn look_after(&mut self, link: &mut Link, now: &Ports) -> Vec<String> {
        let mut events = Vec::new();
        for side in [Side::Lan, Side::Wan] {
            if now.state[side as usize] == PortState::Gone {
                self.look_after_one(link, side, now, &mut events);
            }
        }
        events.extend(self.look_after_the_guard());
        events
    }

    /// A process that may start no program cannot start another guard; who starts weir again can.
    fn look_after_the_guard(&mut self) -> Option<String> {
        let Way::Packet { guard } = &mut self.way else { return None };
        if guard.as_mut()?.is_alive() {
            return None;
        }
        *guard = None;
        Some(
            "the guard has died: when weir stops now, nothing carries the traffic; \
              start weir again as soon as that suits"
                .to_owned(),
        )
    }

    fn look_after_one(
        &mut self,
        link: &mut Link,
        side: Side,
        now: &Ports,
        events: &mut Vec<String>,
    ) {
        let name = self.name(side).to_owned();
        if now.counters[side as usize].is_some() {
            let taken = link.take(side);
            if let Way::Xdp { programs, .. } = &mut self.way {
                programs[side as usize] = None;
            }
            events.push(match taken {
                Ok(_) => format!("{name} is gone: its frames have nowhere to go until it is back"),
                Err(why) => why,
            });
        }
        if netdev::index_of(&name).is_err() {
            return;
        }
        match self.open_again(link, side, events) {
            Ok(()) => {
                self.refused[side as usize] = None;
                events.push(format!("{name} is back and in use"));
            }
            // it is tried every second, and said when it is new
            Err(why) if self.refused[side as usize].as_ref() == Some(&why) => {}
            Err(why) => {
                events.push(format!("{name} is back, but not in use: {why}"));
                self.refused[side as usize] = Some(why);
            }
        }
    }

    fn open_again(
        &mut self,
        link: &mut Link,
        side: Side,
        events: &mut Vec<String>,
    ) -> Result<(), String> {
        let netdev = usable(self.name(side), events).map_err(|why| why.join("; "))?;
        let mut heart = None;
        let port = match &mut self.way {
            Way::Packet { .. } => {
                let port = PacketPort::open(&netdev.name).map_err(|e| e.to_string())?;
                Port::Packet(Box::new(port))
            }
            Way::Xdp { umem, programs } => {
                // of a try that failed half way
                programs[side as usize] = None;
                let port = XskPort::reopen(umem, &xsk_spec(&netdev)).map_err(|e| e.to_string())?;
                let (program, attached) = attach(&netdev, &port)?;
                let told = program.heart().map_err(|e| e.to_string())?;
                self.bridge.iter().for_each(|bridge| bridge.tell(&told));
                heart = Some(told);
                take(&program);
                programs[side as usize] = Some((program, attached));
                Port::Xsk(Box::new(port))
            }
        };
        if let Some(bridge) = &self.bridge {
            bridge.take_in(&netdev.name)?;
            if matches!(self.way, Way::Packet { .. }) {
                netdev::set_isolated(&netdev.name, true).map_err(|e| e.to_string())?;
            }
        }
        link.put(side, port, heart)?;
        Ok(())
    }
}
