//! The kernel's own TCP through two ports, with every offload on, as hosts have it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use weir_packet::Burst;
use weir_units::Span;

use super::{in_own_network, ip, packet, pool};
use crate::kernel::process;
use crate::netdev;
use crate::wait::{Wait, Waker};

const BYTES: usize = 4 << 20;
const PATIENCE: Duration = Duration::from_secs(20);

/// A host with a network of its own: tells its thread, waits for its interface, and plays.
fn host(
    name: &'static str,
    address: &'static str,
    play: impl FnOnce() + Send + 'static,
) -> (i32, mpsc::Sender<()>, std::thread::JoinHandle<()>) {
    let (told, tells) = mpsc::channel();
    let (plugged, plugs) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        process::own_network().unwrap();
        told.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        plugs.recv().unwrap();
        ip(&format!("addr add {address}/24 dev {name}"));
        ip(&format!("link set {name} up"));
        play();
    });
    (tells.recv().unwrap(), plugged, thread)
}

fn pattern() -> Vec<u8> {
    (0..251).cycle().take(BYTES).collect()
}

fn serve(ready: &mpsc::Sender<()>) {
    let listener = TcpListener::bind("10.7.0.2:7").unwrap();
    ready.send(()).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    assert!(got == pattern(), "{} bytes came, or other ones", got.len());
    stream.write_all(b"thanks").unwrap();
}

fn ask(go: &mpsc::Receiver<()>) {
    go.recv().unwrap();
    let address = "10.7.0.2:7".parse().unwrap();
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&pattern()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert_eq!(said, "thanks");
}

/// Ends the box's loop when the hosts are done, however they are.
struct Ends(Arc<AtomicBool>, Waker);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.call();
    }
}

#[test]
fn tcp_with_every_offload_on_passes_two_ports() {
    in_own_network(|| {
        let wait = Wait::new().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let ends = Ends(Arc::clone(&over), wait.waker());
        let (ready, go) = mpsc::channel();
        let (left_thread, left_plug, left) = host("host0", "10.7.0.1", move || {
            let _ends = ends;
            ask(&go);
        });
        let (right_thread, right_plug, right) = host("host1", "10.7.0.2", move || serve(&ready));
        for (n, thread) in [(0, left_thread), (1, right_thread)] {
            ip(&format!("link add box{n} type veth peer name host{n}"));
            ip(&format!("link set host{n} netns {thread}"));
            netdev::set_up(&format!("box{n}"), true).unwrap();
        }
        let mut ports = [packet("box0"), packet("box1")];
        let (mut pool, mut bursts) = (pool(), [Burst::new(), Burst::new()]);
        left_plug.send(()).unwrap();
        right_plug.send(()).unwrap();
        while !over.load(Ordering::Acquire) {
            let fds = ports.iter().filter_map(crate::Port::fd);
            wait.wait(fds, Some(Span::from_ms(100))).unwrap();
            for from in 0..2 {
                ports[from].receive(&mut pool, &mut bursts[from]);
                ports[1 - from].transmit(&mut pool, &mut bursts[from]);
            }
        }
        left.join().unwrap();
        right.join().unwrap();
        let [there, back] = ports.map(|mut port| port.counters());
        assert!(there.split > 0, "the sender cut nothing, so frames came large: {there:?}");
        assert!(there.repaired_checksums > 0 && back.repaired_checksums > 0, "{back:?}");
        assert_eq!((there.too_long, back.too_long), (0, 0));
        assert_eq!(pool.free() + bursts[0].len() + bursts[1].len(), pool.capacity());
    });
}
