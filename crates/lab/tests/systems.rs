//! Tables 1 and 2 of the survey, as its group shows them.

use weir_lab::{library, scenario, systems};
use weir_policy::Source;

#[test]
fn the_tables_of_the_survey() {
    let read = |experiment: library::Experiment| {
        let source = Source::new(experiment.name, experiment.scenario.to_owned());
        let reading = scenario::read(source, &mut |_| Err(String::new())).expect("is text");
        reading.scenario.expect("is right")
    };
    let scenarios: Vec<_> = library::named("survey").into_iter().map(read).collect();
    let mut shown = String::new();
    for (title, grid) in systems::tables(&scenarios).expect("the systems can be read") {
        shown += &format!("{title}\n\n{}\n\n", grid.lines().join("\n"));
    }
    insta::assert_snapshot!(shown.trim_end());
}
