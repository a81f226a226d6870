//! What `diff` says between two policies.

#[allow(dead_code)]
mod shared;

use shared::{LINK, plan};
use weir_policy::diff;

fn said(before: &str, after: &str) -> Vec<String> {
    let (before, after) = (plan(before, ""), plan(after, ""));
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
        "~ /b is asked before /a now",
    ] {
        assert!(said.iter().any(|s| s == want), "missing {want}\nsaid {said:#?}");
    }
    assert!(!said.iter().any(|s| s.contains("gone")), "{said:#?}");
}
