//! Two sides and a box between them, each a network namespace of its own, joined by veth cables:
//!
//! ```text
//! lan (lan0) ─── (eth1) box (eth2) ─── (wan0) wan
//! ```
//!
//! and, where the provider's line is to be the narrow place, a fourth namespace between box and wan
//! whose two ports each have a TBF. There is no netem here, so nothing is further away than the
//! kernel makes it. Hosts on the LAN are addresses of one interface. Everything is made by `ip`,
//! `tc` and `ethtool`, which `--verbose` shows.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use weir_io::netns::Namespace;
use weir_units::Rate;

use super::shell::Shell;
use super::traffic::End;

/// The prefix of every name, so that what a dead run has left is known for what it is.
const PREFIX: &str = "weirlive-";

/// Hosts in one block of 256 addresses.
const HOSTS_A_BLOCK: u16 = 250;

/// The one host on the WAN side.
pub(crate) const WAN_HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// What a world has.
#[derive(Clone, Copy)]
pub(crate) struct Sketch {
    /// Hosts on the LAN side.
    pub(crate) hosts: u16,
    /// The provider's line, when it is narrower than the cables.
    pub(crate) line: Option<Line>,
}

/// A line with a plain queue in front of each direction.
#[derive(Clone, Copy)]
pub(crate) struct Line {
    pub(crate) down: Rate,
    pub(crate) up: Rate,
    /// Bytes that wait in front of it.
    pub(crate) queue: u32,
}

pub(crate) struct World {
    pub(crate) lan: Place,
    pub(crate) box_: Place,
    pub(crate) wan: Place,
    /// Where the provider's line is.
    line: Option<Place>,
    /// For the files of a run; removed with the namespaces.
    pub(crate) folder: PathBuf,
    sketch: Sketch,
    shell: Shell,
    /// Goes last.
    _janitor: Janitor,
}

/// A namespace, with its name for `ip netns exec`.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) name: String,
    namespace: Arc<Namespace>,
    shell: Shell,
}

/// What an interface has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) received_bytes: u64,
    pub(crate) received_frames: u64,
}

impl World {
    pub(crate) fn make(sketch: Sketch, shell: Shell) -> Result<World, String> {
        remove_stale(&shell)?;
        let mut names = ["lan", "box", "wan"].map(run_name).to_vec();
        if sketch.line.is_some() {
            names.push(run_name("line"));
        }
        let folder = std::env::temp_dir().join(run_name("files"));
        // not one that is there already: in a folder for all it may be a trap
        std::fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let janitor = Janitor::hire(&folder, &names)?;
        let place = |name: &str| Place::make(name, &shell);
        let (lan, box_, wan) = (place(&names[0])?, place(&names[1])?, place(&names[2])?);
        let line = names.get(3).map(|name| place(name)).transpose()?;
        let world = World { lan, box_, wan, line, folder, sketch, shell, _janitor: janitor };
        world.plug_lan()?;
        match &world.line {
            Some(line) => world.plug_line(line)?,
            None => world.cable(("eth2", &world.box_), ("wan0", &world.wan))?,
        }
        world.host("wan0", &world.wan, std::iter::once(WAN_HOST))?;
        Ok(world)
    }

    /// Both ends of a flow between a host of the LAN and the one on the WAN side.
    pub(crate) fn ends(&self, host: u16, port: u16) -> (End, End) {
        (End::new(&self.lan, lan_host(host), port), End::new(&self.wan, WAN_HOST, port))
    }

    /// The cable between the LAN and the box; also to put it back after [`Self::unplug_lan`].
    pub(crate) fn plug_lan(&self) -> Result<(), String> {
        self.plug_lan_with(1)
    }

    /// The same with so many queues each way at both ends.
    pub(crate) fn plug_lan_with(&self, queues: u16) -> Result<(), String> {
        cable(&self.shell, ("lan0", &self.lan), ("eth1", &self.box_), queues)?;
        self.host("lan0", &self.lan, (0..self.sketch.hosts).map(lan_host))
    }

    /// Removes the cable, and with it both its interfaces.
    pub(crate) fn unplug_lan(&self) -> Result<(), String> {
        self.box_.ip("link del eth1")
    }

    /// A cable between two places, both its ends up.
    pub(crate) fn cable(&self, a: (&str, &Place), b: (&str, &Place)) -> Result<(), String> {
        cable(&self.shell, a, b, 1)
    }

    /// Addresses, and frames as they are on a wire: without `tx off` a host hands out checksums
    /// that are not there yet, which a bridge in user space cannot pass on.
    fn host(
        &self,
        port: &str,
        at: &Place,
        addresses: impl Iterator<Item = Ipv4Addr>,
    ) -> Result<(), String> {
        // always the same address: a neighbour who knows the old one of a cable that was pulled and
        // put back would talk to nobody for half a minute
        let last = u8::from(port == "wan0") + 1;
        at.ip(&format!("link set {port} address 02:00:00:4d:00:0{last}"))?;
        at.run(&format!("ethtool -K {port} tx off"))?;
        let lines: String =
            addresses.map(|address| format!("addr add {address}/16 dev {port}\n")).collect();
        at.batch(&lines)
    }

    fn plug_line(&self, place: &Place) -> Result<(), String> {
        let Some(line) = self.sketch.line else { return Ok(()) };
        self.cable(("eth2", &self.box_), ("in0", place))?;
        self.cable(("out0", place), ("wan0", &self.wan))?;
        place.bridge("br0", &["in0", "out0"])?;
        place.narrow("in0", line.down, line.queue)?;
        place.narrow("out0", line.up, line.queue)
    }
}

/// A line whose rate changes: HTB over a FIFO.
impl World {
    fn line(&self) -> Result<&Place, String> {
        self.line.as_ref().ok_or_else(|| "this world has no line".to_owned())
    }

    /// Puts HTB and a FIFO of so many bytes at a port of the line.
    pub(crate) fn lengthen_line(&self, port: &str, rate: Rate, queue: u32) -> Result<(), String> {
        let line = self.line()?;
        line.run(&format!(
            "tc qdisc replace dev {port} root handle 1: stab overhead -14 linklayer ethernet \
             htb default 1"
        ))?;
        self.change_line(port, rate)?;
        line.run(&format!("tc qdisc replace dev {port} parent 1:1 handle 2: bfifo limit {queue}"))
    }

    /// It carries another rate from now on.
    pub(crate) fn change_line(&self, port: &str, rate: Rate) -> Result<(), String> {
        self.line()?.run(&format!(
            "tc class replace dev {port} parent 1: classid 1:1 htb rate {}bit burst 3200 \
             cburst 3200",
            rate.bps()
        ))
    }

    /// Bytes that wait in front of it.
    pub(crate) fn waiting_at_line(&self, port: &str) -> Result<u64, String> {
        let printed = self.line()?.ask(&format!("tc -s -j qdisc show dev {port}"))?;
        super::margin::waiting(&printed).ok_or_else(|| format!("no FIFO in \"{printed}\""))
    }
}

/// What a namespace or a file of this run is called.
pub(crate) fn run_name(what: &str) -> String {
    format!("{PREFIX}{}-{what}", std::process::id())
}

/// A cable between two places, both its ends up, with so many queues each way.
pub(crate) fn cable(
    shell: &Shell,
    (a, at_a): (&str, &Place),
    (b, at_b): (&str, &Place),
    queues: u16,
) -> Result<(), String> {
    let (from, to) = (&at_a.name, &at_b.name);
    let many = format!("numtxqueues {queues} numrxqueues {queues}");
    shell.run(&format!(
        "ip link add {a} netns {from} {many} type veth peer name {b} netns {to} {many}"
    ))?;
    at_a.ip(&format!("link set {a} up"))?;
    at_b.ip(&format!("link set {b} up"))
}

impl Place {
    pub(crate) fn make(name: &str, shell: &Shell) -> Result<Place, String> {
        shell.run(&format!("ip netns add {name}"))?;
        let namespace = Namespace::open(name).map_err(|e| format!("{name}: {e}"))?;
        let place =
            Place { name: name.to_owned(), namespace: Arc::new(namespace), shell: shell.clone() };
        // it would talk by itself
        place.run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1")?;
        place.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1")?;
        place.ip("link set lo up")?;
        Ok(place)
    }

    /// Runs a function in a thread of its own inside; the sockets it opens stay inside.
    pub(crate) fn within<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send,
    ) -> Result<T, String> {
        let inside = || {
            self.namespace.enter().map_err(|e| format!("{}: {e}", self.name))?;
            work()
        };
        std::thread::scope(|scope| scope.spawn(inside).join())
            .unwrap_or_else(|_| Err(format!("{}: a thread inside panicked", self.name)))
    }

    /// The same for a thread that goes on.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> JoinHandle<Result<T, String>> {
        let (namespace, name) = (Arc::clone(&self.namespace), self.name.clone());
        std::thread::spawn(move || {
            namespace.enter().map_err(|e| format!("{name}: {e}"))?;
            work()
        })
    }

    /// `ip` inside.
    pub(crate) fn ip(&self, arguments: &str) -> Result<(), String> {
        self.shell.run(&format!("ip -n {} {arguments}", self.name))
    }

    /// Lines of `ip` inside.
    pub(crate) fn batch(&self, lines: &str) -> Result<(), String> {
        self.shell.feed(&format!("ip -n {} -batch -", self.name), lines)
    }

    /// A program inside, to its end.
    pub(crate) fn run(&self, command: &str) -> Result<(), String> {
        self.shell.run(&format!("ip netns exec {} {command}", self.name))
    }

    /// The same, with what it printed.
    pub(crate) fn ask(&self, command: &str) -> Result<String, String> {
        self.shell.ask(&format!("ip netns exec {} {command}", self.name))
    }

    /// A program inside, for the caller to start.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// A bridge of the kernel over these ports.
    pub(crate) fn bridge(&self, name: &str, ports: &[&str]) -> Result<(), String> {
        self.ip(&format!("link add {name} type bridge forward_delay 0"))?;
        // on by default in a new namespace; it would look at every frame. Absent without the
        // filter's code, which is as good
        let _ = self.run("sysctl -qw net.bridge.bridge-nf-call-iptables=0");
        for port in ports {
            self.ip(&format!("link set {port} master {name}"))?;
        }
        self.ip(&format!("link set {name} up"))
    }

    /// Lets a port send no more than this, counted at the IP layer, with a queue of so many bytes.
    pub(crate) fn narrow(&self, port: &str, rate: Rate, queue: u32) -> Result<(), String> {
        // `stab` takes the Ethernet header off what is counted
        self.run(&format!(
            "tc qdisc replace dev {port} root stab overhead -14 linklayer ethernet \
             tbf rate {}bit burst {} limit {queue}",
            rate.bps(),
            (rate.bps() / 8 / 250).max(3_200),
        ))
    }

    /// What an interface inside has counted.
    pub(crate) fn carried(&self, port: &str) -> Result<Carried, String> {
        let text = self.within(|| {
            std::fs::read_to_string("/proc/thread-self/net/dev").map_err(|e| e.to_string())
        })?;
        Carried::read(&text, port).ok_or_else(|| format!("{}: no interface {port}", self.name))
    }
}

impl Carried {
    fn read(text: &str, port: &str) -> Option<Carried> {
        let line = text.lines().find_map(|line| {
            let (name, rest) = line.split_once(':')?;
            (name.trim() == port).then_some(rest)
        })?;
        let mut words = line.split_whitespace().map(str::parse);
        let received_bytes = words.next()?.ok()?;
        let received_frames = words.next()?.ok()?;
        Some(Carried { received_bytes, received_frames })
    }

    /// Bytes of the IP layer since an earlier look.
    pub(crate) fn ip_bytes_since(self, earlier: Carried) -> u64 {
        const ETHERNET: u64 = 14;
        let bytes = self.received_bytes.saturating_sub(earlier.received_bytes);
        let frames = self.received_frames.saturating_sub(earlier.received_frames);
        bytes.saturating_sub(frames * ETHERNET)
    }
}

/// The address of a LAN host by its number.
pub(crate) fn lan_host(number: u16) -> Ipv4Addr {
    let part = |n: u16| u8::try_from(n).unwrap_or(u8::MAX);
    Ipv4Addr::new(10, 77, part(1 + number / HOSTS_A_BLOCK), part(1 + number % HOSTS_A_BLOCK))
}

/// A shell that waits for the end of its standard input, ends what still runs in the namespaces and
/// removes them: when this is dropped, and when this process ends in whatever way. The terminal's
/// Ctrl-C reaches it too, and it does not listen.
pub(crate) struct Janitor(Child);

impl Janitor {
    pub(crate) fn hire(folder: &Path, names: &[String]) -> Result<Janitor, String> {
        const SCRIPT: &str = "trap '' INT TERM HUP; cat >/dev/null; folder=\"$1\"; shift; \
            for n in \"$@\"; do [ -e /run/netns/$n ] || continue; \
            for p in $(ip netns pids $n); do kill -9 $p; done; ip netns del $n; done; \
            rm -rf \"$folder\"";
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "janitor"]).arg(folder).args(names).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Janitor).map_err(|e| format!("cannot start \"sh\": {e}"))
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Removes namespaces of runs that are gone, should their janitor have been killed too.
pub(crate) fn remove_stale(shell: &Shell) -> Result<(), String> {
    for line in shell.ask("ip netns list")?.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        if is_stale(name, |pid| Path::new(&format!("/proc/{pid}")).exists()) {
            shell.run(&format!("ip netns del {name}"))?;
        }
    }
    Ok(())
}

fn is_stale(name: &str, lives: impl Fn(u32) -> bool) -> bool {
    let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
    pid.and_then(|pid| pid.parse().ok()).is_some_and(|pid| !lives(pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_the_name_of_the_interface() {
        let text = "Inter-| Receive\n face |bytes packets\n    lo: 1 2 0\n  eth1: 1514 1 0 0\n";
        let carried = Carried::read(text, "eth1").unwrap();
        assert_eq!(carried, Carried { received_bytes: 1_514, received_frames: 1 });
        assert_eq!(carried.ip_bytes_since(Carried::default()), 1_500);
        assert_eq!(Carried::read(text, "eth"), None);
    }

    #[test]
    fn only_what_a_dead_run_has_left_is_stale() {
        let lives = |pid| pid == 7;
        assert!(is_stale("weirlive-8-lan", lives));
        assert!(!is_stale("weirlive-7-lan", lives));
        assert!(!is_stale("weirlive-x-lan", lives) && !is_stale("other-8-lan", lives));
    }

    #[test]
    fn hosts_have_addresses_of_their_own() {
        let all: std::collections::BTreeSet<_> = (0..1_000).map(lan_host).collect();
        assert_eq!(all.len(), 1_000);
        assert!(!all.contains(&WAN_HOST));
    }
}
