//! A box that runs Debian, a host on its LAN and a server on its WAN side, each in a network
//! namespace. The box has systemd as its first process, above a system that it cannot change.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::page::Place;
use crate::shell;

const BOOT: &str = "xtask/src/install/boot.sh";
/// How the namespaces of a run begin; its process number follows.
const NAMES: &str = "weirinst-";
/// Of a command, in seconds.
const PATIENCE: &str = "300";

pub(super) struct World {
    name: String,
    /// Where the outputs of commands are.
    folder: PathBuf,
    /// What holds all processes of the box: they end with it.
    boot: Child,
    /// The box's first process, as this machine counts.
    first: String,
    commands: usize,
}

/// What a command has printed, and may go on printing, and how it ended.
pub(super) struct Said {
    file: PathBuf,
    child: Child,
    status: Option<ExitStatus>,
}

impl Said {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.file).unwrap_or_default()).into_owned()
    }

    /// Why its exit status is wrong.
    pub(super) fn status_against(&self) -> Option<String> {
        self.status.filter(|status| !status.success()).map(|status| status.to_string())
    }

    /// Waits for the end of a command that went on.
    pub(super) fn end(&mut self) -> Result<(), String> {
        self.status = Some(self.child.wait().map_err(|e| e.to_string())?);
        Ok(())
    }
}

impl World {
    /// Boots the system, with the package in the home of its superuser.
    pub(super) fn boot(system: &Path, folder: &Path, package: &Path) -> Result<World, String> {
        remove_stale();
        let name = format!("{NAMES}{}", std::process::id());
        let outputs = folder.join("outputs");
        let place = folder.join("machine");
        let _ = fs::remove_dir_all(&outputs);
        for path in [&outputs, &place] {
            fs::create_dir_all(path).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        let log = outputs.join("boot");
        let to = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        if let Err(why) = cables(&name) {
            remove(&name);
            return Err(format!("skipped: no network namespaces can be made here: {why}"));
        }
        let mut boot = shell::program("ip", &["netns", "exec", &format!("{name}-box"), "unshare"]);
        boot.args(["--mount", "--pid", "--fork", "--kill-child", "--ipc", "--uts", "sh", BOOT]);
        boot.arg(system).arg(&place).arg(&name).arg(package);
        boot.stdout(Stdio::from(to.try_clone().map_err(|e| e.to_string())?)).stderr(to);
        let boot = boot.spawn().map_err(|e| format!("cannot start \"ip\": {e}"))?;
        let mut world = World { name, folder: outputs, boot, first: String::new(), commands: 0 };
        world.wait(&log)?;
        Ok(world)
    }

    /// Until systemd says that it is up.
    fn wait(&mut self, log: &Path) -> Result<(), String> {
        for _ in 0..300 {
            pause();
            if let Ok(Some(status)) = self.boot.try_wait() {
                let text = fs::read_to_string(log).unwrap_or_default();
                let why = format!("{status}: {}", text.trim());
                return Err(format!("skipped: no system can be booted here ({why})"));
            }
            let id = self.boot.id();
            let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
            self.first = children.unwrap_or_default().trim().to_owned();
            // before systemd runs, that is the script
            let name = fs::read_to_string(format!("/proc/{}/comm", self.first));
            if name.is_ok_and(|name| name.trim() == "systemd")
                && let Ok(said) = self.run(Place::Box, "systemctl is-system-running")
                && ["running", "degraded"].contains(&said.text().trim())
            {
                return Ok(());
            }
        }
        Err("the system has not booted within 30 s".to_owned())
    }

    /// Runs a line of the shell as the page has it. One that ends in `&` goes on; whatever it
    /// prints first is waited for, as a reader would.
    pub(super) fn run(&mut self, place: Place, line: &str) -> Result<Said, String> {
        self.commands += 1;
        let file = self.folder.join(self.commands.to_string());
        let output = File::create(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let mut command = Command::new("timeout");
        command.args([PATIENCE, "nsenter", "--target", &self.first, "--mount", "--pid", "--ipc"]);
        command.args(["--uts", "--root", "--cgroup"]);
        command.arg(format!("--net=/run/netns/{}-{}", self.name, place.word()));
        command.args(["env", "--ignore-environment", "--chdir=/root", "HOME=/root", "LC_ALL=C"]);
        let goes_on = line.ends_with('&');
        let script = if goes_on { format!("{line} wait") } else { line.to_owned() };
        command.args(["TERM=dumb", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-c", &script]);
        command.stdin(Stdio::piped());
        command.stdout(output.try_clone().map_err(|e| e.to_string())?).stderr(output);
        let mut child = command.spawn().map_err(|e| format!("cannot start \"timeout\": {e}"))?;
        if let Some(mut stdin) = child.stdin.take() {
            // who asks for a yes gets one; most ask nothing
            let _ = std::io::Write::write_all(&mut stdin, b"y\n");
        }
        let mut said = Said { file, child, status: None };
        if !goes_on {
            said.end()?;
        }
        // a server that goes into the background listens a moment later
        if place == Place::Server {
            (0..10).for_each(|_| pause());
        }
        for _ in 0..100 {
            if !goes_on || !said.text().is_empty() {
                break;
            }
            pause();
        }
        Ok(said)
    }

    /// Writes a file of the box.
    pub(super) fn write(&self, path: &str, text: &str) -> Result<(), String> {
        let path = format!("/proc/{}/root{path}", self.first);
        fs::write(&path, text).map_err(|e| format!("{path}: {e}"))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.boot.kill();
        let _ = self.boot.wait();
        remove(&self.name);
    }
}

/// The namespaces and the two cables: `eth1` of the box leads to the host, `eth2` to the server.
fn cables(name: &str) -> Result<(), String> {
    let ip = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        shell::output_of(&mut shell::program("ip", &words)).map(drop)
    };
    ip(&format!("netns add {name}-box"))?;
    for (end, port, address) in [("host", "eth1", "192.0.2.10"), ("server", "eth2", "192.0.2.1")] {
        ip(&format!("netns add {name}-{end}"))?;
        ip(&format!("-n {name}-box link add {port} type veth peer name eth0 netns {name}-{end}"))?;
        ip(&format!("-n {name}-box link set {port} up"))?;
        ip(&format!("-n {name}-{end} address add {address}/24 dev eth0"))?;
        ip(&format!("-n {name}-{end} link set eth0 up"))?;
        ip(&format!("-n {name}-{end} link set lo up"))?;
    }
    Ok(())
}

/// Removes the namespaces and the control groups of a run.
fn remove(name: &str) {
    for end in ["box", "host", "server"] {
        let _ = shell::keep(&mut shell::program("ip", &["netns", "del", &format!("{name}-{end}")]));
    }
    // the processes in them may need a moment to be gone
    let groups = format!(
        "d=$(mktemp -d) && mount -t cgroup2 cgroup2 $d && for i in 1 2 3 4 5 6 7 8 9 10; do \
         find $d/{name} -depth -type d -exec rmdir {{}} + && break; sleep 0.2; done; umount $d; \
         rmdir $d"
    );
    let _ = shell::keep(&mut shell::program("unshare", &["--mount", "sh", "-c", &groups]));
}

/// Removes what a run left that was killed.
fn remove_stale() {
    let list = shell::output_of(&mut shell::program("ip", &["netns", "list"])).unwrap_or_default();
    for line in list.lines() {
        let name = line.split(' ').next().unwrap_or_default();
        let id = name.strip_prefix(NAMES).and_then(|rest| rest.strip_suffix("-box"));
        if let Some(id) = id.filter(|id| !Path::new("/proc").join(id).exists()) {
            remove(&format!("{NAMES}{id}"));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "nobody tells when another program has come so far")]
fn pause() {
    std::thread::sleep(Duration::from_millis(100));
}
