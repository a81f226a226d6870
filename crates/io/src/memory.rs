//! A port without a wire: two queues in memory, and a handle that plays the wire. For tests of
//! whatever turns ports, and for showing what a port must do.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use weir_packet::{Burst, Pool};

use crate::port::{PortCounters, PortState};

/// The port's side.
#[derive(Debug)]
pub struct MemoryPort {
    wire: MemoryWire,
    counters: PortCounters,
}

/// The wire's side: what is put here is received, what is sent can be taken here.
#[derive(Clone, Debug)]
pub struct MemoryWire(Arc<Mutex<Queues>>);

#[derive(Debug)]
struct Queues {
    arriving: VecDeque<Vec<u8>>,
    leaving: VecDeque<Vec<u8>>,
    /// Frames that the wire still takes.
    room: usize,
    mtu: usize,
    state: PortState,
}

impl MemoryPort {
    /// A port and its wire, which carries at most `mtu` bytes behind the Ethernet header.
    #[must_use]
    pub fn new(mtu: usize) -> (Self, MemoryWire) {
        let (arriving, leaving) = (VecDeque::new(), VecDeque::new());
        let queues = Queues { arriving, leaving, room: usize::MAX, mtu, state: PortState::Up };
        let wire = MemoryWire(Arc::new(Mutex::new(queues)));
        (MemoryPort { wire: wire.clone(), counters: PortCounters::default() }, wire)
    }

    pub(crate) fn receive(&mut self, pool: &mut Pool, burst: &mut Burst) -> usize {
        let mut came = 0;
        while !burst.is_full() {
            let Some(bytes) = self.wire.locked(|queues| queues.arriving.pop_front()) else { break };
            if bytes.len() > pool.buffer_bytes() {
                self.counters.too_long += 1;
                continue;
            }
            let Some(frame) = pool.fill(&bytes) else {
                self.counters.no_buffer += 1;
                continue;
            };
            self.counters.came(frame.len());
            if let Err(frame) = burst.push(frame) {
                pool.give(frame);
            }
            came += 1;
        }
        came
    }

    pub(crate) fn transmit(&mut self, pool: &mut Pool, burst: &mut Burst) {
        let counters = &mut self.counters;
        self.wire.locked(|wire| {
            while wire.room > 0 || wire.state == PortState::Gone {
                let Some(frame) = burst.pop() else { break };
                let bytes = pool.bytes(&frame);
                if wire.state == PortState::Gone {
                    counters.not_sent += 1;
                } else if crate::packet::is_too_long(bytes, wire.mtu) {
                    counters.too_long += 1;
                } else {
                    counters.went(bytes.len());
                    wire.leaving.push_back(bytes.to_vec());
                    wire.room -= 1;
                }
                pool.give(frame);
            }
        });
    }

    pub(crate) fn counters(&self) -> PortCounters {
        self.counters
    }

    pub(crate) fn state(&self) -> PortState {
        self.wire.locked(|queues| queues.state)
    }
}

impl MemoryWire {
    /// Puts a frame on the wire towards the port.
    pub fn put(&self, bytes: Vec<u8>) {
        self.locked(|queues| queues.arriving.push_back(bytes));
    }

    /// Takes the first frame that the port has sent.
    #[must_use]
    pub fn take(&self) -> Option<Vec<u8>> {
        self.locked(|queues| queues.leaving.pop_front())
    }

    /// How many frames the wire takes from now on before it is full.
    pub fn set_room(&self, frames: usize) {
        self.locked(|queues| queues.room = frames);
    }

    /// What the port says of its interface from now on.
    #[cfg(test)]
    fn set_state(&self, state: PortState) {
        self.locked(|queues| queues.state = state);
    }

    fn locked<T>(&self, with: impl FnOnce(&mut Queues) -> T) -> T {
        // a test that panicked elsewhere has left two queues, which are still queues
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Port;

    fn port() -> (Port, MemoryWire, Pool, Burst) {
        let (port, wire) = MemoryPort::new(1_500);
        (Port::Memory(Box::new(port)), wire, Pool::new(4, 2_048), Burst::new())
    }

    #[test]
    fn what_the_wire_cannot_take_stays_in_order() {
        let (mut port, wire, mut pool, mut burst) = port();
        for n in 0..3 {
            wire.put(vec![n; 60]);
        }
        assert_eq!(port.receive(&mut pool, &mut burst), 3);
        wire.set_room(1);
        port.transmit(&mut pool, &mut burst);
        assert_eq!((burst.len(), pool.free(), wire.take()), (2, 2, Some(vec![0; 60])));
        wire.set_room(9);
        port.transmit(&mut pool, &mut burst);
        assert_eq!((wire.take(), wire.take()), (Some(vec![1; 60]), Some(vec![2; 60])));
        let counters = port.counters();
        assert_eq!((counters.received_frames, counters.sent_bytes), (3, 180));
    }

    #[test]
    fn an_empty_pool_and_frames_too_long_are_counted() {
        let (mut port, wire, mut pool, mut burst) = port();
        for len in [60, 3_000, 1_518, 1_515, 60, 60] {
            wire.put(vec![1; len]);
        }
        assert_eq!(port.receive(&mut pool, &mut burst), 4);
        port.transmit(&mut pool, &mut burst);
        assert!(burst.is_empty());
        let counters = port.counters();
        assert_eq!((counters.too_long, counters.no_buffer, counters.sent_frames), (3, 1, 2));
        assert_eq!(pool.free(), 4);
    }

    #[test]
    fn a_port_that_is_gone_keeps_no_buffer() {
        let (mut port, wire, mut pool, mut burst) = port();
        burst.push(pool.fill(&[0; 60]).unwrap()).unwrap();
        wire.set_room(0);
        wire.set_state(PortState::Gone);
        port.transmit(&mut pool, &mut burst);
        assert_eq!((port.state(), port.counters().not_sent), (PortState::Gone, 1));
        assert_eq!((pool.free(), burst.len()), (4, 0));
    }
}
