//! A switch: it learns behind which port an address is, and sends to all others what it does not
//! know.

use std::collections::BTreeMap;

use weir_packet::ethernet;
use weir_units::limits::SIM_STATIONS;

use super::{Kind, Place, World};
use crate::frames::Frame;
use crate::wire::Mac;

#[derive(Debug, Default)]
pub(super) struct Switch {
    ports: BTreeMap<Mac, usize>,
}

impl Switch {
    /// The port for a frame that came in on `port`; `None`: all others.
    fn port(&mut self, bytes: &[u8], port: usize) -> Option<usize> {
        let source = ethernet::source_mac(bytes)?;
        if source[0] & 1 == 0
            && (self.ports.contains_key(&source) || self.ports.len() < SIM_STATIONS)
        {
            self.ports.insert(source, port);
        }
        self.ports.get(&ethernet::target_mac(bytes)?).copied()
    }
}

impl World {
    pub(super) fn switch_frame(&mut self, at: Place, frame: Frame) {
        let node = &mut self.nodes[at.node];
        let Kind::Switch(switch) = &mut node.kind else { return self.frames.give(frame) };
        let ports = node.out.len();
        match switch.port(self.frames.bytes(&frame), at.port) {
            // who is behind the port it came from has it already
            Some(port) if port == at.port => self.frames.give(frame),
            Some(port) => self.send(at.node, port, frame),
            None => {
                for port in (0..ports).filter(|port| *port != at.port) {
                    if let Some(twin) = self.frames.copy(&frame) {
                        self.send(at.node, port, twin);
                    }
                }
                self.frames.give(frame);
            }
        }
    }
}
