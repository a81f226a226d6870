//! What the algorithms are for, in virtual time: a line of 10 Mbit/s, frames of 1 000 bytes (0.8 ms
//! each), and senders that listen or do not.

use std::collections::VecDeque;

use weir_shape::aqm::{Aqm, Cobalt, Codel, Decision, Pie, Random, Red, Wred};
use weir_units::{Bytes, Instant, Rate, Span};

use crate::line::{Discipline, Frame, Queue};

const LINE: Rate = Rate::from_bps(10_000_000);
const BYTES: u32 = 1_000;
const SLOT: Span = Span::from_us(800);

fn codel() -> Aqm {
    Aqm::Codel(Codel::for_rate(LINE, None, None))
}
fn cobalt() -> Aqm {
    Aqm::Cobalt(Cobalt::for_rate(LINE, None, None))
}
fn pie() -> Aqm {
    Aqm::Pie(Pie::for_rate(LINE, None, None))
}
fn red() -> Aqm {
    Aqm::Red(Red::for_rate(LINE, None, None, None))
}
fn wred() -> Aqm {
    Aqm::Wred(Wred::for_rate(LINE, None, None, None))
}

struct Outcome {
    queue: Queue,
    /// How long those frames waited that left after a warm-up, on average.
    delay_ms: f64,
    /// How much of the line was used after that.
    used: f64,
    /// What part of the offered frames was dropped after that.
    dropped: f64,
}

fn frame(id: u64, now: Instant, can_mark: bool, colour: u8) -> Frame {
    Frame { id, bytes: BYTES, since: now, can_mark, colour }
}

/// Senders that do not listen, of all colours in turn: `percent` of the line with random gaps.
fn flood(
    aqm: Aqm,
    percent: u64,
    seconds: u64,
    limit: usize,
    mut seen: impl FnMut(&Queue),
) -> Outcome {
    let mut queue = Queue::new(aqm, limit);
    let mut gaps = Random::new(7);
    let slots = seconds * 1_250;
    let (mut next, mut id, mut first, mut sent, mut waited) = (0, 0, 0, 0u64, 0);
    let mut dropped_before = 0;
    for slot in 0..slots {
        let now = Instant::from_ns(slot * SLOT.ns());
        let warm = slot >= slots / 2;
        if slot == slots / 2 {
            (first, dropped_before) = (id, dropped(&queue));
        }
        while next <= now.ns() {
            id += 1;
            queue.arrive(Instant::from_ns(next), frame(id, now, false, (id % 3) as u8));
            seen(&queue);
            next += u64::from(gaps.next_u32()) * 2 * SLOT.ns() * 100 / percent / (1 << 32);
        }
        if let Some(frame) = queue.leave(now).filter(|_| warm) {
            sent += 1;
            waited += now.since(frame.since).ns();
        }
    }
    let offered = (id - first) as f64;
    let dropped = (dropped(&queue) - dropped_before) as f64 / offered;
    let (sent, waited) = (sent as f64, waited as f64);
    Outcome { queue, delay_ms: waited / sent / 1e6, used: sent / (slots / 2) as f64, dropped }
}

fn dropped(queue: &Queue) -> usize {
    queue.count(Some(Decision::Drop)) + queue.count(None)
}

/// One sender that halves its window when it hears of a signal, at most once per window, and else
/// adds a frame per round trip of 50 ms.
fn listen(aqm: Aqm, can_mark: bool) -> Outcome {
    let round_trip = Span::from_ms(50);
    let mut queue = Queue::new(aqm, 1_000);
    let (mut window, mut flying, mut id, mut read) = (10.0f64, 0u64, 0u64, 0);
    let mut heard: VecDeque<(Instant, bool)> = VecDeque::new();
    let mut deaf_until = Instant::ZERO;
    let (mut sent, mut waited) = (0u64, 0u64);
    let slots = 75_000u64;
    for slot in 0..slots {
        let now = Instant::from_ns(slot * SLOT.ns());
        while let Some(&(_, signal)) = heard.front().filter(|(at, _)| *at <= now) {
            heard.pop_front();
            flying -= 1;
            if !signal {
                window += 1.0 / window;
            } else if now >= deaf_until {
                window = (window / 2.0).max(2.0);
                deaf_until = now + round_trip + round_trip;
            }
        }
        while flying < window as u64 {
            (id, flying) = (id + 1, flying + 1);
            queue.arrive(now, frame(id, now, can_mark, 0));
        }
        let gone = queue.leave(now);
        if let Some(frame) = gone.filter(|_| slot >= slots / 6) {
            sent += 1;
            waited += now.since(frame.since).ns();
        }
        let news = queue.log[read..].iter();
        // with marks only for those who decide when a frame leaves: one entry per frame
        heard.extend(news.map(|(_, fate)| (now + round_trip, *fate != Some(Decision::Take))));
        read = queue.log.len();
    }
    let dropped = dropped(&queue) as f64 / id as f64;
    let used = sent as f64 / (slots - slots / 6) as f64;
    Outcome { queue, delay_ms: waited as f64 / sent as f64 / 1e6, used, dropped }
}

#[test]
fn a_sender_that_listens_is_held_near_the_target() {
    // a window that is halved to half of what the line holds uses three quarters of it (AIMD)
    for (aqm, most_ms) in [(codel(), 15.0), (cobalt(), 15.0), (pie(), 30.0), (red(), 30.0)] {
        let Outcome { delay_ms, used, dropped, .. } = listen(aqm, false);
        println!("{aqm:?}: {delay_ms:.2} ms, {used:.3} used, {dropped:.5} dropped");
        assert!(delay_ms <= most_ms && used >= 0.75, "{aqm:?}: {delay_ms} ms, {used} used");
    }
    // a window above the line's grows with the root of 2 x 1250/s x t: 181 ms over this time
    let nothing = listen(Aqm::None, false);
    assert!((nothing.delay_ms - 181.0).abs() < 10.0, "{} ms without", nothing.delay_ms);
}

#[test]
fn codel_marks_those_who_can_and_drops_none_of_them() {
    for aqm in [codel(), cobalt()] {
        let Outcome { queue, delay_ms, used, .. } = listen(aqm, true);
        assert_eq!(dropped(&queue), 0);
        assert!(queue.count(Some(Decision::Mark)) > 10);
        assert!(delay_ms <= 15.0 && used >= 0.75, "{aqm:?}: {delay_ms} ms, {used} used");
    }
}

#[test]
fn a_flood_does_not_stop_the_line() {
    for aqm in [codel(), cobalt(), pie(), red(), wred()] {
        let Outcome { delay_ms, used, dropped, .. } = flood(aqm, 200, 60, 1_000, |_| {});
        println!("{aqm:?}: {delay_ms:.2} ms, {used:.3} used, {dropped:.3} dropped");
        assert!(used > 0.99, "{aqm:?}: {used} used");
        assert!((dropped - 0.5).abs() < 0.02, "{aqm:?}: {dropped} dropped");
    }
}

#[test]
fn red_drops_what_the_line_cannot_carry() {
    let mut last = 0.0;
    for percent in [50, 80, 110, 150, 200, 400] {
        let Outcome { queue, delay_ms, dropped, .. } = flood(red(), percent, 60, 1_000, |_| {});
        println!("{percent}: {delay_ms:.2} ms, {dropped:.4} dropped, {:?}", queue.state.average());
        let must = (1.0 - 100.0 / percent as f64).max(0.0);
        assert!((dropped - must).abs() < 0.02, "{percent}: {dropped} dropped");
        assert!(dropped >= last);
        last = dropped;
        assert_eq!(queue.count(None), 0, "the limit was not needed");
    }
}

#[test]
fn wred_drops_red_before_yellow_before_green() {
    let per_colour = |queue: &Queue| {
        let mut drops = [0; 3];
        for (id, fate) in &queue.log {
            drops[(id % 3) as usize] += usize::from(*fate == Some(Decision::Drop));
        }
        drops
    };
    // green's curve begins two thirds of the way from min (5 full frames) to max (15)
    let green_min = Bytes::new(5 * 1_538 + 2 * (10 * 1_538 / 3));
    let mut most = Bytes::ZERO;
    let fine = flood(wred(), 110, 60, 1_000, |queue| {
        most = most.max(queue.state.average().unwrap());
    });
    let [green, yellow, red] = per_colour(&fine.queue);
    println!("110 %: {green} {yellow} {red}, average up to {most} of {green_min}");
    assert!(most < green_min, "{most}");
    assert!(green == 0 && yellow <= red && red > 0, "{green} {yellow} {red}");
    let [green, yellow, red] = per_colour(&flood(wred(), 250, 60, 1_000, |_| {}).queue);
    println!("250 %: {green} {yellow} {red}");
    assert!(green > 0 && green < yellow && yellow < red, "{green} {yellow} {red}");
}

#[test]
fn pie_holds_the_delay_of_a_flood() {
    for percent in [110, 150, 200] {
        let Outcome { delay_ms, dropped, .. } = flood(pie(), percent, 120, 1_000, |_| {});
        println!("{percent}: {delay_ms:.2} ms, {dropped:.4} dropped");
        assert!((delay_ms - 15.0).abs() < 3.0, "{percent}: {delay_ms} ms");
        let must = 1.0 - 100.0 / percent as f64;
        assert!((dropped - must).abs() < 0.01, "{percent}: {dropped} dropped");
    }
}

#[test]
fn blue_rises_in_a_flood_and_falls_after_it() {
    let Outcome { mut queue, .. } = flood(cobalt(), 300, 60, 50, |_| {});
    let share = f64::from(queue.state.probability().unwrap()) / 4_294_967_296.0;
    println!("{share}");
    // two thirds must go; CoDel's own drops are among them
    assert!(share > 0.1 && share < 0.75, "{share}");
    let end = Instant::from_ns(60 * 1_000_000_000);
    while queue.leave(end).is_some() {}
    for ms in 0..40_000u64 {
        let now = end + Span::from_ms(10 * ms);
        queue.arrive(now, frame(0, now, false, 0));
        queue.leave(now);
    }
    assert_eq!(queue.state.probability(), Some(0));
}
