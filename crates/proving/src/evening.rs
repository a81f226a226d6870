//! A bad evening: what an operator does by mistake, what dies, and what a hostile host sends, one
//! fault after the other, each with the bar that it must meet. The letters are those of the list
//! of faults in docs/live.md.

mod around;
mod asks;
mod cuts;
mod death;
mod hands;
mod links;
mod raw;
mod readers;
mod table;
mod wrapped;

use std::path::PathBuf;

use weir_units::Span;

use super::Run;
use super::clock;
use super::family;
use super::middle::{Joined, Middle, Start};
use super::shell::Shell;
use super::verdict::{Table, Verdict, ms};
use super::world::{Sketch, World};
use weir_daemon::log::say;

/// The longest silence of a ping.
pub(crate) const CUT: Span = Span::from_ms(100);

/// A machine that is later than this makes a silence of its own.
const LATE: Span = Span::from_ms(30);

/// A fault that is played.
struct Row {
    /// Its letter and what is done.
    fault: &'static str,
    on: On,
    /// Whether it is in the short form.
    short: bool,
    play: fn(&mut Evening) -> Result<(), String>,
}

/// With which ways of I/O it is played.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Both,
    Xdp,
    Packet,
}

const fn row(
    fault: &'static str,
    on: On,
    short: bool,
    play: fn(&mut Evening) -> Result<(), String>,
) -> Row {
    Row { fault, on, short, play }
}

/// Every fault, those first that touch least.
const ROWS: &[Row] = &[
    row("H4 killed and stopped", On::Both, true, death::one_or_two),
    row("H4 stop without a guard", On::Packet, true, death::stop_without_a_guard),
    row("H4 all three killed at once", On::Packet, true, death::all_at_once),
    row("H4 a new guard", On::Packet, true, death::a_new_guard),
    row("D5 stopped and started", On::Packet, true, death::stopped_and_started),
    row("D1 offloads at the far ends", On::Both, true, around::offloads),
    row("G1 many receive queues", On::Both, true, links::many_queues),
    row("C1 standard error", On::Both, true, hands::standard_error),
    row("C3 a port with an address", On::Both, true, hands::addressed),
    row("C4 --no-bypass and remove", On::Both, true, hands::no_bypass),
    row("D7 a link that is down", On::Xdp, true, links::down_for_a_second),
    row("D7 stopped and continued", On::Xdp, true, links::stopped_and_continued),
    row("G2 links with like names", On::Both, true, around::like_names),
    row("H5 frames for the box", On::Xdp, true, around::for_the_box),
    row("M1 an address given late", On::Xdp, true, around::late_address),
    row("M2 a name that is taken", On::Both, true, around::taken_name),
    row("H2 wrapped frames", On::Both, true, wrapped::ceiling),
    row("H3 VLAN tags", On::Both, true, wrapped::tags),
    row("C2 a row with a typo", On::Both, false, table::with_a_typo),
    row("D4 status names the trouble", On::Both, false, links::trouble),
    row("D6 silent readers", On::Both, true, readers::silent),
    row("D8 a router behind the bridge", On::Both, true, around::router),
];

/// What the rows are played with, and what came of them.
pub(crate) struct Evening {
    pub(crate) middle: Middle,
    pub(crate) short: bool,
    weir: Option<PathBuf>,
    shell: Shell,
    fault: &'static str,
    table: Table,
}

pub(crate) fn run(run: &mut Run<'_>, middle: Middle) -> Result<bool, String> {
    let on = match middle {
        Middle::Bridge => {
            run.out.line("evening of the bridge: it has no daemon, so nothing is played\n");
            return Ok(true);
        }
        Middle::Xdp => On::Xdp,
        Middle::Packet => On::Packet,
    };
    let mut evening = Evening {
        middle,
        short: run.short,
        weir: run.weir.clone(),
        shell: run.shell.clone(),
        fault: "",
        table: Table::new(2, &["fault", "what", "measured", "bar", "late ms"]),
    };
    let is_asked = |row: &Row| {
        run.faults.is_empty() || run.faults.iter().any(|fault| row.fault.starts_with(&**fault))
    };
    if let Some(fault) =
        run.faults.iter().find(|fault| ROWS.iter().all(|row| !row.fault.starts_with(&***fault)))
    {
        let known: Vec<&str> = ROWS.iter().map(|row| row.fault).collect();
        return Err(format!("no fault begins with \"{fault}\", there is {}", known.join(", ")));
    }
    for row in ROWS.iter().filter(|row| row.on == On::Both || row.on == on) {
        if is_asked(row) && (row.short || !run.short || !run.faults.is_empty()) {
            evening.fault = row.fault;
            say(&format!("evening, {}: {}", middle.name(), row.fault));
            let began = clock::now();
            if let Err(why) = (row.play)(&mut evening) {
                evening.check("could not be played", why, "", false);
            }
            if run.shell.verbose {
                say(&format!("  {} s", clock::now().since(began).ns() / 1_000_000_000));
            }
        }
    }
    run.out.line(&format!("a bad evening of {}", middle.name()));
    Ok(run.conclude(&evening.table))
}

impl Evening {
    /// A world with a few hosts.
    fn world(&self) -> Result<World, String> {
        World::make(Sketch { hosts: 10, line: None }, self.shell.clone())
    }

    fn how(&self) -> Result<Start, String> {
        let plain = Start::plain()?;
        Ok(Start { weir: self.weir.clone().unwrap_or(plain.weir.clone()), ..plain })
    }

    /// weir at work, with further arguments.
    fn start<'a>(
        &self,
        world: &'a World,
        policy: &str,
        arguments: &[&str],
    ) -> Result<Joined<'a>, String> {
        let mut joined = self.prepare(world, policy, arguments)?;
        joined.run()?;
        Ok(joined)
    }

    /// The same, not started yet.
    fn prepare<'a>(
        &self,
        world: &'a World,
        policy: &str,
        arguments: &[&str],
    ) -> Result<Joined<'a>, String> {
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        let how = Start { arguments, ..self.how()? };
        Joined::prepare(world, self.middle, policy, how)
    }

    /// Notes something that holds or does not.
    fn check(&mut self, what: &str, measured: impl AsRef<str>, bar: &str, held: bool) {
        self.note(what, measured.as_ref(), bar, Span::ZERO, Verdict::of(held));
    }

    /// Notes why something cannot be played here.
    fn cannot(&mut self, what: &str, why: &str) {
        self.note(what, &format!("not played: {why}"), "", Span::ZERO, Verdict::Seen);
    }

    /// Notes a silence. A late machine excuses what it may have caused, and trouble that says so
    /// excuses any.
    fn cut(&mut self, what: &str, silence: Span, bar: Span, late: Span, trouble: &[String]) {
        let (measured, verdict) = judge(silence, bar, late, trouble);
        self.note(what, &measured, &format!("{} ms", ms(bar)), late, verdict);
    }

    fn note(&mut self, what: &str, measured: &str, bar: &str, late: Span, verdict: Verdict) {
        if verdict == Verdict::Failed {
            say(&format!("  {}: {what}: {measured} (bar: {bar})", verdict.word()));
        }
        let late = if late == Span::ZERO { "-".to_owned() } else { ms(late) };
        let cells =
            vec![self.fault.to_owned(), what.to_owned(), shortened(measured), bar.to_owned(), late];
        self.table.row(cells, verdict);
    }
}

/// One line of a table; all of it was said where it failed.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 80;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    line.chars().take(LONGEST - 2).chain("..".chars()).collect()
}

fn judge(silence: Span, bar: Span, late: Span, trouble: &[String]) -> (String, Verdict) {
    let measured = format!("cut of {} ms", ms(silence));
    if silence <= bar {
        return (measured, Verdict::Held);
    }
    if !trouble.is_empty() {
        return (format!("{measured}; trouble: {}", trouble.join("; ")), Verdict::Held);
    }
    // what the machine was late by may be all that is beyond the bar, but no dead line
    let may_be_late = silence <= bar + late + late;
    let bound = LATE.min(bar);
    let verdict = Verdict::Failed;
    (measured, if may_be_late { verdict.unless_late(late, bound) } else { verdict })
}

/// Ends what a row has started, also when a test of it has failed.
fn end_all(world: &World, joined: Joined<'_>) -> Result<(), String> {
    let ended = family::end(&world.box_);
    drop(joined);
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_excused_by_trouble_and_void_on_a_late_machine() {
        let ms = Span::from_ms;
        let judged = |silence, late, trouble: &[String]| judge(silence, CUT, late, trouble).1;
        assert_eq!(judged(ms(99), ms(0), &[]), Verdict::Held);
        assert_eq!(judged(ms(101), ms(1), &[]), Verdict::Failed);
        assert_eq!(judged(ms(150), ms(40), &[]), Verdict::Void);
        assert_eq!(judged(ms(3_000), ms(40), &[]), Verdict::Failed);
        assert_eq!(judged(ms(3_000), ms(1), &["the guard is dead: x".into()]), Verdict::Held);
    }

    #[test]
    fn every_fault_has_a_letter_and_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> = ROWS.iter().map(|row| row.fault).collect();
        assert_eq!(names.len(), ROWS.len());
        assert!(names.iter().all(|name| name.starts_with(|c: char| c.is_ascii_uppercase())));
    }
}
