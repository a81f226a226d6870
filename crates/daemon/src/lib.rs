#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod answers;
mod begin;
mod board;
mod bypass;
mod change;
mod claim;
mod clock;
mod control;
mod desk;
mod facts;
pub mod files;
pub mod guard;
mod handover;
pub mod helper;
mod history;
mod http;
mod keep;
mod link;
pub mod log;
mod lookout;
mod mail;
mod places;
mod ports;
mod pulse;
mod reader;
pub mod remove;
mod reopen;
mod revision;
mod rights;
mod serve;
pub mod sides;
mod signs;
mod socket;
mod start;
#[cfg(test)]
mod tests;
mod trouble;
mod wheel;
mod who;
mod words;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use weir_units::Rate;

pub use clock::date;
pub use history::STATE;
pub use http::METRICS;

/// Frames that wait for each port at most, unless it is said.
pub const QUEUE: u32 = 4_096;

/// What a link is started with.
#[derive(Clone, Debug)]
pub struct Args {
    /// Its policy.
    pub policy: Policy,
    /// The link of the policy, when it has several; without a policy its name.
    pub link: Option<String>,
    /// Whether it counts and shapes nothing, until it is asked to shape.
    pub observe: bool,
    /// How frames come and go.
    pub io: Via,
    /// Whether no bridge of the kernel forwards traffic when weir does not.
    pub no_bypass: bool,
    /// The CPU for packets.
    pub cpu: Option<usize>,
    /// The user that weir becomes once its ports are open.
    pub user: Option<String>,
    /// Whether packets wait their turn among all other programs.
    pub polite: bool,
    /// Frames that wait for each port at most.
    pub queue: u32,
    /// Where the history of the policy is kept.
    pub state: PathBuf,
    /// The control socket, where it is not the usual one.
    pub socket: Option<PathBuf>,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
}

/// Where the policy of a link stands.
#[derive(Clone, Debug)]
pub enum Policy {
    /// In a file.
    File(PathBuf),
    /// On the command line, which tells only ports and rates.
    Wire {
        /// The interface towards the LAN.
        lan: String,
        /// The interface towards the WAN.
        wan: String,
        /// What the line carries towards the LAN.
        down: Rate,
        /// What the line carries towards the WAN.
        up: Rate,
        /// How far below the line to stay on the way down; what is found, if none.
        margin: Option<String>,
    },
}

/// How frames come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// AF_XDP where the kernel has it, packet sockets elsewhere.
    Auto,
    /// AF_XDP.
    Xdp,
    /// Packet sockets.
    Packet,
}

impl Via {
    /// All of them.
    pub const ALL: [Via; 3] = [Via::Auto, Via::Xdp, Via::Packet];

    /// As it is said on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Via::Auto => "auto",
            Via::Xdp => "xdp",
            Via::Packet => "packet",
        }
    }

    /// What it is, for help.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Via::Auto => "AF_XDP where the kernel has it, packet sockets elsewhere",
            Via::Xdp => "AF_XDP: needs the least CPU time",
            Via::Packet => "Packet sockets: they work on every interface",
        }
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Carries a link until it is told to stop.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    start::run(args)
}

/// Starts this program again whenever it dies.
#[must_use]
pub fn keep() -> ExitCode {
    keep::run()
}
