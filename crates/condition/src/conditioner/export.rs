//! Connections that leave for another conditioner, or come from one.

use weir_packet::Flow;
use weir_units::{ByWay, Instant, Way};

use super::{Conditioner, micros};
use crate::connection::{Connection, ConnectionState};
use crate::lane::{CHUNK, Lane, LaneState};

impl Conditioner {
    /// Lets all acknowledgements of a connection go that wait here, in order: [`Conditioner::take`]
    /// has them next. Returns whether there were any.
    pub fn flush(&mut self, flow: Flow) -> bool {
        let Some(memory) = self.memory.as_deref_mut() else { return false };
        let place = memory.connections.get_mut(flow.index as usize);
        let Some(place) = place.filter(|place| place.generation == flow.generation) else {
            return false;
        };
        let waits = place.halves.iter().any(|(_, half)| half.first_held != 0);
        place.halves.values_mut().for_each(|half| memory.holds.flush(half));
        waits
    }

    /// What is known of a connection, and the leaves that its data travel through, if anything is.
    #[must_use]
    pub fn export(&self, now: Instant, flow: Flow) -> Option<(ConnectionState, ByWay<u32>)> {
        let connection = self.known(flow)?;
        let at = micros(now);
        let mut state = connection.export(at);
        for way in Way::ALL {
            let half = &connection.halves[way];
            if let Some(lane) = self.lane(way, half.leaf) {
                state.halves[way].is_counted = lane.counts(half.counted);
            }
        }
        Some((state, ByWay::WAYS.map(|way| connection.halves[way].leaf)))
    }

    /// What was found of a leaf, if it treats connections and any of their data have come.
    #[must_use]
    pub fn export_lane(&self, now: Instant, way: Way, leaf: u32) -> Option<LaneState> {
        self.lane(way, leaf)?.export(micros(now))
    }

    /// A leaf goes on from what another conditioner found of it, told at `at` by the clock of this
    /// one: if it treats connections, and none of their data have come yet. To be called before
    /// its connections are imported.
    pub fn import_lane(&mut self, at: Instant, way: Way, leaf: u32, told: &LaneState) {
        if let Some(lane) = lane_mut(&mut self.lanes[way], leaf) {
            lane.go_on(micros(at), told);
        }
    }

    /// A connection goes on here as another conditioner told of it at `at`, by the clock of this
    /// one; `leaves` are those here that its data travel through. What was known of it here is
    /// forgotten, and its acknowledgements that wait here are let go. Where nobody asks for TCP to
    /// be treated, or the state is not sound, nothing changes.
    pub fn import(&mut self, at: Instant, flow: Flow, told: &ConnectionState, leaves: ByWay<u32>) {
        let known_here = self.known(flow).is_some();
        let Conditioner { lanes, memory: Some(memory), .. } = self else { return };
        let Some(place) = memory.connections.get_mut(flow.index as usize) else { return };
        if !self.is_asked || !told.is_sound() {
            return;
        }
        for way in Way::ALL {
            let half = &mut place.halves[way];
            memory.holds.flush(half);
            if known_here && let Some(lane) = lane_mut(&mut lanes[way], half.leaf) {
                lane.ended(&mut half.counted);
            }
        }
        *place = Connection::new(flow.generation, self.watch);
        let at = micros(at);
        place.go_on(at, told, leaves);
        for way in Way::ALL {
            let (half, told) = (&mut place.halves[way], &told.halves[way]);
            let Some(lane) = lane_mut(&mut lanes[way], half.leaf) else { continue };
            if told.is_counted {
                lane.takes_in(&mut half.counted);
            }
        }
    }

    /// Forgets a connection that another conditioner knows from now on: its leaves count it no
    /// more, and its acknowledgements that wait here are let go.
    pub fn forget(&mut self, flow: Flow) {
        if self.known(flow).is_none() {
            return;
        }
        let Conditioner { lanes, memory: Some(memory), .. } = self else { return };
        let Some(place) = memory.connections.get_mut(flow.index as usize) else { return };
        for way in Way::ALL {
            let half = &mut place.halves[way];
            memory.holds.flush(half);
            if let Some(lane) = lane_mut(&mut lanes[way], half.leaf) {
                lane.ended(&mut half.counted);
            }
        }
        *place = Connection::default();
    }

    /// The record of a connection, if it is this one's and was kept up to now.
    fn known(&self, flow: Flow) -> Option<&Connection> {
        let memory = self.memory.as_deref().filter(|_| self.is_asked)?;
        let place = memory.connections.get(flow.index as usize)?;
        ((place.generation, place.watch) == (flow.generation, self.watch)).then_some(place)
    }
}

fn lane_mut(lanes: &mut [Box<[Lane]>], leaf: u32) -> Option<&mut Lane> {
    let piece = lanes.get_mut(leaf as usize / CHUNK)?;
    piece.get_mut(leaf as usize % CHUNK).filter(|lane| lane.told != 0)
}
