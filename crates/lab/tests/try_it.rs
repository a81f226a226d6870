use weir_lab::{figures, library, run, scenario};
#[test]
fn try_it() {
    let name = std::env::var("EXP").unwrap_or("survey-basic".into());
    for e in library::named(&name) {
        let source = weir_policy::Source::new(e.name, e.scenario.to_owned());
        let reading = scenario::read(source, &mut |_| Err("no".into())).unwrap();
        for p in &reading.problems {
            eprintln!("{} {} | {}", reading.source.position(p.place), p.what, p.help);
        }
        let s = reading.scenario.unwrap();
        let profiles: Vec<usize> = (0..s.profiles.len()).collect();
        let seeds = std::env::var("SEEDS").map_or(s.seeds, |v| v.parse().unwrap());
        let t = std::time::Instant::now();
        let runs = run::all(&s, &profiles, seeds, 2, &|_, _| {}).unwrap();
        eprintln!("{} took {:?}", e.name, t.elapsed());
        for (p, runs) in profiles.iter().zip(&runs) {
            eprintln!("== {}", s.profiles[*p].name);
            for (k, f) in figures::figures(&s, runs) {
                eprintln!("{k:28} {:10.4} sd {:8.4}", f.mean, f.sd);
            }
        }
    }
}
