use super::*;

fn plot(shape: Shape) -> Plot {
    Plot {
        title: "what <is> shown".to_owned(),
        x: Axis::new("time (s)"),
        y: Axis::new("rate (kbit/s)"),
        shape,
    }
}

fn line(name: &str, points: &[(f64, f64)]) -> Line {
    Line { name: name.to_owned(), points: points.to_vec() }
}

#[test]
fn lines_have_their_names_at_their_ends() {
    let lines = vec![
        line("voice", &[(0.0, 30.0), (5.0, 30.0), (10.0, 30.0)]),
        line("bulk & more", &[(0.0, 95.0), (5.0, 60.0), (10.0, 95.0)]),
    ];
    insta::assert_snapshot!(plot(Shape::Lines(lines)).svg());
}

#[test]
fn lines_that_end_together_have_a_legend() {
    let name = |number: usize| format!("flow {number}");
    let lines = (0..9).map(|at| line(&name(at), &[(0.0, 1.0), (1.0, 0.0)])).collect();
    let svg = plot(Shape::Lines(lines)).svg();
    assert!(svg.contains("<text class=\"label\" ") && svg.contains("l0 broken"));
}

#[test]
fn a_distribution_is_a_flight_of_steps() {
    let steps =
        vec![line("delay", &[(1.0, 0.0), (1.0, 0.25), (2.0, 0.5), (2.0, 0.75), (3.0, 1.0)])];
    insta::assert_snapshot!(plot(Shape::Steps(steps)).svg());
}

#[test]
fn points_over_a_logarithm() {
    let lines = vec![line("a", &[(1.0, 5.0), (10.0, 7.0), (1000.0, 9.0), (0.0, 3.0)])];
    let plot = Plot { x: Axis::log("leaves"), ..plot(Shape::Points(lines)) };
    insta::assert_snapshot!(plot.svg());
}

#[test]
fn bars_have_whiskers() {
    let figure = |mean, sd| Some(Figure { mean, sd });
    let sets = vec![
        Bars { name: "weir".into(), values: vec![figure(0.97, Some(0.01)), figure(0.9, None)] },
        Bars { name: "none".into(), values: vec![figure(0.5, Some(0.2)), None] },
    ];
    let shape = Shape::Bars { groups: vec!["20k".into(), "40k".into()], sets };
    insta::assert_snapshot!(plot(shape).svg());
}

#[test]
fn a_long_line_is_drawn_with_few_points_and_keeps_its_peaks() {
    let mut points: Vec<(f64, f64)> = (0..200_000).map(|at| (f64::from(at), 1.0)).collect();
    points[77_777].1 = 100.0;
    let svg = plot(Shape::Lines(vec![line("a", &points)])).svg();
    assert!(svg.len() < 40_000, "{}", svg.len());
    assert!(svg.contains(" 30L") || svg.contains(" 30 "), "the peak is at the top");
}

#[test]
fn nothing_to_draw_is_a_plot_without_lines() {
    assert!(plot(Shape::Lines(Vec::new())).svg().contains("svg"));
    assert!(plot(Shape::Bars { groups: vec![], sets: vec![] }).svg().contains("svg"));
    assert!(plot(Shape::Points(vec![line("a", &[])])).svg().contains("svg"));
}
