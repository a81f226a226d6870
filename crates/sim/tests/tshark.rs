//! What the world puts on its wires, read by somebody else: tshark finds no wrong sum, nothing
//! malformed, and the protocols that are meant. Without tshark this is skipped.

use std::fs;
use std::process::Command;
use std::sync::{Arc, Mutex};

use weir_sim::impair::{Impairments, Loss};
use weir_sim::link::{Aqm, Codel};
use weir_sim::{Files, FlowSpec, LinkSpec, Queue, Source, TcpSpec, World};
use weir_units::{Instant, Span};

/// A classic capture of Ethernet with nanoseconds.
fn capture() -> Vec<u8> {
    let mut world = World::new(3);
    let path = Impairments {
        delay: Span::from_ms(20),
        loss: Loss::Periodic { every: 97, phase: 0 },
        ..Impairments::default()
    };
    let queue = Queue { ecn: true, aqm: Aqm::Codel(Codel::default()), ..Queue::frames(50) };
    let wire = LinkSpec { rate: "2mbit".parse().ok(), queue, path, ..LinkSpec::default() };
    let six = |n: u16| std::net::IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, n]);
    let pairs = [[[10, 0, 0, 1].into(), [10, 0, 0, 2].into()], [six(1), six(2)]];
    let mut presets = TcpSpec::presets().into_iter().cycle();
    let mut taps = Vec::new();
    for addresses in pairs {
        let [a, b] = addresses.map(|address| world.host(address));
        let (there, back) = world.connect(a, b, &wire, &wire);
        taps.extend([there, back]);
        let think = Span::from_ms(100);
        let bulk = [Some(300_000), None, None, None].map(|bytes| Source::Bulk { bytes });
        let web = Source::Web { files: Files::Classes, request: 300, think, keeps: false };
        let sources = [
            Source::Voice,
            Source::Game,
            Source::Dns { every: Span::from_ms(300) },
            Source::Call { rings: Span::from_ms(500) },
            Source::Echo { every: think },
            web,
        ];
        for source in sources.into_iter().chain(bulk) {
            let tcp = presets.next().and_then(TcpSpec::preset).expect("a preset");
            let stop = Instant::ZERO + Span::from_secs(20);
            let tcp = Box::new([tcp.clone(), tcp]);
            world.flow(&FlowSpec { stop, tcp, ..FlowSpec::new(a, b, source) });
        }
    }
    let start = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat();
    let file = Arc::new(Mutex::new(start));
    let log = file.clone();
    world.tap(
        &taps,
        Box::new(move |_, at, bytes| {
            let [seconds, ns] = [at.ns() / 1_000_000_000, at.ns() % 1_000_000_000];
            let len = bytes.len() as u64;
            let mut log = log.lock().expect("one thread");
            for word in [seconds, ns, len, len] {
                let word = u32::try_from(word).expect("small");
                log.extend(word.to_le_bytes());
            }
            log.extend(bytes);
        }),
    );
    world.run_until(Instant::ZERO + Span::from_secs(30));
    drop(world);
    Arc::into_inner(file).expect("the world is gone").into_inner().expect("one thread")
}

#[test]
fn tshark_has_nothing_to_complain_about() {
    let path = format!("{}/world.pcap", env!("CARGO_TARGET_TMPDIR"));
    fs::write(&path, capture()).expect("the target directory is ours");
    let read = |filter: &str| {
        let checks = ["ip", "tcp", "udp"].map(|p| format!("{p}.check_checksum:TRUE"));
        let mut tshark = Command::new("tshark");
        tshark.args(["-r", &path, "-Y", filter, "-d", "udp.port==16384,rtp"]);
        checks.iter().for_each(|check| _ = tshark.args(["-o", check]));
        tshark.output()
    };
    let wrong = "_ws.malformed || _ws.expert.severity == error || ip.checksum.status == 0 \
                 || tcp.checksum.status == 0 || udp.checksum.status == 0 || tcp.options.unknown";
    let Ok(out) = read(wrong) else {
        println!("skipped: tshark is not installed");
        return;
    };
    let found = String::from_utf8_lossy(&out.stdout);
    assert!(found.is_empty(), "{found}");
    for protocol in ["rtp", "dns.a", "sip.Status-Code == 200", "sdp", "tcp.options.sack_le", "ipv6"]
    {
        let out = read(protocol).expect("it ran before");
        assert!(!out.stdout.is_empty(), "no {protocol}: {}", String::from_utf8_lossy(&out.stderr));
    }
}
