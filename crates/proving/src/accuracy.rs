//! Does a leaf get its rate? TCP of the kernel and numbered datagrams, both more than the leaf may
//! have, counted where they arrive, at the layer that the policy counts.

use weir_units::{Instant, Rate, Span};

use super::clock::{self, Lateness};
use super::middle::{Joined, Middle};
use super::traffic::{Bulk, End, Flood, Flow, Transfer};
use super::verdict::{Table, Verdict, lateness};
use super::world::{Sketch, WAN_HOST, World, lan_host};
use super::{Run, policy};

/// The leaves, and how a policy says them.
const RATES: [(u64, &str); 5] = [
    (100_000, "100kbit"),
    (1_000_000, "1mbit"),
    (10_000_000, "10mbit"),
    (50_000_000, "50mbit"),
    (200_000_000, "200mbit"),
];

/// Bytes of a full packet at the IP layer.
const PACKET: u16 = 1_500;

/// In millionths of the rate.
const BAR: u64 = 10_000;

/// Before counting: TCP has to find its rate, a queue has to fill.
const SETTLE: Span = Span::from_secs(2);

#[derive(Clone, Copy)]
enum With {
    Udp,
    Tcp,
}

/// One leaf under load.
struct Load {
    with: With,
    rate: Rate,
    down: bool,
    host: u16,
}

enum Going {
    Udp(Flow),
    Tcp(Transfer),
}

pub(crate) fn run(run: &mut Run<'_>, middle: Middle) -> Result<bool, String> {
    let hosts = u16::try_from(RATES.len()).unwrap_or(u16::MAX);
    let world = World::make(Sketch { hosts, line: None }, run.shell.clone())?;
    let joined = Joined::start(&world, middle, &policy::ceilings(&RATES))?;
    let time = if run.short { Span::from_secs(3) } else { Span::from_secs(10) };
    let ways: &[bool] = if run.short { &[true] } else { &[true, false] };
    run.out.line(&format!(
        "accuracy through {}: each leaf alone for {} s after {} s, counted at the IP layer where\n\
         it arrives; bar: 1 % of the rate or one packet, whichever is more",
        middle.name(),
        time.ns() / 1_000_000_000,
        SETTLE.ns() / 1_000_000_000,
    ));
    if middle == Middle::Bridge {
        run.out.line("(the bridge has no policy: a TBF at its port stands in)");
    }
    run.out.flush();
    let mut table =
        Table::new(2, &["way", "with", "ceiling", "measured", "off %", "bar %", "late ms p99/max"]);
    for (&(bps, _), host) in RATES.iter().zip(0..) {
        for &down in ways {
            for with in [With::Udp, With::Tcp] {
                let load = Load { with, rate: Rate::from_bps(bps), down, host };
                load.measure(&world, &joined, time, &mut table)?;
            }
        }
    }
    drop(joined);
    Ok(run.conclude(&table))
}

impl Load {
    fn measure(
        &self,
        world: &World,
        joined: &Joined,
        time: Span,
        table: &mut Table,
    ) -> Result<(), String> {
        let port = 5_000 + self.host;
        let lan = End::new(&world.lan, lan_host(self.host), port);
        let wan = End::new(&world.wan, WAN_HOST, port);
        let (from, to, at, leaves) = match self.down {
            true => (&wan, &lan, "lan0", "eth1"),
            false => (&lan, &wan, "wan0", "eth2"),
        };
        if joined.middle == Middle::Bridge {
            // a twentieth of a second, or a hundred packets
            let queue = u32::try_from(self.rate.bps() / 8 / 20).unwrap_or(u32::MAX).max(150_000);
            world.box_.narrow(leaves, self.rate, queue)?;
        }
        let going = self.start(from, to)?;
        clock::sleep(SETTLE);
        let late = Lateness::watch();
        let look = || Ok::<_, String>((clock::now(), to.place.carried(at)?));
        let before = look()?;
        clock::sleep(time);
        let after = look()?;
        let late = late.stop();
        match going {
            Going::Udp(flow) => drop(flow.stop()?),
            Going::Tcp(transfer) => drop(transfer.stop()?),
        }
        let bytes = after.1.ip_bytes_since(before.1);
        let (measured, bound) = judged(self.rate, bytes, (before.0, after.0));
        // what the machine delays at either end of the window counts once too much or too little
        let bearable = Span::from_ns(after.0.since(before.0).ns() * BAR / 1_000_000 / 2);
        let off = i128::from(measured) - i128::from(self.rate.bps());
        let verdict = Verdict::of(off.unsigned_abs() <= u128::from(bound));
        let percent = |part: i128| {
            let hundredths = part * 10_000 / i128::from(self.rate.bps());
            let sign = if hundredths < 0 { "-" } else { "" };
            let hundredths = hundredths.abs();
            format!("{sign}{}.{:02}", hundredths / 100, hundredths % 100)
        };
        let cells = vec![
            if self.down { "down" } else { "up" }.to_owned(),
            match self.with {
                With::Udp => "udp",
                With::Tcp => "tcp",
            }
            .to_owned(),
            self.rate.to_string(),
            format!("{} kbit/s", measured / 1_000),
            percent(off),
            percent(i128::from(bound)),
            lateness(&late),
        ];
        table.row(cells, verdict.unless_late(late.longest(), bearable));
        Ok(())
    }

    fn start(&self, from: &End, to: &End) -> Result<Going, String> {
        match self.with {
            With::Udp => {
                let rate = Rate::from_bps(self.rate.bps() / 2 * 3);
                Flood::new(rate, PACKET).start(from, to).map(Going::Udp)
            }
            With::Tcp => {
                let bulk = Bulk { connections: 4, rate: None };
                // the LAN's end listens: its address says which leaf this is
                let going =
                    if self.down { bulk.start(from, to) } else { bulk.start_at_listener(from, to) };
                going.map(Going::Tcp)
            }
        }
    }
}

/// The rate in bit/s and how far it may be off: the greater of the bar and one packet.
fn judged(rate: Rate, bytes: u64, (from, to): (Instant, Instant)) -> (u64, u64) {
    let ns = u128::from(to.since(from).ns().max(1));
    let bps =
        |bytes: u64| u64::try_from(u128::from(bytes) * 8 * 1_000_000_000 / ns).unwrap_or(u64::MAX);
    let bar = u128::from(rate.bps()) * u128::from(BAR) / 1_000_000;
    (bps(bytes), bps(u64::from(PACKET)).max(u64::try_from(bar).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_leaf_may_be_off_by_a_packet_and_a_fast_one_by_one_per_cent() {
        let window = (Instant::ZERO, Instant::ZERO + Span::from_secs(10));
        assert_eq!(judged(Rate::from_bps(100_000), 125_000, window), (100_000, 1_200));
        assert_eq!(judged(Rate::from_bps(10_000_000), 0, window), (0, 100_000));
    }
}
