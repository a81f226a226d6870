//! A ping every 5 ms while things happen, and for how long nobody was heard after each of them.

use weir_units::{Instant, Span};

use super::Evening;
use crate::clock::{self, Lateness};
use crate::policy::PING_PORT;
use crate::traffic::Ping;
use crate::world::World;

/// What is watched.
pub(super) struct Watched {
    ping: Ping,
    late: Lateness,
    windows: Vec<Window>,
}

struct Window {
    what: String,
    bar: Span,
    from: Instant,
    to: Instant,
    /// What `weir status` said was wrong at the end of it.
    trouble: Vec<String>,
}

/// How long a ping takes until it is heard for the first time: neighbours are asked first.
const SETTLES: Span = Span::from_ms(500);

impl Watched {
    pub(super) fn start(world: &World) -> Result<Watched, String> {
        let (lan, wan) = world.ends(0, PING_PORT);
        let ping = Ping::start(&lan, &wan)?;
        clock::sleep(SETTLES);
        Ok(Watched { ping, late: Lateness::watch(), windows: Vec::new() })
    }

    /// Does something, and looks for so long what becomes of the ping.
    pub(super) fn blow<T>(
        &mut self,
        what: &str,
        (bar, after): (Span, Span),
        strike: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let from = clock::now();
        let done = strike()?;
        clock::sleep(after);
        let to = clock::now();
        self.windows.push(Window { what: what.to_owned(), bar, from, to, trouble: Vec::new() });
        Ok(done)
    }

    /// What the last window would be excused by.
    pub(super) fn excuse(&mut self, trouble: Vec<String>) {
        if let Some(window) = self.windows.last_mut() {
            window.trouble = trouble;
        }
    }

    /// Ends it, and notes every window.
    pub(super) fn end(self, evening: &mut Evening) -> Result<(), String> {
        let echoes = self.ping.stop()?;
        let late = self.late.stop_with_moments();
        for window in self.windows {
            let Window { what, bar, from, to, trouble } = window;
            let silence = echoes.silence(from, to);
            evening.cut(&what, silence, bar, late.between(from, to), &trouble);
        }
        Ok(())
    }
}
