//! What is wrong is said: all of it, each at its place, with its cure.

#[allow(dead_code)]
mod shared;

use proptest::prelude::*;
use shared::{LINK, plan, problems, reading};
use weir_policy::{Source, read};

#[test]
fn twelve_mistakes_are_twelve_problems_each_at_its_place() {
    let text = r#"[link.office]
lan = "eth1"
wan = "eth2"
down = "100mbit"
up = 20
conuts = "ethernet"

[group]
servers = ["10.0.1.5/24"]

[class."/voice"]
match = ["dscp eff"]
rate = "2mbyte"
priorty = "realtime"

[class."/office"]
match = ["lan server"]
rate = "110mbit"

[class."/offices/backup"]
match = ["tcp prot 873"]
ceil = "10mbit"

[class."/a"]
match = ["udp port 5000-6000"]
queue = "fare"

[class."/b"]
match = ["udp port 5060"]
"#;
    let said = problems(text, "");
    let want = [
        r#"weir.toml:5:6 error: "up" is a number, not a string (write up = "20mbit", if that is the unit that you mean)"#,
        r#"weir.toml:6:1 error: link "office" has no word "conuts" (did you mean "counts"?)"#,
        concat!(
            r#"weir.toml:9:12 error: "10.0.1.5/24" is not an address or block such as "10.0.0.5", "10.0.0.0/8" or "2001:db8::/32": "#,
            r#"bits are set behind the length (did you mean "10.0.1.0/24"?)"#,
        ),
        r#"weir.toml:12:16 error: "eff" is not a code point (0 to 63 or its name) (did you mean "ef"?)"#,
        r#"weir.toml:13:8 error: "rate" cannot be "2mbyte": "mbyte" is not one of bit, kbit, mbit, gbit, tbit (did you mean "16mbit"?)"#,
        r#"weir.toml:14:1 error: class "/voice" has no word "priorty" (did you mean "priority"?)"#,
        r#"weir.toml:17:15 error: there is no group "server" (did you mean "servers"?)"#,
        r#"weir.toml:18:8 error: "/office" is guaranteed 110mbit down but has a ceiling of 97mbit (lower the rate: the link has no more)"#,
        r#"weir.toml:20:8 error: "/offices/backup" has no parent: there is no class "/offices" (did you mean "/office/backup"? Or add [class."/offices"])"#,
        r#"weir.toml:21:15 error: "prot" cannot follow "tcp" (did you mean "port"?)"#,
        r#"weir.toml:26:9 error: "queue" cannot be "fare" (did you mean "fair"? ("fifo", "fair", "fair-host"))"#,
        r#"weir.toml:29:10 error: "udp port 5060" can never match: "udp port 5000-6000" of "/a" in line 25 matches all of its frames first (move "/b" before "/a", or remove it)"#,
    ];
    assert_eq!(said, want);
}

#[test]
fn what_can_never_work_is_said() {
    for (text, part) in [
        (
            "[class.\"/a\"]\nmatch = \"any\"\nrate = \"90mbit\"\n[class.\"/b\"]\nmatch = \"up\"\nrate = { down = \"20mbit\" }\n",
            "guaranteed 110mbit down",
        ),
        (
            "[class.\"/a\"]\nrate = \"5mbit\"\n[class.\"/a/b\"]\nmatch = \"any\"\nrate = \"6mbit\"\n",
            "guaranteed 6mbit down, but it has 5mbit",
        ),
        (
            "[class.\"/a\"]\n[class.\"/a/b\"]\nmatch = \"any\"\nrate = \"40%\"\n",
            "a percentage of the rate of \"/a\", which has no rate",
        ),
        ("[class.\"/a\"]\nmatch = \"dscp ef, dscp af41\"\n", "cannot match both"),
        (
            "[class.\"/a\"]\nmatch = \"any\"\nsession = { min = \"2mbit\", count = 100 }\n",
            "100 sessions of at least 2mbit",
        ),
        (
            "[class.\"/a\"]\nmatch = \"tcp\"\n[class.\"/b\"]\nmatch = \"tcp port 80\"\n",
            "can never match",
        ),
        ("[class.\"/a\"]\nmatch = [\"tcp\", \"tcp port 80\"]\n", "adds nothing"),
        ("[class.\"/a\"]\n", "no frame can reach"),
        (
            "[class.\"/a\"]\nmatch = \"tcp port 1-100\"\n[class.\"/b\"]\nmatch = \"tcp port 90-200\"\n",
            "overlaps with \"tcp port 1-100\"",
        ),
        (
            "[class.\"/a\"]\nmatch = \"dscp ef\"\n[class.\"/b\"]\nmatch = \"tcp\"\n",
            "\"/b\" overlaps with \"/a\": frames that match both go to \"/a\"",
        ),
        (
            "[class.\"/a\"]\nmatch = \"tcp port 1-100, lan 10.0.0.0/24\"\n[class.\"/b\"]\nmatch = \"tcp port 90-200\"\n",
            "note: \"/b\" overlaps with \"/a\"",
        ),
        (
            "[class.\"/a\"]\nmatch = \"up\"\nweight = 3\n[class.\"/b\"]\nmatch = \"down\"\nrate = \"1mbit\"\n",
            "is a number, but",
        ),
        ("[class.\"/a\"]\nmatch = \"any\"\nceil = \"200mbit\"\n", "above the 100mbit down"),
        (
            "[class.\"/a\"]\nmatch = \"any\"\nburst = \"5mbit\"\n",
            "neither an amount of bytes nor \
            a time",
        ),
        ("[class.\"/a\"]\nmatch = \"any\"\nenforce = \"ahab\"\n", "in the laboratory only"),
        ("[class.\"/1/2/3/4/5/6/7/8/9\"]\nmatch = \"any\"\n", "9 levels"),
        ("[class.\"a\"]\nmatch = \"any\"\n", "write \"/a\""),
        ("[class.\"/a\"]\nmatch = \"10.0.0.1\"\n", "which side"),
        (
            "[class.\"/a\"]\nmatch = { when = \"udp\", bytes = { at = \"ip 0\", value = 0x45, mask = 0x0f } }\n",
            "never matches",
        ),
        ("[group]\na = [\"b\"]\nb = [\"a\"]\n", "contains itself"),
        ("[subscribers]\nfile = \"missing.csv\"\n", "there is no such file"),
    ] {
        let text = format!("{LINK}{text}");
        let said = problems(&text, "");
        assert!(said.iter().any(|s| s.contains(part)), "{text}\nsaid: {said:#?}");
    }
}

#[test]
fn a_word_at_fault_is_pointed_at_also_at_the_end_of_a_line() {
    let text = format!("{LINK}[class.\"/a\"]\nmatch = \"udp, tcp port\"\n");
    assert!(problems(&text, "")[0].starts_with("weir.toml:8:15 error: \"tcp\" repeats"));
    let text = format!("{LINK}[class.\"/a\"]\nmatch = \"tcp lan port\"\n");
    assert!(problems(&text, "")[0].starts_with("weir.toml:8:18 error: \"port\" needs one"));
}

#[test]
fn syntax_errors_do_not_hide_each_other_nor_the_words() {
    let text = format!("{LINK}[class.\"/a\"]\nmatch = any\nqueue = \"fare\"\nrate = = 3\n");
    let said = problems(&text, "");
    assert!(said.iter().any(|s| s.contains(":8:9") && s.contains("quotes")), "{said:#?}");
    assert!(said.iter().any(|s| s.contains(":9:9") && s.contains("fair")), "{said:#?}");
    assert!(said.iter().any(|s| s.contains(":10:") && s.contains("TOML")), "{said:#?}");
}

const HEADER: &str = "id,name,parent,addresses,down_rate,down_ceil,up_rate,up_ceil\n";

#[test]
fn bad_rows_are_named_and_skipped_and_the_others_load() {
    let text = format!(
        "{LINK}[class.\"/s\"]\nrate = \"10mbit\"\n[class.\"/s/north\"]\n[subscribers]\nfile = \"s.csv\"\n\
         under = \"/s\"\n"
    );
    let table = format!(
        "{HEADER}a,A,north,10.0.0.1,1mbit,2mbit,1mbit,2mbit\n\
         b,B,nroth,10.0.0.2,1mbit,2mbit,1mbit,2mbit\n\
         c,C,north,10.0.0.300,1mbit,2mbit,1mbit,2mbit\n\
         d,D,north,10.0.0.1,1mbit,2mbit,1mbit,2mbit\n\
         e,E,north,10.0.0.5,3mbit,2mbit,1mbit,2mbit\n\
         f,F,north,10.0.0.6,1mbit\n\
         g,G,north,10.0.0.7,fast,,,\n\
         a,H,north,10.0.0.8,,,,\n\
         ,I,north,10.0.0.9,,,,\n\
         j,\"J, Jr\",,10.0.0.10;2001:db8::/56,,,,\n"
    );
    let said = problems(&text, &table);
    let want = [
        "s.csv:3:5 skipped: 1 subscriber was skipped because the class \"/s/nroth\" does not exist (row 3) (did you mean \"north\"?)",
        "s.csv:4:11 skipped: 1 subscriber was skipped because \"10.0.0.300\" is not",
        "s.csv:5:1 skipped: 1 subscriber was skipped because 10.0.0.1 is already the address of row 2",
        "s.csv:6:1 skipped: 1 subscriber was skipped because it is guaranteed 3mbit down but has a ceiling of 2mbit",
        "s.csv:7:1 skipped: 1 subscriber was skipped because the row has 5 fields, not 8",
        "s.csv:8:20 skipped: 1 subscriber was skipped because \"down_rate\" cannot be \"fast\"",
        "s.csv:9:1 skipped: 1 subscriber was skipped because the id \"a\" is the id of row 2",
        "s.csv:10:1 skipped: 1 subscriber was skipped because the row has no \"id\"",
    ];
    assert_eq!(said.len(), want.len(), "{said:#?}");
    for (said, want) in said.iter().zip(want) {
        assert!(said.starts_with(want), "{said}\nis not\n{want}");
    }
    let reading = reading(&text, &table);
    assert!(reading.is_at_fault());
    let plan = &reading.plans[0];
    assert!(plan.find("/s/north/a").is_some() && plan.find("/s/j").is_some());
    assert_eq!(plan.node(plan.find("/s/j").unwrap()).name.as_deref(), Some("J, Jr"));
    assert_eq!(plan.subscribers.len(), 3);
}

#[test]
fn a_wrong_header_is_one_problem_and_not_one_per_row() {
    let text = format!("{LINK}[subscribers]\nfile = \"s.csv\"\n");
    let said = problems(&text, "id,adresses\na,10.0.0.1\nb,10.0.0.2\n");
    assert_eq!(said.len(), 1, "{said:#?}");
    assert!(said.iter().any(|s| s.contains("did you mean \"addresses\"")));
}

#[test]
fn three_bad_rows_of_a_hundred_thousand_with_one_cause_are_one_problem() {
    let text = format!("{LINK}[subscribers]\nfile = \"s.csv\"\n");
    let mut table = HEADER.to_owned();
    for n in 0..100_000u32 {
        let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 + n);
        let rate = if n % 40_000 == 7 { "1mbitt" } else { "" };
        table += &format!("s{n},,,{address},{rate},,,\n");
    }
    let reading = reading(&text, &table);
    assert_eq!(reading.problems.len(), 1, "one cause is one line: {:?}", reading.problems);
    assert!(reading.problems[0].what.ends_with("(rows 9, 40009, 80009)"), "{:?}", reading.problems);
    assert_eq!(reading.plans[0].subscribers.len(), 99_997);
}

const SITES: &str = "[class.\"/s\"]\n[class.\"/s/n\"]\n[subscribers]\nfile = \"s.csv\"\n";

#[test]
fn a_row_that_was_skipped_takes_nothing_from_the_next() {
    let text = format!("{LINK}[subscribers]\nfile = \"s.csv\"\n");
    let said = problems(
        &text,
        "id,addresses\n1,10.0.0.1\n2,10.0.0.1;10.0.0.2\n3,10.0.0.2\n3,10.0.0.4\n4,10.0.0.4\n",
    );
    assert_eq!(said.len(), 2, "{said:#?}");
    assert!(said[0].contains(
        ":3:1 skipped: 1 subscriber was skipped because 10.0.0.1 is already the address of row 2"
    ));
    assert!(
        said[1].contains(
            ":5:1 skipped: 1 subscriber was skipped because the id \"3\" is the id of row 4"
        ),
        "{said:#?}"
    );
}

#[test]
fn a_subscriber_cannot_have_the_path_of_a_class() {
    let text = format!("{LINK}{SITES}");
    let said =
        problems(&text, "id,parent,addresses\nn,/s,10.0.0.1\nm,/s/,10.0.0.2\nk,/s/n/,10.0.0.3\n");
    assert_eq!(said.len(), 1, "{said:#?}");
    assert!(
        said[0].contains(
            ":2:1 skipped: 1 subscriber was skipped because the id \"n\" is the name of a class"
        ),
        "{said:#?}"
    );
}

#[test]
fn a_wrong_under_is_one_problem_and_not_one_per_row() {
    let text = format!("{LINK}{SITES}under = \"/site\"\n");
    let said = problems(&text, "id,parent,addresses\na,,10.0.0.1\nb,n,10.0.0.2\n");
    assert!(said.len() == 1 && said[0].contains("there is no class \"/site\""), "{said:#?}");
    let text = format!("{LINK}{SITES}under = \"/s/n\"\n");
    let said = problems(&text, "id,parent,addresses\na,x,10.0.0.1\nb,,10.0.0.2\n");
    assert!(said.len() == 1 && said[0].contains("leave the parent empty"), "{said:#?}");
}

#[test]
fn a_rate_that_cannot_be_read_is_one_problem() {
    let text = format!(
        "{LINK}[class.\"/x\"]\nrate = \"5mbti\"\n[class.\"/x/y\"]\nmatch = \"tcp\"\n\
         rate = \"15mbit\"\n[class.\"/x/z\"]\nmatch = \"udp\"\nrate = \"18mbit\"\n"
    );
    let said = problems(&text, "");
    assert!(said.len() == 1 && said[0].contains("\"5mbti\""), "{said:#?}");
}

#[test]
fn a_class_is_no_parent_of_itself() {
    let said = problems(&format!("{LINK}[class.\"/a/b\"]\nmatch = \"tcp\"\n"), "");
    let is_one = said.len() == 1 && said[0].contains("(add [class.\"/a\"]; it may be empty)");
    assert!(is_one, "{said:#?}");
    // and one without a parent is none for another; a name that goes on is
    let orphans = "[class.\"/a/b/c\"]\nmatch = \"tcp\"\n[class.\"/a/d\"]\nmatch = \"udp\"\n";
    let said = problems(&format!("{LINK}{orphans}"), "");
    assert!(said.iter().all(|said| !said.contains("did you mean")), "{said:#?}");
    let begun = "[class.\"/office\"]\n[class.\"/offic/b\"]\nmatch = \"tcp\"\n";
    let said = problems(&format!("{LINK}{begun}"), "");
    assert!(said.iter().any(|said| said.contains("did you mean \"/office/b\"?")), "{said:#?}");
}

#[test]
fn what_is_not_text_is_said_with_its_place() {
    let source = Source::new("weir.toml", &b"[link.\xff]"[..]);
    assert_eq!(read(source, &mut |_| unreachable!()).unwrap_err(), 6);
}

#[test]
fn an_empty_policy_asks_for_a_link() {
    assert!(problems("", "")[0].contains("has no link"));
    assert!(!plan(LINK, "").nodes.is_empty());
}

/// What is said of a class `/a` below a link without faults.
fn said_of(words: &str) -> Vec<String> {
    problems(&format!("{LINK}{words}"), "")
}

fn is_said(words: &str, part: &str) {
    let said = said_of(words);
    assert!(said.iter().any(|s| s.contains(part)), "{words}\nsaid: {said:#?}\nnot: {part}");
}

#[test]
fn a_cure_is_one_that_can_work() {
    let a = |words: &str| format!("[class.\"/a\"]\nmatch = \"any\"\n{words}\n");
    let two = |rate: &str| {
        format!(
            "[class.\"/x/a\"]\nmatch = \"up\"\nrate = \"{rate}\"\n\
             [class.\"/x/b\"]\nmatch = \"down\"\nrate = \"{rate}\"\n"
        )
    };
    for (words, part) in [
        (a("limit = \"0ms\""), "\"limit\" cannot be \"0ms\": its queue would drop every frame"),
        (a("limit = \"0 frames\""), "cannot be \"0 frames\": its queue would drop every frame"),
        (a("limit = \"0kb\""), "\"limit\" cannot be \"0kb\": its queue would drop every frame"),
        // the rate of a link is that of its line
        (two("15mbit").replace("/x/", "/"), "or correct \"up\" if the line carries more"),
        (format!("[class.\"/x\"]\nrate = \"1mbit\"\n{}", two("1mbit")), "or raise its own rate"),
        (a("rate = \"101mbit\""), "(lower the rate: the link has no more)"),
        (a("rate = \"2mbit\"\nceil = \"1mbit\""), "(lower the rate, or raise its ceil"),
        (a("weight = \"0mbit\""), "(write a number from 1, or a rate above zero)"),
    ] {
        is_said(&words, part);
    }
}

#[test]
fn a_part_of_a_rate_that_is_said_for_the_other_direction_is_a_part_of_nothing() {
    let b = "[class.\"/a/b\"]\nmatch = \"any\"\nrate = \"50%\"\n";
    let part = "which has no rate for \"up\"";
    is_said(&format!("[class.\"/a\"]\nrate = {{ down = \"10mbit\" }}\n{b}"), part);
    is_said(
        "[class.\"/a\"]\nmatch = \"any\"\neach = { by = \"lan-host\", rate = \"5%\" }\n",
        "\"rate\" in \"each\" is a percentage of the rate of \"/a\", which has no rate",
    );
    // a rate that cannot be read is one problem, and so is a part of nothing
    let said = said_of(&format!("[class.\"/a\"]\nrate = \"10mbits\"\n{b}"));
    assert!(said.len() == 1 && said[0].contains("mbits"), "{said:#?}");
    let c = b.replace("/a/b", "/a/b/c");
    let said = said_of(&format!("[class.\"/a\"]\n[class.\"/a/b\"]\nrate = \"50%\"\n{c}"));
    assert_eq!(said.len(), 1, "{said:#?}");
}

#[test]
fn a_line_that_cannot_be_read_is_one_problem() {
    let said = said_of(
        "[class.\"/a\"]\nmatch = [\"lan 10.0.0.0/33\"]\n[class.\"/a/b\"]\nmatch = [\"any\"]\n\
         [class.\"/c\"]\nmatch = [\"tcp\"]\n",
    );
    assert!(said.len() == 1 && said[0].contains("10.0.0.0/33"), "{said:#?}");
}

#[test]
fn problems_do_not_hide_others() {
    // of braces without bytes, also behind another problem
    is_said("rat = 1\n[class.\"/a\"]\nmatch = { when = \"udp\" }\n", "needs its \"bytes\"");
    for (by, kind) in [("by = \"hosts\", ", "kind = \"code\", "), ("", "")] {
        let words = format!(
            "[class.\"/a\"]\nmatch = \"any\"\neach = {{ {by}count = 0, v4 = 33 }}\n\
             aqm = {{ {kind}target = \"5mms\", min = 3 }}\n"
        );
        for part in ["\"count\" cannot be 0", "\"v4\" cannot be 33", "5mms", "\"min\" is a number"]
        {
            is_said(&words, part);
        }
        assert_eq!(said_of(&words).len(), 6, "{:#?}", said_of(&words));
    }
    let said = problems(
        "[class.\"/a\"]\nmatch = \"tcp\"\nrate = \"2mbit\"\nceil = \"1mbit\"\n\
         [class.\"/b\"]\nlink = \"x\"\nmatch = \"tcp port 80\"\n",
        "",
    );
    assert_eq!(said.len(), 3, "{said:#?}");
    assert!(said.iter().any(|s| s.contains("guaranteed 2mbit")), "{said:#?}");
    assert!(said.iter().any(|s| s.contains("can never match")), "{said:#?}");
    assert!(problems("[link]\n", "")[0].contains("has no link"));
}

#[test]
fn a_line_that_no_frame_satisfies_is_a_mistake() {
    let group = "[group]\nsix = [\"2001:db8::/32\"]\n";
    for line in [
        "untagged, vlan 5",
        "arp, lan 10.0.0.1",
        "arp, tcp",
        "arp, dscp ef",
        "ipv4, lan 2001:db8::/32",
        "ipv4, host six",
        "ipv6, lan 10.0.0.0/8",
        "lan 10.0.0.1, wan 2001:db8::1",
        "icmp, port 80",
        "proto 47, lan port 80",
        "length 0-13",
    ] {
        let words = format!("{group}[class.\"/a\"]\nmatch = \"{line}\"\n");
        is_said(&words, &format!("error: \"{line}\" never matches"));
    }
    for line in ["port +80", "vlan +5", "proto +6", "dscp +4", "mac +2:00:5e:10:00:01"] {
        is_said(&format!("[class.\"/a\"]\nmatch = \"{line}\"\n"), "error");
    }
    for line in ["ipv6, host six", "length 0-14", "arp, mac 02:00:5e:10:00:01", "proto 17, port 1"]
    {
        let said = said_of(&format!("{group}[class.\"/a\"]\nmatch = \"{line}\"\n"));
        assert_eq!(said, Vec::<String>::new());
    }
    let said =
        said_of("[class.\"/a\"]\nmatch = \"vlan 1-7\"\n[class.\"/b\"]\nmatch = \"untagged\"\n");
    assert_eq!(said, Vec::<String>::new(), "no frame has a tag and none");
}

#[test]
fn what_is_promised_to_one_must_be_there() {
    let class = |words: &str| format!("[class.\"/a\"]\nmatch = \"any\"\n{words}\n");
    let each = |words: &str| format!("each = {{ by = \"lan-host\", {words} }}");
    for (words, part) in [
        (
            format!("rate = \"1mbit\"\n{}", each("rate = \"2mbit\"")),
            "2mbit down, and the class 1mbit",
        ),
        (
            format!("ceil = \"1mbit\"\n{}", each("rate = \"2mbit\"")),
            "2mbit down but has a ceiling of 1mbit",
        ),
        (format!("ceil = \"1kbit\"\n{}", each("ceil = \"0.05%\"")), "is less than 1 bit/s"),
        (
            "ceil = \"1mbit\"\nsession = { min = \"2mbit\" }".to_owned(),
            "each session gets at least 2mbit",
        ),
        ("session = { min = \"9tbit\", count = 2 }".to_owned(), "are 18tbit down"),
        (
            "session = { min = \"1kbit\", count = 2, host = 1 }".to_owned(),
            "\"host\" limits the places of a host",
        ),
        ("rate = \"_mbit\"".to_owned(), "the number cannot be read"),
    ] {
        is_said(&class(&words), part);
    }
    // few of them are there at once
    let words = each("rate = \"1mbit\", count = 4000");
    assert_eq!(said_of(&class(&format!("rate = \"5mbit\"\n{words}"))), Vec::<String>::new());
    is_said(
        "[class.\"/a\"]\nceil = \"1kbit\"\n[class.\"/a/b\"]\nmatch = \"any\"\nceil = \"0.05%\"\n",
        "\"ceil\" of \"/a/b\" 0.05% of 1kbit down is less than 1 bit/s",
    );
}

#[test]
fn sums_of_guarantees_do_not_end_at_the_highest_rate() {
    let link = LINK.replace("100mbit", "10tbit").replace("20mbit", "10tbit");
    let two = |above: &str| {
        format!(
            "{link}{}[class.\"{above}/b\"]\nmatch = \"up\"\nrate = \"9tbit\"\n\
             [class.\"{above}/c\"]\nmatch = \"down\"\nrate = \"9tbit\"\n",
            if above.is_empty() { String::new() } else { format!("[class.\"{above}\"]\n") },
        )
    };
    let said = problems(&two(""), "");
    assert!(said.len() == 1 && said[0].contains("18tbit down, but it has 10tbit"), "{said:#?}");
    assert!(said[0].contains("reduce their rates by 8tbit"), "{said:#?}");
    let said = problems(&two("/a"), "");
    assert!(said.len() == 1 && said[0].contains("\"/a\" is guaranteed 18tbit"), "{said:#?}");
}

#[test]
fn a_row_that_asks_for_more_than_there_is_does_not_cost_the_class() {
    let text = format!(
        "{LINK}[class.\"/s\"]\nceil = \"5mbit\"\n{}under = \"/s\"\n",
        "[subscribers]\nfile = \"s.csv\"\n"
    );
    let table = "id,addresses,down_rate\na,10.0.0.1,6mbit\nb,10.0.0.2,4mbit\n";
    let said = problems(&text, table);
    assert_eq!(said.len(), 1, "{said:#?}");
    assert!(said[0].contains("2:1 skipped: 1 subscriber was skipped because it is guaranteed 6mbit down, and /s has 5mbit"));
    let reading = reading(&text, table);
    assert_eq!(reading.plans[0].subscribers.len(), 1);
    let table = reading.policy.subscribers.unwrap();
    assert_eq!((table.rows.len(), table.skipped.count()), (1, 1));
}

#[test]
fn blocks_of_all_rules_are_counted() {
    let blocks: Vec<String> =
        (0..2_000u32).map(|n| format!("\"10.{}.{}.0/24\"", n / 200, n % 200)).collect();
    let lines: Vec<String> = (0..1_100).map(|n| format!("\"lan g, wan port {n}\"")).collect();
    let words = format!(
        "[group]\ng = [{}]\n[class.\"/a\"]\nmatch = [{}]\n",
        blocks.join(","),
        lines.join(",")
    );
    is_said(&words, "has 2200000 address blocks in its rules");
}

#[test]
fn a_long_chain_of_groups_is_one_problem() {
    let chain = |count: usize, name: &dyn Fn(usize) -> usize| {
        let groups: String =
            (1..count).map(|n| format!("g{:06} = [\"g{:06}\"]\n", name(n), name(n - 1))).collect();
        format!("[group]\n{groups}g{:06} = [\"10.0.0.0/8\"]\n", name(0))
    };
    for (count, problems) in [(60_000, 1), (65, 1), (64, 0)] {
        for name in [&(|n| n) as &dyn Fn(usize) -> usize, &|n| 60_000 - n] {
            let said = said_of(&chain(count, name));
            assert_eq!(said.len(), problems, "{said:#?}");
            assert!(said.iter().all(|s| s.contains("more than 64 groups are nested")));
        }
    }
}

#[test]
fn eight_raw_bytes_can_have_any_value() {
    let words =
        "[class.\"/a\"]\nmatch = { bytes = { at = 0, length = 8, value = 0xffffffffffffffff } }\n";
    assert_eq!(said_of(words), Vec::<String>::new());
}

#[test]
fn a_thousand_rules_beside_a_thousand_are_compared_once() {
    // every rule is compared with every other, below parents of as many rules; worked out anew for
    // every pair, this takes a minute
    let mut words = String::new();
    for (class, child, side) in [("a", "wan", "lan"), ("b", "wan", "lan")] {
        let rules = |word: &str, from: usize| -> String {
            (0..1_000).map(|n| format!("\"{word} port {}\", ", from + n)).collect()
        };
        let (own, below) = (rules(side, 1), rules(child, 1));
        let dscp = if class == "a" { "dscp ef, " } else { "tcp, " };
        let below = below.replace("\"wan", &format!("\"{dscp}wan"));
        words += &format!("[class.\"/{class}\"]\nmatch = [{own}]\n");
        words += &format!("[class.\"/{class}/c\"]\nmatch = [{below}]\n");
    }
    is_said(&words, "\"/b/c\" overlaps with \"/a");
}

proptest! {
    /// Words of the language, thrown together.
    #[test]
    fn no_text_panics(parts in prop::collection::vec(prop_oneof![
        Just("[class.\"/a\"]\n".to_owned()), Just("[class.\"/a/b\"]\n".to_owned()),
        Just("[link.x]\n".to_owned()), Just("[group]\n".to_owned()), Just("[subscribers]\n".to_owned()),
        Just("rate = \"40%\"\n".to_owned()), Just("down = \"9tbit\"\n".to_owned()),
        Just("match = [\"tcp port 1-2, lan g\", {}]\n".to_owned()), Just("each = {by = 3}\n".to_owned()),
        Just("g = [\"g\", 1]\n".to_owned()), Just("session = {min = \"9tbit\", count = 99999}\n".to_owned()),
        Just("file = \"t\"\n".to_owned()), "[ -~]{0,20}\n",
    ], 0..20), table in ".{0,200}") {
        let _ = reading(&parts.concat(), &table);
        let _ = weir_policy::format(&parts.concat());
    }
}

#[test]
fn a_margin_is_a_part_or_is_found() {
    let said = |margin: &str| {
        let text = format!(
            "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"10mbit\"\nup = \"1mbit\"\n\
             margin = {margin}\n"
        );
        problems(&text, "")
    };
    let auto = "{ up = \"auto\", down = \"auto\" }";
    for right in ["\"97%\"", "\"auto\"", "{ down = \"auto\", up = \"100%\" }", auto] {
        assert_eq!(said(right), Vec::<String>::new(), "{right}");
    }
    let want = [
        r#"weir.toml:6:10 error: "margin" is a rate, not a percentage of the access link (write a percentage of the access link such as "97%", or "auto")"#,
    ];
    assert_eq!(said("\"9mbit\""), want);
    let want = [
        r#"weir.toml:6:10 error: "margin" cannot be "automatic": it does not start with a number (did you mean "auto"?)"#,
    ];
    assert_eq!(said("\"automatic\""), want);
}
