//! The same scenario and seed give the same bytes, however many runs go side by side.

use weir_lab::{library, outcome, run, scenario, write};
use weir_policy::Source;

fn result(name: &str, threads: usize) -> String {
    let experiment = library::named(name)[0];
    let source = Source::new(name, experiment.scenario.to_owned());
    let reading = scenario::read(source, &mut |_| Err(String::new())).expect("is text");
    let scenario = reading.scenario.expect("is right");
    let expected = weir_lab::Expected::read(experiment.expected).expect("is right");
    let profiles: Vec<usize> = (0..scenario.profiles.len()).collect();
    let runs = run::all(&scenario, &profiles, 1..=2, threads, &|_, _| {}).expect("runs");
    write(&outcome::outcome(
        (name, weir_lab::Driver::Virtual),
        (&scenario, &expected),
        &profiles,
        &runs,
        2,
    ))
}

#[test]
fn one_core_or_two_give_the_same_bytes() {
    let one = result("home", 1);
    assert_eq!(one, result("home", 2));
    assert_eq!(one, result("home", 1));
}
