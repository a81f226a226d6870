//! `weir check FILE`: whether the policy is correct, and what it amounts to.

use std::path::Path;
use std::process::ExitCode;

use weir_policy::plan::{NodeKind, Rule, Target};
use weir_policy::{Enforce, Plan, Reading};

use crate::out::{Out, problem};
use crate::problems;
use weir_daemon::files;

pub(crate) fn run(file: &Path, quiet: bool, verbose: bool) -> ExitCode {
    let reading = match files::policy(file) {
        Ok(reading) => reading,
        Err(why) => return problem(&why),
    };
    match verbose {
        true => problems::print_all(&reading),
        false => problems::print(&reading),
    }
    if reading.is_at_fault() {
        return ExitCode::from(1);
    }
    if !quiet {
        let mut out = Out::new();
        for plan in &reading.plans {
            out.line(&summary(&reading, plan));
            if verbose && plan.nodes[0].enforce == Enforce::Auto {
                let rate = plan.nodes[0].shares.down.rate.max(plan.nodes[0].shares.up.rate);
                let why = weir_engine::why_queues(rate, u64::from(weir_daemon::QUEUE));
                out.line(&format!("link {}: enforce = \"auto\" selects queues: {why}", plan.name));
            }
        }
        out.line(
            "a frame goes to the first class that matches it; children come before their parents",
        );
        return out.end();
    }
    ExitCode::SUCCESS
}

/// One link in a line.
fn summary(reading: &Reading, plan: &Plan) -> String {
    let root = plan.nodes[0].shares;
    let count =
        |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    // file 0 is the policy, file 1 the table of subscribers
    let rows = plan.nodes.iter().filter(|n| n.place.file == 1).count();
    let classes = plan.nodes.iter().skip(1).filter(|n| !n.path.ends_with(')')).count() - rows;
    let made: u32 = plan
        .nodes
        .iter()
        .map(|n| if let NodeKind::Each(each) = &n.kind { each.count } else { 0 })
        .sum();
    let rules =
        plan.asked.iter().filter(|a| a.target != Target::Subscriber).map(|a| lines(&a.rules)).sum();
    let mut parts = vec![count(classes, "class", "classes"), count(rules, "rule", "rules")];
    if rows > 0 {
        parts.push(count(rows, "subscriber", "subscribers"));
    }
    if made > 0 {
        parts.push(format!("up to {made} leaves created at run time"));
    }
    format!(
        "{}: no errors; link {} ({} | {}) shaped to {}{} down and {}{} up; {}",
        reading.sources[0].name(),
        plan.name,
        plan.lan,
        plan.wan,
        at_most(plan.finds.down),
        root.down.rate,
        at_most(plan.finds.up),
        root.up.rate,
        parts.join(", ")
    )
}

/// Lines of `match`: one may be several rules.
fn lines(rules: &[Rule]) -> usize {
    rules.chunk_by(|a, b| a.place == b.place).count()
}

/// Before a rate that is found.
fn at_most(is_found: bool) -> &'static str {
    if is_found { "the rate of the access link, at most " } else { "" }
}
