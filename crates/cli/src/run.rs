//! `weir run`: a link on real interfaces. The daemon has one thread for packets and one for
//! control; between them lie queues of letters (mail.rs).
//!
//! Read on in this order: `ports.rs` opens what the frames come from, `wheel.rs` turns, `link.rs`
//! changes what turns and `reader.rs` reads what it counts, `control.rs` does that for the operator,
//! `serve.rs` for many at once: from `board.rs` they are told what is known, at `desk.rs` policies
//! are read.

pub(crate) mod answers;
mod begin;
mod board;
mod bypass;
mod change;
mod claim;
mod clock;
mod control;
mod desk;
mod facts;
pub(crate) mod guard;
pub(crate) mod helper;
mod history;
mod http;
mod keep;
mod link;
mod lookout;
mod mail;
mod places;
mod ports;
mod pulse;
mod reader;
pub(crate) mod remove;
mod reopen;
mod revision;
mod rights;
mod serve;
mod signs;
pub(crate) mod socket;
mod start;
#[cfg(test)]
mod tests;
mod trouble;
mod wheel;
mod who;
mod words;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use weir_units::Rate;

pub(crate) use clock::date;

/// Frames that wait for each port at most, unless it is said.
pub(crate) const QUEUE: u32 = 4_096;

#[derive(clap::Args, Clone, Debug)]
#[command(override_usage = "weir run --config FILE [--link NAME] [OPTIONS]\n       \
                            weir run --lan PORT --wan PORT --down RATE --up RATE [OPTIONS]")]
pub(crate) struct Args {
    /// The policy
    #[arg(short, long = "config", value_name = "FILE", required_unless_present = "lan")]
    config: Option<PathBuf>,
    /// The link of the policy, when it has several; without a policy its name
    #[arg(long)]
    link: Option<String>,
    /// The interface towards the LAN, instead of a policy
    #[arg(long, value_name = "PORT", conflicts_with = "config")]
    #[arg(requires_all = ["wan", "down", "up"])]
    lan: Option<String>,
    /// The interface towards the WAN
    #[arg(long, value_name = "PORT", requires = "lan")]
    wan: Option<String>,
    /// What the line carries towards the LAN, such as 100mbit
    #[arg(long, value_name = "RATE", requires = "lan")]
    down: Option<Rate>,
    /// What the line carries towards the WAN, such as 20mbit
    #[arg(long, value_name = "RATE", requires = "lan")]
    up: Option<Rate>,
    /// How far below the line to stay on the way down, such as 97% [default: what is found]
    #[arg(long, value_name = "PART", requires = "lan")]
    margin: Option<String>,
    /// Count and shape nothing, until `weir shape` says otherwise
    #[arg(long)]
    observe: bool,
    /// How frames come and go
    #[arg(long, value_enum, default_value_t = Via::Auto)]
    io: Via,
    /// Let no kernel bridge carry the traffic when weir cannot: a dead weir is a cut line
    #[arg(long)]
    no_bypass: bool,
    /// Start again whenever it dies (systemd does that by itself)
    #[arg(long)]
    keep: bool,
    /// The CPU for packets
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
    /// The user that weir becomes once its ports are open [default: weir, or a number that nobody
    /// has]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Packets wait their turn among all other programs; without this they go first (SCHED_FIFO)
    #[arg(long)]
    polite: bool,
    /// Frames that wait for each port at most
    #[arg(long, default_value_t = QUEUE, value_parser = crate::bench::within(64..=65_536))]
    queue: u32,
    /// Where the history of the policy is kept
    #[arg(long, value_name = "FOLDER", default_value = history::STATE)]
    state: PathBuf,
    /// Where `weir status` and the like find it [default: /run/weir/LINK.sock]
    #[arg(long, value_name = "FILE")]
    socket: Option<PathBuf>,
    /// Serve figures for Prometheus, at this address or [default: 127.0.0.1:9477]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = http::METRICS)]
    metrics: Option<SocketAddr>,
}

/// How frames come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Via {
    /// AF_XDP where the kernel has it, packet sockets elsewhere
    Auto,
    /// AF_XDP: the cheapest
    Xdp,
    /// Packet sockets: they work on every interface
    Packet,
}

impl Via {
    /// As it is said on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Via::Auto => "auto",
            Via::Xdp => "xdp",
            Via::Packet => "packet",
        }
    }
}

pub(crate) fn run(args: &Args) -> ExitCode {
    if args.keep { keep::run() } else { start::run(args) }
}
