//! A netdev with several receive queues: one port for all of them, or a port for each.

use std::os::fd::AsFd;

use weir_io::{FrameSize, Umem, XskPort, XskSpec};
use weir_packet::{Burst, Pool};
use weir_xdp::{Mode, Program};

use super::{Host, ifindex, ip, now_ns, own_network, veth, wait};
use crate::{BUFFERS, HOUR_NS, IPV4, Side, memory, spec};

#[test]
fn several_queues_are_one_port() {
    if !own_network() {
        return;
    }
    veth("a", 2);
    let host = Host::at("a0");
    let (umem, mut pool) = memory();
    let mut a = Side::open("a1", Mode::Native, 2, &umem, &mut pool);
    // the kernel spreads flows over the queues; sixteen in one queue is a chance of 1 in 32 768
    let mut expected: Vec<Vec<u8>> = (0..16_u8).map(udp).collect();
    a.heart.beat(now_ns() + HOUR_NS);
    expected.iter().for_each(|frame| host.send(frame));
    let (mut come, mut tries) = (Vec::new(), 0);
    while come.len() < expected.len() {
        let mut burst = Burst::new();
        wait(a.port.fd(), 1_000);
        a.port.receive(&mut pool, &mut burst);
        for frame in burst.drain() {
            come.push(pool.bytes(&frame).to_vec());
            pool.give(frame);
        }
        a.port.settle(&mut pool);
        tries += 1;
        assert!(tries < 100, "{} of {} came", come.len(), expected.len());
    }
    come.sort();
    expected.sort();
    assert_eq!(come, expected);
    let queues = ip("-s -s link show a1");
    assert_eq!(a.port.sockets().count(), 2, "{queues}");
    assert_eq!((a.heart.counts().taken, a.heart.counts().no_socket), (16, 0));
    a.port.close(&mut pool);
    assert_eq!(pool.free(), pool.capacity());
}

#[test]
fn the_queues_of_a_netdev_can_have_a_port_each() {
    if !own_network() {
        return;
    }
    veth("a", 2);
    let host = Host::of_type("a0", IPV4);
    let (umem, mut pools) = Umem::with_pools(BUFFERS, FrameSize::Normal, 2).unwrap();
    let program = Program::load(2).unwrap();
    let mut ports = Vec::new();
    for (queue, pool) in (0..).zip(&mut pools) {
        let queues = queue..queue + 1;
        let port = XskPort::open(&umem, pool, &XskSpec { queues, ..spec("a1", 1) }).unwrap();
        let own: Vec<u32> = port.sockets().map(|(queue, _)| queue).collect();
        assert_eq!(own, [queue]);
        port.sockets().for_each(|(queue, socket)| program.put(queue, socket).unwrap());
        ports.push(port);
    }
    let heart = program.heart().unwrap();
    let _attached = program.attach(ifindex("a1"), Mode::Native).unwrap();
    heart.take(true);
    heart.beat(now_ns() + HOUR_NS);
    let mut expected: Vec<Vec<u8>> = (0..16_u8).map(udp).collect();
    expected.iter().for_each(|frame| host.send(frame));
    let (mut back, mut tries) = (Vec::new(), 0);
    while back.len() < expected.len() {
        for (from, to) in [(0, 1), (1, 0)] {
            let mut burst = Burst::new();
            ports[from].receive(&mut pools[from], &mut burst);
            // what came by one queue leaves by the other, and its buffer ends in the other's part
            ports[to].transmit(&mut pools[to], &mut burst);
            assert!(burst.is_empty());
        }
        ports.iter_mut().zip(&mut pools).for_each(|(port, pool)| port.settle(pool));
        wait(host.as_fd(), 10);
        back.extend(std::iter::from_fn(|| host.receive()));
        tries += 1;
        assert!(tries < 1_000, "{} of {} came back", back.len(), expected.len());
    }
    back.sort();
    expected.sort();
    assert_eq!(back, expected);
    let counted: Vec<_> = ports.iter_mut().map(XskPort::counters).collect();
    assert_eq!(counted[0].received + counted[1].received, 16);
    assert!(counted.iter().all(|counted| counted.received > 0 && counted.astray == 0));
    assert_eq!((counted[0].sent, counted[1].sent), (counted[1].received, counted[0].received));
    ports.into_iter().zip(&mut pools).for_each(|(port, pool)| assert_eq!(port.close(pool), 0));
    assert_eq!(pools.iter().map(Pool::free).sum::<usize>(), umem.frames());
}

/// A frame that the kernel takes for UDP, so that it has a flow.
fn udp(port: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([9, port, 9, port, 0, 26, 0, 0]);
    frame.extend([port; 18]);
    frame
}
