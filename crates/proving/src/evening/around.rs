//! What stands around weir: hosts that leave checksums to hardware, a second link, a bridge of the
//! operator's own, another user, a router on the same machine.

use std::net::Ipv4Addr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use weir_units::{Rate, Span};

use super::asks::{ask, until_answered};
use super::cuts::Watched;
use super::raw::{BROADCAST, Sending, frame, packet, who_has};
use super::wrapped::{arriving, within};
use super::{CUT, Evening, end_all};
use crate::clock;
use crate::family::{self, Role};
use crate::middle::{Joined, Start};
use crate::policy::{self, BULK_PORT, NUMBERED_PORT, PING_PORT};
use crate::traffic::{Bulk, End};
use crate::world::{WAN_HOST, World, lan_host};

/// The box's address on a bridge of the operator's own, and one that it gets later.
const BOX: Ipv4Addr = Ipv4Addr::new(10, 77, 9, 1);
const BOX_LATER: Ipv4Addr = Ipv4Addr::new(10, 77, 9, 2);

/// After an address is given, it is reachable.
const REACHABLE: Span = Span::from_secs(3);

/// Hosts leave checksums undone, as the kernel's default is for virtual interfaces.
pub(super) fn offloads(evening: &mut Evening) -> Result<(), String> {
    let world = evening.world()?;
    world.lan.run("ethtool -K lan0 tx on")?;
    world.wan.run("ethtool -K wan0 tx on")?;
    for observes in [false, true] {
        let (arguments, word): (&[&str], _) =
            if observes { (&["--observe"], "observe: ") } else { (&[], "") };
        let joined = evening.start(&world, &policy::edited(0), arguments)?;
        let (lan, wan) = world.ends(0, NUMBERED_PORT);
        let asked = ask(&lan, &wan, 50)?;
        let measured = format!("{} of {} answered", asked.answered, asked.asked);
        evening.check(&format!("{word}UDP"), measured, "all", asked.answered == asked.asked);
        let (lan, wan) = world.ends(2, BULK_PORT);
        for (way, down) in [("down", true), ("up", false)] {
            let bulk = Bulk { connections: 2, rate: Some(Rate::from_bps(20_000_000)) };
            let bulk = if down { bulk.start(&wan, &lan) } else { bulk.start(&lan, &wan) }?;
            clock::sleep(Span::from_ms(800));
            let bytes = bulk.stop()?;
            let held = bytes > 500_000;
            evening.check(&format!("{word}TCP {way}"), format!("{bytes} bytes"), "500 kB", held);
        }
        end_all(&world, joined)?;
    }
    Ok(())
}

/// Two links in one namespace whose names are alike at their beginning.
pub(super) fn like_names(evening: &mut Evening) -> Result<(), String> {
    let world = evening.world()?;
    world.cable(("lan1", &world.lan), ("eth3", &world.box_))?;
    world.cable(("eth4", &world.box_), ("wan1", &world.wan))?;
    let first = policy::edited(0).replace("[link.live]", "[link.building-a-floor1]");
    let second = policy::edited(0)
        .replace("[link.live]", "[link.building-a-floor2]")
        .replace("\"eth1\"", "\"eth3\"")
        .replace("\"eth2\"", "\"eth4\"");
    let mut links = Vec::new();
    for (name, text) in [("floor1", first), ("floor2", second)] {
        let how = Start { name: name.to_owned(), ..evening.how()? };
        let mut joined = Joined::prepare(&world, evening.middle, &text, how)?;
        joined.run()?;
        links.push(joined);
    }
    let bridge = |port: &str| world.box_.ask(&format!("readlink /sys/class/net/{port}/master"));
    let name = |port: &str| {
        bridge(port).map(|link| link.trim().rsplit('/').next().unwrap_or_default().to_owned())
    };
    let bridges = [name("eth1")?, name("eth2")?, name("eth3")?, name("eth4")?];
    let apart = bridges[0] == bridges[1] && bridges[2] == bridges[3] && bridges[0] != bridges[2];
    evening.check("bridges", bridges.join(" "), "one of each link", apart);
    let daemons: Vec<u32> = family::of(&world.box_)?
        .iter()
        .filter(|member| member.role == Role::Daemon)
        .map(|member| member.pid)
        .collect();
    family::signal("-KILL", &daemons);
    clock::sleep(Span::from_ms(300));
    let heard = || -> Result<u64, String> {
        let (lan, wan) = (world.lan.carried("lan1")?, world.wan.carried("wan1")?);
        Ok(lan.received_frames + wan.received_frames)
    };
    let (own, others) = (world.wan.carried("wan0")?, heard()?);
    let call = who_has(lan_host(0), Ipv4Addr::new(10, 77, 8, 8), 60);
    let sending = Sending::start(&world.lan, "lan0", vec![call], Rate::from_bps(100_000));
    clock::sleep(Span::from_secs(1));
    sending.stop()?;
    let own = world.wan.carried("wan0")?.received_frames - own.received_frames;
    let others = heard()? - others;
    let measured = format!("{own} frames on its own WAN side, {others} on the other link");
    evening.check("both killed", measured, "some, none", own > 0 && others == 0);
    family::end(&world.box_)?;
    drop(links);
    Ok(())
}

/// A bridge of the operator's own.
fn own_bridge(world: &World) -> Result<(), String> {
    world.box_.bridge("br0", &["eth1", "eth2"])
}

/// A host sends what weir lets pass to the box itself, as much as it can.
pub(super) fn for_the_box(evening: &mut Evening) -> Result<(), String> {
    const LINE: Rate = Rate::from_bps(2_000_000);
    const SENT: Rate = Rate::from_bps(15_000_000);
    let world = evening.world()?;
    own_bridge(&world)?;
    world.box_.ip(&format!("addr add {BOX}/16 dev br0"))?;
    world.box_.run("sysctl -qw net.ipv4.ip_forward=1")?;
    let text = policy::ceilings(&[(LINE.bps(), "2mbit")]).replace("\"1gbit\"", "\"2mbit\"");
    let joined = evening.start(&world, &text, &[])?;
    let mac = world.box_.ask("cat /sys/class/net/br0/address")?;
    let mac: Vec<u8> =
        mac.trim().split(':').filter_map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    let mac = <[u8; 6]>::try_from(mac).map_err(|mac| format!("no MAC of br0: {mac:?}"))?;
    let box_ = End::new(&world.box_, BOX, PING_PORT);
    let host = End::new(&world.lan, lan_host(5), PING_PORT);
    until_answered(&host, &box_, REACHABLE)?;
    let foreign = packet(lan_host(0), WAN_HOST, 900);
    let mut from_box = who_has(lan_host(0), BOX, 60);
    from_box[..6].copy_from_slice(&mac);
    let floods = [
        ("ARP for the box, short", who_has(lan_host(0), BOX, 60)),
        ("ARP for the box, to its MAC", from_box),
        ("ARP for the box, 1 500 bytes", who_has(lan_host(0), BOX, 1_500)),
        ("ARP for others, 1 500 bytes", who_has(lan_host(0), WAN_HOST, 1_500)),
        ("IP to the box's MAC, for others", frame(mac, &[], 0x0800, &foreign)),
        ("IP to all, for the box", frame(BROADCAST, &[], 0x0800, &packet(lan_host(0), BOX, 900))),
    ];
    for (name, bytes) in floods.into_iter().step_by(if evening.short { 2 } else { 1 }) {
        let sending = Sending::start(&world.lan, "lan0", vec![bytes], SENT);
        let arrived = arriving(&world)?;
        let reached = until_answered(&host, &box_, REACHABLE)?;
        let sent = sending.stop()?;
        within(evening, name, sent, arrived, LINE);
        let measured = match reached {
            Some(took) => format!("answers after {} ms", took.ns() / 1_000_000),
            None => "does not answer".to_owned(),
        };
        evening.check(&format!("{name}: the box"), measured, "3 s", reached.is_some());
    }
    end_all(&world, joined)
}

pub(super) fn late_address(evening: &mut Evening) -> Result<(), String> {
    let world = evening.world()?;
    own_bridge(&world)?;
    let joined = evening.start(&world, &policy::edited(0), &[])?;
    for address in [BOX, BOX_LATER] {
        clock::sleep(Span::from_ms(700));
        world.box_.ip(&format!("addr add {address}/16 dev br0"))?;
        let (host, box_) = (
            End::new(&world.lan, lan_host(5), PING_PORT),
            End::new(&world.box_, address, PING_PORT),
        );
        let took = until_answered(&host, &box_, Span::from_secs(6))?;
        let measured = took
            .map_or("does not answer".to_owned(), |t| format!("after {} ms", t.ns() / 1_000_000));
        let held = took.is_some_and(|took| took < REACHABLE);
        evening.check(&format!("{address} is reachable"), measured, "3 s", held);
    }
    end_all(&world, joined)
}

/// Any user can take an abstract name of a socket.
pub(super) fn taken_name(evening: &mut Evening) -> Result<(), String> {
    let world = evening.world()?;
    let mut taken = Vec::new();
    for port in ["eth1", "eth2"] {
        let failed = |e| format!("the name of {port}: {e}");
        // names are of one kind of socket each
        taken.push(world.box_.within(|| {
            let name = SocketAddr::from_abstract_name(format!("weir/port/{port}"));
            let name = name.map_err(failed)?;
            let datagram = UnixDatagram::bind_addr(&name).map_err(failed)?;
            Ok((datagram, UnixListener::bind_addr(&name).map_err(failed)?))
        })?);
    }
    match evening.start(&world, &policy::edited(0), &[]) {
        Ok(joined) => {
            let mut watched = Watched::start(&world)?;
            watched.blow("weir starts, a ping", (CUT, Span::from_ms(500)), || Ok(()))?;
            end_all(&world, joined)?;
            watched.end(evening)
        }
        Err(why) => {
            evening.check("weir starts", why.replace('\n', " "), "yes", false);
            Ok(())
        }
    }
}

/// The machine of the bridge is a router too, behind it: connections that the bridge has carried
/// while weir was away must still be translated.
pub(super) fn router(evening: &mut Evening) -> Result<(), String> {
    const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 77, 9, 254);
    const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
    const FLOWS: u16 = 40;
    let world = evening.world()?;
    if world.box_.run("nft list ruleset").is_err() {
        evening.cannot("a router", "nft is missing; run: apt-get install nftables");
        return Ok(());
    }
    // the WAN port leads back into the box, where the router is, and from there to the WAN; on
    // its way it leaves the namespace as it would by a cable: within one, a frame keeps what the
    // kernel has noted about its connection
    let box_ = &world.box_;
    box_.ip("link del eth2")?;
    world.cable(("eth2", box_), ("loop0", &world.wan))?;
    world.cable(("rt0", box_), ("loop1", &world.wan))?;
    world.wan.bridge("loop", &["loop0", "loop1"])?;
    box_.run("ethtool -K rt0 tx off")?;
    world.cable(("up0", box_), ("wan0", &world.wan))?;
    box_.ip(&format!("addr add {GATEWAY}/16 dev rt0"))?;
    box_.ip(&format!("addr add {OUTSIDE}/24 dev up0"))?;
    world.wan.ip(&format!("addr add {SERVER}/24 dev wan0"))?;
    world.lan.ip(&format!("route add 192.0.2.0/24 via {GATEWAY}"))?;
    for setting in ["net.ipv4.ip_forward", "net.bridge.bridge-nf-call-iptables"] {
        if let Err(why) = box_.run(&format!("sysctl -qw {setting}=1")) {
            evening.cannot("a router", &why);
            return Ok(());
        }
    }
    for line in [
        "add table ip nat",
        "add chain ip nat post { type nat hook postrouting priority 100 ; }",
        "add rule ip nat post oifname up0 masquerade",
    ] {
        box_.run(&format!("nft {line}"))?;
    }
    let joined = evening.start(&world, &policy::edited(0), &[])?;
    let mut flows = |what: &str, first: u16| -> Result<(), String> {
        let lan = End::new(&world.lan, lan_host(0), first);
        let asked = ask(&lan, &End::new(&world.wan, SERVER, PING_PORT), FLOWS)?;
        let sources: Vec<String> = asked.sources.iter().map(ToString::to_string).collect();
        let measured =
            format!("{} of {} answered, seen from {}", asked.answered, FLOWS, sources.join(" "));
        let held = asked.answered == asked.asked && asked.sources.iter().all(|s| *s == OUTSIDE);
        evening.check(what, measured, "all, translated", held);
        Ok(())
    };
    flows("with weir", 20_000)?;
    let pid = family::find(&family::of(box_)?, Role::Daemon).ok_or("no daemon")?;
    family::signal("-KILL", &[pid]);
    clock::sleep(Span::from_ms(300));
    flows("weir killed, new flows", 21_000)?;
    flows("weir killed, old flows", 20_000)?;
    end_all(&world, joined)
}
