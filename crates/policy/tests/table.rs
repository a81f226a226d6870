//! The table of subscribers as billing systems write it: plans, other separators, other columns.

#[allow(dead_code)]
mod shared;

use shared::{LINK, problems, reading};
use weir_policy::Reading;
use weir_policy::plan::{Node, Shares};
use weir_units::{Bytes, Priority, Rate};

const PLANS: &str = "[plan.gold]\nrate = \"5mbit\"\nceil = { down = \"50mbit\", up = \"10mbit\" }\n\
    burst = \"4s\"\npriority = \"interactive\"\nqueue = \"fair\"\naqm = \"codel\"\n\
    dscp = \"af21\"\ntcp = { window = true }\n\
    [plan.\"basic 10\"]\nceil = \"10%\"\nqueue = \"fifo\"\n\
    [class.\"/t\"]\n[subscribers]\nfile = \"s.csv\"\n";

fn read(table: &str) -> Reading {
    reading(&format!("{LINK}{PLANS}"), table)
}

fn node<'r>(reading: &'r Reading, path: &str) -> &'r Node {
    let plan = reading.plans.first().unwrap_or_else(|| panic!("{:#?}", reading.problems));
    plan.node(plan.find(path).unwrap_or_else(|| panic!("{path}: {:#?}", reading.problems)))
}

fn down(reading: &Reading, path: &str) -> Shares {
    node(reading, path).shares.down
}

fn rate(text: &str) -> Rate {
    text.parse().expect("a rate")
}

#[test]
fn a_row_has_the_rest_of_its_plan() {
    let reading = read(
        "id,parent,addresses,plan,down_ceil,burst\n\
         a,t,10.0.0.1,gold,,\nb,t,10.0.0.2,gold,20mbit,15kb\n\
         c,t,10.0.0.3,basic 10,,\nd,t,10.0.0.4,,,\n",
    );
    assert!(!reading.is_at_fault(), "{:#?}", reading.problems);
    let a = down(&reading, "/t/a");
    assert_eq!((a.rate, a.ceil), (rate("5mbit"), rate("50mbit")));
    assert_eq!(a.burst, Some(Bytes::new(25_000_000)), "four seconds at its ceiling");
    let b = down(&reading, "/t/b");
    assert_eq!(
        (b.rate, b.ceil, b.burst),
        (rate("5mbit"), rate("20mbit"), Some(Bytes::new(15_000)))
    );
    let (c, d) = (down(&reading, "/t/c"), down(&reading, "/t/d"));
    assert_eq!((c.rate, c.ceil, d.ceil), (Rate::ZERO, rate("10mbit"), rate("100mbit")));
    assert_eq!(node(&reading, "/t/a").priority, Priority::INTERACTIVE);
    let plan = &reading.plans[0];
    let words = |path: &str| {
        let said = weir_policy::say::leaf(plan.words_of(plan.find(path).unwrap()));
        said.into_iter().map(|(word, value)| format!("{word} {value}")).collect::<Vec<_>>()
    };
    assert_eq!(words("/t/a"), ["queue fair", "aqm codel", "dscp af21", "tcp window true"]);
    assert_eq!(words("/t/c"), ["queue fifo"]);
    assert_eq!(words("/t/d"), [""; 0]);
}

#[test]
fn an_unknown_plan_costs_its_row_and_has_its_cure() {
    let said = problems(
        &format!("{LINK}{PLANS}"),
        "id,parent,addresses,plan\na,t,10.0.0.1,glod\nb,t,10.0.0.2,x\nc,t,10.0.0.3,gold\n",
    );
    assert_eq!(said.len(), 2, "{said:#?}");
    assert!(
        said[0].contains("there is no plan \"glod\" (row 2) (did you mean \"gold\"?)"),
        "{said:#?}"
    );
    assert!(said[1].contains("(add [plan.\"x\"] to the policy)"), "{said:#?}");
}

#[test]
fn a_plan_that_gives_more_than_its_ceiling_is_a_mistake_of_the_plan() {
    let plan = "[plan.p]\nrate = \"20mbit\"\nceil = \"10mbit\"\n[subscribers]\nfile = \"s.csv\"\n";
    let said = problems(&format!("{LINK}{plan}"), "id,addresses,plan\na,10.0.0.1,p\n");
    assert!(said[0].contains("plan \"p\" guarantees 20mbit down but has a ceiling"), "{said:#?}");
    // with a ceiling of the row it is one of the row
    let plan = "[plan.p]\nrate = \"20mbit\"\n[subscribers]\nfile = \"s.csv\"\n";
    let table = "id,addresses,plan,down_ceil,up_ceil\na,10.0.0.1,p,9mbit,\nb,10.0.0.2,p,,\n";
    let said = problems(&format!("{LINK}{plan}"), table);
    let cause = "it is guaranteed 20mbit down but has a ceiling of 9mbit";
    assert!(said.iter().any(|line| line.contains(cause)), "{said:#?}");
}

#[test]
fn semicolons_tabs_and_columns_of_others_are_read() {
    for table in [
        "Customer ID;Phone;parent;IP Address;Tariff;E-Mail\n1;555;t;10.0.0.1;gold;x@y\n",
        "Customer ID\tPhone\tparent\tIP Address\tTariff\tE-Mail\n1\t5;5\tt\t10.0.0.1\tgold\tx@y\n",
    ] {
        let reading = read(table);
        assert!(!reading.is_at_fault(), "{:#?}", reading.problems);
        assert_eq!(down(&reading, "/t/1").rate, rate("5mbit"));
        let said = problems(&format!("{LINK}{PLANS}"), table);
        assert_eq!(said.len(), 1, "{said:#?}");
        assert!(
            said[0].contains("note: the columns \"Phone\", \"E-Mail\" are not used"),
            "{said:#?}"
        );
    }
}

#[test]
fn a_column_that_is_a_slip_of_the_pen_is_one_mistake() {
    for (header, meant) in [
        ("id,parent,addresses,down_cel", "down_ceil"),
        ("id,parent,addreses,plan", "addresses"),
        ("id,parent,addresses,plann", "plan"),
    ] {
        let said = problems(&format!("{LINK}{PLANS}"), &format!("{header}\n"));
        assert_eq!(said.len(), 1, "{said:#?}");
        assert!(said[0].contains(&format!("(did you mean \"{meant}\"?)")), "{said:#?}");
    }
}

#[test]
fn a_subscriber_may_be_known_by_its_mac() {
    let table = "id,parent,addresses,mac\na,t,,0200.5e10.0001\nb,t,10.0.0.2,02-00-5E-10-00-02\n\
        c,t,,02:00:5e:10:00:01\nd,t,,nonsense\n";
    let reading = read(table);
    let macs = &reading.plans[0].subscriber_macs;
    assert_eq!(macs.len(), 2, "{macs:?}");
    assert_eq!(macs[0].0, [2, 0, 0x5e, 0x10, 0, 1]);
    let said = problems(&format!("{LINK}{PLANS}"), table);
    assert!(said[0].contains("02:00:5e:10:00:01 is already the MAC address of row 2"), "{said:#?}");
    assert!(said[1].contains("\"mac\" cannot be \"nonsense\""), "{said:#?}");
}

#[test]
fn overbooked_subscribers_are_a_warning_with_their_factor() {
    let policy =
        |class: &str| format!("{LINK}[class.\"/t\"]\n{class}[subscribers]\nfile = \"s.csv\"\n");
    let table = "id,parent,addresses,down_rate\na,t,10.0.0.1,8mbit\n\
        b,t,10.0.0.2,8mbit\nc,t,10.0.0.3,9mbit\n";
    let said = problems(&policy("rate = \"10mbit\"\n"), table);
    assert_eq!(said.len(), 1, "{said:#?}");
    assert!(
        said[0].contains(
            "warning: the subscribers below \"/t\" are guaranteed 25mbit down, 2.50 times \
             the 10mbit that it has (while all of them have traffic, each gets 40 % of its \
             guarantee; lower \"down_rate\" in the table, or raise the rate of \"/t\")"
        ),
        "{said:#?}"
    );
    // a tower without a rate is told to raise what it has
    let said = problems(&policy("ceil = \"10mbit\"\n"), table);
    assert!(said[0].contains("or raise the ceil of \"/t\", which has no rate"), "{said:#?}");
    let reading = reading(&policy("ceil = \"10mbit\"\n"), table);
    assert!(!reading.is_at_fault());
    assert_eq!(down(&reading, "/t").rate, rate("10mbit"), "it promises no more than it can have");
    // what fits is not worth a word, and classes must fit as before
    assert_eq!(problems(&policy("rate = { down = \"26mbit\" }\n"), table), [""; 0]);
    let classes = "rate = \"10mbit\"\n[class.\"/t/x\"]\nmatch = \"any\"\nrate = \"11mbit\"\n";
    let said = problems(&policy(classes), "id,addresses\n");
    assert!(said.iter().any(|line| line.contains("error: the classes below \"/t\"")), "{said:#?}");
}

#[test]
fn a_tower_without_customers_is_told_what_it_lacks() {
    let policy = format!(
        "{LINK}[class.\"/t\"]\n[class.\"/t/one\"]\n[class.\"/t/two\"]\n\
         [subscribers]\nfile = \"s.csv\"\nunder = \"/t\"\n"
    );
    let said = problems(&policy, "id,parent,addresses\na,one,10.0.0.1\n");
    assert_eq!(said.len(), 1, "{said:#?}");
    assert!(said[0].contains("no row of \"s.csv\" has the parent \"two\""), "{said:#?}");
    assert!(said[0].contains("(give a row the parent \"two\", or remove the class)"), "{said:#?}");
}
