//! Frames in wrappings: they may carry an IP packet past its class, or lose a tag on their way.

use weir_units::{Rate, Span};

use super::raw::{ASKED, Sending, Tag, WAN_MAC, exchange, frame, packet, tagged};
use super::{Evening, end_all};
use crate::clock;
use crate::policy;
use crate::world::{WAN_HOST, World, lan_host};

/// What the host sends, and what its class has.
const SENT: Rate = Rate::from_bps(8_000_000);
const CEILING: Rate = Rate::from_bps(1_000_000);

/// Before this the burst of a ceiling counts; over this it is measured.
const SETTLES: Span = Span::from_secs(1);
const MEASURED: Span = Span::from_secs(2);

pub(super) fn ceiling(evening: &mut Evening) -> Result<(), String> {
    const VLAN: u16 = 0x8100;
    const QINQ: u16 = 0x88a8;
    let world = evening.world()?;
    let joined = evening.start(&world, &policy::ceilings(&[(CEILING.bps(), "1mbit")]), &[])?;
    let ip = packet(lan_host(0), WAN_HOST, 900);
    let length = u16::try_from(ip.len()).unwrap_or(0);
    let snap = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &ip[..]].concat();
    let pppoe = [&[0x11, 0, 0, 7][..], &(length + 2).to_be_bytes(), &[0, 0x21], &ip[..]].concat();
    let forms = [
        ("plain", frame(WAN_MAC, &[], 0x0800, &ip)),
        ("five 802.1Q tags", frame(WAN_MAC, &[VLAN; 5], 0x0800, &ip)),
        ("nine 802.1Q tags", frame(WAN_MAC, &[VLAN; 9], 0x0800, &ip)),
        ("five 802.1ad tags", frame(WAN_MAC, &[QINQ; 5], 0x0800, &ip)),
        ("mixed tags", frame(WAN_MAC, &[QINQ, VLAN, QINQ, VLAN, VLAN, VLAN], 0x0800, &ip)),
        ("LLC/SNAP", frame(WAN_MAC, &[], length + 8, &snap)),
        ("LLC/SNAP in a tag", frame(WAN_MAC, &[VLAN], length + 8, &snap)),
        ("PPPoE", frame(WAN_MAC, &[], 0x8864, &pppoe)),
        ("PPPoE in five tags", frame(WAN_MAC, &[VLAN; 5], 0x8864, &pppoe)),
    ];
    const SAMPLE: [&str; 3] = ["five 802.1Q tags", "LLC/SNAP", "PPPoE in five tags"];
    let wanted = |name: &str| !evening.short || SAMPLE.contains(&name);
    let forms: Vec<_> = forms.into_iter().filter(|(name, _)| wanted(name)).collect();
    for (name, bytes) in forms {
        let sending = Sending::start(&world.lan, "lan0", vec![bytes], SENT);
        let arrived = arriving(&world)?;
        let sent = sending.stop()?;
        within(evening, name, sent, arrived, CEILING);
    }
    end_all(&world, joined)
}

/// What arrives on the WAN side, at the IP layer.
pub(super) fn arriving(world: &World) -> Result<Rate, String> {
    clock::sleep(SETTLES);
    let (before, began) = (world.wan.carried("wan0")?, clock::now());
    clock::sleep(MEASURED);
    let (after, ended) = (world.wan.carried("wan0")?, clock::now());
    let ms = (ended.since(began).ns() / 1_000_000).max(1);
    Ok(Rate::from_bps(after.ip_bytes_since(before) * 8_000 / ms))
}

/// Notes whether that is within a ceiling, to five per cent.
pub(super) fn within(evening: &mut Evening, what: &str, sent: u64, arrived: Rate, ceiling: Rate) {
    let measured = format!("{arrived} of {sent} frames");
    let held = arrived.bps() <= ceiling.bps() / 100 * 105 && sent > 100;
    evening.check(what, measured, &format!("{ceiling} + 5 %"), held);
}

/// Frames with tags that come over a bridge before the LAN port: the kernel carries the outer tag
/// beside such a frame. They must arrive as they were sent, byte by byte, or weir must say at its
/// start that they may not; with the cure that docs/run.md names they must arrive.
pub(super) fn tags(evening: &mut Evening) -> Result<(), String> {
    let world = evening.world()?;
    // host0 is what the frames leave by; lan0 is a port of the bridge now
    world.lan.ip("link add host0 type veth peer name port0")?;
    for port in ["host0", "port0"] {
        world.lan.ip(&format!("link set {port} up"))?;
    }
    world.lan.bridge("before", &["lan0", "port0"])?;
    let joined = evening.start(&world, &policy::edited(0), &[])?;
    clock::sleep(SETTLES);
    let is_warned = joined.said().contains("VLAN tags")
        || joined.trouble()?.iter().any(|trouble| trouble.contains("VLAN tags"));
    through(evening, &world, "", is_warned)?;
    world.lan.run("ethtool -K lan0 tx-vlan-hw-insert off tx-vlan-stag-hw-insert off")?;
    through(evening, &world, "with the cure: ", false)?;
    end_all(&world, joined)
}

fn through(evening: &mut Evening, world: &World, how: &str, is_warned: bool) -> Result<(), String> {
    const CASES: [(&str, &[Tag]); 4] = [
        ("without a tag", &[]),
        ("802.1Q 7, priority 5", &[(0x8100, 0xa007)]),
        ("802.1ad 9", &[(0x88a8, 9)]),
        ("802.1Q 8 in 802.1ad 9", &[(0x88a8, 9), (0x8100, 8)]),
    ];
    let ip = packet(lan_host(0), WAN_HOST, 100);
    for (name, tags) in CASES {
        let sent = tagged(WAN_MAC, tags, 0x0800, &ip);
        let arrived = exchange((&world.lan, "host0"), (&world.wan, "wan0"), &sent)?;
        let whole = arrived.iter().filter(|frame| **frame == sent).count();
        let without = arrived.len() - whole;
        let warned = if is_warned { "; weir warned of it" } else { "" };
        let measured = format!("{whole} of {ASKED} whole, {without} without a tag{warned}");
        let held = (whole == ASKED && without == 0) || (is_warned && !tags.is_empty());
        evening.check(&format!("{how}{name}"), measured, "all, or a warning", held);
    }
    Ok(())
}
