//! Ports on the real kernel: virtual interfaces in a network namespace that each test has for
//! itself and that ends with its thread. Without root they are skipped with a line that says so.

mod devices;
mod frames;
mod kernel_reads;
mod reach;
mod stack;
mod tags;

use std::process::Command;

use weir_packet::{Build, Burst, Pool};
use weir_units::Span;

use crate::kernel::process;
use crate::wait::Wait;
use crate::{PacketPort, Port};

/// Runs a test in a network of its own.
fn in_own_network(test: impl FnOnce() + Send + 'static) {
    if Command::new("ip").arg("-V").output().is_err() {
        eprintln!("skipped: virtual cables need `ip`: apt-get install iproute2");
        return;
    }
    let thread = std::thread::spawn(|| {
        if let Err(error) = process::own_network() {
            eprintln!("skipped: a network namespace needs root: {error}");
            return;
        }
        for which in ["all", "default"] {
            // the kernel's own neighbour discovery would come between the frames of a test
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
        }
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Runs `ip` in this thread's network.
fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ip {arguments}: {said}");
}

/// Two ends of a virtual cable, up.
fn cable(a: &str, b: &str) {
    ip(&format!("link add {a} type veth peer name {b}"));
    ip(&format!("link set {a} up"));
    ip(&format!("link set {b} up"));
}

fn packet(name: &str) -> Port {
    Port::Packet(Box::new(PacketPort::open(name).unwrap()))
}

fn pool() -> Pool {
    Pool::new(512, 2_048)
}

/// A datagram whose payload begins with `n`.
fn numbered(n: u32) -> Build {
    let (a, b) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
    let mut payload = n.to_be_bytes().to_vec();
    payload.resize(4 + n as usize % 1_000, 7);
    Build::udp(a, b).payload(&payload)
}

fn send(port: &mut Port, pool: &mut Pool, bytes: &[u8]) {
    let mut burst = Burst::new();
    burst.push(pool.fill(bytes).unwrap()).unwrap();
    port.transmit(pool, &mut burst);
    assert!(burst.is_empty());
}

/// Waits for the next frame that comes by a port; an empty one if none comes in five seconds.
fn next(port: &mut Port, pool: &mut Pool) -> Vec<u8> {
    let (mut burst, wait) = (Burst::new(), Wait::new().unwrap());
    // full but for one place
    while burst.room() > 1 {
        burst.push(pool.take().unwrap()).unwrap();
    }
    for _ in 0..100 {
        if port.receive(pool, &mut burst) == 1 {
            break;
        }
        wait.wait(port.fd(), Some(Span::from_ms(50))).unwrap();
    }
    let mut got = Vec::new();
    if burst.is_full() {
        got = burst.frames().last().map(|frame| pool.bytes(frame).to_vec()).unwrap();
    }
    burst.drain().for_each(|frame| pool.give(frame));
    got
}
