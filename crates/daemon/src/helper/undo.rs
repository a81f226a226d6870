//! What weir changed of this machine's interfaces, line by line in a file beside the link's socket,
//! so that it can be taken back also by another process: `weir remove`. What stands there is from
//! before the first change, so a weir that starts after a crash adds to it and replaces nothing.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use weir_io::netdev::{self, Feature};

use crate::bypass;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A feature of an interface was on.
    Feature(String, String),
    /// An interface did not take frames for others.
    Promiscuous(String),
    /// A port of the operator's own bridge is isolated while weir carries the traffic, and stays so
    /// if weir, its helper and its guard are all killed.
    Isolated(String),
    /// A bridge was not there.
    Bridge(String),
    /// An interface was down.
    Down(String),
}

/// The changes of one link.
#[derive(Debug)]
pub(crate) struct Undo {
    path: PathBuf,
    steps: BTreeSet<Step>,
}

/// Where the changes of the link are that has this socket.
pub(crate) fn path_of(socket: &Path) -> PathBuf {
    socket.with_extension("undo")
}

impl Undo {
    /// Those that an earlier weir has left there.
    pub(crate) fn open(path: PathBuf) -> Undo {
        let text = read(&path).unwrap_or_default();
        Undo { path, steps: text.lines().filter_map(Step::read).collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(crate) fn feature(&mut self, port: &str, feature: Feature) {
        self.note(Step::Feature(port.to_owned(), word(feature).to_owned()));
    }

    pub(crate) fn promiscuous(&mut self, port: &str) {
        self.note(Step::Promiscuous(port.to_owned()));
    }

    pub(crate) fn isolated(&mut self, port: &str) {
        self.note(Step::Isolated(port.to_owned()));
    }

    pub(crate) fn bridge(&mut self, name: &str) {
        self.note(Step::Bridge(name.to_owned()));
    }

    pub(crate) fn down(&mut self, port: &str) {
        self.note(Step::Down(port.to_owned()));
    }

    fn note(&mut self, step: Step) {
        if self.steps.insert(step) {
            self.write();
        }
    }

    /// Gives the interfaces back as they were; the bridge goes on carrying the traffic.
    pub(crate) fn leave(&mut self) -> Vec<String> {
        let (stay, go) = std::mem::take(&mut self.steps)
            .into_iter()
            .partition(|step| !matches!(step, Step::Feature(..) | Step::Promiscuous(_)));
        self.steps = stay;
        let go: BTreeSet<Step> = go;
        let done = go.iter().filter_map(Step::undo).collect();
        self.write();
        done
    }

    /// Takes everything back. Returns what was done, or could not be, in words.
    pub(crate) fn remove(&mut self) -> Vec<String> {
        // the bridge last: until then it carries the traffic
        let done = std::mem::take(&mut self.steps).iter().filter_map(Step::undo).collect();
        self.write();
        done
    }

    /// Forgets a bridge, and removes it if it is there.
    pub(crate) fn remove_bridge(&mut self, name: &str) -> Option<String> {
        let step = Step::Bridge(name.to_owned());
        self.steps.remove(&step);
        self.write();
        step.undo()
    }

    /// It lies in a folder of memory and is worth no message: without it `weir remove` still knows
    /// the bridge by its name.
    fn write(&self) {
        if self.steps.is_empty() {
            let _ = fs::remove_file(&self.path);
            return;
        }
        let text: String = self.steps.iter().map(|step| step.line() + "\n").collect();
        let _ = plain(&self.path, File::options().write(true).create(true).truncate(true))
            .and_then(|mut file| file.write_all(text.as_bytes()));
    }
}

/// Bytes of the file.
const MOST: u64 = 64 << 10;

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    plain(path, File::options().read(true))?.take(MOST).read_to_string(&mut text).map(|_| text)
}

/// Opens it if it is a file and nothing that leads elsewhere, or that would make us wait.
fn plain(path: &Path, options: &mut OpenOptions) -> std::io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = options.mode(0o600).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::InvalidInput.into()) }
}

impl Step {
    fn read(line: &str) -> Option<Step> {
        let mut words = line.split_whitespace().map(str::to_owned);
        match words.next()?.as_str() {
            "feature" => Some(Step::Feature(words.next()?, words.next()?)),
            "promiscuous" => Some(Step::Promiscuous(words.next()?)),
            "isolated" => Some(Step::Isolated(words.next()?)),
            "bridge" => Some(Step::Bridge(words.next()?)),
            "down" => Some(Step::Down(words.next()?)),
            _ => None,
        }
    }

    fn line(&self) -> String {
        match self {
            Step::Feature(port, feature) => format!("feature {port} {feature}"),
            Step::Promiscuous(port) => format!("promiscuous {port}"),
            Step::Isolated(port) => format!("isolated {port}"),
            Step::Bridge(name) => format!("bridge {name}"),
            Step::Down(port) => format!("down {port}"),
        }
    }

    /// Says what was done, or why not.
    fn undo(&self) -> Option<String> {
        let said = |what: String, done: std::io::Result<()>| match done {
            Ok(()) => what,
            Err(error) => format!("{what}: {error}"),
        };
        match self {
            Step::Feature(port, name) if netdev::index_of(port).is_ok() => {
                let feature = FEATURES.iter().find(|(_, word)| word == name)?.0;
                let done = netdev::set_feature(port, feature, true);
                Some(said(format!("{port}: {name} is on again"), done))
            }
            Step::Promiscuous(port) if netdev::index_of(port).is_ok() => {
                let done = netdev::set_promiscuous(port, false);
                Some(said(format!("{port}: no longer promiscuous"), done))
            }
            Step::Isolated(port) => {
                let path = format!("/sys/class/net/{port}/brport/isolated");
                fs::read_to_string(path).ok().filter(|yes| yes.trim() == "1")?;
                Some(said(
                    format!("{port} is no longer isolated"),
                    netdev::set_isolated(port, false),
                ))
            }
            Step::Bridge(name) => {
                bypass::track_again(name);
                netdev::index_of(name).ok()?;
                let done = netdev::remove_bridge(name);
                Some(said(format!("the bridge {name} is removed"), done))
            }
            Step::Down(port) if netdev::index_of(port).is_ok() => {
                Some(said(format!("{port} is down again"), netdev::set_up(port, false)))
            }
            Step::Feature(port, _) | Step::Promiscuous(port) | Step::Down(port) => {
                Some(format!("{port} no longer exists: none of its settings was restored"))
            }
        }
    }
}

const FEATURES: [(Feature, &str); 4] = [
    (Feature::Gro, "gro"),
    (Feature::Lro, "lro"),
    (Feature::RxVlan, "rxvlan"),
    (Feature::RxServiceVlan, "rx-vlan-stag-hw-parse"),
];

fn word(feature: Feature) -> &'static str {
    FEATURES.iter().find(|(known, _)| *known == feature).map_or("", |(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Folder;

    #[test]
    fn changes_outlive_the_process_and_are_told_once() {
        let folder = Folder::new("undo");
        let path = path_of(&folder.0.join("l.sock"));
        let mut first = Undo::open(path.clone());
        first.feature("weir-no-such", Feature::Gro);
        first.promiscuous("weir-no-such");
        first.bridge("weir-no-such-br");
        first.bridge("weir-no-such-br");
        first.down("weir-no-such");
        first.isolated("weir-no-such");
        let second = Undo::open(path.clone());
        assert_eq!(second.steps, first.steps);
        assert_eq!(second.steps.len(), 5);
        assert!(first.leave().iter().all(|line| line.contains("no longer exists")));
        assert_eq!(Undo::open(path.clone()).steps.len(), 3, "what carries the traffic stays");
        first.remove();
        assert!(!path.exists());
        fs::write(&path, "nonsense\nfeature eth1\nbridge b\n").unwrap();
        assert_eq!(Undo::open(path).steps.len(), 1);
    }
}
