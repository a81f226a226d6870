//! What `diff` says between two policies.

#[allow(dead_code)]
mod shared;

use shared::{LINK, plan};
use weir_policy::diff;

fn said(before: &str, after: &str) -> Vec<String> {
    said_with((before, ""), (after, ""))
}

fn said_with(before: (&str, &str), after: (&str, &str)) -> Vec<String> {
    let (before, after) = (plan(before.0, before.1), plan(after.0, after.1));
    diff(&[before], &[after])
        .iter()
        .map(|c| format!("{} {} {}", c.mark, c.subject, c.words))
        .collect()
}

#[test]
fn the_same_meaning_is_no_change() {
    let a = format!("{LINK}[class.\"/a\"]\nmatch = \"any\"\nrate = \"10mbit\"\n");
    let b = format!(
        "{LINK}[class.\"/a\"]\nmatch = [\"any\"]\nrate = {{ down = \"10000kbit\", up = \"50%\" }}\n"
    );
    assert_eq!(said(&a, &b), Vec::<String>::new());
}

#[test]
fn every_change_is_said_in_the_words_of_the_policy() {
    let a = format!(
        "{LINK}[class.\"/a\"]\nmatch = \"tcp\"\nrate = \"10mbit\"\n[class.\"/b\"]\nmatch = \"udp\"\n\
         [class.\"/old\"]\n[class.\"/old/x\"]\nmatch = \"esp\"\n"
    );
    let b = format!(
        "{}[class.\"/b\"]\nmatch = [\"udp\", \"icmp\"]\nqueue = \"fifo\"\n\
         [class.\"/a\"]\nmatch = \"tcp\"\nrate = {{ down = \"12mbit\", up = \"10mbit\" }}\npriority = \"bulk\"\n\
         [class.\"/new\"]\nwas = \"/old\"\n[class.\"/new/x\"]\nmatch = \"esp\"\n[class.\"/c\"]\nmatch = \"gre\"\n",
        LINK.replace("\"20mbit\"", "\"25mbit\"")
    );
    let said = said(&a, &b);
    for want in [
        "~ link office shaped to 100mbit down, 20mbit up -> 100mbit down, 25mbit up",
        "~ /a rate 10mbit -> 12mbit down, 10mbit up",
        "~ /a priority normal -> bulk",
        "~ /b queue default -> fifo",
        "~ /b match + \"icmp\"",
        "> /new was /old",
        "+ /c is new: rate 0bit, ceil 100mbit down, 25mbit up",
        "~ /b now comes before /a",
    ] {
        assert!(said.iter().any(|s| s == want), "missing {want}\nsaid {said:#?}");
    }
    assert!(!said.iter().any(|s| s.contains("gone")), "{said:#?}");
}

const TABLE: &str = "[subscribers]\nfile = \"s.csv\"\nunder = \"/s\"\n";

#[test]
fn a_subscriber_who_gets_another_address_is_a_change() {
    let text = format!("{LINK}[class.\"/s\"]\n{TABLE}");
    let before = "id,addresses\na,10.0.0.1;10.0.0.2\nb,10.0.0.9\n";
    let after = "id,addresses\na,10.0.0.2;10.0.0.3\nc,10.0.0.9\n";
    assert_eq!(
        said_with((&text, before), (&text, after)),
        [
            "- /s/b is removed; its queued frames go to /(rest)",
            "+ /s/c is new: rate 0bit, ceil 100mbit down, 20mbit up",
            "~ /s/a address - 10.0.0.1",
            "~ /s/a address + 10.0.0.3",
            "~ /s/c now has 10.0.0.9, which /s/b had",
        ]
    );
}

#[test]
fn a_class_that_loses_its_rules_is_a_change() {
    let class = |rules: &str| {
        format!("{LINK}[class.\"/a\"]\n{rules}[class.\"/a/b\"]\nmatch = \"tcp port 80\"\n")
    };
    let lost = said(&class("match = \"tcp\"\n"), &class(""));
    assert!(lost.iter().any(|s| s == "~ /a match - \"tcp\""), "{lost:#?}");
}

#[test]
fn the_subscribers_have_their_place_in_the_order() {
    let (a, s) = ("[class.\"/a\"]\nmatch = \"lan 10.0.0.1\"\n", "[class.\"/s\"]\n");
    let table = "id,addresses\nx,10.0.0.1\n";
    let (before, after) = (format!("{LINK}{a}{s}{TABLE}"), format!("{LINK}{s}{a}{TABLE}"));
    assert_eq!(said_with((&before, table), (&after, table)), ["~ /s now comes before /a"]);
}

#[test]
fn what_a_class_says_it_was_wins_over_the_path() {
    let before =
        format!("{LINK}[class.\"/old\"]\n[class.\"/old/c\"]\nmatch = \"tcp\"\nceil = \"5mbit\"\n");
    let after = format!(
        "{LINK}[class.\"/x\"]\nwas = \"/old/c\"\nmatch = \"tcp\"\nceil = \"5mbit\"\n\
         [class.\"/new\"]\nwas = \"/old\"\n[class.\"/new/c\"]\nmatch = \"udp\"\n"
    );
    assert_eq!(
        said(&before, &after),
        [
            "> /x was /old/c",
            "> /new was /old",
            "+ /new/c is new: rate 0bit, ceil 100mbit down, 20mbit up",
            "~ /new/c match + \"udp\"",
        ]
    );
    // what came from elsewhere is not what lay below the old name
    let before = format!(
        "{LINK}[class.\"/old\"]\n[class.\"/old/c\"]\nmatch = \"tcp\"\n\
         [class.\"/z\"]\nmatch = \"udp\"\n"
    );
    let after = format!(
        "{LINK}[class.\"/new\"]\nwas = \"/old\"\n[class.\"/new/c\"]\nwas = \"/z\"\n\
         match = \"udp\"\n"
    );
    let said = said(&before, &after);
    assert!(said.iter().any(|s| s.starts_with("- /old/c is removed")), "{said:#?}");
    assert!(said.iter().any(|s| s == "> /new/c was /z"), "{said:#?}");
}

#[test]
fn renaming_alone_says_the_new_name_and_nothing_else() {
    let policy = |name: &str, was: &str, server: &str| {
        format!(
            "{LINK}[group]\ng = [\"10.9.0.{server}\"]\n[class.\"/{name}\"]\n{was}\
             [class.\"/{name}/a\"]\nmatch = [\"lan g\", \"udp\"]\n[class.\"/{name}/s\"]\n\
             [subscribers]\nfile = \"s.csv\"\nunder = \"/{name}/s\"\n"
        )
    };
    let table = "id,addresses\nx,10.0.0.1\ny,10.0.0.2\n";
    let before = policy("old", "", "1");
    let after = policy("new", "was = \"/old\"\n", "1");
    assert_eq!(said_with((&before, table), (&after, table)), ["> /new was /old"]);
    let after = policy("new", "was = \"/old\"\n", "2");
    assert_eq!(
        said_with((&before, table), (&after, table)),
        ["> /new was /old", "~ /new/a match \"lan g\" now names other addresses"]
    );
}

#[test]
fn another_way_to_write_a_rule_is_no_change() {
    let class = |rule: &str| format!("{LINK}[class.\"/a\"]\nmatch = \"{rule}\"\n");
    assert_eq!(said(&class("tcp"), &class("proto tcp")), Vec::<String>::new());
    assert_eq!(said(&class("udp, up"), &class("up,  proto 17")), Vec::<String>::new());
}

#[test]
fn what_only_follows_from_above_is_said_there() {
    let text = |up: &str, words: &str| {
        format!("{}{words}[class.\"/s\"]\n{TABLE}", LINK.replace("\"20mbit\"", up))
    };
    let table: String =
        (0..200).fold("id,addresses\n".to_owned(), |t, n| t + &format!("c{n},10.0.0.{n}\n"));
    let change = |words| {
        let (before, after) = (text("\"20mbit\"", ""), text("\"25mbit\"", words));
        said_with((&before, &table), (&after, &table))
    };
    let shaped = "~ link office shaped to 100mbit down, 20mbit up -> 100mbit down, 25mbit up";
    // the ceiling of the unknown is a part of the link, and nobody reads that in the first line
    let rest = "~ /(rest) ceil 10mbit down, 2mbit up -> 10mbit down, 2.5mbit up";
    assert_eq!(change(""), [shaped, rest]);
    let enforced = "~ link office enforce auto -> queue";
    assert_eq!(change("enforce = \"queue\"\n"), [shaped, enforced, rest]);
    let named = "~ link office routers none -> 02:00:00:00:00:09";
    assert_eq!(change("routers = \"02:00:00:00:00:09\"\n"), [shaped, named, rest]);
    let words = "[class.\"/w\"]\nqueue = \"fifo\"\n[class.\"/w/x\"]\nmatch = \"tcp\"\n";
    let (before, after) =
        (format!("{LINK}{words}"), format!("{LINK}{words}").replace("fifo", "fair"));
    assert_eq!(said(&before, &after), ["~ /w queue fifo -> fair"]);
}

#[test]
fn a_long_list_of_moved_addresses_says_how_many_more() {
    let text = format!("{LINK}[class.\"/s\"]\n{TABLE}");
    let table = |shift: u32| {
        (0..60).fold("id,addresses\n".to_owned(), |t, n| {
            t + &format!("c{n},10.0.0.{}\n", (n + shift) % 60)
        })
    };
    let said = said_with((&text, &table(0)), (&text, &table(1)));
    assert_eq!(said.len(), 51, "{said:#?}");
    assert_eq!(said[50], "~ ... and 10 more such changes");
}
