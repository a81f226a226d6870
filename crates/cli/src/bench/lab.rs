//! How much faster than life the laboratory is: an experiment of the survey with the engine in the
//! loop, and a saturated link of 10 Gbit/s.

use std::process::ExitCode;

use weir_lab::{library, run, scenario};
use weir_policy::Source;

use super::{Figures, Json, timed, within};
use crate::out::problem;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of rounds; the result is their median
    #[arg(long, default_value_t = 5, value_parser = within(1..=1_000))]
    rounds: u32,
    #[command(flatten)]
    json: Json,
}

/// Two hosts that fill a link of 10 Gbit/s through a box, for a tenth of a second.
const FAST: &str = r#"
[scenario]
about = "a saturated link of 10 Gbit/s"
run = "100ms"
seeds = 1

[node.client]
[node.box]
kind = "box"
[node.server]

[link.lan]
between = ["client", "box"]
[link.wan]
between = ["box", "server"]
rate = "10gbit"

[flow.flood]
from = "client"
to = "server"
source = "cbr"
rate = "12gbit"

[profile.weir]
policy = """
[link.l]
lan = "a"
wan = "b"
down = "10gbit"
up = "10gbit"
"""
"#;

pub(crate) fn run(args: &Args) -> ExitCode {
    let Some(survey) = library::named("survey-basic").first().copied() else {
        return problem("survey-basic is not carried");
    };
    let mut figures = Figures::new(&["speedup", "frames_per_s"]);
    for _ in 0..args.rounds {
        for (name, text) in [("speedup", survey.scenario), ("frames_per_s", FAST)] {
            match one(name, text) {
                Ok(figure) => figures.add(name, figure),
                Err(why) => return problem(&why),
            }
        }
    }
    let title = format!(
        "lab: survey-basic with profile weir, and 10 Gbit/s, on one core, {} rounds",
        args.rounds
    );
    figures.show(&title, &args.json)
}

fn one(name: &str, text: &str) -> Result<f64, String> {
    let reading = scenario::read(Source::new(name, text.to_owned()), &mut |_| Err(String::new()));
    let scenario = reading.ok().and_then(|r| r.scenario).ok_or("the scenario cannot be read")?;
    let profile = scenario.profiles.iter().find(|p| p.name == "weir");
    let profile = profile.ok_or("there is no profile weir")?;
    let mut result = Err(String::new());
    let time = timed(|| result = run::one(&scenario, profile, 1));
    let frames = result?.frames;
    #[expect(clippy::cast_precision_loss, reason = "figures to be read")]
    Ok(match name {
        "speedup" => scenario.run.ns() as f64 / time.as_nanos() as f64,
        _ => frames as f64 / time.as_secs_f64(),
    })
}
