//! Plays a capture into an engine in virtual time: each record at its own moment, and in between
//! whatever may leave.

use std::io::Read;

use weir_engine::{Config, Driver, Engine, Planner, Single};
use weir_io::{Capture, Record, to_ethernet};
use weir_packet::{Headers, Member, Pool};
use weir_policy::Plan;
use weir_units::{Instant, Prefix, Span};

use weir_daemon::sides::Sides;

/// What went through.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) frames: u64,
    /// Records that are of no kind that can be sent over Ethernet.
    pub(crate) foreign: u64,
    /// Frames of which the capture has only the beginning.
    pub(crate) cut: u64,
    /// Frames longer than a buffer, which count as long as it.
    pub(crate) oversize: u64,
    /// Records that are earlier than the one before them.
    pub(crate) backwards: u64,
    pub(crate) guessed: u64,
    /// When the capture begins, by its own clock.
    first: Option<Instant>,
    /// The last record's time, by its own clock.
    latest: Instant,
    /// When the last frame came, from the first on.
    pub(crate) last: Instant,
    /// When the last frame left.
    pub(crate) end: Instant,
    /// Why the capture could not be read to its end.
    pub(crate) trouble: Option<String>,
}

/// Looks at the engine at the end of every second.
pub(crate) type Look<'l> = dyn FnMut(u64, &Engine) + 'l;

/// An engine that is fed with a capture.
pub(crate) struct Player<'l> {
    driver: Driver,
    /// When it was driven last.
    then: Instant,
    pub(crate) run: Run,
    sides: Sides,
    bytes: Vec<u8>,
    each_second: Option<&'l mut Look<'l>>,
    seconds: u64,
}

impl<'l> Player<'l> {
    /// An engine with this policy, its queues of so many frames, and an idea of where the LAN is.
    pub(crate) fn new(
        plan: &Plan,
        queue: usize,
        seed: u64,
        lan: &[Prefix],
    ) -> Result<Player<'l>, String> {
        let change = Planner::new().prepare(plan).map_err(|e| e.to_string())?;
        let config = Config { queue_frames: queue, seed: u128::from(seed), ..Config::default() };
        // two queues and a burst; a buffer takes what a capture on a host may have: 64 KB
        let pool = Pool::new(2 * queue + 64, usize::from(u16::MAX));
        Ok(Player {
            driver: Driver::new(
                Engine::new(config, pool, change, Instant::ZERO),
                &Member::ONE_EACH,
            ),
            then: Instant::ZERO,
            run: Run::default(),
            sides: Sides::new(lan, plan),
            bytes: Vec::new(),
            each_second: None,
            seconds: 0,
        })
    }

    /// Lets somebody look at the end of every second, also of those in which nothing comes.
    pub(crate) fn watched_by(mut self, look: &'l mut Look<'l>) -> Self {
        self.each_second = Some(look);
        self
    }

    /// Plays all of it, and lets what waits in the end leave.
    pub(crate) fn play(mut self, mut capture: Capture<impl Read>) -> (Run, Engine) {
        loop {
            match capture.next() {
                Ok(Some(record)) => self.record(&record),
                Ok(None) => break,
                Err(error) => {
                    self.run.trouble = Some(error.to_string());
                    break;
                }
            }
        }
        if self.run.trouble.is_none() {
            self.run.trouble = capture.truncated().map(ToString::to_string);
        }
        self.leave_until(Instant::MAX);
        self.run.end = self.run.end.max(self.run.last);
        if let Some(look) = &mut self.each_second {
            look(self.seconds + 1, self.driver.engine());
        }
        self.run.guessed = self.sides.guessed;
        (self.run, self.driver.into_engine())
    }

    fn record(&mut self, record: &Record<'_>) {
        if to_ethernet(record.link, record.bytes, &mut self.bytes).is_none() {
            self.run.foreign += 1;
            return;
        }
        // of a frame that the capture cut short, the missing bytes are as good as any
        let missing = (record.original_len as usize).saturating_sub(record.bytes.len());
        self.run.cut += u64::from(missing > 0);
        let length = self.bytes.len() + missing;
        self.run.oversize += u64::from(length > usize::from(u16::MAX));
        self.bytes.resize(length.min(usize::from(u16::MAX)), 0);
        let headers = Headers::parse(&self.bytes);
        let side = self.sides.of(record.link, &headers, &self.bytes);
        let now = self.moment(record.at);
        self.pass_until(now);
        let end = &mut self.run.end;
        let mut ports =
            Single { came: Some((side, &self.bytes[..])), left: |_, _: &[u8]| *end = now };
        self.driver.poll(now, &mut ports);
        self.then = now;
        self.run.frames += 1;
    }

    /// When a record came, from the first on; never before the one before.
    fn moment(&mut self, at: Instant) -> Instant {
        let run = &mut self.run;
        // pcapng has records without a time: they came when the one before did
        let at = if at == Instant::ZERO { run.latest } else { at };
        if run.last == Instant::ZERO && run.first == Some(Instant::ZERO) {
            run.first = Some(at);
        }
        let first = *run.first.get_or_insert(at);
        run.backwards += u64::from(at < run.latest);
        run.latest = at;
        run.last = run.last.max(Instant::ZERO + at.since(first));
        run.last
    }

    fn pass_until(&mut self, now: Instant) {
        while self.each_second.is_some() && now >= Instant::ZERO + Span::from_secs(self.seconds + 1)
        {
            self.seconds += 1;
            self.leave_until(Instant::ZERO + Span::from_secs(self.seconds));
            if let Some(look) = &mut self.each_second {
                look(self.seconds, self.driver.engine());
            }
        }
        self.leave_until(now);
    }

    /// Lets leave what may leave up to `until`.
    fn leave_until(&mut self, until: Instant) {
        while let Some(at) = self.driver.next_at(self.then).filter(|at| *at <= until) {
            let end = &mut self.run.end;
            self.driver.poll(at, &mut Single { came: None, left: |_, _: &[u8]| *end = at });
            self.then = at;
        }
    }
}
