//! How long a table of subscribers takes to be read, checked and resolved.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::process::ExitCode;

use weir_policy::{Source, read};

use super::{Figures, Json, per, timed, within};
use crate::out::problem;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rows of the table
    #[arg(long, default_value_t = 10_000, value_parser = within(1..=1_000_000))]
    rows: u32,
    /// Rounds of which the median is taken
    #[arg(long, default_value_t = 9, value_parser = within(1..=1_000))]
    rounds: u32,
    #[command(flatten)]
    json: Json,
}

const POLICY: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"100gbit\"\nup = \"100gbit\"\n\
    [class.\"/sites\"]\n[class.\"/sites/one\"]\n\
    [subscribers]\nfile = \"s.csv\"\nunder = \"/sites\"\n";

pub(crate) fn run(args: &Args) -> ExitCode {
    let mut table = "id,name,parent,addresses,down_rate,down_ceil,up_rate,up_ceil\n".to_owned();
    for n in 0..args.rows {
        let v4 = Ipv4Addr::from_bits(0x0a00_0000 + n);
        let _ = writeln!(
            table,
            "s{n},Subscriber {n},one,{v4};2001:db8:{:x}:{:x}00::/56,100kbit,50mbit,50kbit,10mbit",
            n >> 8,
            n & 0xff
        );
    }
    let mut figures = Figures::new(&["policy_ms", "row_ns"]);
    for _ in 0..args.rounds {
        let mut good = false;
        let time = timed(|| {
            let mut load = |name: &str| Ok(Source::new(name, table.as_str()));
            let reading = read(Source::new("weir.toml", POLICY), &mut load);
            good = reading.is_ok_and(|r| r.plans.len() == 1 && r.problems.is_empty());
        });
        if !good {
            return problem("the policy of the benchmark is at fault; please report it");
        }
        figures.add("policy_ms", per(time, 1_000_000));
        figures.add("row_ns", per(time, args.rows as usize));
    }
    let title = format!("policy with {} subscribers, read, checked and resolved", args.rows);
    figures.show(&title, &args.json)
}
