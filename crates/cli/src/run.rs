//! `weir run` and the processes beside it, from the command line to the daemon.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use weir_daemon::{METRICS, Policy, QUEUE, Via, guard, helper, remove};
use weir_units::Rate;

use crate::choice::one_of;
use crate::out::{Out, problem};

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
    #[arg(long, default_value_t = Via::Auto)]
    #[arg(value_parser = one_of(&Via::ALL, Via::word, Via::about))]
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
    #[arg(long, value_name = "FOLDER", default_value = weir_daemon::STATE)]
    state: PathBuf,
    /// Where `weir status` and the like find it [default: /run/weir/LINK.sock]
    #[arg(long, value_name = "FILE")]
    socket: Option<PathBuf>,
    /// Serve figures for Prometheus, at this address or [default: 127.0.0.1:9477]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = METRICS)]
    metrics: Option<SocketAddr>,
}

/// `weir run`.
pub(crate) fn run(args: &Args) -> ExitCode {
    if args.keep {
        return weir_daemon::keep();
    }
    let policy = match (&args.config, &args.lan, &args.wan, args.down, args.up) {
        (Some(file), ..) => Policy::File(file.clone()),
        (None, Some(lan), Some(wan), Some(down), Some(up)) => {
            let margin = args.margin.clone();
            Policy::Wire { lan: lan.clone(), wan: wan.clone(), down, up, margin }
        }
        _ => return problem("say -c FILE, or --lan, --wan, --down and --up"),
    };
    weir_daemon::run(&weir_daemon::Args {
        policy,
        link: args.link.clone(),
        observe: args.observe,
        io: args.io,
        no_bypass: args.no_bypass,
        cpu: args.cpu,
        user: args.user.clone(),
        polite: args.polite,
        queue: args.queue,
        state: args.state.clone(),
        socket: args.socket.clone(),
        metrics: args.metrics,
    })
}

#[derive(clap::Args)]
pub(crate) struct Guard {
    /// Descriptor of the page with the pulse
    #[arg(long)]
    page: i32,
    /// The two ports
    #[arg(long, num_args = 2)]
    ports: Vec<String>,
}

/// `weir guard`, which the helper starts.
pub(crate) fn guard(args: Guard) -> ExitCode {
    guard::run(&guard::Args { page: args.page, ports: args.ports })
}

#[derive(clap::Args)]
pub(crate) struct Helper {
    /// The link
    #[arg(long)]
    link: String,
    /// The two ports
    #[arg(long, num_args = 2)]
    ports: Vec<String>,
    /// Whether the kernel's bridge carries the traffic when weir does not
    #[arg(long)]
    bypass: bool,
    /// How frames come and go
    #[arg(long, value_parser = one_of(&Via::ALL, Via::word, Via::about))]
    io: Via,
    /// The policy, and the table that it names
    #[arg(long)]
    file: Vec<PathBuf>,
    /// The socket of the link, to be removed in the end
    #[arg(long)]
    socket: PathBuf,
}

/// `weir helper`, which the daemon starts.
pub(crate) fn helper(args: Helper) -> ExitCode {
    let Helper { link, ports, bypass, io, file, socket } = args;
    helper::run(&helper::Args { link, ports, bypass, io, file, socket })
}

#[derive(clap::Args)]
pub(crate) struct Remove {
    /// The link [default: all that do not run]
    #[arg(long, value_name = "NAME", conflicts_with = "socket")]
    link: Option<String>,
    /// The control socket that it had, if it was started with one of its own
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// `weir remove`.
pub(crate) fn remove(args: &Remove) -> ExitCode {
    let mut out = Out::new();
    let (link, socket) = (args.link.as_deref(), args.socket.as_deref());
    let removed = remove::run(link, socket, &mut |line| out.line(line));
    let printed = out.end();
    removed.map_or_else(|why| problem(&why), |()| printed)
}
