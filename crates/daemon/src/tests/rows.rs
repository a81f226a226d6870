//! Rows of the table of subscribers that are skipped: nobody becomes unlimited by them, and they
//! are trouble until they are cured.

use super::*;

const HEADER: &str = "id,addresses,down_ceil\n";

fn text() -> String {
    policy("1gbit") + "[subscribers]\nfile = \"s.csv\"\n"
}

fn brought(table: &str, allow_skipped: bool) -> Request {
    let Request::Apply(mut apply) = apply(&text(), None) else { unreachable!() };
    apply.subscribers = Some(format!("{HEADER}{table}"));
    apply.allow_skipped = allow_skipped;
    Request::Apply(apply)
}

/// The ceiling of a class, as the tree tells it; 0 where there is none of that name.
fn ceil(world: &mut World, path: &str) -> u64 {
    let tree = world.ask(Request::tree(true));
    let rows = tree["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["class"] == path);
    row.map_or(0, |row| row["down"]["ceil"].as_u64().unwrap() / 1_000_000)
}

const GOOD: &str = "s1,10.0.0.1,50mbit\ns2,10.0.0.2,20mbit\n";
const BAD: &str = "s1,10.0.0.1,50mbti\ns2,10.0.0.2,20mbit\ns3,10.0.0.3,20mbti\n";

#[test]
fn a_skipped_row_is_refused_or_allowed_and_the_last_good_one_holds() {
    let mut world = World::new("rows");
    assert!(is_ok(&world.ask(brought(GOOD, false))));
    assert_eq!((ceil(&mut world, "/s1"), ceil(&mut world, "/(rest)")), (50, 100));
    let refused = world.ask(brought(BAD, false));
    assert_eq!((is_ok(&refused), &refused["error"]["fault"]), (false, &json!("content")));
    let said = refused.to_string();
    assert!(said.contains("allow-skipped") && said.contains("keeps the last good row"), "{said}");
    assert_eq!(world.ask(Request::Status)["trouble"], json!([]));
    let answer = world.ask(brought(BAD, true));
    assert!(is_ok(&answer), "{answer:#}");
    assert_eq!(answer["subscribers"], json!({ "skipped": 2, "held": 1 }));
    let mut problems = answer["problems"].as_array().unwrap().iter();
    let of_rows = problems.find(|problem| !problem["rows"].is_null()).unwrap();
    assert_eq!((&of_rows["rows"], &of_rows["held"]), (&json!("2"), &json!(1)));
    assert_eq!((ceil(&mut world, "/s1"), ceil(&mut world, "/s3")), (50, 0));
    is_trouble(&mut world);
    // a restart has no earlier policy, and comes up with what it held
    let mut world = World::again(world.stop());
    assert_eq!(ceil(&mut world, "/s1"), 50);
    is_trouble(&mut world);
    // held rows hold again, and a good table is the end of it
    assert!(is_ok(&world.ask(brought(&format!("{BAD}s4,10.0.0.4,1mbti\n"), true))));
    assert_eq!(ceil(&mut world, "/s1"), 50);
    assert!(is_ok(&world.ask(brought("s1,10.0.0.1,60mbit\n", false))));
    assert_eq!((ceil(&mut world, "/s1"), ceil(&mut world, "/s2")), (60, 0));
    assert_eq!(world.ask(Request::Status)["trouble"], json!([]));
    world.stop();
}

#[test]
fn a_row_of_a_revision_that_nobody_confirmed_is_not_held() {
    let mut world = World::new("undone");
    let soon = |table: &str, allow_skipped| {
        let Request::Apply(mut apply) = brought(table, allow_skipped) else { unreachable!() };
        apply.confirm = Some(Span::from_secs(60));
        Request::Apply(apply)
    };
    assert!(is_ok(&world.ask(brought(GOOD, false))));
    assert!(is_ok(&world.ask(soon("s1,10.0.0.1,900mbit\ns2,10.0.0.2,20mbit\n", false))));
    assert_eq!(ceil(&mut world, "/s1"), 900);
    assert!(is_ok(&world.ask(soon("s1,10.0.0.1,900mbti\ns2,10.0.0.2,20mbit\n", true))));
    assert_eq!(ceil(&mut world, "/s1"), 50);
    assert!(is_ok(&world.ask(Request::Confirm)));
    assert_eq!(ceil(&mut world, "/s1"), 50);
    world.stop();
}

fn is_trouble(world: &mut World) {
    let status = world.ask(Request::Status);
    let trouble = status["trouble"][0].as_str().unwrap();
    assert!(trouble.starts_with("2 subscribers of revision 3 were skipped, of which 1 keep"));
    assert!(trouble.contains("weir check"), "{trouble}");
    let metrics = world.ask(Request::Metrics)["text"].as_str().unwrap().to_owned();
    for line in ["weir_subscribers_skipped{link=\"l\"} 2", "weir_subscribers_held{link=\"l\"} 1"] {
        assert!(metrics.contains(line), "{metrics}");
    }
}

#[test]
fn a_file_with_a_bad_row_is_taken_at_reload_and_at_start_and_is_trouble() {
    let mut world = World::new("rows-file");
    let write = |world: &World, table: &str| {
        std::fs::write(world.folder.0.join("p.toml"), text()).unwrap();
        std::fs::write(world.folder.0.join("s.csv"), format!("{HEADER}{table}")).unwrap();
    };
    write(&world, GOOD);
    world.asked.control.reload(now(), 2_000);
    write(&world, BAD);
    world.asked.control.reload(now(), 2_000);
    assert_eq!(ceil(&mut world, "/s1"), 50);
    is_trouble(&mut world);
    // the same file again is the same revision
    world.asked.control.reload(now(), 2_000);
    is_trouble(&mut world);
    let folder = world.stop();
    let worse = BAD.replace("s2,10.0.0.2,20mbit", "s2,10.0.0.2,20mbti");
    std::fs::write(folder.0.join("s.csv"), format!("{HEADER}{worse}")).unwrap();
    let mut world = World::again(folder);
    assert_eq!((ceil(&mut world, "/s1"), ceil(&mut world, "/s2")), (50, 20));
    let trouble = world.ask(Request::Status)["trouble"][0].clone();
    assert!(trouble.to_string().contains("3 subscribers of revision 4 were skipped, of which 2"));
    world.stop();
}
