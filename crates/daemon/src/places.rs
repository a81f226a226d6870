//! The places of those who talk to a link: so many and no more. Who is silent keeps a place until
//! another needs it.

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weir_units::{Instant, Span, limits};

/// The places that are taken.
#[derive(Default)]
pub(crate) struct Places {
    taken: Mutex<BTreeMap<u64, Place>>,
}

/// A place that is taken.
struct Place {
    stream: UnixStream,
    /// Since when the other side is waited for; none while its request is worked on.
    silent_since: Option<Instant>,
}

/// How long a silent one keeps its place while others wait.
const PATIENCE: Span = Span::from_secs(limits::CONTROL_PLACE_SECS);

impl Places {
    fn taken(&self) -> MutexGuard<'_, BTreeMap<u64, Place>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, that of the one who is silent longest if there is no other. Hands the stream
    /// back if there is none.
    pub(crate) fn take(
        &self,
        number: u64,
        stream: UnixStream,
        now: Instant,
    ) -> Result<(), UnixStream> {
        let mut taken = self.taken();
        if taken.len() >= limits::CONTROL_CONNECTIONS {
            let silent = taken.iter().filter_map(|(number, place)| {
                let since = place.silent_since.filter(|since| now.since(*since) >= PATIENCE)?;
                Some((since, *number))
            });
            let Some((_, oldest)) = silent.min() else { return Err(stream) };
            if let Some(place) = taken.remove(&oldest) {
                // its thread sees that it has ended
                let _ = place.stream.shutdown(Shutdown::Both);
            }
        }
        taken.insert(number, Place { stream, silent_since: Some(now) });
        Ok(())
    }

    /// The other side is waited for from now on.
    pub(crate) fn waits(&self, number: u64, now: Instant) {
        if let Some(place) = self.taken().get_mut(&number) {
            place.silent_since = Some(now);
        }
    }

    /// What the other side asked is worked on.
    pub(crate) fn works(&self, number: u64) {
        if let Some(place) = self.taken().get_mut(&number) {
            place.silent_since = None;
        }
    }

    pub(crate) fn leave(&self, number: u64) {
        self.taken().remove(&number);
    }

    /// Nobody asks any more; an answer that is on its way still arrives.
    pub(crate) fn end(&self) {
        for place in self.taken().values() {
            let _ = place.stream.shutdown(Shutdown::Read);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_ns(seconds * 1_000_000_000)
    }

    #[test]
    fn the_one_who_is_silent_longest_makes_room_and_nobody_else_does() {
        let places = Places::default();
        let most = limits::CONTROL_CONNECTIONS as u64;
        let mut others = Vec::new();
        let mut take = |number: u64, now| {
            let (here, there) = UnixStream::pair().unwrap();
            others.push(there);
            places.take(number, here, now).is_ok()
        };
        for number in 0..most {
            assert!(take(number, at(number)));
        }
        places.works(0);
        places.works(1);
        places.waits(1, at(most));
        // 2 is silent longest, but only for two seconds does that matter
        assert!(!take(90, at(3)) && take(91, at(4)));
        assert_eq!(others[2].read(&mut [0]).unwrap(), 0);
        others[0].set_nonblocking(true).unwrap();
        assert!(others[0].read(&mut [0]).is_err(), "who is worked for keeps the place");
        places.leave(0);
    }
}
