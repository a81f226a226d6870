//! `weir explain FILE --packet '...'`: which class, by which rule, and what limits it. The engine
//! itself computes this, with the tables that it uses for traffic.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_engine::{Config, Engine, Planner};
use weir_packet::{Build, Pool, Side};
use weir_policy::{Plan, Reading};
use weir_units::Instant;

use crate::out::{Out, problem};
use crate::{Port, problems};
use weir_daemon::files;

/// How a packet is written, for the help and for who wrote one that cannot be read.
const PACKET: &str = "\
A packet is written as its kind and its two ends:
  udp 10.0.0.5:5060 > 192.0.2.1:5060        also tcp and sctp; IPv6: [2001:db8::5]:5060
  icmp 10.0.0.5 > 192.0.2.1                 also esp and arp
  protocol gre 10.0.0.5 > 192.0.2.1         a protocol of IP by name or number
  ethertype 0x88cc                          what is not IP
and behind them what else it has, in any order:
  mac A > B    vlan 7    pcp 3    pppoe 1    dscp ef    ecn ce    ttl 64
  length 1514 (of the frame)    payload 200    type 8    code 0    id 1    spi 1
  flags syn,ack    seq 1    ack 1    window 1000    mss 1400    reply (arp)";

#[derive(clap::Args)]
#[command(after_help = PACKET)]
pub(crate) struct Args {
    /// The policy
    file: PathBuf,
    /// The packet, as in 'udp 10.0.0.5:5060 > 192.0.2.1:5060 dscp ef'
    #[arg(short, long)]
    packet: String,
    /// The port at which it arrives
    #[arg(long, value_enum, default_value_t = Port::Lan)]
    from: Port,
    /// The link, if the policy has several
    #[arg(long)]
    link: Option<String>,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let bytes = match args.packet.parse::<Build>() {
        Ok(build) => build.to_vec(),
        Err(wrong) => return problem(&format!("the packet cannot be read: {wrong}\n\n{PACKET}")),
    };
    let (reading, plan) = match plan(&args.file, args.link.as_deref()) {
        Ok(found) => found,
        Err(code) => return code,
    };
    let side = match args.from {
        Port::Lan => Side::Lan,
        Port::Wan => Side::Wan,
    };
    match trace(&reading, plan, side, &bytes) {
        Ok(lines) => {
            let mut out = Out::new();
            lines.iter().for_each(|line| out.line(line));
            out.end()
        }
        Err(why) => problem(&why),
    }
}

/// The path of a packet in words.
pub(crate) fn trace(
    reading: &Reading,
    plan: usize,
    side: Side,
    bytes: &[u8],
) -> Result<Vec<String>, String> {
    let plan = &reading.plans[plan];
    let config = Config { queue_frames: 1, flows: 8, seed: 0, watch: false, ..Config::default() };
    let change = Planner::of(&config).prepare(plan).map_err(|e| e.to_string())?;
    let engine = Engine::new(config, Pool::new(1, 1), change, Instant::ZERO);
    let trace = engine.trace(plan, side, bytes);
    Ok(trace.words(plan, |place| reading.position(place)))
}

/// Reads a policy that is to be used, and finds the link. Skipped rows are reported; the
/// others count.
pub(crate) fn plan(file: &Path, link: Option<&str>) -> Result<(Reading, usize), ExitCode> {
    let reading = files::policy(file).map_err(|why| problem(&why))?;
    if reading.is_at_fault() {
        problems::print(&reading);
    }
    if reading.plans.is_empty() {
        return Err(ExitCode::from(1));
    }
    let found = match link {
        Some(name) => reading.plans.iter().position(|p| p.name == name),
        None => (reading.plans.len() == 1).then_some(0),
    };
    match found {
        Some(at) => Ok((reading, at)),
        None => {
            let names: Vec<&str> = reading.plans.iter().map(|p: &Plan| p.name.as_str()).collect();
            let names = names.join(", ");
            Err(problem(&match link {
                Some(name) => format!("there is no link \"{name}\"; the policy has {names}"),
                None => format!("the policy has several links; choose one with --link: {names}"),
            }))
        }
    }
}
