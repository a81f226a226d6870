//! A link whose wires are queues in memory, with control on top: what the operator asks, while
//! frames of numbered flows pass.

mod asked;
mod documented;
mod doors;
mod handover;
mod rows;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use serde_json::{Value, json};
use weir_control::{Apply, How, Request};
use weir_engine::{Config, Report};
use weir_io::wait::now;
use weir_io::{MemoryPort, MemoryWire, Port};
use weir_packet::{Build, BySide, Pool};
use weir_policy::{Plan, Source};
use weir_units::{Instant, Span};

use crate::begin::begin;
use crate::control::{Asker, Control};
use crate::files;
use crate::handover::Handed;
use crate::history::History;
use crate::http;
use crate::link::{Link, Start};
use crate::pulse::Pulse;
use crate::reader::Ports;
use crate::revision::{By, Revision, read_again};
use crate::serve::{self, Doors, Signal};
use crate::socket::{Lines, Socket};
use crate::trouble::Trouble;
use asked::Asked;
use weir_control::path_of;

/// A folder of its own for one test, removed in the end.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Folder {
        // the name of a socket may have 107 bytes and no more
        let path = std::env::temp_dir().join(format!("weir-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A policy of this rate.
pub(super) fn policy(rate: &str) -> String {
    format!(
        "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"{rate}\"\nup = \"{rate}\"\n\
         margin = \"100%\"\naqm = \"none\"\n\n\
         [class.\"/a\"]\nmatch = \"udp lan port 1000-1003\"\nrate = \"10%\"\n\n\
         [class.\"/b\"]\nmatch = \"udp lan port 1004-1005\"\nceil = \"90%\"\n"
    )
}

/// The same as a revision.
pub(super) fn revision(number: u64, rate: &str) -> Revision {
    let reading = read_again(vec![Source::new("p.toml", policy(rate))]).unwrap();
    let by = By { author: "anna".into(), how: How::Apply, comment: "why".into(), time: 1_000 };
    let mut revision = Revision::of(reading, "l", None, by).unwrap();
    revision.about.number = number;
    revision
}

/// A link between two wires with control on top, started as `weir run` would.
struct World {
    folder: Folder,
    wires: [MemoryWire; 2],
    asked: Asked,
}

const FLOWS: u16 = 8;

impl World {
    fn new(name: &str) -> World {
        let folder = Folder::new(name);
        std::fs::write(folder.0.join("p.toml"), policy("10gbit")).unwrap();
        World::again(folder)
    }

    /// A start over what is on disk.
    fn again(folder: Folder) -> World {
        World::of(folder, "l")
    }

    fn of(folder: Folder, link: &str) -> World {
        World::begun(folder, link, Box::new(|| {}))
    }

    fn begun(folder: Folder, link: &str, settle_in: Box<dyn FnOnce() + Send>) -> World {
        let file = folder.0.join("p.toml");
        World::named(folder, link, settle_in, &file)
    }

    /// A start after a weir that has left this.
    fn with(folder: Folder, left: Result<Option<Handed>, String>) -> World {
        let file = folder.0.join("p.toml");
        World::made(folder, "l", Box::new(|| {}), (&file, left))
    }

    /// The same; `named` is what control calls the file.
    fn named(
        folder: Folder,
        link: &str,
        settle_in: Box<dyn FnOnce() + Send>,
        named: &Path,
    ) -> World {
        World::made(folder, link, settle_in, (named, Ok(None)))
    }

    fn made(
        folder: Folder,
        link: &str,
        settle_in: Box<dyn FnOnce() + Send>,
        (named, left): (&Path, Result<Option<Handed>, String>),
    ) -> World {
        let file = folder.0.join("p.toml");
        let history = History::open(&folder.0, link);
        let begin = begin(&file, files::policy(&file), link, &history, 1_000).unwrap();
        let (lan, lan_wire) = MemoryPort::new(1_500);
        let (wan, wan_wire) = MemoryPort::new(1_500);
        let (link, reader) = Link::start(Start {
            plan: begin.revision.plan.clone(),
            observing: false,
            config: Config {
                queue_frames: 2_000,
                flows: 64,
                seed: 1,
                watch: true,
                ..Config::default()
            },
            pool: Pool::new(4_100, 2_048),
            ports: BySide { lan, wan }.map(|port| Some(Port::Memory(Box::new(port)))),
            pulse: Pulse::default(),
            way: "memory",
            bypass: None,
            left,
            settle_in,
        })
        .unwrap();
        let control = Control::new(link, begin, history, named, now());
        let asked = Asked { control, reader };
        World { folder, wires: [lan_wire, wan_wire], asked }
    }

    fn ask(&mut self, request: Request) -> Value {
        self.ask_at(request, now())
    }

    fn ask_at(&mut self, request: Request, now: Instant) -> Value {
        ask(&mut self.asked, request, now)
    }

    fn down(&mut self) -> String {
        down(&mut self.asked)
    }

    /// Stops as `weir stop` does, and leaves what is on disk.
    fn stop(self) -> Folder {
        self.asked.control.end().stop();
        self.folder
    }
}

#[expect(clippy::needless_pass_by_value, reason = "made where it is asked")]
fn ask(asked: &mut Asked, request: Request, now: Instant) -> Value {
    let asker = Asker { name: "anna", now, of_day: 1_000 };
    let line = asked.answer_line(request.line().trim().as_bytes(), asker);
    serde_json::from_str(&line).unwrap()
}

/// The link's rate downwards, as the tree tells it.
fn down(asked: &mut Asked) -> String {
    let tree = ask(asked, Request::tree(true), now());
    weir_units::Rate::from_bps(tree["rows"][0]["down"]["rate"].as_u64().unwrap()).to_string()
}

fn apply(text: &str, confirm: Option<u64>) -> Request {
    Request::Apply(Box::new(Apply {
        name: "p.toml".into(),
        text: text.into(),
        subscribers: None,
        comment: String::new(),
        confirm: confirm.map(Span::from_secs),
        dry: false,
        allow_skipped: false,
    }))
}

fn is_ok(answer: &Value) -> bool {
    assert_eq!(answer["weir"], 1);
    answer["ok"].as_bool().unwrap()
}

/// Done also when a test fails: threads that go on would keep the failure from being told.
struct AtEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Frames of eight flows, numbered in each; what comes out must be all of them in order.
struct Traffic {
    sent: [u64; FLOWS as usize],
    came: [u64; FLOWS as usize],
}

impl Traffic {
    /// Frames on their way at most: fewer than any queue holds.
    const WINDOW: u64 = 400;

    fn turn(&mut self, wires: &[MemoryWire; 2]) {
        while let Some(frame) = wires[1].take() {
            let at = frame.len() - 16;
            let word = |at: usize| u64::from_be_bytes(frame[at..at + 8].try_into().unwrap());
            let (flow, number) = (usize::from(frame[at + 7]), word(at + 8));
            assert_eq!(number, self.came[flow], "flow {flow}: lost or out of order");
            self.came[flow] += 1;
        }
        let on_their_way = self.sent.iter().sum::<u64>() - self.came.iter().sum::<u64>();
        if on_their_way < Traffic::WINDOW {
            for flow in 0..FLOWS {
                let number = &mut self.sent[usize::from(flow)];
                let mut payload = u64::from(flow).to_be_bytes().to_vec();
                payload.extend(number.to_be_bytes());
                *number += 1;
                let source = ([10, 0, 0, 1], 1_000 + flow).into();
                let build = Build::udp(source, ([192, 0, 2, 1], 53).into()).payload(&payload);
                wires[0].put(build.to_vec());
            }
        }
    }

    /// Lets frames pass while `work` is done, then until all have come.
    fn during(wires: &[MemoryWire; 2], work: impl FnOnce()) -> u64 {
        let done = Mutex::new(false);
        std::thread::scope(|scope| {
            let traffic = scope.spawn(|| {
                let mut traffic = Traffic { sent: [0; 8], came: [0; 8] };
                while !*done.lock().unwrap() {
                    traffic.turn(wires);
                    std::thread::yield_now();
                }
                let until = now() + Span::from_secs(60);
                let sent = traffic.sent;
                // what is put in the end only pushes what is before it
                while traffic.came.iter().zip(sent).any(|(came, sent)| *came < sent) {
                    assert!(now() < until, "{:?} of {sent:?} came", traffic.came);
                    traffic.turn(wires);
                    std::thread::yield_now();
                }
                sent.iter().sum()
            });
            {
                let _end = AtEnd(|| *done.lock().unwrap() = true);
                work();
            }
            traffic.join().unwrap()
        })
    }
}

#[test]
fn a_thousand_changes_lose_and_reorder_nothing() {
    let mut world = World::new("thousand");
    // a class that is another by name says so: else its connections would go to a new one, and what
    // waits of them would be dropped
    let policies = [
        policy("10gbit") + "was = \"/bb\"\n",
        policy("9gbit") + "[class.\"/c\"]\nmatch = \"tcp\"\nrate = \"1gbit\"\n",
        policy("8gbit").replace("\"/b\"", "\"/bb\"") + "was = \"/b\"\n",
    ];
    let wires = world.wires.clone();
    let frames = Traffic::during(&wires, || {
        for (_, text) in (0..1_000).zip(policies.iter().cycle().skip(1)) {
            let answer = world.ask(apply(text, None));
            assert!(is_ok(&answer), "{answer:#}");
        }
    });
    assert!(frames > 1_000, "{frames}");
    let status = world.ask(Request::Status);
    assert_eq!((&status["revision"]["number"], &status["trouble"]), (&json!(1_001), &json!([])));
    world.stop();
}

#[test]
fn observing_on_and_off_loses_and_reorders_nothing() {
    let mut world = World::new("observe");
    let wires = world.wires.clone();
    Traffic::during(&wires, || {
        for on in (0..100).map(|n| n % 2 == 0) {
            let answer = world.ask(Request::Observe { on });
            assert_eq!(answer["mode"], if on { "observe" } else { "shape" });
            // it only watches, but it carries
            let up = |world: &mut World| {
                world.ask(Request::tree(false))["rows"][0]["up"]["sent"]["frames"].as_u64()
            };
            let (before, until) = (up(&mut world), now() + Span::from_secs(60));
            while up(&mut world) == before {
                assert!(now() < until, "nothing passes while on is {on}");
            }
        }
    });
    // a change while it only watches is in effect when it shapes again
    world.ask(Request::Observe { on: true });
    assert!(is_ok(&world.ask(apply(&policy("3gbit"), None))));
    world.ask(Request::Observe { on: false });
    assert_eq!(world.down(), "3gbit");
    world.stop();
}

#[test]
fn a_bad_policy_changes_nothing_and_all_its_problems_are_said() {
    let mut world = World::new("bad");
    for (text, part) in [
        (policy("10mbti").replace("10%", "x"), "3 errors"),
        ("[".to_owned(), "this is not TOML"),
        (policy("1mbit").replace("link.l", "link.m"), "it has [link.m]"),
        (policy("1mbit").replace("\"b\"", "\"c\""), "restart weir to change interfaces"),
        (policy("1mbit") + "[subscribers]\nfile = \"s.csv\"\n", "did not come with the policy"),
    ] {
        let answer = world.ask(apply(&text, None));
        assert!(!is_ok(&answer) && answer["error"]["fault"] == "content", "{answer:#}");
        assert!(answer.to_string().contains(part), "{part}: {answer:#}");
    }
    assert_eq!(world.ask(Request::Status)["revision"]["number"], 1);
    assert_eq!(
        (world.down(), world.ask(Request::History)["revisions"][1].clone()),
        ("10gbit".into(), Value::Null)
    );
    world.stop();
}

#[test]
fn what_is_not_confirmed_goes_back_also_over_a_restart() {
    let mut world = World::new("confirm");
    let answer = world.ask_at(apply(&policy("5gbit"), Some(60)), Instant::from_ns(0));
    assert_eq!(answer["confirm"], json!({ "left_s": 60, "goes_back_to": 1 }));
    assert_eq!(world.down(), "5gbit");
    let refused = world.ask_at(apply(&policy("4gbit"), None), Instant::from_ns(0));
    assert!(refused["error"]["cure"].as_str().unwrap().contains("weir confirm"), "{refused}");
    world.asked.control.step(Instant::from_ns(60_000_000_000));
    assert_eq!(world.down(), "10gbit");
    let fates = |world: &mut World| -> Vec<Value> {
        let history = world.ask(Request::History);
        history["revisions"].as_array().unwrap().iter().map(|r| r["fate"].clone()).collect()
    };
    assert_eq!(fates(&mut world), ["confirmed", "undone"]);
    // killed while one waits
    assert!(is_ok(&world.ask(apply(&policy("6gbit"), Some(3_600)))));
    assert_eq!(world.down(), "6gbit");
    let mut world = World::again(world.stop());
    assert_eq!(
        (world.down(), fates(&mut world)),
        ("10gbit".into(), vec!["confirmed".into(), "undone".into(), "waiting".into()])
    );
    // and confirmed
    assert!(is_ok(&world.ask(apply(&policy("7gbit"), Some(3_600)))));
    assert!(is_ok(&world.ask(Request::Confirm)));
    let mut world = World::again(world.stop());
    assert_eq!(world.down(), "7gbit");
    assert_eq!(world.ask(Request::Status)["revision"]["number"], 4);
    world.stop();
}

#[test]
fn one_can_go_back_to_what_was() {
    let mut world = World::new("rollback");
    let back = |to| Request::Rollback { to, comment: String::new() };
    let nothing = world.ask(back(None));
    assert!(!is_ok(&nothing) && nothing.to_string().contains("nothing before revision 1"));
    for rate in ["2gbit", "3gbit"] {
        assert!(is_ok(&world.ask(apply(&policy(rate), None))));
    }
    let answer = world.ask(back(None));
    assert_eq!((world.down(), &answer["revision"]["number"]), ("2gbit".into(), &json!(4)));
    assert_eq!(answer["revision"]["comment"], "back to revision 2");
    assert!(is_ok(&world.ask(back(Some(1)))));
    assert_eq!(world.down(), "10gbit");
    let mut world = World::again(world.stop());
    assert_eq!(world.down(), "10gbit");
    assert!(is_ok(&world.ask(back(None))));
    assert_eq!(world.down(), "2gbit");
    assert!(world.ask(back(Some(99))).to_string().contains("there is no revision 99"));
    assert!(world.ask(back(Some(6))).to_string().contains("revision 6 is in effect"));
    // while one waits, going back is to what was confirmed
    world.ask(apply(&policy("8gbit"), Some(60)));
    assert_eq!(world.ask(back(None))["revision"]["number"], 6);
    assert!(world.ask(Request::Confirm).to_string().contains("no change waits"));
    world.stop();
}

#[test]
fn the_file_is_read_again_and_a_bad_one_is_told_of_until_a_good_one_comes() {
    let mut world = World::new("reload");
    let file = world.folder.0.join("p.toml");
    let reload = |world: &mut World, text: &str| {
        std::fs::write(&file, text).unwrap();
        world.asked.control.reload(now(), 2_000);
        world.ask(Request::Status)
    };
    let status = reload(&mut world, &policy("2gbit"));
    assert_eq!((&status["revision"]["author"], world.down()), (&json!("SIGHUP"), "2gbit".into()));
    let status = reload(&mut world, "[link.l]\n");
    let trouble = status["trouble"][0].as_str().unwrap();
    assert!(trouble.contains("p.toml was not taken") && world.down() == "2gbit", "{trouble}");
    let status = reload(&mut world, &policy("2gbit"));
    assert_eq!((&status["trouble"], &status["revision"]["number"]), (&json!([]), &json!(2)));
    world.stop();
}

#[test]
fn a_disk_that_takes_nothing_changes_nothing_but_is_said() {
    let mut world = World::new("disk");
    std::fs::remove_dir_all(world.folder.0.join("l")).unwrap();
    // not even root makes a folder of a file
    std::fs::write(world.folder.0.join("l"), "in the way").unwrap();
    for rate in ["2gbit", "3gbit"] {
        assert!(is_ok(&world.ask(apply(&policy(rate), None))));
        assert_eq!(world.down(), rate);
    }
    let trouble = world.ask(Request::Status)["trouble"][0].clone();
    assert!(trouble.as_str().unwrap().starts_with("history could not be written: "), "{trouble}");
    assert!(is_ok(&world.ask(Request::Rollback { to: None, comment: String::new() })));
    assert_eq!(world.down(), "2gbit");
    std::fs::remove_file(world.folder.0.join("l")).unwrap();
    world.asked.control.step(now() + Span::from_secs(61));
    assert_eq!(world.ask(Request::Status)["trouble"], json!([]));
    let mut world = World::again(world.stop());
    assert_eq!(world.down(), "2gbit");
    world.stop();
}

#[test]
fn a_packet_thread_that_has_ended_is_said_and_control_goes_on() {
    let folder = Folder::new("ended");
    std::fs::write(folder.0.join("p.toml"), policy("10gbit")).unwrap();
    let mut world = World::begun(folder, "l", Box::new(|| panic!("as the test wants")));
    let until = now() + Span::from_secs(60);
    while world.ask(Request::Status)["packets"]["alive"] == true {
        assert!(now() < until, "it still lives");
    }
    let status = world.ask(Request::Status);
    let trouble = status["trouble"].to_string();
    assert!(trouble.contains("no frame passes through weir: the packet thread has ended"));
    assert_eq!(
        (&status["ports"]["lan"]["state"], &status["flows"]),
        (&json!("unknown"), &Value::Null)
    );
    for request in [Request::tree(true), Request::Books, apply(&policy("1gbit"), None)] {
        let answer = world.ask(request);
        assert!(!is_ok(&answer) && answer["error"]["fault"] == "cannot", "{answer}");
    }
    let metrics = world.ask(Request::Metrics)["text"].to_string();
    assert!(metrics.contains("weir_packet_thread_alive{link=\\\"l\\\"} 0"), "{metrics}");
    let history = world.ask(Request::History);
    assert_eq!(history["revisions"].as_array().unwrap().len(), 1);
    world.stop();
}

/// Counts how often the link was looked after.
struct Counting<'s>(&'s Mutex<u64>);

impl serve::Watcher for Counting<'_> {
    fn wants_report(&mut self, _: &Plan, _: Instant) -> bool {
        false
    }

    fn look(&mut self, _: &mut Link, ports: &Ports, _: Option<&Report>) -> Vec<Trouble> {
        assert_eq!(ports.state, BySide::SIDES.map(|_| weir_io::PortState::Up));
        *self.0.lock().unwrap() += 1;
        Vec::new()
    }
}

/// Control that serves at a socket until told to stop.
fn served(world: World, work: impl FnOnce(&Path, &Sender<Signal>)) {
    served_with(world, |path, signals, _| work(path, signals));
}

fn served_with(world: World, work: impl FnOnce(&Path, &Sender<Signal>, SocketAddr)) {
    let World { folder, asked: Asked { control, reader }, wires: _wires } = world;
    let path = path_of(&folder.0, "l");
    let metrics = http::open(([127, 0, 0, 1], 0).into()).unwrap();
    let told_at = metrics.local_addr().unwrap();
    let doors = Doors { socket: Socket::open(&path).unwrap(), metrics: Some(metrics) };
    let (sender, signals) = channel();
    let seconds = Mutex::new(0);
    std::thread::scope(|scope| {
        let ours = sender.clone();
        let (doors, seconds) = (&doors, &seconds);
        let serving = scope.spawn(move || {
            let mut watcher = Counting(seconds);
            serve::run((control, reader), doors, (ours, signals), &mut watcher).stop();
        });
        {
            let _end = AtEnd(|| sender.send(Signal::Stop).unwrap_or_default());
            work(&path, &sender, told_at);
            let until = now() + Span::from_secs(60);
            while *seconds.lock().unwrap() == 0 && !serving.is_finished() {
                assert!(now() < until, "nobody was called each second");
                std::thread::yield_now();
            }
        }
        serving.join().unwrap();
    });
    drop(doors);
    assert!(!path.exists());
}

fn connect(path: &Path) -> Lines {
    Lines::new(std::os::unix::net::UnixStream::connect(path).unwrap())
}

fn ask_over(lines: &mut Lines, request: &Request) -> Value {
    lines.write(&request.line()).unwrap();
    serde_json::from_slice(&lines.read().unwrap()).unwrap()
}

#[test]
fn several_ask_at_once_and_the_silent_make_room() {
    served(World::new("several"), |path, _| {
        let most = weir_units::limits::CONTROL_CONNECTIONS;
        let mut open: Vec<Lines> = (0..most).map(|_| connect(path)).collect();
        for lines in &mut open {
            assert!(is_ok(&ask_over(lines, &Request::Status)));
        }
        // the one who was served longest ago has to go
        assert!(is_ok(&ask_over(&mut connect(path), &Request::Status)));
        assert!(open.remove(0).read().is_err());
        // who is cut off in the middle of a change leaves it to time
        let mut cut = open.pop().unwrap();
        assert!(is_ok(&ask_over(&mut cut, &apply(&policy("5gbit"), Some(1)))));
        drop(cut);
        let until = now() + Span::from_secs(60);
        while ask_over(&mut open[0], &Request::Status)["revision"]["number"] != 1 {
            assert!(now() < until, "nothing went back");
        }
        // nonsense is answered and harms nobody
        open[1].write("{}\n\u{0}\n").unwrap();
        for _ in 0..2 {
            let answer: Value = serde_json::from_slice(&open[1].read().unwrap()).unwrap();
            assert!(!is_ok(&answer));
        }
        assert!(is_ok(&ask_over(&mut open[1], &Request::Metrics)));
    });
}

#[test]
fn a_request_and_a_signal_stop_it() {
    served(World::new("stop"), |path, _| {
        let mut lines = connect(path);
        assert!(is_ok(&ask_over(&mut lines, &Request::Stop)));
        // the other side closes when it ends
        assert!(lines.read().is_err());
    });
    served(World::new("signal"), |path, signals| {
        let mut lines = connect(path);
        signals.send(Signal::Dump).unwrap();
        signals.send(Signal::Reload).unwrap();
        assert!(is_ok(&ask_over(&mut lines, &Request::Status)));
    });
}
