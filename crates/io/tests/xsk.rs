//! AF_XDP ports between hosts, in network namespaces: needs root, and says so in one line where it
//! is not. Nothing here judges how long something took, except that a daemon is not passed by
//! too early.

#![expect(clippy::unwrap_used, reason = "this is a test")]

mod live;

use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use live::{ETHERTYPE, Host, frame, ifindex, ip, now_ns, own_network, veth, wait};
use weir_io::{FrameSize, Umem, XskPort, XskSpec};
use weir_packet::{Build, Burst, Pool};
use weir_units::limits::STALE_MS;
use weir_xdp::{Attached, Heart, Mode, Program};

const BUFFERS: usize = 8 << 10;
const RING: usize = 1 << 10;
/// The type of IPv4.
const IPV4: [u8; 2] = [0x08, 0x00];
/// A beat this far ahead keeps a daemon alive that the machine runs late.
const HOUR_NS: u64 = 3_600_000_000_000;
/// How often something is tried that has to come true.
const TRIES: u32 = 10_000;

/// A port of the box with its program.
struct Side {
    port: XskPort,
    program: Program,
    heart: Heart,
    attached: Attached,
}

impl Side {
    fn open(name: &str, mode: Mode, queues: u32, umem: &Umem, pool: &mut Pool) -> Side {
        let program = Program::load(queues).unwrap();
        let port = XskPort::open(umem, pool, &spec(name, queues)).unwrap();
        let heart = program.heart().unwrap();
        for (queue, socket) in port.sockets() {
            program.put(queue, socket).unwrap();
        }
        let attached = program.attach(ifindex(name), mode).unwrap();
        heart.take(true);
        heart.beat(now_ns() + HOUR_NS);
        Side { port, program, heart, attached }
    }

    /// Closes the port and opens it again; the program stays where it is.
    fn reopen(self, name: &str, umem: &Umem, pool: &mut Pool) -> Side {
        let Side { port, program, heart, attached } = self;
        assert_eq!(port.close(pool), 0);
        let port = XskPort::open(umem, pool, &spec(name, 1)).unwrap();
        for (queue, socket) in port.sockets() {
            program.put(queue, socket).unwrap();
        }
        Side { port, program, heart, attached }
    }
}

fn spec(name: &str, queues: u32) -> XskSpec {
    XskSpec { queues: 0..queues, ring_frames: RING, ..XskSpec::of(name, ifindex(name)) }
}

/// One turn of a box that only forwards: what comes in at one side leaves at the other.
fn turn(a: &mut Side, b: &mut Side, pool: &mut Pool) -> usize {
    let frames = one_way(&mut a.port, &mut b.port, pool) + one_way(&mut b.port, &mut a.port, pool);
    a.port.settle(pool);
    b.port.settle(pool);
    frames
}

fn one_way(from: &mut XskPort, to: &mut XskPort, pool: &mut Pool) -> usize {
    let mut burst = Burst::new();
    let frames = from.receive(pool, &mut burst);
    to.transmit(pool, &mut burst);
    assert!(burst.is_empty(), "the ring is larger than the tests' windows");
    frames
}

/// Sends so many frames from one host to the other and checks every byte of each.
fn pass(frames: u32, hosts: (&Host, &Host), sides: [&mut Side; 2], pool: &mut Pool) {
    const WINDOW: u32 = 48;
    let [a, b] = sides;
    let (mut sent, mut arrived, mut idle) = (0, 0, 0);
    while arrived < frames {
        while sent < frames && sent - arrived < WINDOW {
            hosts.0.send(&frame(sent));
            sent += 1;
        }
        let moved = turn(a, b, pool);
        while let Some(got) = hosts.1.receive() {
            assert_eq!(got, frame(arrived), "frame {arrived}");
            arrived += 1;
            idle = 0;
        }
        if moved == 0 {
            wait(hosts.1.as_fd(), 1);
            idle += 1;
            assert!(idle < TRIES, "frame {arrived} does not come");
        }
    }
}

fn memory() -> (Umem, Pool) {
    Umem::with_pool(BUFFERS, FrameSize::Normal).unwrap()
}

#[test]
fn frames_cross_the_box_in_order_and_byte_for_byte() {
    if !own_network() {
        return;
    }
    veth("a", 1);
    veth("b", 1);
    let (a0, b0) = (Host::at("a0"), Host::at("b0"));
    let (umem, mut pool) = memory();
    for mode in [Mode::Native, Mode::Generic] {
        let mut a = Side::open("a1", mode, 1, &umem, &mut pool);
        let mut b = Side::open("b1", mode, 1, &umem, &mut pool);
        assert_eq!((a.attached.mode(), a.attached.note().is_none()), (mode, true));
        assert!(!a.port.is_zero_copy(), "veth has none");
        pass(10_000, (&a0, &b0), [&mut a, &mut b], &mut pool);
        pass(100, (&b0, &a0), [&mut a, &mut b], &mut pool);

        let (come, gone) = (a.port.counters(), b.port.counters());
        assert_eq!((come.received, gone.sent), (10_000, 10_000));
        let bytes = (0..10_000).map(|number| frame(number).len() as u64).sum();
        assert_eq!((come.received_bytes, gone.sent_bytes), (bytes, bytes));
        for counters in [come, gone] {
            let lost = counters.dropped + counters.ring_full + counters.fill_empty;
            assert_eq!((lost, counters.invalid, counters.astray, counters.no_buffer), (0, 0, 0, 0));
        }
        assert_eq!(a.heart.counts().taken, 10_000);
        assert_eq!(pool.free() + a.port.held() + b.port.held(), pool.capacity());
        assert_eq!((a.port.close(&mut pool), b.port.close(&mut pool)), (0, 0));
        assert_eq!(pool.free(), pool.capacity());
    }
}

#[test]
fn a_silent_daemon_is_passed_by_and_found_again() {
    if !own_network() {
        return;
    }
    veth("a", 1);
    veth("b", 1);
    ip("link add name wire type bridge forward_delay 0");
    ip("link set wire address 02:00:00:00:00:99 up");
    ip("link set a1 master wire");
    ip("link set b1 master wire");
    let (a0, b0, br) = (Host::at("a0"), Host::at("b0"), Host::of_type("wire", IPV4));
    let (umem, mut pool) = memory();
    let mut a = Side::open("a1", Mode::Native, 1, &umem, &mut pool);
    let mut b = Side::open("b1", Mode::Native, 1, &umem, &mut pool);
    pass(100, (&a0, &b0), [&mut a, &mut b], &mut pool);

    // silence: frames go on through the bridge, and not before their time
    let last = now_ns();
    a.heart.beat(last);
    let tried = until_arrived(&a0, &b0);
    let silence_ms = (now_ns() - last) / 1_000_000;
    println!("the bridge carried the first frame after {silence_ms} ms, {tried} tries");
    assert!(silence_ms >= STALE_MS, "passed by after {silence_ms} ms");
    assert!(a.heart.counts().stale > 0);

    // what came up meanwhile waits in the ring; then everything is as it was
    a.heart.beat(now_ns() + HOUR_NS);
    while turn(&mut a, &mut b, &mut pool) > 0 {}
    wait(b0.as_fd(), 10);
    while b0.receive().is_some() {}
    let stale = a.heart.counts().stale;
    pass(100, (&a0, &b0), [&mut a, &mut b], &mut pool);
    assert_eq!(a.heart.counts().stale, stale);

    // packets to the box's own address go to the bridge even so
    a.heart.own_mac([2, 0, 0, 0, 0, 0x99]);
    a.heart.own_addresses(&[[10, 0, 0, 2].into()]);
    let ends = ["10.0.0.1:9", "10.0.0.2:9"].map(|end| end.parse().unwrap());
    let to_box = Build::udp(ends[0], ends[1]).macs([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 0x99]);
    let to_box = to_box.payload_len(100).to_vec();
    a.heart.beat(now_ns() + HOUR_NS);
    a0.send(&to_box);
    wait(br.as_fd(), 10_000);
    assert_eq!(br.receive(), Some(to_box));
    assert_eq!(a.heart.counts().to_box, 1);

    // a daemon that passes all frames to the kernel, and one whose port is closed while it still
    // beats
    a.heart.take(false);
    until_arrived(&a0, &b0);
    a.heart.take(true);
    assert_eq!(a.port.close(&mut pool), 0);
    until_arrived(&a0, &b0);
    assert!(a.heart.counts().no_socket > 0);
    b.port.close(&mut pool);
    assert_eq!(pool.free(), pool.capacity());
}

/// Sends until something comes out at the other host with nobody in between; says how often.
fn until_arrived(from: &Host, to: &Host) -> u32 {
    for tried in 1..TRIES {
        from.send(&frame(1_000 + tried));
        wait(to.as_fd(), 1);
        if let Some(got) = to.receive() {
            assert_eq!(got[12..14], ETHERTYPE);
            while to.receive().is_some() {}
            return tried;
        }
    }
    panic!("nothing came through");
}

#[test]
fn a_port_is_opened_again_while_the_other_lives() {
    if !own_network() {
        return;
    }
    veth("a", 1);
    veth("b", 1);
    let (mut a0, mut b0) = (Host::at("a0"), Host::at("b0"));
    let (umem, mut pool) = memory();
    let mut a = Side::open("a1", Mode::Native, 1, &umem, &mut pool);
    let mut b = Side::open("b1", Mode::Native, 1, &umem, &mut pool);
    for round in 0..4 {
        pass(200, (&a0, &b0), [&mut a, &mut b], &mut pool);
        // the one that was opened first, then the other
        if round % 2 == 0 {
            a = a.reopen("a1", &umem, &mut pool);
        } else {
            b = b.reopen("b1", &umem, &mut pool);
        }
        assert_eq!(pool.free() + a.port.held() + b.port.held(), pool.capacity());
    }

    // the netdev itself goes away and comes back, with frames of it still in our hands
    for name in ["a", "b"] {
        for number in 0..20 {
            a0.send(&frame(number));
            b0.send(&frame(number));
        }
        assert!(!a.port.is_gone() && !b.port.is_gone());
        ip(&format!("link del {name}0"));
        let mut burst = Burst::new();
        let side = if name == "a" { &mut a } else { &mut b };
        side.port.receive(&mut pool, &mut burst);
        while let Some(frame) = burst.pop() {
            pool.give(frame);
        }
        side.port.settle(&mut pool);
        assert!(side.port.is_gone(), "{name}1");
        veth(name, 1);
        if name == "a" {
            assert_eq!(a.port.close(&mut pool), 0);
            a = Side::open("a1", Mode::Native, 1, &umem, &mut pool);
            a0 = Host::at("a0");
        } else {
            assert_eq!(b.port.close(&mut pool), 0);
            b = Side::open("b1", Mode::Native, 1, &umem, &mut pool);
            b0 = Host::at("b0");
        }
        while turn(&mut a, &mut b, &mut pool) > 0 {}
        for host in [&a0, &b0] {
            wait(host.as_fd(), 10);
            while host.receive().is_some() {}
        }
        pass(200, (&a0, &b0), [&mut a, &mut b], &mut pool);
        pass(200, (&b0, &a0), [&mut a, &mut b], &mut pool);
    }
    a.port.close(&mut pool);
    b.port.close(&mut pool);
    assert_eq!(pool.free(), pool.capacity());
}

#[test]
fn a_full_ring_leaves_frames_with_the_caller_and_the_pool_its_reserve() {
    if !own_network() {
        return;
    }
    veth("a", 1);
    let host = Host::at("a0");
    let (umem, mut pool) = Umem::with_pool(1, FrameSize::Normal).unwrap();
    let spec = XskSpec { ring_frames: 64, reserve: 980, ..spec("a1", 1) };
    let mut port = XskPort::open(&umem, &mut pool, &spec).unwrap();
    assert_eq!((port.held(), pool.free()), (44, 980));
    assert_eq!(port.counters().no_buffer, 1);

    let mut burst = Burst::new();
    for number in 0..100 {
        if burst.is_full() {
            port.transmit(&mut pool, &mut burst);
            assert_eq!((burst.len(), port.unsent()), (0, 64));
        }
        burst.push(pool.fill(&frame(number)).unwrap()).unwrap();
    }
    port.transmit(&mut pool, &mut burst);
    assert_eq!((burst.len(), port.unsent()), (36, 64), "nothing is lost and nothing is taken");
    port.settle(&mut pool);
    port.transmit(&mut pool, &mut burst);
    assert!(burst.is_empty());
    port.settle(&mut pool);
    assert_eq!(port.unsent(), 0);
    for number in 0..100 {
        wait(host.as_fd(), 10_000);
        assert_eq!(host.receive(), Some(frame(number)));
    }
    assert_eq!((port.counters().sent, port.counters().invalid), (100, 0));
    port.close(&mut pool);
    assert_eq!(pool.free(), pool.capacity());
}

#[test]
fn one_turn_sends_more_than_one_wakeup_does() {
    if !own_network() {
        return;
    }
    veth("a", 1);
    let (umem, mut pool) = memory();
    let mut port = XskPort::open(&umem, &mut pool, &spec("a1", 1)).unwrap();
    let mut burst = Burst::new();
    for number in 0..600 {
        burst.push(pool.fill(&frame(number)).unwrap()).unwrap();
        if burst.is_full() || number == 599 {
            port.transmit(&mut pool, &mut burst);
        }
    }
    assert_eq!((burst.len(), port.unsent()), (0, 600));
    port.settle(&mut pool);
    assert_eq!(port.unsent(), 0, "the kernel takes 512 at a time");
    assert_eq!(port.close(&mut pool), 0);
    assert_eq!(pool.free(), pool.capacity());
}

#[test]
fn a_link_that_was_down_sends_nothing_from_before() {
    if !own_network() {
        return;
    }
    veth("a", 1);
    veth("b", 1);
    let (a0, b0) = (Host::at("a0"), Host::at("b0"));
    let (umem, mut pool) = memory();
    let mut a = Side::open("a1", Mode::Native, 1, &umem, &mut pool);
    let mut b = Side::open("b1", Mode::Native, 1, &umem, &mut pool);
    pass(100, (&a0, &b0), [&mut a, &mut b], &mut pool);
    ip("link set b1 down");
    for number in 1..=3 {
        a0.send(&frame(number));
        wait(a.port.fd(), 10_000);
        assert_eq!(turn(&mut a, &mut b, &mut pool), 1);
        // the first finds out that the link is down, the others are not given to the kernel
        assert_eq!(b.port.counters().not_sent, u64::from(number));
        assert_eq!((b.port.unsent(), b.port.is_gone(), a.port.unsent()), (0, false, 0));
    }
    ip("link set b1 up");
    b.port.settle(&mut pool);
    a0.send(&frame(4));
    wait(a.port.fd(), 10_000);
    assert_eq!(turn(&mut a, &mut b, &mut pool), 1);
    wait(b0.as_fd(), 10_000);
    assert_eq!((b0.receive(), b.port.counters().not_sent), (Some(frame(4)), 3));
    pass(100, (&a0, &b0), [&mut a, &mut b], &mut pool);
    // the kernel may tell the other end only after a second that its carrier is back, and drops
    // what the host sends until then
    assert!((0..TRIES).any(|_| ip("link show b0").contains("state UP")), "b0 stays down");
    pass(100, (&b0, &a0), [&mut a, &mut b], &mut pool);
    a.port.close(&mut pool);
    b.port.close(&mut pool);
    assert_eq!(pool.free(), pool.capacity());
}

/// What a frame takes on its way through the box, the kernel's part with it: CPU time of this
/// thread, which plays the hosts too, less that of the same without the box.
/// `cargo test --release -p weir-io --test xsk -- --ignored --nocapture what_a_frame`
#[test]
#[ignore = "a measurement"]
fn what_a_frame_takes() {
    if !own_network() {
        return;
    }
    veth("a", 1);
    veth("b", 1);
    veth("c", 1);
    let (a0, b0) = (Host::at("a0"), Host::at("b0"));
    let (c0, c1) = (Host::at("c0"), Host::at("c1"));
    let (umem, mut pool) = memory();
    for ring in [512, 2_048, 512, 2_048] {
        let mut ports = ["a1", "b1"].map(|name| {
            let spec = XskSpec { ring_frames: ring, ..spec(name, 1) };
            XskPort::open(&umem, &mut pool, &spec).unwrap()
        });
        let programs = [Program::load(1).unwrap(), Program::load(1).unwrap()];
        let mut links = Vec::new();
        for ((port, program), name) in ports.iter().zip(&programs).zip(["a1", "b1"]) {
            port.sockets().for_each(|(queue, socket)| program.put(queue, socket).unwrap());
            let heart = program.heart().unwrap();
            heart.take(true);
            heart.beat(now_ns() + HOUR_NS);
            links.push(program.attach(ifindex(name), Mode::Native).unwrap());
        }
        let [a, b] = &mut ports;
        for len in [60, 1_514] {
            let mut frame = frame(1);
            frame.resize(len, 0);
            let alone = cost_of(&frame, &c0, &c1, || ());
            let through = cost_of(&frame, &a0, &b0, || {
                one_way(a, b, &mut pool);
                a.settle(&mut pool);
                b.settle(&mut pool);
            });
            println!(
                "ring {ring:>4}, {len:>4} bytes: {} ns ({through} - {alone})",
                through - alone
            );
        }
        for port in ports {
            port.close(&mut pool);
        }
    }
}

/// Nanoseconds of CPU that a frame takes from one host to the other, best of several rounds.
fn cost_of(frame: &[u8], from: &Host, to: &Host, mut between: impl FnMut()) -> i64 {
    let round = |between: &mut dyn FnMut()| {
        let (start, mut arrived) = (live::cpu_ns(), 0);
        while arrived < 20_000 {
            for _ in 0..48 {
                from.send(frame);
            }
            between();
            while to.receive().is_some() {
                arrived += 1;
            }
        }
        (live::cpu_ns() - start).cast_signed() / arrived
    };
    (0..5).map(|_| round(&mut between)).min().unwrap()
}

#[test]
fn what_cannot_be_opened_or_attached_says_why() {
    if !own_network() {
        return;
    }
    veth("a", 1);
    let (umem, mut pool) = memory();
    let mut open = |spec: &XskSpec| XskPort::open(&umem, &mut pool, spec);
    let first = open(&spec("a1", 1)).unwrap();
    let taken = open(&spec("a1", 1)).unwrap_err().to_string();
    assert!(
        taken.starts_with("\"a1\", queue 0: cannot bind: ") && taken.contains("another program")
    );
    let queues = open(&spec("a0", 3)).unwrap_err().to_string();
    assert!(queues.contains("queue 1") && queues.contains("ethtool -l"), "{queues}");
    let nowhere = open(&XskSpec::of("a7", 77)).unwrap_err().to_string();
    assert!(nowhere.contains("there is no such port"), "{nowhere}");
    let mut other = Pool::new(16, 2_048);
    let wrong = XskPort::open(&umem, &mut other, &spec("a0", 1)).unwrap_err().to_string();
    assert!(wrong.contains("came with this memory"), "{wrong}");
    first.close(&mut pool);
    assert_eq!(pool.free(), pool.capacity(), "who fails takes nothing");

    let program = Program::load(1).unwrap();
    let held = program.attach(ifindex("a1"), Mode::Auto).unwrap();
    assert_eq!(held.mode(), Mode::Native);
    let rival = Program::load(1).unwrap();
    let busy = rival.attach(ifindex("a1"), Mode::Auto).unwrap_err().to_string();
    assert!(busy.contains("\"ip link set dev PORT xdp off\""), "{busy}");
    drop(held);
    let after = rival.attach(ifindex("a1"), Mode::Native).unwrap();
    drop(after);
    assert!(!ip("link show a1").contains("xdp"));

    // a peer whose frames are too long for native XDP, and a netdev whose driver has none
    ip("link set a0 mtu 9000");
    let long = program.attach(ifindex("a1"), Mode::Native).unwrap_err().to_string();
    assert!(long.contains("mtu 1500"), "{long}");
    for name in ["a1", "lo"] {
        let above = program.attach(ifindex(name), Mode::Auto).unwrap();
        assert_eq!((above.mode(), above.note().is_some()), (Mode::Generic, true), "{name}");
    }
    let gone = program.attach(77, Mode::Auto).unwrap_err().to_string();
    assert!(gone.contains("there is no such port"), "{gone}");
}

#[test]
fn a_killed_daemon_leaves_no_program() {
    if !own_network() {
        return;
    }
    veth("a", 1);
    let test = ["--ignored", "--exact", "--nocapture", "a_daemon_that_waits_to_be_killed"];
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(test)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("ready")).unwrap().unwrap();
    assert!(ip("link show a1").contains("prog/xdp"));
    child.kill().unwrap();
    child.wait().unwrap();
    let tries = (0..TRIES).find(|_| {
        let off = !ip("link show a1").contains("prog/xdp");
        off || {
            ip("link show");
            false
        }
    });
    assert!(tries.is_some(), "the program is still there");

    // and its socket is no obstacle to the next
    let (umem, mut pool) = memory();
    let a = Side::open("a1", Mode::Native, 1, &umem, &mut pool);
    assert_eq!(a.port.close(&mut pool), 0);
}

#[test]
#[ignore = "the other half of a_killed_daemon_leaves_no_program"]
fn a_daemon_that_waits_to_be_killed() {
    let (umem, mut pool) = memory();
    let _held = Side::open("a1", Mode::Native, 1, &umem, &mut pool);
    println!("ready");
    let mut end = String::new();
    let _ = std::io::stdin().read_line(&mut end);
}
