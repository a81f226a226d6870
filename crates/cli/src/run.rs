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
    /// The link to run if the policy has several; without a policy, the name of the link
    #[arg(long)]
    link: Option<String>,
    /// The interface towards the LAN, if there is no policy
    #[arg(long, value_name = "PORT", conflicts_with = "config")]
    #[arg(requires_all = ["wan", "down", "up"])]
    lan: Option<String>,
    /// The interface towards the WAN
    #[arg(long, value_name = "PORT", requires = "lan")]
    wan: Option<String>,
    /// The rate of the access link towards the LAN, such as 100mbit
    #[arg(long, value_name = "RATE", requires = "lan")]
    down: Option<Rate>,
    /// The rate of the access link towards the WAN, such as 20mbit
    #[arg(long, value_name = "RATE", requires = "lan")]
    up: Option<Rate>,
    /// How much of the access link to use downstream, such as 97% [default: found automatically]
    #[arg(long, value_name = "PART", requires = "lan")]
    margin: Option<String>,
    /// Count traffic without shaping it, until `weir shape`
    #[arg(long)]
    observe: bool,
    /// How to receive and send frames
    #[arg(long, default_value_t = Via::Auto)]
    #[arg(value_parser = one_of(&Via::ALL, Via::word, Via::about))]
    io: Via,
    /// Do not use a kernel bridge as bypass: if weir fails, the link is cut
    #[arg(long)]
    no_bypass: bool,
    /// Restart weir whenever it dies (not needed with systemd)
    #[arg(long)]
    keep: bool,
    /// The CPU to which the packet thread is pinned
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
    /// The user that weir becomes once its ports are open [default: weir, or an unused number]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Do not use real-time scheduling (SCHED_FIFO) for the packet thread
    #[arg(long)]
    polite: bool,
    /// Maximum number of frames queued for each port
    #[arg(long, default_value_t = QUEUE, value_parser = crate::bench::within(64..=65_536))]
    queue: u32,
    /// The folder for the history of the policy
    #[arg(long, value_name = "FOLDER", default_value = weir_daemon::STATE)]
    state: PathBuf,
    /// The control socket, for `weir status` and other commands [default: /run/weir/LINK.sock]
    #[arg(long, value_name = "FILE")]
    socket: Option<PathBuf>,
    /// Serve Prometheus metrics at this address; without ADDRESS at 127.0.0.1:9477
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
        (None, Some(lan), Some(wan), ..) if lan == wan => {
            return problem(&format!(
                "--lan and --wan are the same interface, \"{lan}\": name two (`ip link` lists them)"
            ));
        }
        (None, Some(lan), Some(wan), Some(down), Some(up)) => {
            let margin = args.margin.clone();
            Policy::Wire { lan: lan.clone(), wan: wan.clone(), down, up, margin }
        }
        _ => return problem("give -c FILE, or --lan, --wan, --down and --up"),
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
    /// File descriptor of the page with the heartbeat
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
    /// Whether the kernel's bridge forwards traffic if weir stops
    #[arg(long)]
    bypass: bool,
    /// How to receive and send frames
    #[arg(long, value_parser = one_of(&Via::ALL, Via::word, Via::about))]
    io: Via,
    /// The policy, and its table of subscribers
    #[arg(long)]
    file: Vec<PathBuf>,
    /// The control socket of the link, removed at the end
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
    /// The link [default: all links that do not run]
    #[arg(long, value_name = "NAME", conflicts_with = "socket")]
    link: Option<String>,
    /// The control socket of the link, if it was started with --socket
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
