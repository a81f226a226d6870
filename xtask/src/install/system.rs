//! A bare Debian system in a folder, fetched once by debootstrap from the mirror that apt uses
//! here.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell;

/// What the evening needs beside a minimal system. weir's own dependencies are among it, so that
/// later runs need no mirror.
const PACKAGES: &str =
    "systemd,iproute2,iputils-ping,iperf3,ethtool,nftables,adduser,procps,man-db";

/// The folder of the system; `Err` says why there is none and what would help.
pub(super) fn fetch(folder: &Path) -> Result<PathBuf, String> {
    let needs = ["debootstrap", "iproute2", "util-linux"];
    let are_there = || {
        [("ip", "-V"), ("unshare", "--version"), ("nsenter", "--version")]
            .iter()
            .all(|(tool, argument)| shell::present(tool, &[argument]))
            && shell::present("debootstrap", &["--version"])
    };
    shell::ensure_packages(&needs, are_there)
        .map_err(|line| format!("skipped: a tool is missing; run: {line}"))?;
    let release = release()?;
    let system = folder.join(&release);
    let list = folder.join(format!("{release}.packages"));
    if fs::read_to_string(&list).is_ok_and(|of| of == PACKAGES) && system.is_dir() {
        return Ok(system);
    }
    let mirror = mirror(&release)?;
    let said = |e: std::io::Error| format!("{}: {e}", folder.display());
    fs::create_dir_all(folder).map_err(said)?;
    let _ = fs::remove_file(&list);
    if system.exists() {
        fs::remove_dir_all(&system).map_err(said)?;
    }
    println!("fetching a bare Debian {release} into {}", system.display());
    let mut fetch = shell::program("debootstrap", &["--variant=minbase"]);
    fetch.arg(format!("--include={PACKAGES}")).arg(&release).arg(&system).arg(&mirror);
    if let Some(proxy) = proxy() {
        fetch.env("http_proxy", proxy);
    }
    if let Err(why) = shell::output_of(&mut fetch) {
        let _ = fs::remove_dir_all(&system);
        return Err(format!(
            "skipped: no Debian system can be fetched ({why}); where a mirror answers, run: \
             cargo x install-test"
        ));
    }
    fs::write(&list, PACKAGES).map_err(said)?;
    Ok(system)
}

/// The release of this machine, whose libraries the binary was linked with.
fn release() -> Result<String, String> {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let is_debian = text.lines().any(|line| line == "ID=debian");
    match name.filter(|_| is_debian) {
        Some(name) => Ok(name.trim_matches('"').to_owned()),
        None => Err("skipped: this machine is no Debian; on one, run: cargo x install-test".into()),
    }
}

/// Where apt gets that release from.
fn mirror(release: &str) -> Result<String, String> {
    let format = ["indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages"];
    let text = shell::output_of(&mut shell::program("apt-get", &format))?;
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let mirror = lines.find(|(codename, _)| *codename == release).map(|(_, uri)| uri.to_owned());
    mirror.ok_or_else(|| {
        format!(
            "skipped: apt names no mirror of {release}; add one to its sources, then run: \
                 apt-get update"
        )
    })
}

fn proxy() -> Option<String> {
    let ask = ["shell", "proxy", "Acquire::http::Proxy"];
    let text = shell::output_of(&mut shell::program("apt-config", &ask)).ok()?;
    let proxy = text.trim().strip_prefix("proxy=")?.trim_matches('\'').to_owned();
    (!proxy.is_empty()).then_some(proxy)
}
