//! Nobody becomes unlimited by a slip of the pen: the last good row holds, and hosts in no row have
//! a ceiling.

#[allow(dead_code)]
mod shared;

use proptest::prelude::*;
use shared::{LINK, plan, reading};
use weir_policy::{Plan, Reading, Source, Subscriber, held_rows, read_over};
use weir_units::Rate;

const SITES: &str = "[class.\"/s\"]\n[class.\"/s/n\"]\nceil = \"50mbit\"\n[class.\"/s/m\"]\n\
    [subscribers]\nfile = \"s.csv\"\nunder = \"/s\"\n";
const HEADER: &str = "id,name,parent,addresses,down_rate,down_ceil,up_rate,up_ceil\n";

fn over(text: &str, table: &str, before: &[Subscriber]) -> Reading {
    let mut load = |name: &str| Ok(Source::new(name, table));
    read_over(Source::new("weir.toml", text), &mut load, before).expect("tests are text")
}

fn rows(text: &str, table: &str) -> Vec<Subscriber> {
    reading(text, table).policy.subscribers.expect("there is a table").rows
}

fn mbit(n: u64) -> Rate {
    Rate::from_bps(n * 1_000_000)
}

fn ceil(plan: &Plan, path: &str) -> Option<Rate> {
    plan.find(path).map(|id| plan.node(id).shares.down.ceil)
}

#[test]
fn a_row_with_a_mistake_keeps_what_it_had() {
    let text = format!("{LINK}{SITES}");
    let good = format!(
        "{HEADER}a,A,n,10.0.0.1,1mbit,5mbit,1mbit,5mbit\nb,\"B, \"\"b\"\"\",n,10.0.0.2,,6mbit,,\n\
         c,C,n,10.0.0.3,,7mbit,,\nd,D,n,10.0.0.4,,8mbit,,\ne,E,n,10.0.0.5,,9mbit,,\n\
         f,F,m,10.0.0.6,,3mbit,,\n"
    );
    let before = rows(&text, &good);
    let bad = format!(
        "{HEADER}a,A,x,10.0.0.1,1mbit,5mbit,1mbit,5mbit\nb,\"B\",n,10.0.0.2,,6mbti,,\n\
         c,C,n,10.0.0.300,,7mbit,,\n,D,n,10.0.0.4,,8mbit,,\ne,E,n,10.0.0.9,60mbit,,,\n\
         new,N,x,10.0.0.7,,1mbit,,\nf,F, f,m,10.0.0.6,,3mbit,,\n"
    );
    let reading = over(&text, &bad, &before);
    let plan = &reading.plans[0];
    for (path, rate) in [("/s/n/a", 5), ("/s/n/b", 6), ("/s/n/c", 7), ("/s/n/d", 8), ("/s/n/e", 9)]
    {
        assert_eq!(ceil(plan, path), Some(mbit(rate)), "{path}: {:#?}", reading.problems);
    }
    assert_eq!(ceil(plan, "/s/m/f"), Some(mbit(3)));
    assert_eq!((ceil(plan, "/s/n/new"), plan.subscribers.len()), (None, 6));
    let table = reading.policy.subscribers.as_ref().unwrap();
    assert_eq!((table.skipped.count(), table.skipped.held()), (7, 6));
    let said: Vec<&str> = reading.problems.iter().map(|p| p.what.as_str()).collect();
    assert!(
        said.contains(
            &"2 subscribers were skipped because the class \"/s/x\" does not exist (rows 2, 7); \
              1 of them keep their last good row"
        ),
        "{said:#?}"
    );
    // what is held is a file that can be kept and read again
    let kept = held_rows(&reading.sources[2]);
    assert_eq!(kept, table.rows.iter().filter(|r| r.place.file == 2).cloned().collect::<Vec<_>>());
    let again = over(&text, &bad, &kept);
    assert_eq!(again.plans, reading.plans);
    for row in &kept {
        assert!(reading.position(row.place).starts_with("last good rows:"), "{row:?}");
    }
}

#[test]
fn a_row_that_cannot_be_read_keeps_what_it_had_too() {
    let text = format!("{LINK}{SITES}");
    let row = |id: &str, name: &[u8], n: u8| {
        let (head, tail) = (format!("{id},"), format!(",n,10.0.0.{n},,{n}mbit,,\n"));
        [head.as_bytes(), name, tail.as_bytes()].concat()
    };
    let table = |name: &[u8]| {
        [HEADER.as_bytes(), &row("a", b"A", 5), &row("b", name, 2), &row("c", b"C", 7)].concat()
    };
    let read = |table: Vec<u8>, before: &[Subscriber]| {
        let mut load = |name: &str| Ok(Source::new(name, table.clone()));
        read_over(Source::new("weir.toml", text.clone()), &mut load, before).expect("is text")
    };
    let before = read(table(b"B"), &[]).policy.subscribers.expect("there is a table").rows;
    let long = vec![b'B'; 17_000];
    for name in [&b"B\xf6b"[..], b"\"Bob", b"B\0\xff\"", &long] {
        let reading = read(table(name), &before);
        let plan = &reading.plans[0];
        for (path, rate) in [("/s/n/a", 5), ("/s/n/b", 2), ("/s/n/c", 7)] {
            assert_eq!(ceil(plan, path), Some(mbit(rate)), "{path} {:?}", reading.problems);
        }
    }
}

#[test]
fn what_another_has_now_or_what_is_gone_is_not_held() {
    let text = format!("{LINK}{SITES}");
    let good =
        "id,parent,addresses\na,n,10.0.0.1;10.0.0.11\nb,n,10.0.0.2\nc,m,10.0.0.3\nd,n,10.0.0.4\n";
    let before = rows(&text, good);
    // a's first address is b's now, b has a twin, the class of c is gone, d is a class now
    let text = format!("{LINK}[class.\"/s/n/d\"]\nmatch = \"arp\"\n{SITES}")
        .replace("[class.\"/s/m\"]\n", "");
    let bad = "id,parent,addresses\na,x,10.0.0.1\nb,n,10.0.0.1\nb,n,10.0.0.2\nc,m,10.0.0.3\n\
        d,n,10.0.0.4\n";
    let reading = over(&text, bad, &before);
    let plan = &reading.plans[0];
    let leaf = |address: &str| {
        let block = address.parse().unwrap();
        let mut found = plan.subscribers.iter().filter(|(b, _)| *b == block);
        let first = found.next();
        assert!(found.next().is_none(), "{address} has two leaves");
        first.map(|(_, node)| plan.node(*node).path.to_string())
    };
    assert_eq!(leaf("10.0.0.1").as_deref(), Some("/s/n/b"));
    assert_eq!(leaf("10.0.0.11").as_deref(), Some("/s/n/a"));
    assert_eq!((leaf("10.0.0.2"), leaf("10.0.0.3"), leaf("10.0.0.4")), (None, None, None));
}

#[test]
fn a_held_row_that_no_longer_fits_is_not_held() {
    let text = format!("{LINK}{SITES}");
    let before = rows(&text, "id,parent,addresses,down_rate\na,n,10.0.0.1,40mbit\n");
    let text = text.replace("ceil = \"50mbit\"", "ceil = \"30mbit\"");
    let reading = over(&text, "id,parent,addresses,down_rate\na,n,10.0.0.1,fast\n", &before);
    let table = reading.policy.subscribers.as_ref().unwrap();
    assert_eq!((table.skipped.count(), table.skipped.held(), table.rows.len()), (1, 0, 0));
    assert!(reading.plans[0].subscribers.is_empty(), "{:#?}", reading.problems);
}

#[test]
fn what_is_said_of_a_table_is_said_once_though_it_is_resolved_twice() {
    let text = format!("{LINK}{SITES}");
    let header = "id,parent,addresses,down_rate,down_ceil\n";
    let before = rows(&text, &format!("{header}b,n,10.0.0.2,,70mbit\n"));
    // b is guaranteed more than its class has: that is seen only when the tree is made
    let table = format!("{header}a,n,10.0.0.1,,60mbit\nb,n,10.0.0.2,55mbit,70mbit\n");
    let reading = over(&text, &table, &before);
    let more = reading.problems.iter().filter(|p| p.what.contains("have a higher ceiling"));
    let said: Vec<&str> = more.map(|p| p.what.as_str()).collect();
    assert!(said.len() == 1 && said[0].starts_with("2 subscribers"), "{said:?}");
}

#[test]
fn hosts_in_no_row_have_a_ceiling() {
    let link = |rest: &str| format!("{LINK}{rest}{SITES}");
    let table = "id,addresses\na,10.0.0.1\n";
    let rest = |text: &str| {
        let plan = plan(text, table);
        let shares = plan.node(plan.rest).shares;
        (shares.down.ceil.to_string(), shares.up.ceil.to_string())
    };
    let pair = |down: &str, up: &str| (down.to_owned(), up.to_owned());
    assert_eq!(rest(&link("")), pair("10mbit", "2mbit"));
    assert_eq!(rest(&link("rest = \"5%\"\n")), pair("5mbit", "1mbit"));
    assert_eq!(rest(&link("rest = \"3mbit\"\n")), pair("3mbit", "3mbit"));
    assert_eq!(rest(&link("rest = \"none\"\n")), pair("100mbit", "20mbit"));
    assert_eq!(rest(&link("rest = { down = \"4mbit\" }\n")), pair("4mbit", "2mbit"));
    // without a table nobody is unknown
    assert_eq!(rest(LINK), pair("100mbit", "20mbit"));
    assert_eq!(rest(&format!("{LINK}rest = \"3mbit\"\n")), pair("3mbit", "3mbit"));
    // an unknown host may also end in the rest of the class that the table hangs under
    let inside =
        link("").replace("[class.\"/s\"]\n", "[class.\"/s\"]\nmatch = \"lan 10.0.0.0/8\"\n");
    assert_eq!(ceil(&plan(&inside, table), "/s/(rest)"), Some(mbit(10)));
    for (word, part) in [
        ("rest = \"0mbit\"\n", "no frame could ever leave"),
        ("rest = \"all\"\n", "\"none\""),
        ("rest = 5\n", "not a string"),
    ] {
        let said = shared::problems(&link(word), table);
        assert!(said.iter().any(|s| s.contains(part)), "{word}: {said:#?}");
    }
}

#[test]
fn another_ceiling_of_the_rest_is_a_difference_and_has_its_place() {
    let before = plan(LINK, "");
    let after = plan(&format!("{LINK}rest = \"5mbit\"\n"), "");
    let changes = weir_policy::diff(&[before], &[after]);
    assert!(
        changes.iter().any(|c| c.subject == "/(rest)" && c.words.contains("5mbit")),
        "{changes:?}"
    );
    let text = "[link.l]\nrest=\"1000kbit\"\nmargin = \"97%\"\nlan = \"a\"\n";
    let neat = weir_policy::format(text).unwrap();
    assert_eq!(neat, "[link.l]\nlan = \"a\"\nmargin = \"97%\"\nrest = \"1mbit\"\n");
}

proptest! {
    #[test]
    fn whatever_was_held_reads_as_it_was(
        name in "[ -~]{0,20}",
        down in 0u64..2_000_000_000_000,
        ceil in prop::option::of(2_000_000_000_000u64..9_000_000_000_000),
    ) {
        let text = LINK.replace("100mbit", "10tbit").replace("20mbit", "10tbit") + SITES;
        let text = text.replace("50mbit", "10tbit");
        let mut row = rows(&text, "id,addresses\na,10.0.0.1;2001:db8::/56\n").remove(0);
        // a field is trimmed by nobody where it stands in quotes
        row.name = name.into();
        row.rate.down = Some(Rate::from_bps(down));
        row.ceil.up = ceil.map(Rate::from_bps);
        let reading = over(&text, "id,addresses\na,10.0.0.300\n", std::slice::from_ref(&row));
        let kept = held_rows(&reading.sources[2]).remove(0);
        prop_assert_eq!(Subscriber { place: row.place, line: row.line, ..kept }, row);
    }
}
