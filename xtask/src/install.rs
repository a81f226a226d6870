//! `cargo x install-test`: an operator's first evening, on a fresh Debian. The package is
//! installed, a link is observed, shaped, changed and undone, and weir is removed, by the commands
//! of docs/install.md: whatever stands there is run as it stands, in a system that was booted for
//! it between two hosts. What it prints is compared with the page, what it measures with bounds,
//! and in the end nothing of weir may be left.
//!
//! It needs root, namespaces and, the first time, a Debian mirror: that of this machine's apt.

mod bounds;
mod page;
mod system;
mod traces;
mod world;

use std::path::Path;

use crate::{Done, deb, shell};
use bounds::BOUNDS;
use page::{Item, Place};
use world::{Said, World};

const PAGE: &str = "docs/install.md";

/// What the page runs on the build machine, and this test before it begins.
const BUILDS: &str = "cargo x deb";

pub(crate) fn run(arguments: &[String]) -> Done {
    if !shell::is_root() {
        let line = "sudo cargo x install-test";
        return Err(format!("skipped: booting a system of its own needs root; run: {line}"));
    }
    let text =
        std::fs::read_to_string(shell::root().join(PAGE)).map_err(|e| format!("{PAGE}: {e}"))?;
    let items = page::read(&text)?;
    bounds::are_all_on(&items)?;
    let folder = shell::target()?.join("install");
    let system = system::fetch(&folder)?;
    let weir = deb::binary(arguments)?;
    let package = deb::pack(&weir)?;
    let bytes = |package: &Path| std::fs::read(package).map_err(|e| e.to_string());
    let first = bytes(&package)?;
    let is_same = first == bytes(&deb::pack(&weir)?)?;
    let world = World::boot(&system, &folder, &package)?;
    let mut evening = Evening { world, held: true, waiting: Vec::new() };
    evening.tell("package", "the same bytes when packed again", is_same, "");
    let before = traces::of(&mut evening.world)?;
    for item in &items {
        evening.go(item)?;
    }
    evening.come_back(None)?;
    evening.nothing_left(&before)?;
    evening.killed_in_a_bridge()?;
    Ok(evening.held)
}

struct Evening {
    world: World,
    /// Whether everything was as it should be.
    held: bool,
    /// What was left running, to be looked at in the end.
    waiting: Vec<(Item, Said)>,
}

impl Evening {
    fn tell(&mut self, place: &str, what: &str, is_fine: bool, note: &str) {
        let word = if is_fine { "ok" } else { "FAILED" };
        println!("{}", format!("{word:<7}{place:<8}{what}  {note}").trim_end());
        self.held &= is_fine;
    }

    /// One thing that the page shows.
    fn go(&mut self, item: &Item) -> Result<(), String> {
        match item {
            Item::File { path, text } => {
                self.world.write(path, text)?;
                self.tell("box", &format!("(writes {path})"), true, "");
            }
            Item::Command { place: Place::Build, line, .. } => {
                self.tell("build", line, line == BUILDS, "");
            }
            Item::Command { section, place, line, .. } => {
                self.come_back(Some(section))?;
                let said = self.world.run(*place, line)?;
                if line.ends_with('&') {
                    self.waiting.push((item.clone(), said));
                } else {
                    self.judge(item, &said);
                }
            }
        }
        Ok(())
    }

    /// Compares what was printed with the page, and what was measured with the bounds.
    fn judge(&mut self, item: &Item, said: &Said) {
        let Item::Command { section, place, line, shown } = item else { return };
        let text = said.text();
        let mut against: Vec<String> = said.status_against().into_iter().collect();
        against.extend(page::missing(shown, &text));
        let mut measured = Vec::new();
        for bound in BOUNDS.iter().filter(|bound| bound.is_for(section, line)) {
            match (bound.judge)(&text) {
                Ok(figure) => measured.push(figure),
                Err(why) => against.push(why),
            }
        }
        self.tell(place.word(), line, against.is_empty(), &measured.join(", "));
        if !against.is_empty() {
            println!("{}\nit printed:\n{}", against.join("\n"), text.trim_end());
        }
    }

    /// What was left running comes to its end: a measurement before the next section begins, a link
    /// when it was stopped.
    fn come_back(&mut self, next: Option<&str>) -> Result<(), String> {
        for (item, mut said) in std::mem::take(&mut self.waiting) {
            let stays = next.is_some_and(|next| match &item {
                Item::Command { section, place, .. } => *place == Place::Box || section == next,
                Item::File { .. } => false,
            });
            if stays {
                self.waiting.push((item, said));
                continue;
            }
            said.end()?;
            self.judge(&item, &said);
        }
        Ok(())
    }

    /// A command of this test, which the page does not have.
    fn also(&mut self, line: &str) -> Result<Said, String> {
        let said = self.world.run(Place::Box, line)?;
        if let Some(why) = said.status_against() {
            return Err(format!("{line}: {why}: {}", said.text().trim()));
        }
        Ok(said)
    }

    /// After the page is done: the system is as before it.
    fn nothing_left(&mut self, before: &traces::Traces) -> Result<(), String> {
        let left = traces::of(&mut self.world)?.differences(before);
        self.tell("box", "nothing of weir is left", left.is_empty(), "");
        left.iter().for_each(|line| println!("{line}"));
        Ok(())
    }

    /// The hardest way to go: in a bridge of the operator's, with packet sockets, and everything of
    /// weir is killed at once. The ports are isolated then, and the package must end that.
    fn killed_in_a_bridge(&mut self) -> Result<(), String> {
        self.also(
            "ip link add br0 type bridge forward_delay 0 && ip link set br0 up && \
                   ip link set eth1 master br0 && ip link set eth2 master br0",
        )?;
        let before = traces::of(&mut self.world)?;
        self.also("apt-get install -y ./weir_*.deb")?;
        // its words are known, its program and its manual pages are there
        let verified = self.also("systemd-analyze verify weir@office.service")?.text();
        let what = "systemd-analyze verify weir@office.service";
        self.tell("box", what, verified.trim().is_empty(), verified.trim());
        let wire = "weir run --lan eth1 --wan eth2 --down 100mbit --up 20mbit --io packet &";
        self.also(wire)?;
        let is_isolated = "grep -q 1 /sys/class/net/eth1/brport/isolated";
        self.also(is_isolated)?;
        // stopped first, so that none sees another die
        self.also(
            "pids=$(pgrep -f '^(/usr/bin/)?weir (run|guard|helper)'); kill -STOP $pids; \
                   kill -KILL $pids; sleep 1",
        )?;
        self.also(is_isolated)?;
        self.also("apt-get purge -y weir")?;
        let left = traces::of(&mut self.world)?.differences(&before);
        let what = "killed in a bridge of the operator's, then purged: nothing is left";
        self.tell("box", what, left.is_empty(), "");
        left.iter().for_each(|line| println!("{line}"));
        let ping = self.world.run(Place::Host, "ping -c 3 -i 0.2 192.0.2.1")?;
        let what = "that bridge forwards";
        self.tell("host", what, ping.status_against().is_none(), "");
        Ok(())
    }
}
